"""What users give as arrays of numbers, checked: nothing is dropped, rounded or guessed without a word."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, ShapeMismatch

Floats = NDArray[np.float64]

# Double precision holds every whole number up to this one.
LARGEST_WHOLE = 2**53
# Larger rewards would overflow where they are squared and added up.
LARGEST_REWARD = 1e150
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
        raise InvalidArgument(f"{name} is {what}; give an array of real numbers")
    if _has_rounded(given, array):
        raise InvalidArgument(f"{name} has {ROUNDED}")
    _check_precision(array, name)
    return array


def column_names(given: Any) -> tuple[str, ...] | None:
    """Give the names of the columns of a data frame, or of a table of Arrow; None if they have none."""
    names = _columns(given)
    # Frames that were made without names have numbers.
    return tuple(map(str, names)) if any(isinstance(name, str) for name in names) else None


def _columns(given: Any) -> list[Any]:
    kind = type(given)
    if hasattr(kind, "column_names"):
        return list(given.column_names)
    return list(given.columns) if hasattr(kind, "columns") else []


def by_name(given: Any, names: tuple[str, ...] | None, what: str) -> Any:
    """Put what is given by the names of arms, as in a dict or a series of pandas, in the arms' order.

    Examples
    --------
    >>> by_name({"b": 2.0, "a": 1.0}, ("a", "b"), "offset")
    [1.0, 2.0]
    """
    keys = list(given.keys()) if hasattr(given, "keys") else []
    if not any(isinstance(key, str) for key in keys):
        return given
    if sorted(map(str, keys)) != sorted(names or ()):
        arms = f"the arms are {', '.join(names)}" if names else "the arms have no names: give an array"
        raise InvalidArgument(f"{what} is given for {', '.join(map(str, keys))}, and {arms}")
    return [given[name] for name in names or ()]


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
