"""Rewards that lie in an array or a memory-mapped file."""

import copy
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self, TypeVar

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.core.jit import FAST, READER, can_cache
from gumbelrace.core.packed import pack, unpack
from gumbelrace.core.random import Rng, as_generator, beside
from gumbelrace.core.rows import Rows, block_length
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.arrays import (
    LARGEST_REWARD,
    LARGEST_WHOLE,
    ROUNDED,
    ByArm,
    column_names,
    no_rewards,
    real_array,
    would_round,
)
from gumbelrace.population.base import (
    IN_RANDOM_ORDER,
    NOT_A_REWARD,
    OUT_OF_RANGE,
    Floats,
    Population,
    Range,
    SharedPopulation,
    checked_flag,
    checked_range,
)
from gumbelrace.population.control import ControlVariate, Indices, check_fit, known

PASS_ROWS = 65_536
# Held while a table's rows are shuffled, which happens once: one lock does for all tables.
ORDERING = threading.Lock()
AnyTable = TypeVar("AnyTable", "Table", "MappedTable")
READABLE = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"}


def table(
    rewards: ArrayLike,
    *,
    shuffled: bool = False,
    reward_range: tuple[ByArm, ByArm] | None = None,
    scan: bool = True,
) -> "Table | MappedTable":
    """Make a population of the rewards in an array.

    An array in memory is copied once, arm by arm, and its exact reward range is taken on the way. A table
    of 16,384 rows and more is then shuffled when it is first drawn from, by the generator that is given
    there: all draws from it share that order, in which they read random blocks. A new table and the same
    seed give the same draws; a table that was used before keeps its order, so that its draws also depend on
    the seed it was first used with (`reshuffled` gives a new order).

    A memory map is never copied: its rows are read where they lie, in random blocks if `shuffled` says
    that they already are in random order, else one by one, and its range is computed by one pass when a
    method first asks for it.

    Parameters
    ----------
    rewards : array_like of shape (N, D)
        Reward, or log factor, of each row and arm. The column names of a data frame (pandas, polars, Arrow)
        become the names of the arms.
    shuffled : bool
        Whether the rows already lie in random order. They are not shuffled then, and what is promised
        about draws rests on it.
    reward_range : (low, high), optional
        Bounds on the rewards of each arm, to spare the pass over a large file: numbers, or arrays of length
        D; where arms have names, also by these.
    scan : bool
        Whether a race may end with a scan of all rows, which takes less time than to read some in random
        order. Say False to know how many evaluations are needed, where each would be expensive.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> scores = np.random.default_rng(0).normal([0.0, 0.1, 0.15], 1.0, size=(10_000, 3))
    >>> gr.best(gr.table(scores), rng=1).arm
    2
    >>> gr.best(gr.table(scores, scan=False), rng=1).fraction < gr.best(scores, rng=1).fraction
    True
    """
    names, rewards = column_names(rewards), real_array(rewards, "rewards")
    if rewards.ndim != 2 or 0 in rewards.shape:
        raise ShapeMismatch(
            f"rewards has shape {rewards.shape}; it must be (rows, arms) with at least one of each"
        )
    given, shuffled = (
        checked_range(reward_range, rewards.shape[1], names),
        checked_flag(shuffled, "shuffled"),
    )
    if isinstance(rewards, np.memmap):
        if rewards.dtype.newbyteorder("=") != rewards.dtype or rewards.dtype.str[1:] not in READABLE:
            raise InvalidArgument(
                f"rewards has dtype {rewards.dtype}, which cannot be read from a file where it lies; "
                "save it as float32 or float64"
            )
        return _read_by(MappedTable(rewards, shuffled, given), scan)
    if would_round(rewards):
        raise InvalidArgument(f"rewards has {ROUNDED}")
    return _read_by(Table(rewards, shuffled, given, names=names), scan)


def _read_by(population: AnyTable, scan: bool) -> AnyTable:
    """Let evaluations count, not time, if there shall be no scans."""
    if not checked_flag(scan, "scan"):
        population.scan_speed = 1.0
    return population


