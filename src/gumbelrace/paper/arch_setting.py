"""The paper's setting of the ARCH experiment (section 5.2 and appendix C.2).

α and ν are softplus functions with τ = 1, the pseudopriors Laplace's. Parameters move along gradients of
minibatches (SGLD), corrected by a raced Metropolis-Hastings test, with a step size for each order at which
36% are accepted. The control variates are expansions in bins of the data; the 20% of the rows farthest
from their bin's mean are read every time. Weights of the orders start equal and adapt by 1 / (1 + t / 100).

Where the paper is silent: a batch has 500 rows and steps are isotropic. Where it errs: the conditional of q
has p(θ_q) / pseudoprior(θ_q), which the paper leaves out; without it the chain has another law.

The control variates: rows are put into bins of (r_t, σ_t²), σ_t² at the mode, by marginal quantiles. In its
bin a row's log density is expanded to the second order around the mean of r and the mean of a, the lags:
with σ² = α·a linear in them, deviations u = r_t - r̄ and v = α·(a_t - ā),

    h = g + g_r u + g_s v + ½ g_rr u² + g_rs uv + ½ g_ss v².

Its sum over a bin needs the moments of (u, a - ā) in it, which are stored. The paper leaves open at which α
the expansion is made; here it is the α of each arm, without which h would not follow the log density.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gumbelrace.applications.arch import ORDERS, Setting, laplace_fits
from gumbelrace.control_variates.cells import Cells, quantile_cells
from gumbelrace.control_variates.pilot import farthest
from gumbelrace.core.rows import Rows
from gumbelrace.kernels.langevin import Langevin, LangevinState
from gumbelrace.kernels.model_choice import Candidate, CarlinChib, ModelChoice
from gumbelrace.kernels.normal_laws import NormalPseudoprior
from gumbelrace.methods.base import Method
from gumbelrace.methods.bounds import Normal
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.race import Race
from gumbelrace.models.arch.data import Lagged, Returns
from gumbelrace.models.arch.likelihood import ArchLikelihood, models_by_order
from gumbelrace.models.arch.model import PAPER_TAU, Laplace
from gumbelrace.models.arch.rows import (
    ALPHA,
    CONSTANT,
    NU,
    ORDER,
    Floats,
    Indices,
    log_factor,
    row,
    row_derivatives,
    variance,
)
from gumbelrace.population.control import ControlVariate, table_of
from gumbelrace.population.likelihood import by_arm

# Entries of the terms of a bin: σ² of its reference, g, g_r, g_s, ½ g_rr, g_rs, ½ g_ss.
REFERENCE, VALUE, IN_R, IN_S, TWICE_R, MIXED, TWICE_S = range(7)
# The paper takes the estimated deviation for the true one.
PAPER_NORMAL = Normal(student=False)
BATCH = 500
ACCEPTANCE = 0.36
# Steps in which the step size of one order is found, and the one they start from.
WARMUP, FIRST_STEP = 400, 0.02


class Moments(NamedTuple):
    """Means and central moments of the rows of each bin of a model, those of the tail."""

    counts: Indices
    r: Floats  # (B,)
    lags: Floats  # (B, m)
    r_r: Floats  # (B,), sums of u²
    r_lags: Floats  # (B, m), sums of u (a - ā)
    lags_lags: Floats  # (B, m, m), sums of (a - ā)(a - ā)'


@dataclass(frozen=True, eq=False)
class Binned:
    """The paper's control variate for every set of points. See `binned`."""

    data: Lagged
    cells: Indices  # (N, K): bin of each row for each model
    deviations: Floats  # (N, K): r less that of the reference
    moments: tuple[Moments, ...]  # what the sums need
    model_of: Indices  # number of the model of each order
    rows: Rows  # the head, read every time, and the tail

    def at(self, points: Floats) -> ControlVariate:
        """Give the control variate whose arm i is points[i]."""
        found = [_expanded(self.moments[self.model_of[int(point[ORDER])]], point) for point in points]
        terms = np.zeros((len(points), self.cells.max() + 1, 7))
        for terms_of_arm, (of_bins, _) in zip(terms, found, strict=True):
            terms_of_arm[: len(of_bins)] = of_bins
        numbered = np.column_stack([points, self.model_of[points[:, ORDER].astype(np.int64)]])
        data = (numbered, *self.data.arrays, self.cells, self.deviations, terms)
        sums = np.array([total for _, total in found])
        return ControlVariate(expansion, data, sums, None, self.rows)


