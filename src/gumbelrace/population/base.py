"""What every finite population of rewards has: a size, arms, a reader, and an order of its rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import call, part
from gumbelrace.core.orders import NO_ROWS, Stream, Streams
from gumbelrace.core.random import Rng, as_generator
from gumbelrace.core.rows import IndependentRows, Rows
from gumbelrace.errors import (
    FactorFailed,
    InvalidArgument,
    InvalidReward,
    NoPossibleArm,
    RewardOutOfRange,
    ShapeMismatch,
)
from gumbelrace.population.arrays import LARGEST_REWARD, NO_REWARD, ByArm, by_name, floats, no_rewards
from gumbelrace.population.control import ControlVariate, Known, checked_impossible, nothing_known

Floats = NDArray[np.float64]
Range = tuple[Floats, Floats]

# Entries of Source.fault, and the codes of its first one
CODE, ROW, ARM = 0, 1, 2
FINE, FAILED, NOT_A_REWARD, OUT_OF_RANGE, IMPOSSIBLE, BEYOND_BOUND = range(6)


NO_RANGE = "reward_range must be (low, high), each a number or an array of length {}"
IN_RANDOM_ORDER = "the rows lie in random order"


class Source(NamedTuple):
    """What compiled code needs to read a population (it changes `fault` and `ruled_out`)."""

    reader: int  # address of a READER
    context: int  # address that the reader takes
    arms: int
    chunk: int  # most rows in one call of the reader
    verify: bool  # rewards have not been checked yet
    low: Floats
    high: Floats
    direct: Floats  # the rewards themselves, if they lie in memory as [arm, position]; else empty
    scan_speed: float  # how much less a reward costs in a scan than in a race
    fault: NDArray[np.int64]
    ruled_out: NDArray[np.uint8]  # arms that have shown a reward of -inf
    tail: NDArray[np.int64] = NO_ROWS  # the row at each place; empty: places are rows


@part
def read(
    source: Source,
    rows: NDArray[np.int64],
    n_rows: int,
    arms: NDArray[np.int64],
    n_arms: int,
    out: Floats,
    column: int,
) -> int:
    """Read rewards into out[arm, column:column + n_rows]; return how many, 0 after a fault."""
    stride = out.shape[1]
    out_at = out.ctypes.data + 8 * column
    words = source.context, rows.ctypes.data, n_rows, arms.ctypes.data, n_arms, out_at, stride
    count = call(source.reader, words)
    if count == 0:
        source.fault[CODE] = FAILED
        source.fault[ROW], source.fault[ARM] = rows[0], arms[0]
    elif source.verify and not _verify(source, rows, n_rows, arms, n_arms, out, column):
        count = 0
    return count


@part
def _verify(
    source: Source,
    rows: NDArray[np.int64],
    n_rows: int,
    arms: NDArray[np.int64],
    n_arms: int,
    out: Floats,
    column: int,
) -> bool:
    for a in range(n_arms):
        arm, allowed, impossible = np.uint64(arms[a]), 0, 0
        low, high = max(source.low[arm], -LARGEST_REWARD), source.high[arm]
        # Counting runs in vector registers; looking for the culprit need not be fast.
        for i in range(np.uint64(column), np.uint64(column + n_rows)):
            allowed += (out[arm, i] >= low) & (out[arm, i] <= high)
            impossible += out[arm, i] == -np.inf
        if source.low[arm] == -np.inf:
            allowed += impossible
        if allowed < n_rows:
            return _blame(source, rows, n_rows, arms[a], out, column)
        source.ruled_out[arm] |= impossible > 0
    return True


@part
def _blame(
    source: Source, rows: NDArray[np.int64], n_rows: int, arm: int, out: Floats, column: int
) -> bool:
    """Note the first reward of an arm that is not allowed."""
    for i in range(n_rows):
        reward = out[arm, column + i]
        valid = abs(reward) <= LARGEST_REWARD or reward == -np.inf
        if not valid or not (source.low[arm] <= reward <= source.high[arm]):
            source.fault[CODE] = OUT_OF_RANGE if valid else NOT_A_REWARD
            source.fault[ROW], source.fault[ARM] = rows[i], arm
            return False
    return False


class Population(ABC):
    """A finite population of rewards: `sizes[i]` of them for each arm i.

    Populations are made by `gumbelrace.table`, `factors`, `compiled` and `independent`; methods read
    them. Their rewards do not change, and several threads may read them at once.

    Attributes
    ----------
    arms : int
        Number of arms, D.
    sizes : ndarray of int64
        Number of rewards of each arm that a race may read: those of the tail, where rows have a head.
    """

    #: How much less a reward costs when all rows are scanned than when random ones are read.
    scan_speed = 1.0
    #: Whether rewards must be checked as they are read.
    verify = True
    #: Most rows that one call of the reader is asked for.
    chunk = 256
    #: Whether asking for `reward_range` costs a pass over the data.
    _range_is_lazy = False
    #: What to do about a -inf that a race did not meet.
    undeclared = (
        "it missed a -inf: name the rows that can be one (impossible=), which are then read in full"
    )
    #: What a reward that lies outside its range is called, and what to do about it.
    out_of_range = "reward", "reward_range", "widen the range or mend the factor"
    #: What of the arms' sums is known without a race: a control variate's sums.
    known: Known | None = None
    #: The names of the arms, if they have names.
    names: tuple[str, ...] | None = None

    def __init__(self, sizes: NDArray[np.int64]) -> None:
        self.arms, self.sizes = len(sizes), sizes
        self._independent: IndependentRows | None = None

    def __repr__(self) -> str:
        """Say how much there is, and nothing of the data."""
        return f"{type(self).__name__}(rewards={self.rewards:_}, arms={self.arms:_})"

    def arm_name(self, arm: int) -> str:
        """Give the name of an arm, for messages: its number, if it has none."""
        return repr(self.names[arm]) if self.names else str(arm)

    @property
    def rewards(self) -> int:
        """Number of rewards in all: what an exact scan reads."""
        return int(self.sizes.sum()) + self.read_before

    @property
    def averaged(self) -> int:
        """Number of rows by which sums are divided to give means, where arms share their rows."""
        return self.rewards // max(self.arms, 1)

    @property
    def read_before(self) -> int:
        """Number of rewards that were read when the population was made: those of the head."""
        return self.known.evaluations if self.known else 0

    @property
    @abstractmethod
    def reward_range(self) -> Range | None:
        """Lowest and highest reward of each arm, or None if nothing is known."""

    @property
    def knows_range(self) -> bool:
        """Whether `reward_range` is known or can be computed."""
        return self.reward_range is not None

    @property
    def assumption(self) -> str | None:
        """What a promise about draws rests on because of where the rewards come from; None: nothing."""
        return None

    @property
    def shares_order(self) -> bool:
        """Whether all draws read the rows in the same random order, cut into blocks.

        If not, every draw has a random order of its own. If so, a bound on the error of a draw is one on
        average over that order: given the order, the error of a draw may be somewhat larger or smaller, by
        the same amount for all draws.
        """
        return False

    def draw_order(self, rng: np.random.Generator | None) -> None:
        """Draw the order that all draws share from `rng`, if there is one and it was not drawn before.

        Parameters
        ----------
        rng : numpy.random.Generator or None
            None takes the randomness of the operating system.
        """
        return None

    @property
    def may_be_impossible(self) -> bool:
        """Whether any row may be -inf, since the range that was given goes down to there."""
        given = None if self._range_is_lazy or not self.verify else self.reward_range
        return given is not None and bool(np.isneginf(given[0]).any())

    @property
    def _finite(self) -> bool:
        """Whether the rows that can be -inf were declared, so that another one is an error."""
        return self.known is not None and self.known.finite

    def reshuffled(self, rng: Rng) -> Self:
        """Return the same population, its rows in a new random order if draws share one.

        Parameters
        ----------
        rng : numpy.random.Generator, int, or None
            A generator, a seed, or None for no seed.
        """
        as_generator(rng)
        return self

    def minus(self, control: ControlVariate) -> "Population":
        """Return a population with the same sums, of which only what `control` does not know is raced.

        Parameters
        ----------
        control : ControlVariate
            An approximation of the rewards with known sums, for example ``ParameterTaylor.at(points)``.
        """
        raise InvalidArgument(f"{type(self).__name__} takes no control variate; use factors or compiled")

    @property
    def identity(self) -> dict[str, Any]:
        """What the rewards follow from, in whatever order rows are read; checkpoints compare it."""
        return {"arms": self.arms, "sizes": self.sizes}

    @abstractmethod
    def _entry(self) -> tuple[int, int]:
        """Addresses of the reader and of its context."""

    def _direct(self) -> Floats:
        """Rewards that compiled code may read without the reader, indexed [arm, position]."""
        return np.empty((0, 0))

    def order(self, shared: bool) -> AbstractContextManager[Stream | Streams]:
        """Lend a random order of rows, one for all arms if they share rows or one for each."""
        return self.streams()

    def streams(self) -> AbstractContextManager[Streams]:
        """Lend a random order of rows for each arm, independent of the other arms'."""
        if self._independent is None:
            self._independent = self._independent_rows()
        return self._independent.streams()

    def _independent_rows(self) -> IndependentRows:
        return IndependentRows(self.sizes)

    @contextmanager
    def source(self, need_range: bool = False) -> Iterator[Source]:
        """Lend what compiled code needs to read; raise here what went wrong there."""
        reader, context = self._entry()
        bounds = self.reward_range if need_range or not self._range_is_lazy else None
        low, high = self._allowed(bounds)
        fault, ruled_out = np.zeros(3, np.int64), np.zeros(self.arms, np.uint8)
        chunk = min(self.chunk, int(self.sizes.max()))
        with self._guard():
            yield Source(
                reader,
                context,
                self.arms,
                chunk,
                self.verify,
                low,
                high,
                self._direct(),
                self.scan_speed,
                fault,
                ruled_out,
                self._tail(),
            )
        if fault[CODE] != FINE:
            self._raise(int(fault[CODE]), int(fault[ROW]), int(fault[ARM]), low, high)

    def _tail(self) -> NDArray[np.int64]:
        """Rows at the places that a race draws from; empty if places are rows."""
        return NO_ROWS

    def _guard(self) -> AbstractContextManager[None]:
        """Give what is to be done around compiled code that reads."""
        return nullcontext()

    def _allowed(self, bounds: Range | None) -> Range:
        """Give the range that is checked on every reward read."""
        return bounds or unlimited(self.arms, self._finite)

    def _row_name(self, row: int) -> int:
        return row

    def _raise(self, code: int, row: int, arm: int, low: Floats, high: Floats) -> None:
        if code == IMPOSSIBLE:
            hint = "" if self._finite or not self.verify else f"; if a chain went there, {self.undeclared}"
            raise NoPossibleArm(
                f"every arm has a reward or a log prior of -inf; at least one arm must be possible{hint}"
            )
        row, name = self._row_name(row), self.arm_name(arm)
        if code == BEYOND_BOUND:
            raise RewardOutOfRange(
                f"the rewards of row {row} are farther apart than its bound allows; enlarge the bound "
                "(remainder=) or mend the factor"
            )
        if code == FAILED:
            raise FactorFailed(
                f"log_factor raised an exception in a batch that starts with row {row}, arm {name}; "
                "its own message is on standard error"
            )
        if code == NOT_A_REWARD:
            raise InvalidReward(
                f"the reward of row {row}, arm {name} {NO_REWARD}; "
                "rescale it or mend the factor; -inf means an impossible arm"
            )
        if self._finite and low[arm] == -LARGEST_REWARD:
            raise RewardOutOfRange(
                f"the reward of row {row}, arm {name} is -inf and the row is not among `impossible`; "
                "declare it there"
            )
        what, its_range, remedy = self.out_of_range
        raise RewardOutOfRange(
            f"the {what} of row {row}, arm {name} lies outside its {its_range} "
            f"[{low[arm]:.6g}, {high[arm]:.6g}]; {remedy}"
        )