class _Array(SharedPopulation):
    """Rewards in an array that is indexed [arm, row]."""

    def __init__(self, rewards: NDArray[Any], rows: Rows) -> None:
        super().__init__(rows, len(rewards))
        self._use(rewards)

    def _use(self, rewards: NDArray[Any]) -> None:
        self._rewards, self._packed = rewards, pack((rewards,))

    def _entry(self) -> tuple[int, int]:
        return _reader(self._packed.type).address, self._packed.words.ctypes.data

    def _exact_range(self) -> Range:
        """Take the range by one pass over the rewards, checking each."""
        low, high = np.full(self.arms, np.inf), np.full(self.arms, -np.inf)
        for first in range(0, self.size, PASS_ROWS):
            part = self._rewards[:, first : first + PASS_ROWS]
            if would_round(part):
                raise InvalidArgument(f"rewards has {ROUNDED}")
            lowest, highest = (np.asarray(f(part, axis=1), np.float64) for f in (np.min, np.max))
            for arm in np.flatnonzero(~((lowest >= -LARGEST_REWARD) & (highest <= LARGEST_REWARD))):
                bad = no_rewards(np.asarray(part[arm], np.float64))
                if bad.any():  # not only -inf
                    self._raise(NOT_A_REWARD, first + int(np.argmax(bad)), int(arm), low, high)
            np.minimum(low, lowest, out=low)
            np.maximum(high, highest, out=high)
        return low, high


class Table(_Array):
    """Rewards in memory, arm after arm. See `table`."""

    scan_speed = 9.0
    verify = False

    def __init__(
        self,
        rewards: NDArray[Any],
        shuffled: bool = False,
        given: Range | None = None,
        row_names: Indices | None = None,
        names: tuple[str, ...] | None = None,
    ) -> None:
        size, self.names = len(rewards), names
        super().__init__(_arm_major(rewards), Rows(size, block_length(size)))
        self._is_ordered, self._taken_as_shuffled = shuffled or self.rows.block == 1, shuffled
        self._names = np.arange(size) if row_names is None else row_names  # the caller's row at each place
        self._made_in = current_run.get()
        self._range = self._exact_range()
        if given is not None:
            self._check_given(*given)

    @property
    def reward_range(self) -> Range:
        """Exact lowest and highest reward of each arm."""
        return self._range

    @property
    def identity(self) -> dict[str, Any]:
        """The rewards as given."""
        return {"rewards": self._as_given(np.arange(self.size))}

    @property
    def assumption(self) -> str | None:
        """That the rows lie in random order, if the caller said so and it matters."""
        return IN_RANDOM_ORDER if self.shares_order and self._taken_as_shuffled else None

    def draw_order(self, rng: np.random.Generator | None) -> None:
        """Shuffle the rows, once. See `Population.draw_order`."""
        # Whoever reads asks for the order first: nobody reads rows that are being moved.
        with ORDERING:
            if not self._is_ordered:
                self._shuffle(self._generator(rng))

    def _generator(self, rng: np.random.Generator | None) -> np.random.Generator:
        run = current_run.get()
        if run is not None and run is not self._made_in:
            return run.generator(self.size, self.arms)
        # The caller's own stream stays where it is: the next call finds the order drawn, and with the same
        # seed gives the same.
        return np.random.default_rng() if rng is None else beside(rng)

    def __copy__(self) -> Self:
        """Return a table with rewards of its own: shuffling moves them in place."""
        other = object.__new__(type(self))
        with ORDERING:
            vars(other).update(vars(self))
            other._use(self._rewards.copy())
        return other

    def reshuffled(self, rng: Rng) -> Self:
        """Return the same rewards, their rows in a new random order if draws share one."""
        generator = as_generator(rng)
        if not self.shares_order:
            return self
        other = copy.copy(self)
        other._taken_as_shuffled = False
        other._shuffle(generator)
        return other

    def minus(self, control: ControlVariate) -> "Table":
        """Return a table of the residuals, with the same sums. See `Population.minus`."""
        if self.known is not None:
            raise InvalidArgument("the population has a control variate already")
        check_fit(control, self.size, self.arms)
        tail = np.arange(self.size) if control.rows is None else control.rows.tail
        left = self._as_given(tail) - control.values(tail, np.arange(self.arms))
        residuals = Table(left, self._taken_as_shuffled, row_names=tail, names=self.names)
        residuals.known, residuals.scan_speed = known(control, self._as_given), self.scan_speed
        return residuals

    def _as_given(self, rows: Indices) -> NDArray[Any]:
        """Give some of the caller's rows, of all arms."""
        with ORDERING:
            return self._rewards[:, np.argsort(self._names)[rows]].T

    def _shuffle(self, rng: np.random.Generator) -> None:
        order = rng.permutation(self.size)
        for rewards in self._rewards:
            rewards[:] = rewards[order]
        self._names, self._is_ordered = self._names[order], True

    def _direct(self) -> Floats:
        in_blocks = self.rows.block > 1 and self._rewards.dtype == np.float64
        return self._rewards if in_blocks else super()._direct()

    def _row_name(self, row: int) -> int:
        return int(self._names[row])

    def _check_given(self, low: Floats, high: Floats) -> None:
        bad = (self._range[0] < low) | (self._range[1] > high)
        if bad.any():
            arm = int(np.argmax(bad))
            outside = (self._rewards[arm] < low[arm]) | (self._rewards[arm] > high[arm])
            self._raise(OUT_OF_RANGE, int(np.argmax(outside)), arm, low, high)


