"""Many steps of random-walk Metropolis in one compiled call.

A step takes a few microseconds once nothing of it is Python. The two points that are compared lie in an
array that the population reads from; before each race a small function, compiled for the user's prior and
control variate and called by its address, puts the offsets and reward ranges of the two in place.
"""

import functools
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gumbelrace.control_variates.parameters import ParameterTaylor
from gumbelrace.core.jit import call_setter, kernel, part
from gumbelrace.core.packed import Packed, pack, unpack
from gumbelrace.errors import InvalidArgument
from gumbelrace.kernels.base import Block, Info
from gumbelrace.kernels.target import Position
from gumbelrace.methods.base import Asked, Method
from gumbelrace.methods.loop import Plan, answer
from gumbelrace.methods.questions import CURRENT, PROPOSED, Question
from gumbelrace.methods.state import EVALUATIONS, LOOKS
from gumbelrace.population.base import CODE, FINE, Floats
from gumbelrace.population.desk import SETTER
from gumbelrace.population.likelihood import Likelihood


class History(NamedTuple):
    """What the steps gave: an entry for each."""

    positions: Floats
    evaluations: NDArray[np.int64]
    looks: NDArray[np.int64]
    accepted: Floats


def can_compile(likelihood: Any, log_prior: Any, method: Method) -> bool:
    """Whether nothing of a step needs Python."""
    return (
        isinstance(likelihood, Likelihood)
        and likelihood.impossible is None
        and (likelihood.control is None or isinstance(likelihood.control, ParameterTaylor))
        and (log_prior is None or hasattr(log_prior, "py_func"))
        and method.is_a_race
    )


class CompiledWalk:
    """The points of a chain, and all that compiled code needs to move them.

    Parameters
    ----------
    likelihood : Likelihood
        Without a control variate, or with a `ParameterTaylor`.
    log_prior : numba function, or None
        ``log_prior(theta) -> float``.
    factor : ndarray of shape (d, d)
        A proposal is x + factor·z, z standard normal.
    method : Method
        One whose races are those of the engine.
    """

    def __init__(self, likelihood: Likelihood, log_prior: Any, factor: Floats, method: Method) -> None:
        self._factor, self._method = factor, method
        self._points, self._normal = np.zeros((2, len(factor))), np.zeros(len(factor))
        population, control = likelihood.bound(self._points)
        # The points come later, and the setter reads what is always read: nothing may be read here.
        self._population = population.residuals(control) if control else population
        self._rewards = likelihood.size * len(self._points)
        steps = control.data[1] if control else None
        self._setter, self._packed = _set_up(likelihood, log_prior or flat, self._points, steps)

    def steps(self, rng: np.random.Generator, position: Floats, count: int) -> Block[Position]:
        """Make steps from `position`."""
        history = _new_history(count, len(position))
        self._points[CURRENT] = position
        setter = self._setter.address, self._packed.address
        move = Asked(Question.ACCEPT)
        with self._method.plan(move, self._population, rng) as plan, rng.bit_generator.lock:
            made = walk(plan, rng, setter, self._points, self._factor, self._normal, history)
        if made < count:
            raise InvalidArgument(
                "log_prior, the control variate or a row that is always read gave NaN or +inf, or raised "
                f"an exception, at {self._points}"
            )
        rewards = np.full(count, self._rewards)
        counts: Any = (history.evaluations, rewards, history.looks, history.accepted)
        return Block(Position(history.positions), Info(*counts))


def _new_history(count: int, dimension: int) -> History:
    evaluations, looks = np.zeros((2, count), np.int64)
    return History(np.empty((count, dimension)), evaluations, looks, np.zeros(count))


@kernel
def walk(
    plan: Plan,
    rng: np.random.Generator,
    setter: tuple[int, int],
    points: Floats,
    factor: Floats,
    normal: Floats,
    history: History,
) -> int:
    """Make steps from points[CURRENT]; return how many, fewer than asked for after a fault."""
    source, offset, tally = plan.source, plan.state.offset, plan.state.tally
    for t in range(len(history.positions)):
        propose(rng, points, factor, normal)
        known = call_setter(
            setter[0], setter[1], offset.ctypes.data, source.low.ctypes.data, source.high.ctypes.data
        )
        if not (offset[CURRENT] < np.inf and offset[PROPOSED] < np.inf):
            return t
        winner = CURRENT
        if offset[PROPOSED] > -np.inf:  # else nothing is read
            winner = answer(plan)
            if source.fault[CODE] != FINE:
                return t
            history.evaluations[t] = tally[EVALUATIONS] + known
            history.looks[t] = tally[LOOKS]
        history.accepted[t] = winner == PROPOSED
        for i in range(points.shape[1]):
            points[CURRENT, i] = points[winner, i]
            history.positions[t, i] = points[CURRENT, i]
    return len(history.positions)


