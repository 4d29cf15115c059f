"""Slice sampling by stepping out and shrinking (Neal 2003), every comparison with the level a race.

A point y is in the slice of x if p(y) ∏ f_n(y) > u p(x) ∏ f_n(x), with one u for the whole update: a race
of y against x, whose offset has log u added (DuBois, Korattikara, Welling & Smyth 2014).
"""

from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.random import Rng, as_generator
from gumbelrace.kernels.base import Info, Kernel
from gumbelrace.kernels.checks import check_part, check_state, check_target, real_fields, set_method
from gumbelrace.kernels.normal_laws import checked_scale, stretched
from gumbelrace.kernels.target import (
    Decisions,
    Likelihood,
    LogPrior,
    Position,
    checked_point,
    position_of,
    prior_at,
    prior_of_current,
)
from gumbelrace.methods.base import Method
from gumbelrace.methods.state import Question
from gumbelrace.population.base import Floats, checked_count

# By then a bracket has shrunk to nothing but rounding: the point stays where it is.
MOST_CANDIDATES = 200


class Directions(Protocol):
    """Chooses the lines along which a step moves."""

    def choose(self, rng: np.random.Generator, dimension: int) -> Floats:
        """Give directions, one a row, whatever the position is."""


@dataclass(frozen=True)
class EachCoordinate:
    """Move along each axis, one after another.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> gr.kernels.EachCoordinate().choose(np.random.default_rng(0), 2)
    array([[1., 0.],
           [0., 1.]])
    """

    def choose(self, rng: np.random.Generator, dimension: int) -> Floats:
        """Give the axes, and draw nothing from `rng`."""
        return np.eye(dimension)


@dataclass(frozen=True)
class RandomDirection:
    """Move along one line of random direction.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> float(np.linalg.norm(gr.kernels.RandomDirection().choose(np.random.default_rng(0), 3)).round(6))
    1.0
    """

    def choose(self, rng: np.random.Generator, dimension: int) -> Floats:
        """Give a direction with uniform law."""
        direction = rng.standard_normal((1, dimension))
        return direction / np.linalg.norm(direction)


@dataclass(frozen=True, eq=False)
class Slice(Kernel[Position]):
    """Slice sampling along lines, its comparisons decided by races of two arms.

    There is nothing to tune but a rough width. An update takes about six decisions; those about points
    far outside are the cheap ones.

    Parameters
    ----------
    likelihood : callable
        As in `Metropolis`.
    width : float, array_like of shape (d,) or (d, d)
        About the width of the target, in the form of the `scale` of `RandomWalk`; directions are
        stretched by it.
    max_steps_out : int
        Most steps by which the first bracket of one width grows. They are split at random between its
        two ends, which keeps the target invariant.
    directions : Directions
        `EachCoordinate` or `RandomDirection`.
    log_prior : callable, optional
        ``log_prior(x) -> float``. A point where it is -inf is outside, and nothing is read.
    delta, method : optional
        Who decides, and its δ: one of them, or neither. Default: ``Betting(0.001)`` where the population
        knows its reward range, else ``Race(delta=1e-5)``: errors add up along a chain.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(1.0, 1.0, 2000)
    >>> kernel = gr.Slice(lambda points: gr.table(-0.5 * (y[:, None] - points[:, 0]) ** 2), width=0.1)
    >>> state = kernel.start([0.0])
    >>> for _ in range(20):
    ...     state, info = kernel.step(rng, state)
    >>> bool(abs(state.position[0] - y.mean()) < 0.1)
    True
    """

    likelihood: Likelihood
    width: Any
    _: KW_ONLY
    max_steps_out: int = 8
    directions: Directions = field(default_factory=EachCoordinate)
    log_prior: LogPrior | None = None
    delta: InitVar[float | None] = None
    method: Method = None  # type: ignore[assignment]

    def __post_init__(self, delta: float | None) -> None:
        set_method(self, delta, Question.WINNER)
        object.__setattr__(self, "width", checked_scale(self.width))
        checked_count(self.max_steps_out, "max_steps_out", least=0)
        check_target(self.likelihood, self.log_prior)
        check_part(self.directions, "directions", "choose", "gumbelrace.kernels.RandomDirection()")

    def start(self, position: ArrayLike | None = None, *, rng: Rng = None) -> Position:
        """Give the state of a chain that starts from a position, array_like of shape (d,).

        Where the likelihood has an expansion (`parameter_taylor`), the default is its centre.
        """
        as_generator(rng)
        return Position(position_of(position, self))

    def as_state(self, state: Position) -> Position:
        """Give a position in double precision."""
        check_state(state, Position)
        found: Position = real_fields(state, "position")
        return found

    def step(self, rng: np.random.Generator, state: Position) -> tuple[Position, Info]:
        """Move along each line once."""
        check_state(state, Position)
        decisions, x = Decisions(self.method, rng), checked_point(state.position)
        lines, candidates = self.directions.choose(rng, len(x)), 0
        for direction in lines:
            level = prior_of_current(self.log_prior, x) - rng.standard_exponential()
            line = _Line(self, decisions, x, stretched(self.width, direction), level)
            x, tried = line.shrink(rng, *line.step_out(rng))
            candidates += tried
        return Position(x), decisions.info(len(lines) / candidates)


@dataclass(frozen=True, eq=False)
class _Line:
    """The points x + t v, and how high the slice through x is."""

    kernel: Slice
    decisions: Decisions
    x: Floats
    v: Floats
    level: float

    def contains(self, t: float) -> bool:
        """Whether x + t v is in the slice."""
        y = checked_point(self.x + t * self.v)
        offset = self.level, prior_at(self.kernel.log_prior, y)
        return self.decisions.prefers(self.kernel.likelihood, self.x, y, offset)

    def step_out(self, rng: np.random.Generator) -> tuple[float, float]:
        """Find a bracket: of length 1, with x anywhere in it, then longer while its ends are inside."""
        left = -rng.random()
        right = left + 1.0
        steps_left = int(rng.integers(self.kernel.max_steps_out + 1))
        steps_right = self.kernel.max_steps_out - steps_left
        while steps_left > 0 and self.contains(left):
            left, steps_left = left - 1.0, steps_left - 1
        while steps_right > 0 and self.contains(right):
            right, steps_right = right + 1.0, steps_right - 1
        return left, right

    def shrink(self, rng: np.random.Generator, left: float, right: float) -> tuple[Floats, int]:
        """Draw from the bracket, cutting it at each point outside, until a point is inside."""
        for tried in range(1, MOST_CANDIDATES):
            t = rng.uniform(left, right)
            if self.contains(t):
                return self.x + t * self.v, tried
            left, right = (t, right) if t < 0.0 else (left, t)
        return self.x, MOST_CANDIDATES