class HasPopulation(Protocol):
    """What is no population, but has one: a table in files."""

    def population(self) -> Population:
        """Give the population."""


Rewards = Population | HasPopulation | ArrayLike  # what users may give where rewards are meant


class SharedPopulation(Population):
    """A population whose arms share their rows: one reward of every arm from each of `size` rows."""

    #: The same population without a declaration of rows that can be -inf, and rows with these as the head.
    _undeclared: tuple["SharedPopulation", Rows] | None = None

    def __init__(self, rows: Rows, arms: int) -> None:
        super().__init__(np.full(arms, rows.tail_size, np.int64))
        self.rows = rows

    def __repr__(self) -> str:
        """Say how many rows and arms there are."""
        return f"{type(self).__name__}(size={self.size:_}, arms={self.arms:_})"

    @property
    def size(self) -> int:
        """Number of rows, N."""
        return self.rows.size

    @property
    def identity(self) -> dict[str, Any]:
        """What the rewards follow from, and which rows are the head."""
        return super().identity | ({"head": self.rows.head} if len(self.rows.head) else {})

    def declaring(self, impossible: ArrayLike | None) -> "SharedPopulation":
        """Return the same population, of which only the rows `impossible` can be -inf; None: any can."""
        rows = checked_impossible(impossible, self.size, self.reward_range)
        if rows is None:
            return self
        declared = self.rows.joined(Rows(self.size, head=rows))
        control = nothing_known(self.arms, self.reward_range).with_impossible(declared)
        population: Any = self.minus(control)
        population._undeclared = self, declared
        return population

    @property
    def assumption(self) -> str | None:
        """That the rows lie in random order, if blocks of them are read."""
        return IN_RANDOM_ORDER if self.shares_order else None

    @property
    def shares_order(self) -> bool:
        """Whether blocks of rows are read. See `Population.shares_order`."""
        return self.rows.block > 1

    def order(self, shared: bool) -> AbstractContextManager[Stream | Streams]:
        """Lend one random order of rows for all arms, or one for each."""
        return self.rows.stream() if shared else self.streams()

    def _independent_rows(self) -> IndependentRows:
        return IndependentRows(self.sizes, self.rows.block, self.rows.names)

    def _tail(self) -> NDArray[np.int64]:
        return self.rows.names


