"""Posterior draws of a model written in jax.numpy, in one call."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gumbelrace.chain.run import show_progress
from gumbelrace.errors import InvalidArgument
from gumbelrace.jax.chain import BLOCK, Chains, Made, Small, chains_of
from gumbelrace.jax.checks import audited
from gumbelrace.jax.model import JaxModel
from gumbelrace.jax.packages import in_double, jax, jnp, random
from gumbelrace.jax.sweep import Sweeps, sweeps_of
from gumbelrace.jax.trace import JaxTrace, Pace
from gumbelrace.kernels.block_sweep import SMALL
from gumbelrace.kernels.block_sweep import SMALL_STEPS as SMALL_SWEEPS
from gumbelrace.kernels.normal_laws import NormalPseudoprior
from gumbelrace.laplace.convergence import warn_of_fit, warn_of_shortfall
from gumbelrace.laplace.habits import refuse
from gumbelrace.laplace.mode import find_mode
from gumbelrace.laplace.model import Floats
from gumbelrace.laplace.other_modes import warn_of_other_modes
from gumbelrace.laplace.pilot import Forecast, pilot_of
from gumbelrace.laplace.posterior import (
    CORRELATIONS,
    FEW_SMALL_STEPS,
    MANY_SMALL_STEPS,
    OFTEN,
    SELDOM,
    SMALL_STEPS,
    Fit,
    better,
    check_dimension,
    faster_blocks,
    forecast_by_blocks,
    is_good,
)
from gumbelrace.laplace.progress import Progress
from gumbelrace.population.base import checked_count


@dataclass(frozen=True, repr=False)
class JaxPosterior:
    """A posterior of a JAX model, and all that draws from it. See `posterior`.

    Attributes
    ----------
    mode : pytree
        The mode.
    law : NormalPseudoprior
        The normal law that proposes, of θ as a vector: the leaves of the pytree one after another. It is
        Laplace's approximation; in blocks, that of the parameters that all rows share lies at their mode
        with effects of groups integrated out.
    forecast : Forecast
        What the pilot expects of a chain: rows a step, acceptance, effective draws a step.
    """

    mode: Any
    law: NormalPseudoprior
    forecast: Forecast
    _chains: Chains | Sweeps

    can_check: ClassVar[bool] = True  # whether all rows are at hand

    def __repr__(self) -> str:
        """Say what a chain will do."""
        return f"JaxPosterior(parameters={len(self.law.mean)}, forecast: {self.forecast})"

    def sample(
        self,
        draws: int = 1000,
        *,
        chains: int = 4,
        warmup: int = 100,
        rng_key: Any = None,
        progress: bool = True,
        **others: Any,
    ) -> JaxTrace:
        """Draw from the posterior. Ctrl-C ends the chains, and gives what there is.

        Parameters
        ----------
        draws, chains, warmup : int
            Draws of each chain, how many chains, and steps before that are not kept.
        rng_key : key of jax.random, int, or None
            A key, a seed, or None for no seed.
        progress : bool
            Say on standard error what is being done, and show how far the chains are, in a terminal or a
            notebook, if the package rich is there.
        **others
            What other samplers take is refused; the message says what to do instead.

        Warns
        -----
        PoorFit, NotConverged
            The normal law is so far from the posterior that little is saved, or r-hat is above 1.01.
        PromiseBroken
            Moves that were judged again by all rows do not keep detailed balance.
        """
        refuse(others, JaxPosterior.sample)
        steps = checked_count(draws, "draws") + checked_count(warmup, "warmup", least=0)
        keys, said = random.split(as_key(rng_key), 3), Progress(progress)
        self.warn()
        with said("chains, compiled first"):
            start = self._starts(keys[0], checked_count(chains, "chains"))
            small = small_of(self._chains, self.forecast, start)
            made, interrupted = self._run(keys[1], (start, small), Pace(steps, warmup, progress))
        kept = Made(*(part[:, warmup:steps] for part in made))
        trace = self._trace(kept, interrupted)
        # Draws are worth more than the check, which Ctrl-C ends.
        if not interrupted and self.can_check:
            with said("check by all rows"), suppress(KeyboardInterrupt):
                trace = replace(trace, checked=audited(self._chains, keys[2], kept.z, trace.fraction))
        trace.warn()
        warn_of_shortfall(trace.positions, self.forecast, trace.names)
        return trace

    def warn(self) -> None:
        """Warn if a chain will read too many rows, or hardly move."""
        warn_of_fit(self.forecast)

    def _starts(self, key: Any, count: int) -> Floats:
        """Draw states to start from, by the law, where the posterior is finite; else the mode."""
        model, d = self._chains.model, len(self.law.mean)
        rng = np.random.default_rng(np.asarray(random.key_data(key)))
        drawn = rng.normal(size=(count, d))
        possible = [np.isfinite(model.value(theta)) for theta in self._chains.thetas(drawn)]
        return np.where(np.array(possible)[:, None], drawn, 0.0)

    def _run(self, key: Any, begun: tuple[Floats, Small], pace: Pace) -> tuple[Made, bool]:
        """Make steps by blocks, as many as are wanted and the rest of the last block."""
        (z, small), steps = begun, pace.plan.total
        blocks: list[Made] = []
        with show_progress([pace] * len(z), pace.shown) as refresh:  # type: ignore[list-item]
            try:
                for turn in range(-(-steps // BLOCK)):
                    made = self._chains.steps(random.fold_in(key, turn), z, small)
                    blocks.append(made)
                    z = made.z[:, -1]
                    pace.add(made, self._chains.model.size)
                    refresh()
            except KeyboardInterrupt:
                if len(blocks) * BLOCK <= pace.plan.warmup:
                    raise
        joined = Made(*(np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)))
        return joined, len(blocks) * BLOCK < steps

    def _trace(self, made: Made, interrupted: bool) -> JaxTrace:
        model, thetas = self._chains.model, self._chains.thetas(made.z)
        with in_double():
            draws = jax.jit(jax.vmap(jax.vmap(model.unravel)))(thetas)
        return JaxTrace(
            jax.tree.map(np.asarray, draws), thetas, model.names, model.size, made, interrupted=interrupted
        )


def made_ready(model: JaxModel, said: Progress) -> JaxPosterior:
    """Find mode, law and weights; blocks of parameters, where one draw of all is seldom accepted."""
    check_dimension(model.names)
    with said("mode"):
        mode = find_mode(model)
    with said("other modes"):
        warn_of_other_modes(model.few, mode, model.size)
    with said("pilot"):
        first = Fit(model, mode, pilot_of(model, mode))
        fit = first if is_good(first) else better(first)
    forecast, planned, law = fit.pilot.forecast, faster_blocks(model, mode, fit.rate, said), fit.law
    chains: Chains | Sweeps
    if planned is None:
        chains = chains_of(*fit)
    else:
        chains = sweeps_of(model, planned)
        forecast, law = forecast_by_blocks(fit, planned), planned.normal
    said.tell(f"forecast: {forecast}")
    with in_double():
        at_mode = jax.tree.map(np.asarray, model.unravel(jnp.asarray(mode.theta)))
    return JaxPosterior(at_mode, law, forecast, chains)


def small_of(chains: Chains | Sweeps, forecast: Forecast, start: Floats) -> Small:
    """Give small steps; where they are needed, of the length that leads farthest, by a trial of each."""
    if isinstance(chains, Sweeps):
        return Small(SMALL_SWEEPS, SMALL)
    if forecast.acceptance >= SELDOM:
        return Small(FEW_SMALL_STEPS if forecast.acceptance > OFTEN else SMALL_STEPS, 0.9)
    tried = [Small(MANY_SMALL_STEPS, rho) for rho in CORRELATIONS]
    return max(tried, key=lambda one: reach(chains.steps(random.key(0), start, one).z))


def reach(z: Floats) -> float:
    """Give the mean squared length of the steps of short chains."""
    return float(np.square(np.diff(z[:, BLOCK // 3 :], axis=1)).sum(axis=2).mean())


def check_callable(function: Any, name: str) -> None:
    """Refuse what is no function."""
    if not callable(function):
        raise InvalidArgument(f"{name} is {function!r}; it must be a function")


def check_numbers(model: JaxModel) -> None:
    """Refuse a log factor or a prior that gives anything but a number."""
    for what, found in model.shapes().items():
        if found.shape != ():
            raise InvalidArgument(f"{what} gives an array of shape {found.shape}; it must give a number")


def as_key(rng_key: Any) -> Any:
    """Give the key that a seed, a key of either kind or None stands for."""
    if rng_key is None:
        rng_key = int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(rng_key, int | np.integer) and not isinstance(rng_key, bool):
        return random.key(int(rng_key))
    if jnp.issubdtype(getattr(rng_key, "dtype", np.float64), jax.dtypes.prng_key):
        return rng_key
    try:
        return random.wrap_key_data(rng_key)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"rng_key is {rng_key!r}; pass a seed, for example 0, or jax.random.key(0)"
        ) from error
