"""How a state lies in arrays: its leaves by name, and the state put together again.

A state is a named tuple of arrays and numbers, possibly with further tuples inside. Every state of a
chain has the leaves of the first one, with their shapes and dtypes.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, ShapeMismatch

NUMBERS = "biufc"  # the kinds of dtype that a leaf may have
PLAIN: dict[type, tuple[np.dtype[Any], tuple[int, ...]]] = {
    bool: (np.dtype(np.bool_), ()),
    int: (np.dtype(np.int64), ()),
    float: (np.dtype(np.float64), ()),
}


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
