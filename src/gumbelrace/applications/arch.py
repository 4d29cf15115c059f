"""Bayesian choice of the order of an ARCH model (paper, section 5.2 and appendix C.2).

A chain over all orders at once: the order is drawn by a race with an arm for each, the parameter of the
current one moves by proposals for its Laplace approximation, and both read residuals of a control variate.
Weights of the orders, which start from Laplace's evidence and adapt for a while, let it visit all of them;
they are then fixed, and log p(q | r) is read off the visits. Importance sampling from Laplace's
approximation and the BIC of the package `arch` need no chain.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import InvalidArgument
from gumbelrace.kernels.metropolis import Autoregressive, Metropolis
from gumbelrace.kernels.model_choice import Candidate, CarlinChib, ModelChoice
from gumbelrace.kernels.normal_laws import NormalPseudoprior
from gumbelrace.methods.base import Method
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.race import Race
from gumbelrace.models.arch.data import Lagged, Returns, lagged
from gumbelrace.models.arch.likelihood import ArchLikelihood, Expansion, expand
from gumbelrace.models.arch.model import (
    TAU,
    Arch,
    Laplace,
    compiled_prior,
    laplace,
    log_evidence_by_importance,
)

Floats = NDArray[np.float64]
ORDERS = (5, 10, 15, 20, 25, 30)
# Decisions on a parameter are exact outside the ellipsoid with all but so much of its pseudoprior, and so
# large a share of the rows, those on which the control variate fits worst, is read every time. This is for
# so many rows or fewer. Of more rows, parameters vary less and the control variate fits better: both shares
# fall as 1 / N, and what they make a step read stays the same.
OUTSIDE, HEAD, ROWS = 0.001, 0.01, 13_000
PILOTS = 300
# Parts into which each chain is cut to find the error of the visits.
BATCHES = 20
# Draws of importance sampling.
DRAWS = 2000


@dataclass(frozen=True, eq=False)
class Setting(ABC):
    """Models of all orders, fitted to the same rows, and how a chain walks over them."""

    data: Lagged  # rows that have all lags of the largest order
    fits: tuple[Laplace, ...]  # the posterior of each model around its mode

    @property
    def orders(self) -> list[int]:
        return [fit.model.order for fit in self.fits]

    @property
    def log_evidence(self) -> Floats:
        """Laplace's log evidence of each model."""
        return np.array([fit.log_evidence for fit in self.fits])

    @property
    def exact_reads(self) -> int:
        """Likelihoods that an exact step evaluates if it keeps those of where it is."""
        return len(self.fits) * self.data.size

    @abstractmethod
    def kernel(self, method: Method | None = None, adapt_for: int = 0) -> CarlinChib:
        """Make the kernel of a chain over the orders; weights adapt in its first `adapt_for` steps."""

    def start(self, kernel: CarlinChib, rng: np.random.Generator) -> ModelChoice:
        """Give a state at the best order, with weights that make all orders about equally likely."""
        evidence = self.log_evidence
        weights = evidence.max() - evidence
        return kernel.start(int(evidence.argmax()), rng=rng)._replace(log_weights=weights)


@dataclass(frozen=True, eq=False)
class Fitted(Setting):
    """The setting of this library: an expansion of the log factors, and moves that need no gradients."""

    control: Expansion  # of all models

    def kernel(self, method: Method | None = None, adapt_for: int = 0) -> CarlinChib:
        """Make the kernel; see `Setting.kernel`.

        The default method is ``Race(first=8)``: residuals of the control variate are close to
        normal. Far from the modes, where they may not be, a guard decides exactly.
        """
        method = method or Race(first=8)
        tau = self.fits[0].model.tau
        likelihood = ArchLikelihood(self.data, tau, self.control)
        prior, models = compiled_prior(tau), []
        for fit in self.fits:
            law = NormalPseudoprior(fit.mean, fit.covariance)
            move = Metropolis(likelihood, Autoregressive(law), log_prior=prior, method=method)
            models.append(Candidate(move, law, prior))
        guard = None if isinstance(method, Exact) else 1.0 - OUTSIDE * fewer(self.data.size)
        return CarlinChib(models, likelihood, adapt_for=adapt_for, method=method, guard=guard)