class MappedTable(_Array):
    """Rewards in a memory-mapped file, read where they lie. See `table`."""

    def __init__(self, rewards: NDArray[Any], shuffled: bool, given: Range | None) -> None:
        size = len(rewards)
        super().__init__(rewards.T, Rows(size, block_length(size) if shuffled else 1))
        self.scan_speed = 4.0 if shuffled else 20.0
        self._range_is_lazy = given is None
        self._range = given
        # Integers are read as floating-point numbers: those that these do not hold are out of range.
        self._may_round = rewards.dtype.kind in "iu" and rewards.dtype.itemsize == 8
        if self._may_round and given is not None and np.abs(given).max() >= LARGEST_WHOLE:
            raise InvalidArgument(f"reward_range has {ROUNDED}")

    @property
    def reward_range(self) -> Range:
        """Range as given, else the exact one, computed by one pass on first use."""
        if self._range is None:
            self._range, self._range_is_lazy = self._exact_range(), False
        return self._range

    def _allowed(self, bounds: Range | None) -> Range:
        if bounds is not None or not self._may_round:
            return super()._allowed(bounds)
        most = np.full(self.arms, LARGEST_WHOLE - 1.0)
        return -most, most

    def _raise(self, code: int, row: int, arm: int, low: Floats, high: Floats) -> None:
        if code == OUT_OF_RANGE and would_round(self._rewards[arm, row : row + 1]):
            raise InvalidArgument(f"rewards has {ROUNDED}")
        super()._raise(code, row, arm, low, high)

    @property
    def knows_range(self) -> bool:
        """A range can always be computed."""
        return True

    @property
    def identity(self) -> dict[str, Any]:
        """The rewards in the file."""
        return {"rewards": self._rewards.T}

    def reshuffled(self, rng: Rng) -> Self:
        """Return the population itself, unless draws share the order of the file, which stays as it is."""
        as_generator(rng)
        if self.shares_order:
            raise InvalidArgument(
                "the rows of a memory map stay where they are, and cannot be put in a new order; leave "
                "shuffled=True out, and every draw reads single rows in an order of its own"
            )
        return self


def _arm_major(rewards: NDArray[Any]) -> NDArray[Any]:
    dtype = rewards.dtype if rewards.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    return np.array(rewards.T, dtype, order="C")


@functools.cache
def _reader(data_type: Any) -> Any:
    """Reader of an array indexed [arm, row]; consecutive rows are copied as runs."""

    @numba.cfunc(READER, cache=can_cache(), error_model="numpy", fastmath=FAST)
    def read(context, rows, n_rows, arms, n_arms, out, stride):  # type: ignore[no-untyped-def]
        (rewards,) = unpack(context, data_type)
        start = 0
        while start < n_rows:
            stop = start + 1
            while stop < n_rows and rows[stop] == rows[stop - 1] + 1:
                stop += 1
            first = np.uint64(rows[start])
            for a in range(n_arms):
                arm = np.uint64(arms[a])
                place = arms[a] * stride + start
                for i in range(np.uint64(stop - start)):
                    out[place + i] = rewards[arm, first + i]
            start = stop
        return n_rows * n_arms

    return read


def as_population(given: Any) -> Population:
    """Return a population as it is, that of a table in files, and an array as a table of its rows and arms.

    Examples
    --------
    >>> as_population([[0.0, 1.0], [0.5, 1.0]]).arms
    2
    """
    if isinstance(given, Population):
        return given
    if callable(
        getattr(type(given), "population", None)
    ):  # of the type: columns of data frames have any name
        return given.population()  # type: ignore[no-any-return]
    if callable(given):
        raise InvalidArgument(
            f"the population is a {type(given).__name__}; write likelihood(points), or "
            "gumbelrace.factors(function, size=N, arms=D)"
        )
    return table(given)


class Run:
    """A run whose chains share tables; its randomness is that of its generator before the first step."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._seed = [int(word) for word in beside(rng).integers(2**32, size=8)]

    def generator(self, size: int, arms: int) -> np.random.Generator:
        """Give the generator of the order of a table."""
        return np.random.default_rng([*self._seed, size, arms])


current_run: ContextVar[Run | None] = ContextVar("current_run", default=None)


@contextmanager
def of_one_run(rng: np.random.Generator) -> Iterator[None]:
    """Within it, and in threads with a copy of its context, tables made before have orders by `rng`."""
    before = current_run.set(Run(rng))
    try:
        yield
    finally:
        current_run.reset(before)
