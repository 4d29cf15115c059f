"""Posterior draws of a model in one call: mode, law, expansion, pilot, chains, checks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.chain.run import run
from gumbelrace.chain.trace import Trace
from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import InvalidArgument, NoPossibleArm
from gumbelrace.kernels.blocks import Blocks
from gumbelrace.kernels.metropolis import Metropolis, Mixture
from gumbelrace.kernels.normal_laws import NormalPseudoprior
from gumbelrace.kernels.target import Position
from gumbelrace.laplace.blocks import Planned, plan_blocks
from gumbelrace.laplace.convergence import split_rhat, warn_of_fit, warn_of_rhat, warn_of_shortfall
from gumbelrace.laplace.heavy_tails import TIMES_OF_BLOCKS, stays_of, too_heavy
from gumbelrace.laplace.mode import Mode, find_mode, listed
from gumbelrace.laplace.model import Floats
from gumbelrace.laplace.other_modes import warn_of_other_modes
from gumbelrace.laplace.pilot import SEED, Forecast, Pilot, pilot_of, step_to_top
from gumbelrace.laplace.progress import Progress
from gumbelrace.laplace.tilted import tilted
from gumbelrace.methods.base import Method
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.penalty import PILOT_ROWS, Penalty
from gumbelrace.population.base import checked_count

# Independent proposals that are accepted less often than that are mixed with many small steps; those that
# are accepted more often than that, with few. If nearly all are, no better law is looked for.
SELDOM, OFTEN, NEARLY_ALWAYS = 0.2, 0.75, 0.9
# The matrices of so many parameters take 200 MB each.
MOST_PARAMETERS = 5_000
# Correlations of small steps that are tried, and steps of each trial.
CORRELATIONS, TRIAL = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98), 300
# Points at which expansions are fitted on average: as many as read about so many rows, within limits.
AFFORDABLE, FEWEST_POINTS, MOST_POINTS = 4e6, 16, 256
FEW_SMALL_STEPS, SMALL_STEPS, MANY_SMALL_STEPS = 0.02, 0.1, 0.9
WENT_WHERE_IMPOSSIBLE = (
    "a chain went where some row has a log factor of -inf, and read that row only later: give "
    "method=gumbelrace.Exact(), which reads all rows, or transform the parameters so that all are possible"
)


@dataclass(frozen=True, repr=False)
class Posterior:
    """A posterior, the normal law close to it, and the kernel that draws from it. See `posterior`.

    Attributes
    ----------
    mode : ndarray of shape (d,)
        The mode.
    law : NormalPseudoprior
        The normal law that proposes: it has the curvature of the posterior at its mode, and lies around
        that or, where the posterior is skewed, closer to its mean. In blocks, that is the mode of the
        parameters that all rows share, effects of groups integrated out.
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
            The pilot found that the normal law is so far from the posterior that little is saved; or
            chains have far fewer effective draws than it foresaw.
        NotConverged
            Chains disagree: r-hat is above 1.01.
        PromiseBroken
            As `run` does.
        """
        generator = as_generator(rng)
        warn_of_fit(self.forecast)
        starts = self.starts(generator, checked_count(chains, "chains"))
        options |= {"steps": draws, "warmup": warmup, "chains": chains}
        try:
            trace = run(self.kernel, starts, rng=generator, **options)
        except NoPossibleArm as error:
            raise NoPossibleArm(WENT_WHERE_IMPOSSIBLE) from error
        warn_of_rhat(split_rhat(trace["position"]), self.names)
        warn_of_shortfall(trace["position"], self.forecast, self.names)
        return trace

    def starts(self, rng: np.random.Generator, chains: int) -> list[Any]:
        """Draw states to start from."""
        return [self.start(rng) for _ in range(chains)]

    def start(self, rng: np.random.Generator) -> Any:
        """Draw a state to start from."""
        return self.kernel.start(self.point(rng))

    def point(self, rng: np.random.Generator) -> Floats:
        """Draw a point by the law, where the prior allows it; the mode if rows may not."""
        for _ in range(100 if self.forecast.ruled_out == 0.0 else 0):
            point = self.law.sample(rng)
            if self.kernel.log_prior is None or self.kernel.log_prior(point) > -np.inf:
                return point
        return self.mode


class Fit(NamedTuple):
    """A model, the mode with sums of its expansions, and what a pilot says of them."""

    model: Any
    mode: Mode
    pilot: Pilot

    @property
    def law(self) -> NormalPseudoprior:
        """The normal law around the top of the expansions."""
        covariance = self.pilot.root @ self.pilot.root.T
        return NormalPseudoprior(self.mode.theta + step_to_top(self.mode), covariance)

    @property
    def rate(self) -> float:
        """Effective draws for each multiplication, as far as they can be foreseen.

        None, where tails are too heavy for one law: those of blocks may reach them.
        """
        if self.pilot.forecast.heavy:
            return 0.0
        return self.pilot.forecast.effective / work_of_step(self.pilot.forecast.rows, len(self.mode.theta))


def made_ready(model: Any, log_prior: Any, method: Method | None, said: Progress) -> Posterior:
    """Give the posterior with a kernel that draws all parameters at once, or blocks of them."""
    check_dimension(model.names)
    with said("mode"):
        mode = find_mode(model)
    with said("other modes"):
        warn_of_other_modes(model.few, mode, model.size)
    with said("pilot"):
        first = Fit(model, mode, pilot_of(model, mode))
        if method is None and first.pilot.forecast.ruled_out > 0.0:
            method = Exact()  # whoever does not read a row that rules a point out keeps the point
        fit, kernel = fitted(first, log_prior, method)
    forecast, law, planned = fit.pilot.forecast, fit.law, None
    if method is None or not needs_bounds(method):  # those of blocks are not known
        planned = faster_blocks(model, mode, fit.rate, said)
    if planned is not None:
        kernel = Blocks(planned.blocks, planned.law, log_prior=log_prior, method=method)  # type: ignore[arg-type]
        forecast, law = forecast_by_blocks(fit, planned), planned.normal
    elif forecast.acceptance <= SELDOM:
        kernel = tuned(kernel, kernel.start(law.mean))
    if forecast.ruled_out > 0.0 and isinstance(method, Exact):
        forecast = forecast._replace(rows=float(model.size))
    said.tell(f"forecast: {forecast}")
    return Posterior(mode.theta, law, forecast, model.names, kernel)


def fitted(fit: Fit, log_prior: Any, method: Method | None) -> tuple[Fit, Metropolis | Blocks]:
    """Give the better of two fits, and a kernel that draws all parameters at once."""
    kernel = at_once(fit, log_prior, method)
    settled = needs_bounds(kernel.method) or isinstance(kernel.method, Exact) or is_good(fit)
    chosen = fit if settled else better(fit)
    return chosen, kernel if chosen is fit else at_once(chosen, log_prior, method)


def forecast_by_blocks(fit: Fit, planned: Planned) -> Forecast:
    """Give what is expected of sweeps, whose laws may reach tails that are too heavy for a single one."""
    model, forecast = fit.model, fit.pilot.forecast
    suspected = [list(model.names).index(name) for name in forecast.heavy]
    stays = stays_of(model, fit.mode, fit.pilot.root, planned.fall_to, suspected)
    names = tuple(model.names[i] for i in too_heavy(stays, TIMES_OF_BLOCKS))
    return planned.forecast._replace(ruled_out=forecast.ruled_out, heavy=names)


def needs_bounds(method: Any) -> bool:
    """Whether a method rests on bounds of residuals."""
    return bool(method.needs_range or getattr(method, "rings_are_few", False))


def is_good(fit: Fit) -> bool:
    """Whether hardly anything can be gained: as few rows are read as ever, and most moves are accepted."""
    return fit.pilot.forecast.acceptance > NEARLY_ALWAYS and fit.pilot.forecast.rows <= Penalty().first


def better(fit: Fit) -> Fit:
    """Give the fit by expansions that fit on average, if they are better."""
    root = fit.pilot.root
    count = int(np.clip(AFFORDABLE / fit.model.size, FEWEST_POINTS, MOST_POINTS))
    steps = np.random.default_rng(SEED).standard_normal((count, len(root))) @ root.T
    model, mode = tilted(fit.model, fit.mode, steps)
    other = Fit(model, mode, pilot_of(model, mode))
    return max(fit, other, key=lambda one: one.rate)


def faster_blocks(model: Any, mode: Mode, rate: float, said: Progress) -> Planned | None:
    """Plan blocks, if sweeps are foreseen to give more effective draws than `rate`, for as much work."""
    d = len(mode.theta)
    if d == 1 or rate >= most_by_blocks(d):
        return None
    with said("blocks"):
        planned = plan_blocks(model, mode)
    return planned if rate_of_blocks(planned) > rate else None


def work_of_step(rows: float, d: int) -> float:
    """Count multiplications of a step that reads so many rows, at two points.

    A row takes three products of vectors: its log factor, slope and curvature. A proposal takes a matrix
    and its inverse, which are triangular, and the sum of the expansions another one or two.
    """
    return 6.0 * d * (rows + PILOT_ROWS) + 3.0 * d * d


def most_by_blocks(d: int) -> float:
    """Bound the rate of blocks, of which there are two at least, with as few rows as any move reads."""
    return 0.5 / work_of_step(Penalty().first, d)


def rate_of_blocks(planned: Planned) -> float:
    """Give effective draws for each multiplication of sweeps, as far as they can be foreseen."""
    d, blocks = len(planned.law.centre), planned.blocks
    rows = planned.forecast.rows + PILOT_ROWS * (len(blocks) - 1)
    matrices = sum(block.matrix.size for block in blocks) + 2 * len(planned.law.hessian.values)
    return planned.forecast.effective / (
        work_of_step(rows, d) - 3.0 * d * d + 8.0 * d * len(blocks) + matrices
    )


def check_dimension(names: Sequence[str]) -> None:
    """Refuse more parameters than a dense covariance is meant for."""
    if len(names) > MOST_PARAMETERS:
        raise InvalidArgument(
            f"{len(names):,} parameters ({listed(names, range(len(names)))}); Laplace's law is a dense "
            f"matrix, of {MOST_PARAMETERS:,} at most: integrate some out, or use a sampler such as NUTS"
        )


def at_once(fit: Fit, log_prior: Any, method: Any) -> Metropolis:
    """Give a kernel that draws all parameters, with some small steps."""
    pilot = fit.pilot
    small_steps = FEW_SMALL_STEPS if pilot.forecast.acceptance > OFTEN else SMALL_STEPS
    proposal = Mixture(fit.law, *pilot.tails, small_steps=small_steps)
    likelihood = fit.model.likelihood(fit.mode, pilot)
    return Metropolis(likelihood, proposal, log_prior=log_prior, method=method)


def tuned(kernel: Any, start: Any) -> Any:
    """Give the kernel with small steps of the length that leads farthest, by a short trial of each."""
    proposal = kernel.proposal
    tried = [replace(proposal, small_steps=MANY_SMALL_STEPS, correlation=rho) for rho in CORRELATIONS]
    kernels = [replace(kernel, proposal=one) for one in tried]
    return max(kernels, key=lambda one: squared_jump(one, proposal.law, start))


def squared_jump(kernel: Any, law: NormalPseudoprior, start: Any) -> float:
    """Give the mean squared length of the steps of a short chain, in standard deviations of the law."""
    points: Any = kernel.steps(np.random.default_rng(0), start, TRIAL).states.position
    z = np.stack([law.standardised(point) for point in points])
    return float(np.square(np.diff(z[TRIAL // 3 :], axis=0)).sum(axis=1).mean())
