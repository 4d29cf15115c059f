"""What users give as arrays of numbers, checked: nothing is dropped, rounded or guessed without a word."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumbelrace.errors import InvalidArgument, ShapeMismatch

Floats = NDArray[np.float64]
# A number for each arm: in the order of the arms, or by their names.
ByArm = ArrayLike | Mapping[Any, float]

# Double precision holds every whole number up to this one.
LARGEST_WHOLE = 2**53
# Larger rewards would overflow where they are squared and added up.
LARGEST_REWARD = 1e150
# Names of arms that a message lists.
LISTED = 6
NO_REWARD = f"is NaN, +inf or beyond {LARGEST_REWARD:g}"


def real_array(given: Any, name: str) -> NDArray[Any]:
    """Return an array of real numbers (a memory map as one), or say why it is none.

    Examples
    --------
    >>> real_array([[1, 2], [3, 4]], "rewards").shape
    (2, 2)
    """
    check_unmasked(given, name)
    try:
        array: NDArray[Any] = np.asanyarray(given)
    except ValueError as error:
        raise ShapeMismatch(f"{name} is ragged: all of its rows must have the same length") from error
    if array.dtype.hasobject and (columns := _columns(given)):  # a data frame whose columns differ in kind
        array = np.stack([real_array(given[column], f"{name}[{column!r}]") for column in columns], axis=1)
    if array.dtype.kind not in "fiub":
        what = f"a {type(given).__name__}" if array.ndim == 0 else f"of dtype {array.dtype}"
        raise InvalidArgument(f"{name} is {what}; {_advice(array)}")
    if _has_rounded(given, array):
        raise InvalidArgument(f"{name} has {ROUNDED}")
    _check_precision(array, name)
    return array


def _advice(array: NDArray[Any]) -> str:
    """Say what to give in the place of an array that is none of real numbers."""
    if array.ndim > 0 and array.dtype.hasobject:
        with suppress(TypeError, ValueError, OverflowError):
            array.astype(np.float64)
            return "write .astype(float)"
    return "give an array of real numbers"


def column_names(given: Any) -> tuple[str, ...] | None:
    """Give the names of the columns of a data frame, or of a table of Arrow; None if they have none."""
    names = tuple(map(_name, _columns(given)))
    return None if not names or _is_numbered(getattr(given, "columns", None)) else names


def _columns(given: Any) -> list[Any]:
    kind = type(given)
    if hasattr(kind, "column_names"):
        labels = list(given.column_names)
    else:
        labels = list(given.columns) if hasattr(kind, "columns") else []
    _check_differ(list(map(_name, labels)), "column names")
    return labels


def _is_numbered(labels: Any) -> bool:
    """Whether labels are those of pandas where nobody gave any: 0, 1, 2, ..."""
    return type(labels).__name__ == "RangeIndex" and list(labels) == list(range(len(labels)))


def _name(label: Any) -> str:
    """Give a label as a name; in tuples as well, NumPy's numbers are written as Python's."""
    if isinstance(label, tuple):
        label = tuple(part.item() if isinstance(part, np.generic) else part for part in label)
    return str(label)


def _check_differ(names: list[str], what: str) -> None:
    if len(set(names)) < len(names):
        twice, count = Counter(names).most_common(1)[0]
        often = "twice" if count == 2 else f"{count} times"
        raise InvalidArgument(f"{what} must differ; {twice!r} occurs {often}")


def by_name(given: Any, names: tuple[str, ...] | None, what: str) -> Any:
    """Put what is given by the names of arms, as in a dict or a series of pandas, in the arms' order.

    Examples
    --------
    >>> by_name({"b": 2.0, "a": 1.0}, ("a", "b"), "offset")
    [1.0, 2.0]
    """
    is_frame, is_mapping = hasattr(type(given), "columns"), hasattr(type(given), "keys")
    if is_frame or not is_mapping or _is_numbered(given.keys()):
        return given
    labels = [_name(label) for label in given.keys()]  # noqa: SIM118  a series iterates over its values
    _check_differ(labels, f"the names in {what}")
    if names is None:
        raise InvalidArgument(f"{what} is given by name, and the arms have no names: give an array")
    _check_same(labels, names, what)
    found = dict(zip(labels, (value for _, value in given.items()), strict=True))
    return [found[name] for name in names]


def _check_same(labels: list[str], names: tuple[str, ...], what: str) -> None:
    missing, unknown = sorted(set(names) - set(labels)), sorted(set(labels) - set(names))
    wrong = [
        f"{_listed(found)} {how}" for found, how in ((missing, "missing"), (unknown, "unknown")) if found
    ]
    if wrong:
        raise InvalidArgument(f"{what} must have every arm by its name: {'; '.join(wrong)}")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def _check_precision(array: NDArray[Any], name: str) -> None:
    """Refuse numbers of more than double precision that are not the same in it."""
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            rounded = array.astype(np.float64)
        if not np.array_equal(array, rounded, equal_nan=True):
            raise InvalidArgument(
                f"{name} is of dtype {array.dtype}, and would be rounded; write .astype(np.float64)"
            )


def _has_rounded(given: Any, array: NDArray[Any]) -> bool:
    """Whether integers became floating-point numbers beside others, and are not the same in `array`."""
    kind = type(given)
    if hasattr(kind, "dtype") or array.dtype.kind != "f" or not (np.abs(array) >= LARGEST_WHOLE).any():
        return False
    if columns := _columns(given):
        return any(would_round(np.asarray(given[name])) for name in columns)
    within = (item for item in np.asarray(given, object).flat if isinstance(item, int | np.integer))
    return any(abs(int(item)) >= LARGEST_WHOLE for item in within)


def floats(given: Any, name: str) -> Floats:
    """Return an array in double precision, or say why that would not be the same numbers."""
    array = real_array(given, name)
    if would_round(array):
        raise InvalidArgument(f"{name} has {ROUNDED}")
    return np.asarray(array, np.float64)


def no_rewards(array: Floats) -> NDArray[np.bool_]:
    """Say which entries are no rewards: finite numbers are, up to the largest, and -inf is.

    Examples
    --------
    >>> no_rewards(np.array([1.0, -np.inf, np.inf, np.nan, -1e200])).tolist()
    [False, False, True, True, True]
    """
    bad: NDArray[np.bool_] = ~((np.abs(array) <= LARGEST_REWARD) | np.isneginf(array))
    return bad


def check_unmasked(given: Any, name: str) -> None:
    """Refuse an array, or a list of them, with something masked: arithmetic on its data would read that."""
    if _is_masked(given):
        raise InvalidArgument(
            f"{name} has masked entries; leave their rows out, or fill them by .filled(number)"
        )


def _is_masked(given: Any) -> bool:
    if isinstance(given, (list, tuple)):
        return any(_is_masked(x) for x in given if isinstance(x, (list, tuple, np.ma.MaskedArray)))
    return bool(np.ma.is_masked(given))


ROUNDED = (
    "whole numbers of 2^53 and more, which would be rounded; subtract a constant from all of them first"
)


def would_round(array: NDArray[Any]) -> bool:
    """Whether an array has integers that double precision does not hold."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or array.size == 0:
        return False
    return bool(array.max() >= LARGEST_WHOLE or array.min() <= -LARGEST_WHOLE)