@row
def expansion(n, arm, points, squares, where, cells, deviations, terms):  # type: ignore[no-untyped-def]
    """Give the control variate of row n and an arm; a point ends with the number of its model."""
    point = points[arm]
    k = int(point[len(point) - 1])
    of_bin, u = terms[arm, cells[n, k]], deviations[n, k]
    v = variance(n, point, squares, where) - of_bin[REFERENCE]
    in_u = of_bin[IN_R] + of_bin[TWICE_R] * u + of_bin[MIXED] * v
    return point[CONSTANT] + of_bin[VALUE] + in_u * u + (of_bin[IN_S] + of_bin[TWICE_S] * v) * v


def binned(data: Lagged, fits: Sequence[Laplace], bins: int = 10, share: float = 0.2) -> Binned:
    """Make the paper's control variates.

    Parameters
    ----------
    data : Lagged
        Rows.
    fits : sequence of K Laplace
        Models with their modes.
    bins : int
        Number of quantile intervals on each axis; with 10 there are 100 bins, as in the paper.
    share : float
        Share of the rows, those farthest from their references, that is read every time.
    """
    variances = [data.design(fit.model.order) @ fit.model.natural(fit.mean)[0] for fit in fits]
    cells = [quantile_cells(np.column_stack([data.returns, s]), np.full(2, bins)) for s in variances]
    rows = Rows(data.size, head=farthest(np.max([c.distances() for c in cells], axis=0), share))
    # The head does not pull the references its way.
    cells = [c.only(rows.tail) for c in cells]
    moments = tuple(_moments(data, fit, c, rows.tail) for fit, c in zip(fits, cells, strict=True))
    return Binned(
        data,
        np.stack([c.cell for c in cells], axis=1),
        np.stack([data.returns - found.r[c.cell] for found, c in zip(moments, cells, strict=True)], axis=1),
        moments,
        models_by_order([fit.model for fit in fits], data),
        rows,
    )


def _moments(data: Lagged, fit: Laplace, cells: Cells, tail: Indices) -> Moments:
    of_bins = [tail[cells.cell[tail] == b] for b in range(len(cells.references))]
    return Moments(*map(np.stack, zip(*[_of_bin(data, fit.model.order, b) for b in of_bins], strict=True)))


def _of_bin(data: Lagged, order: int, rows: Indices) -> tuple[Floats, ...]:
    r, lags = data.returns[rows], data.design(order, rows)
    u, d = r - r.mean(), lags - lags.mean(axis=0)
    return np.array(len(rows)), r.mean(), lags.mean(axis=0), u @ u, u @ d, d.T @ d


def _expanded(moments: Moments, point: Floats) -> tuple[Floats, float]:
    """Give the terms of all bins at a point, and the sum of h over the rows in them."""
    alpha, nu, r = point[ALPHA : ALPHA + moments.lags.shape[1]], point[NU], moments.r
    s = moments.lags @ alpha
    g, in_s, _, twice_s = row_derivatives(s, nu, r**2)[:, :4].T
    k = nu * s + r**2
    in_r, mixed = -(nu + 1.0) * r / k, (nu + 1.0) * nu * r / k**2
    twice_r = (nu + 1.0) * (2.0 * r**2 / k - 1.0) / k
    terms = np.column_stack([s, g, in_r, in_s, 0.5 * twice_r, mixed, 0.5 * twice_s])
    spread = np.einsum("bij,i,j->b", moments.lags_lags, alpha, alpha)
    sums = moments.counts * (g + point[CONSTANT])
    sums += 0.5 * twice_r * moments.r_r + mixed * (moments.r_lags @ alpha) + 0.5 * twice_s * spread
    return terms, float(sums.sum())