def fit_orders(returns: Returns, orders: Sequence[int] = ORDERS, *, rng: Rng = None) -> Fitted:
    """Fit ARCH models of several orders to the same rows.

    `rng` draws the parameters at which the control variate is fitted.

    Examples
    --------
    >>> from gumbelrace.models.arch.data import simulate, standardised
    >>> rng = np.random.default_rng(0)
    >>> fitted = fit_orders(standardised(simulate(3000, rng)), (2, 10), rng=rng)
    >>> int(fitted.log_evidence.argmax())
    1
    """
    rng, (data, fits) = as_generator(rng), laplace_fits(returns, orders)
    models, pilots = [fit.model for fit in fits], [fit.sample(rng, PILOTS) for fit in fits]
    return Fitted(data, fits, expand(data, models, pilots, share=HEAD * fewer(data.size)))


def fewer(rows: int) -> float:
    """Give how much smaller shares are that keep what is read where there are more than `ROWS` rows."""
    return min(1.0, ROWS / rows)


def laplace_fits(
    returns: Returns, orders: Sequence[int], tau: float = TAU
) -> tuple[Lagged, tuple[Laplace, ...]]:
    """Find the mode of each order, all on the rows that have the lags of the largest."""
    data, models = models_of(returns, orders, tau)
    return data, tuple(laplace(model, data) for model in models)


def models_of(returns: Returns, orders: Sequence[int], tau: float = TAU) -> tuple[Lagged, list[Arch]]:
    """Give the models of all orders and the rows they have in common, or say what is wrong with them."""
    if len(orders) < 2 or sorted(set(orders)) != list(orders):
        raise InvalidArgument(f"orders are {list(orders)}; give two or more, each once, the lowest first")
    return lagged(returns, max(orders)), [Arch(order, tau) for order in orders]


class Order(NamedTuple):
    """What is known of one order."""

    order: int
    visits: int
    log_probability: float  # log p(q | r), up to rounding; the prior of the orders is uniform
    error: float  # its Monte Carlo standard error
    laplace: float  # the same by Laplace's approximation


def posterior(visited: NDArray[np.int64], log_weights: Floats, setting: Setting) -> list[Order]:
    """Estimate log p(q | r) from chains with fixed weights: `visited[c, t]` is the number of a model."""
    count = len(setting.fits)
    shares = _batch_shares(visited, count)
    share, error = shares.mean(axis=0), shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p, spread = np.log(share) - log_weights, error / share
    log_p, approximate = log_normalised(log_p), log_normalised(setting.log_evidence)
    counts = np.bincount(visited.ravel(), minlength=count)
    rows: Any = zip(setting.orders, counts, log_p, spread, approximate, strict=True)
    return [Order(q, int(n), float(p), float(e), float(a)) for q, n, p, e, a in rows]


def log_normalised(log_p: Floats) -> Floats:
    """Normalise logarithms of probabilities along the last axis."""
    return log_p - np.logaddexp.reduce(log_p, axis=-1, keepdims=True)


def _batch_shares(visited: NDArray[np.int64], count: int) -> Floats:
    length = visited.shape[1] // BATCHES
    if length == 0:
        raise InvalidArgument(f"chains of {visited.shape[1]} draws are too short; make {BATCHES} or more")
    batches = visited[:, : BATCHES * length].reshape(-1, length)
    shares: Floats = np.stack([(batches == k).mean(axis=1) for k in range(count)], axis=1)
    return shares


class Estimates(NamedTuple):
    """log p(q | r) of each order if all are equally likely before, and its standard error."""

    log_probability: Floats
    error: Floats


def by_importance(setting: Setting, rng: np.random.Generator, draws: int = DRAWS) -> Estimates:
    """Estimate by draws from the Laplace approximation of each order, weighted."""
    found = [log_evidence_by_importance(fit, setting.data, rng, draws) for fit in setting.fits]
    evidence, error = np.array([(one.log_evidence, one.error) for one in found]).T
    log_p = log_normalised(evidence)
    # The error of log p_q = e_q - log Σ exp e_k: derivatives δ_qk - p_k, errors independent.
    jacobian = np.eye(len(found)) - np.exp(log_p)
    return Estimates(log_p, np.sqrt(np.square(jacobian) @ np.square(error)))


def bic_by_package(returns: Returns, orders: Sequence[int]) -> list[float] | None:
    """Give the BIC of each order by the package `arch`, if that is installed; the smallest is best.

    The package knows no segments: the returns are taken as one series. All orders are fitted to the same
    rows, with innovations of Student's t and no mean.
    """
    if find_spec("arch") is None:
        return None
    arch_model = import_module("arch").arch_model
    kind = {"mean": "Zero", "vol": "ARCH", "dist": "t", "rescale": False, "hold_back": max(orders)}
    models = [arch_model(returns.values, p=order, **kind) for order in orders]
    return [float(model.fit(disp="off", show_warning=False).bic) for model in models]