def unlimited(arms: int, finite: bool = False) -> Range:
    """Range of a population of which nothing is known, or only that no reward is -inf."""
    return np.full(arms, -LARGEST_REWARD if finite else -np.inf), np.full(arms, LARGEST_REWARD)


def checked_range(
    reward_range: tuple[ByArm, ByArm] | None, arms: int, names: tuple[str, ...] | None = None
) -> Range | None:
    """Turn a user's range into two arrays of length `arms`, or say what is wrong with it."""
    if reward_range is None:
        return None
    try:
        sides = [by_name(side, names, "reward_range") for side in reward_range]
    except TypeError as error:
        raise ShapeMismatch(NO_RANGE.format(arms)) from error
    try:
        low, high = (np.array(np.broadcast_to(floats(side, "reward_range"), (arms,))) for side in sides)
    except (TypeError, ValueError) as error:
        raise ShapeMismatch(NO_RANGE.format(arms)) from error
    bad = ~(low <= high) | np.isinf(high) | no_rewards(low) | no_rewards(high)
    if bad.any():
        arm = int(np.argmax(bad))
        raise InvalidArgument(
            f"reward_range of arm {arm} is [{low[arm]}, {high[arm]}]; "
            "low must not exceed high, high must be finite, and what is finite must not be beyond "
            f"{LARGEST_REWARD:g}; rescale larger rewards"
        )
    return low, high


def checked_count(value: Any, name: str, least: int = 1) -> int:
    """Return `value` as an int of at least `least`, or say what is wrong."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise InvalidArgument(f"{name} is {value!r}; it must be an integer of at least {least}")
    return int(value)


def checked_flag(value: Any, name: str) -> bool:
    """Return `value` if it is True or False: anything else was meant for another argument."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidArgument(f"{name} is {value!r}; it must be True or False")
    return bool(value)