@dataclass(frozen=True, eq=False)
class PaperSetting(Setting):
    """The paper's setting."""

    control: Binned
    log_steps: Floats  # logarithm of the step size of each order, with minibatches
    exact_log_steps: Floats  # with gradients of all rows

    @property
    def exact_reads(self) -> int:
        """As in `Setting`, and a gradient of all rows at the proposed parameter."""
        return super().exact_reads + self.data.size

    def kernel(self, method: Method | None = None, adapt_for: int = 0) -> CarlinChib:
        """Make the kernel of a chain over the orders; see `Setting.kernel`. An exact one has no control."""
        method = method or Race(PAPER_NORMAL)
        exact = isinstance(method, Exact)
        likelihood = ArchLikelihood(self.data, PAPER_TAU, None if exact else self.control)
        models = [
            candidate(fit, log_step, langevin(fit, likelihood, method))
            for fit, log_step in zip(
                self.fits, self.exact_log_steps if exact else self.log_steps, strict=True
            )
        ]
        return CarlinChib(models, likelihood, adapt_for=adapt_for, method=method)

    def rewards(self, points: Floats, rows: Indices) -> Floats:
        """Give log factors of rows and points, without the control variate."""
        table = table_of(by_arm(log_factor))
        rewards: Floats = table(rows, np.arange(len(points)), (points, *self.data.arrays))
        return rewards

    def start(self, kernel: CarlinChib, rng: np.random.Generator) -> ModelChoice:
        """Give a state at the best order, with equal weights."""
        return kernel.start(int(self.log_evidence.argmax()), rng=rng)


def candidate(fit: Laplace, log_step: float, kernel: Langevin) -> Candidate:
    state = functools.partial(LangevinState, log_step=log_step)
    return Candidate(kernel, NormalPseudoprior(fit.mean, fit.covariance), fit.model.log_prior, state)


def langevin(fit: Laplace, likelihood: ArchLikelihood, method: Method, warmup: int = 0) -> Langevin:
    """Make the moves of a parameter; exact ones follow the gradient of all rows."""
    data = likelihood.data
    return Langevin(
        likelihood,
        lambda index, x: fit.model.gradient(index, x, data),
        size=data.size,
        batch=data.size if isinstance(method, Exact) else min(BATCH, data.size),
        log_prior=fit.model.log_prior,
        prior_gradient=fit.model.prior_gradient,
        adapt_for=warmup,
        target_acceptance=ACCEPTANCE,
        method=method,
    )


def fit_paper_setting(
    returns: Returns, orders: Sequence[int] = ORDERS, *, rng: np.random.Generator
) -> PaperSetting:
    """Fit all orders to standardised returns, make the control variates and find the step sizes."""
    data, fits = laplace_fits(returns, orders, PAPER_TAU)
    control = binned(data, fits)
    raced, exact = ArchLikelihood(data, PAPER_TAU, control), ArchLikelihood(data, PAPER_TAU)
    race = Race(PAPER_NORMAL)
    return PaperSetting(
        data,
        fits,
        control,
        np.array([tuned(fit, langevin(fit, raced, race, WARMUP), rng) for fit in fits]),
        np.array([tuned(fit, langevin(fit, exact, Exact(), WARMUP), rng) for fit in fits]),
    )


def tuned(fit: Laplace, kernel: Langevin, rng: np.random.Generator) -> float:
    """Find the logarithm of the step size at which enough proposals are accepted."""
    state = LangevinState(fit.mean, np.log(FIRST_STEP), np.log(FIRST_STEP))
    for _ in range(WARMUP):
        state, _ = kernel.step(rng, state)
    return state.log_step
