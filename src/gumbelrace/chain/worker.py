"""One chain: where it is, the steps that it makes, and the draws that it keeps, laid out in arrays.

A state is a named tuple of arrays and numbers, possibly with further tuples inside. Every state of a
chain has the leaves of the first one, with their shapes and dtypes.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.kernels.base import Block, Info, Kernel

NUMBERS = "biufc"  # the kinds of dtype that a leaf may have
PLAIN: dict[type, tuple[np.dtype[Any], tuple[int, ...]]] = {
    bool: (np.dtype(np.bool_), ()),
    int: (np.dtype(np.int64), ()),
    float: (np.dtype(np.float64), ()),
}
NOTHING = Info(0, 0, 0, 0.0)
# A kernel is asked for about so many seconds of steps at a time: Ctrl-C is heard in between. One of many
# blocks takes hundredths of a second to make ready.
SECONDS_A_BLOCK = 0.2


class Leaf(NamedTuple):
    """Name, dtype and shape of a leaf."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class Layout:
    """The leaves of a state, taken from an example.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     where: tuple
    ...     count: int
    >>> point = Point((np.zeros(2), True), 3)
    >>> layout = Layout(point)
    >>> [leaf.name for leaf in layout.leaves]
    ['where.0', 'where.1', 'count']
    >>> layout.build(layout.values(point)) == point
    True
    """

    def __init__(self, example: Any) -> None:
        self.example = example
        self.leaves = [_leaf(name, value) for name, value in named_leaves(example)]
        self.record = np.dtype([(leaf.name, leaf.dtype, leaf.shape) for leaf in self.leaves])

    def values(self, state: Any) -> list[Any]:
        """Give the leaves of a state, or say which of them has changed its type or shape."""
        values = flat(state)
        if len(values) != len(self.leaves):
            raise ShapeMismatch(
                f"a state has {len(values)} leaves; the initial state has {len(self.leaves)}"
            )
        for leaf, value in zip(self.leaves, values, strict=True):
            if _kind(value) != leaf[1:]:
                dtype, shape = _kind(value)
                raise ShapeMismatch(
                    f"{leaf.name} has dtype {dtype} and shape {shape}, in the initial state "
                    f"{leaf.dtype} and {leaf.shape}; all states of a run must agree"
                )
        return values

    def build(self, values: Sequence[Any]) -> Any:
        return _build(self.example, iter(values))

    def columns(self, *lengths: int) -> list[NDArray[Any]]:
        """Make an array for each leaf that has room for `lengths` of them."""
        return [np.zeros((*lengths, *leaf.shape), leaf.dtype) for leaf in self.leaves]


