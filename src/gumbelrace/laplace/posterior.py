"""Posterior draws of a model in one call: mode, law, expansion, pilot, chains, checks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.chain.run import run
from gumbelrace.chain.trace import Trace
from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import InvalidArgument
from gumbelrace.kernels.blocks import Blocks
from gumbelrace.kernels.metropolis import Metropolis, Mixture
from gumbelrace.kernels.normal_laws import NormalPseudoprior
from gumbelrace.kernels.target import Position, checked_point
from gumbelrace.laplace.blocks import plan_blocks
from gumbelrace.laplace.compiled import CompiledModel
from gumbelrace.laplace.convergence import split_rhat, warn_of_fit, warn_of_rhat
from gumbelrace.laplace.mode import find_mode, listed
from gumbelrace.laplace.model import Floats
from gumbelrace.laplace.other_modes import warn_of_other_modes
from gumbelrace.laplace.pilot import Forecast, Pilot, pilot_of
from gumbelrace.laplace.progress import Progress
from gumbelrace.methods.base import Method
from gumbelrace.population.base import checked_count
from gumbelrace.population.trial import checked_data, checked_dispatcher

# Independent proposals that are accepted less often than that are mixed with many small steps; those that
# are accepted more often than that, with few.
SELDOM, OFTEN = 0.2, 0.9
# The matrices of so many parameters take 200 MB each.
MOST_PARAMETERS = 5_000
# Correlations of small steps that are tried, and steps of each trial.
CORRELATIONS, TRIAL = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98), 300
# So many parameters or more are drawn in blocks where so few effective draws a step are expected otherwise.
BLOCKS_BELOW = ((64, 0.35), (8, 0.1))
FEW_SMALL_STEPS, SMALL_STEPS, MANY_SMALL_STEPS = 0.02, 0.1, 0.9


@dataclass(frozen=True, repr=False)
class Posterior:
    """A posterior, the normal law close to it, and the kernel that draws from it. See `posterior`.

    Attributes
    ----------
    mode : ndarray of shape (d,)
        The mode.
    law : NormalPseudoprior
        Laplace's approximation: the normal law of the same mode and curvature.
    forecast : Forecast
        What the pilot expects of a chain: rows a step, acceptance, effective draws a step.
    names : sequence of str
        The name of each parameter.
    kernel : Metropolis or Blocks
        The kernel: ``gr.run(posterior.kernel, steps=...)`` runs chains of it as well.
    """

    mode: Floats
    law: NormalPseudoprior
    forecast: Forecast
    names: Sequence[str]
    kernel: Metropolis | Blocks

    def __repr__(self) -> str:
        """Say what a chain will do."""
        return f"Posterior(parameters={len(self.mode)}, forecast: {self.forecast})"

    def sample(
        self, draws: int = 1000, *, chains: int = 4, warmup: int = 100, rng: Rng = None, **options: Any
    ) -> Trace[Position]:
        """Draw from the posterior.

        Parameters
        ----------
        draws, chains, warmup : int
            Draws of each chain, how many chains, and steps before that are not kept.
        rng : numpy.random.Generator, int, or None
            A generator, a seed, or None for no seed.
        **options
            As `run` takes them: `thin`, `progress`, `checkpoint`, `tag`, `check`.

        Returns
        -------
        Trace
            The draws, under the name "position".

        Warns
        -----
        PoorFit
            The pilot found that the normal law is so far from the posterior that little is saved.
        NotConverged
            Chains disagree: r-hat is above 1.01.
        PromiseBroken
            As `run` does.
        """
        generator = as_generator(rng)
        warn_of_fit(self.forecast)
        starts = [self.start(generator) for _ in range(checked_count(chains, "chains"))]
        trace = run(
            self.kernel, starts, steps=draws, warmup=warmup, chains=chains, rng=generator, **options
        )
        warn_of_rhat(split_rhat(trace["position"]), self.names)
        return trace

    def start(self, rng: np.random.Generator) -> Position:
        """Draw a state to start from, by the law, where the prior allows it."""
        for _ in range(100):
            point = self.law.sample(rng)
            if self.kernel.log_prior is None or self.kernel.log_prior(point) > -np.inf:
                return self.kernel.start(point)
        return self.kernel.start(self.mode)


def posterior(
    log_factor: Any,
    terms: Any,
    data: tuple[Any, ...],
    size: int,
    *,
    start: ArrayLike,
    log_prior: Callable[[Floats], float] | None = None,
    remainder: Callable[[Floats], ArrayLike] | None = None,
    method: Method | None = None,
    progress: bool = True,
) -> Posterior:
    """Make a posterior p(θ) ∝ p0(θ) ∏ f_n(θ) ready to be drawn from: find its mode, its law and a kernel.

    Parameters
    ----------
    log_factor : numba function
        ``log_factor(n, theta, *data) -> float``.
    terms : numba function
        ``terms(n, centre, direction, *data) -> (value, slope, curvature)``: log f_n at the centre, and its
        first two derivatives along `direction`.
    data : tuple
        Arrays and numbers that both take.
    size : int
        Number of rows N.
    start : array_like of shape (d,)
        Where to look for the mode, for example zeros. θ has no constraints: take logarithms of what is
        positive.
    log_prior : callable, optional
        ``log_prior(theta) -> float``, smooth, by numba for speed. Default: flat.
    remainder : callable, optional
        ``remainder(metric)`` gives M_n with ``|log f_n(θ) - h_n(θ)| ≤ M_n ‖W(θ - mode)‖³``, `metric` being
        W, h_n the second-order expansion: for example ``lambda metric: logistic.remainder(x, metric)``. It
        makes exact tests possible (`Thinning`).
    method : Method, optional
        Who decides; see `Metropolis`.
    progress : bool
        Say on standard error what is being done.

    Raises
    ------
    NoMode
        The posterior has no mode, or is flat along some parameters, which are named.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> from gumbelrace.models import logistic
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(20_000, 2))
    >>> y = (rng.uniform(size=len(x)) < 1 / (1 + np.exp(-x.sum(axis=1)))).astype(float)
    >>> fit = gr.posterior(logistic.log_factor, logistic.terms, (x, y), len(x), start=[0.0, 0.0])
    >>> trace = fit.sample(draws=500, rng=0, progress=False)
    >>> trace["position"].shape
    (4, 500, 2)
    """
    checked_dispatcher(log_factor, "log_factor")
    checked_dispatcher(terms, "terms")
    point = checked_point(start)
    given = checked_data(data, "(x, y)"), checked_count(size, "size")
    names = [f"theta[{i}]" for i in range(len(point))]
    model = CompiledModel(log_factor, terms, *given, log_prior, point, names, remainder)
    return made_ready(model, log_prior, method, Progress(wanted=progress))


def made_ready(model: Any, log_prior: Any, method: Method | None, said: Progress) -> Posterior:
    """Give the posterior with a kernel that draws all parameters at once, or blocks of them."""
    check_dimension(model.names)
    with said("mode"):
        mode = find_mode(model)
    with said("other modes"):
        warn_of_other_modes(model.few, mode, model.size)
    with said("pilot"):
        pilot = pilot_of(model, mode)
    law = NormalPseudoprior(mode.theta, pilot.root @ pilot.root.T)
    kernel: Metropolis | Blocks
    if any(len(mode.theta) >= d and pilot.forecast.effective < share for d, share in BLOCKS_BELOW):
        with said("blocks"):
            blocks, block_law, forecast = plan_blocks(model, mode)
        kernel = Blocks(blocks, block_law, log_prior=log_prior, method=method)  # type: ignore[arg-type]
    else:
        kernel = at_once(law, pilot, model.likelihood(mode, pilot), log_prior, method)
        forecast = pilot.forecast
    forecast = forecast._replace(ruled_out=pilot.forecast.ruled_out)
    said.tell(f"forecast: {forecast}")
    return Posterior(mode.theta, law, forecast, model.names, kernel)


def check_dimension(names: Sequence[str]) -> None:
    """Refuse more parameters than a dense covariance is meant for."""
    if len(names) > MOST_PARAMETERS:
        raise InvalidArgument(
            f"{len(names):,} parameters ({listed(names, range(len(names)))}); Laplace's law is a dense "
            f"matrix, of {MOST_PARAMETERS:,} at most: integrate some out, or use a sampler such as NUTS"
        )


def at_once(
    law: NormalPseudoprior, pilot: Pilot, likelihood: Any, log_prior: Any, method: Any
) -> Metropolis:
    """Give a kernel that draws all parameters, small steps tuned where others are seldom accepted."""
    acceptance = pilot.forecast.acceptance
    small_steps = FEW_SMALL_STEPS if acceptance > OFTEN else SMALL_STEPS
    proposal = Mixture(law, *pilot.tails, small_steps=small_steps)
    kernel = Metropolis(likelihood, proposal, log_prior=log_prior, method=method)
    return kernel if acceptance > SELDOM else tuned(kernel, proposal)


def tuned(kernel: Metropolis, proposal: Mixture) -> Metropolis:
    """Give the kernel with small steps of the length that leads farthest, by a short trial of each."""
    tried = [replace(proposal, small_steps=MANY_SMALL_STEPS, correlation=rho) for rho in CORRELATIONS]
    kernels = [replace(kernel, proposal=one) for one in tried]
    return max(kernels, key=lambda one: squared_jump(one, proposal.law))


def squared_jump(kernel: Metropolis, law: NormalPseudoprior) -> float:
    """Give the mean squared length of the steps of a short chain, in standard deviations of the law."""
    rng, chain = np.random.default_rng(0), kernel.start(law.mean)
    points: Any = kernel.steps(rng, chain, TRIAL).states.position
    z = np.stack([law.standardised(point) for point in points])
    return float(np.square(np.diff(z[TRIAL // 3 :], axis=0)).sum(axis=1).mean())
