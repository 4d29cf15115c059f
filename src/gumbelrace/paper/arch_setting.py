"""The ARCH experiment as the paper prints it (section 5.2 and appendix C.2).

α and ν are softplus functions with τ = 1, the pseudopriors Laplace's. Parameters move along gradients of
minibatches (SGLD), corrected by a raced Metropolis-Hastings test, with a step size for each order at which
36% are accepted. The control variates are expansions in bins of the data; the 20% of the rows farthest
from their bin's mean are always read. Weights of the orders start equal and adapt by 1 / (1 + t / 100).

Where the paper is silent: a batch has 500 rows and steps are isotropic. Where it errs: the conditional of q
has p(θ_q) / pseudoprior(θ_q), which the paper leaves out; without it the chain has another law.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gumbelrace.applications.arch import ORDERS, Floats, Setting, laplace_fits
from gumbelrace.kernels.langevin import Langevin, LangevinState
from gumbelrace.kernels.model_choice import Candidate, CarlinChib, ModelChoice
from gumbelrace.kernels.normal_laws import NormalPseudoprior
from gumbelrace.methods.base import Method
from gumbelrace.methods.bounds import Normal
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.race import Race
from gumbelrace.models.arch.fit import Laplace
from gumbelrace.models.arch.likelihood import ArchLikelihood
from gumbelrace.models.arch.model import PAPER_TAU
from gumbelrace.models.arch.rows import Indices, log_factor
from gumbelrace.models.returns import Returns
from gumbelrace.paper.arch_bins import Binned, binned
from gumbelrace.population.control import table_of
from gumbelrace.population.likelihood import by_arm

BATCH = 500
ACCEPTANCE = 0.36
# Steps in which the step size of one order is found, and the one they start from.
WARMUP, FIRST_STEP = 400, 0.02


@dataclass(frozen=True, eq=False)
class PaperSetting(Setting):
    """The paper's setting.

    Attributes
    ----------
    control : Binned
        The paper's control variates.
    log_steps, exact_log_steps : ndarray of shape (K,)
        Logarithm of the step size of each order, with minibatches and with gradients of all rows.
    """

    control: Binned
    log_steps: Floats
    exact_log_steps: Floats

    @property
    def exact_reads(self) -> int:
        """As in `Setting`, and a gradient of all rows at the proposed parameter."""
        return super().exact_reads + self.data.size

    def kernel(self, method: Method | None = None, adapt_for: int = 0) -> CarlinChib:
        """Make the kernel of a chain over the orders; see `Setting.kernel`. An exact one has no control."""
        method = method or Race(Normal(student=False))
        exact = isinstance(method, Exact)
        likelihood = ArchLikelihood(self.data, PAPER_TAU, None if exact else self.control)
        models = [
            candidate(fit, log_step, langevin(fit, likelihood, method))
            for fit, log_step in zip(
                self.fits, self.exact_log_steps if exact else self.log_steps, strict=True
            )
        ]
        return CarlinChib(models, likelihood, adapt_for, method=method)

    def rewards(self, points: Floats, rows: Indices) -> Floats:
        """Give log factors of rows and points, without the control variate."""
        table = table_of(by_arm(log_factor))
        rewards: Floats = table(rows, np.arange(len(points)), (points, *self.data.parts))
        return rewards

    def start(self, kernel: CarlinChib, rng: np.random.Generator) -> ModelChoice:
        """Give a state at the best order, with equal weights."""
        return kernel.start(rng, int(self.log_evidence.argmax()))


def candidate(fit: Laplace, log_step: float, kernel: Langevin) -> Candidate:
    """Make a model of the choice."""
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
        warmup=warmup,
        target_acceptance=ACCEPTANCE,
        method=method,
    )


def fit_paper_setting(
    returns: Returns, orders: Sequence[int] = ORDERS, *, rng: np.random.Generator
) -> PaperSetting:
    """Fit all orders, make the paper's control variates and find the step sizes.

    Parameters
    ----------
    returns : Returns
        Standardised returns.
    orders : sequence of int
        Orders to choose from.
    rng : numpy.random.Generator
        Source of randomness.
    """
    data, fits = laplace_fits(returns, orders, PAPER_TAU)
    control = binned(data, fits)
    raced, exact = ArchLikelihood(data, PAPER_TAU, control), ArchLikelihood(data, PAPER_TAU)
    race = Race(Normal(student=False))
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