def named_leaves(state: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a state with their names; those of an inner tuple have dotted ones."""
    fields = getattr(state, "_fields", None) or map(str, range(len(state)))
    for field, value in zip(fields, state, strict=True):
        if isinstance(value, tuple):
            yield from named_leaves(value, f"{prefix}{field}.")
        else:
            yield prefix + field, value


def flat(state: Any) -> list[Any]:
    values: list[Any] = []
    for value in state:
        if isinstance(value, tuple):
            values += flat(value)
        else:
            values.append(value)
    return values


def _kind(value: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    # Asked for every leaf of every draw: arrays are made of a leaf only if nothing else helps.
    if type(value) in PLAIN:
        return PLAIN[type(value)]
    if not isinstance(value, (np.ndarray, np.generic)):
        value = np.asarray(value)
    return value.dtype, value.shape


def _leaf(name: str, value: Any) -> Leaf:
    dtype, shape = _kind(value)
    if isinstance(value, list) or dtype.kind not in NUMBERS:
        raise InvalidArgument(
            f"{name} of the state is a {type(value).__name__}; give NumPy arrays and numbers"
        )
    return Leaf(name, dtype, shape)


def _build(example: Any, values: Iterator[Any]) -> Any:
    parts = [_build(part, values) if isinstance(part, tuple) else next(values) for part in example]
    return example._make(parts) if hasattr(example, "_make") else tuple(parts)


def form(value: Any) -> str:
    """Say what kind of object a leaf is, for `reform`."""
    if isinstance(value, np.generic):
        return "numpy"
    if not hasattr(value, "__array__"):
        return "python"
    array = np.asarray(value)
    return "fortran" if array.flags.f_contiguous and not array.flags.c_contiguous else "array"


def reform(array: Any, form: str) -> Any:
    """Make of an array the kind of object that it came from: results may depend on it.

    Python's numbers do not overflow as NumPy's do, and sums follow the order of an array in memory.
    """
    if form == "fortran":
        return np.array(array, order="F")
    if form == "array":
        return np.array(array, order="C")
    scalar = np.asarray(array)[()]
    return scalar.item() if form == "python" else scalar


class Draw(NamedTuple):
    """What is kept: a state, and what the steps since the draw before took."""

    state: Any
    info: Info


@dataclass(frozen=True)
class Plan:
    """How many steps are made, and which are kept: every `thin`-th of `steps`, after `warmup` others."""

    steps: int
    warmup: int
    thin: int

    @property
    def total(self) -> int:
        return self.warmup + self.steps

    def kept(self, done: int) -> int:
        """How many draws the first `done` steps give."""
        return max(done - self.warmup, 0) // self.thin


class Saver(Protocol):
    """Keeps a chain on disk."""

    def due(self) -> bool: ...

    def save(self, chain: "Chain") -> None: ...


class Chain:
    """A chain between two steps.

    Parameters
    ----------
    kernel : Kernel
        Makes the steps.
    state : state
        Where to start.
    rng : numpy.random.Generator
        The chain's own.
    plan : Plan
        How far to go.
    draws : (Layout, list of ndarray)
        How a `Draw` lies in arrays, and those of this chain, with room for all of its draws.
    """

    def __init__(
        self,
        kernel: Kernel[Any],
        state: Any,
        rng: np.random.Generator,
        plan: Plan,
        draws: tuple[Layout, list[NDArray[Any]]],
    ) -> None:
        self.kernel, self.state, self.rng, self.plan = kernel, state, rng, plan
        self.layout, self.columns = draws
        self.done = 0
        self.pending = NOTHING  # summed over the steps since the last draw
        self.begun, self.tally = 0, NOTHING  # since this process took over

    @property
    def kept(self) -> int:
        return self.plan.kept(self.done)

    def run(self, stop: Event, saver: Saver | None) -> None:
        """Make the steps that are left, or those until `stop` is set; after an error, set it."""
        try:
            self._advance(stop, saver)
        except BaseException:
            stop.set()
            raise

    def _advance(self, stop: Event, saver: Saver | None) -> None:
        block = 1
        while self.done < self.plan.total and not stop.is_set():
            started = time.perf_counter()
            count = min(block, self.plan.total - self.done)
            self.advance(count)
            if saver is not None and saver.due():
                saver.save(self)
            fitting = count * SECONDS_A_BLOCK / max(time.perf_counter() - started, 1e-9)
            block = int(min(max(fitting, 1.0), 2.0 * count))
        if saver is not None:
            saver.save(self)

    def advance(self, count: int) -> None:
        """Make steps, keeping the states whose turn has come."""
        block = self.kernel.steps(self.rng, self.state, count)
        if block is None:
            for _ in range(count):
                self._note(*self.kernel.step(self.rng, self.state))
            return
        # A kernel may leave out the last of what it tells of a step.
        told: Any = [np.broadcast_to(value, count) for value in block.info]
        block = block._replace(info=Info(*told))
        if self.plan.thin == 1 and self.done >= self.plan.warmup:
            self._keep_all(block, count)
        else:
            for t in range(count):
                self._note(*self._draw(block, t))

    def _draw(self, block: Block[Any], t: int) -> Draw:
        pairs = zip(flat(block), flat(self.layout.example), strict=True)
        draw: Draw = self.layout.build([reform(values[t], form(example)) for values, example in pairs])
        return draw

    def _keep_all(self, block: Block[Any], count: int) -> None:
        first, last = self.done - self.plan.warmup, self._draw(block, count - 1)
        self.layout.values(last)  # all states of a block have the dtypes of one
        for column, values in zip(self.columns, flat(block), strict=True):
            column[first : first + count] = values
        self.state = last.state
        self.tally = added(self.tally, Info(*map(np.sum, block.info)))
        self.done += count

    def _note(self, state: Any, info: Info) -> None:
        self.state = state
        self.done += 1
        self.tally = added(self.tally, info)
        made = self.done - self.plan.warmup
        if made > 0:
            self.pending = added(self.pending, info)
            if made % self.plan.thin == 0:
                self._keep(made // self.plan.thin - 1)

    def _keep(self, draw: int) -> None:
        total, thin = self.pending, self.plan.thin
        info = total._replace(acceptance=total.acceptance / thin, law_error=total.law_error / thin)
        kept = Draw(self.state, info)
        for column, value in zip(self.columns, self.layout.values(kept), strict=True):
            column[draw] = value
        self.pending = NOTHING


def added(total: Info, info: Info) -> Info:
    """Add what a step took; in Python's numbers, so that a sum does not depend on the kernel's."""
    return Info(
        total.evaluations + int(info.evaluations),
        total.rewards + int(info.rewards),
        total.looks + int(info.looks),
        total.acceptance + float(info.acceptance),
        total.law_error + float(info.law_error),
    )