@part
def propose(rng: np.random.Generator, points: Floats, factor: Floats, normal: Floats) -> None:
    """Put a proposal beside the current point."""
    for i in range(len(normal)):
        normal[i] = rng.standard_normal()
    for i in range(len(normal)):
        step = 0.0
        for j in range(len(normal)):
            step += factor[i, j] * normal[j]
        points[PROPOSED, i] = points[CURRENT, i] + step


def _set_up(
    likelihood: Likelihood, log_prior: Any, points: Floats, steps: Floats | None
) -> tuple[Any, Packed]:
    """Compile what sets the offsets and ranges of the points (and the steps), and lay out its data."""
    control = likelihood.control
    if not isinstance(control, ParameterTaylor):
        packed = pack((points,))
        return _plain_setter(log_prior, packed.type), packed
    remainder = -1.0 if control.remainder is None else control.remainder
    known = np.array([remainder, control.rounding])
    expansion = (control.centre, control.gradient, control.hessian, control.metric, known)
    always = control.always.rows if control.always else np.empty(0, np.int64)
    packed = pack((points, steps, *expansion, always, *likelihood.data))
    return _taylor_setter(log_prior, likelihood.log_factor, control.order, packed.type), packed


@numba.njit
def flat(theta):  # type: ignore[no-untyped-def]
    """Give the log of a flat prior."""
    return 0.0


@numba.njit
def put_priors(log_prior, points, offset):  # type: ignore[no-untyped-def]
    """Put log priors into the offsets; return how many points are possible."""
    possible = 0
    for a in range(len(points)):
        offset[a] = np.nan  # stays if the prior raises an exception
        offset[a] = log_prior(points[a])
        possible += offset[a] > -np.inf
    return possible


@numba.njit
def read_always(log_factor, points, always, data):  # type: ignore[no-untyped-def]
    """Sum rows of both points, less the current one's: what they share cancels before it is added up."""
    current, proposed, lost = 0.0, 0.0, 0.0
    for row in always:
        here, there = log_factor(row, points[CURRENT], *data), log_factor(row, points[PROPOSED], *data)
        if not (here < np.inf and there < np.inf):
            return np.nan, np.nan
        if here == -np.inf:
            current = -np.inf
        if there == -np.inf:
            proposed = -np.inf
        if here > -np.inf and there > -np.inf and proposed > -np.inf:
            before, term = proposed, there - here
            proposed = before + term
            of_term = proposed - before
            lost += (before - (proposed - of_term)) + (term - of_term)
    return current, proposed + lost


@functools.lru_cache(maxsize=64)
def _plain_setter(log_prior: Any, data_type: Any) -> Any:
    @numba.cfunc(SETTER)
    def put(context, offset, low, high):  # type: ignore[no-untyped-def]
        (points,) = unpack(context, data_type)
        put_priors(log_prior, points, offset)
        return 0

    return put


@functools.lru_cache(maxsize=64)
def _taylor_setter(log_prior: Any, log_factor: Any, order: int, data_type: Any) -> Any:
    @numba.cfunc(SETTER)
    def put(context, offset, low, high):  # type: ignore[no-untyped-def]
        everything = unpack(context, data_type)
        points, steps, centre, gradient, hessian, metric, known, always = everything[:8]
        if put_priors(log_prior, points, offset) < len(points):
            return 0  # decided: nothing is read
        priors = offset[CURRENT], offset[PROPOSED]
        offset[CURRENT] = offset[PROPOSED] = np.nan  # stays if what follows raises an exception
        current, proposed = read_always(log_factor, points, always, everything[8:])
        for a in range(len(points)):
            for i in range(len(centre)):
                steps[a, i] = points[a, i] - centre[i]
            # The value at the centre is left out, which the points share.
            total, squared, length = 0.0, 0.0, 0.0
            for i in range(len(centre)):
                curved, scaled = 0.0, 0.0
                for j in range(len(centre)):
                    curved += hessian[i, j] * steps[a, j]
                    scaled += metric[i, j] * steps[a, j]
                total += steps[a, i] * (gradient[i] + 0.5 * curved)
                squared += scaled * scaled
                length += steps[a, i] * steps[a, i]
            offset[a] = priors[a] + (total + (current if a == CURRENT else proposed))
            if known[0] >= 0.0:
                high[a] = known[0] * squared ** (0.5 * (order + 1)) + known[1] * (1.0 + length)
                low[a] = -high[a]
        return len(always) * len(points)

    return put
