"""Which texts stand for numbers, and which numbers are allowed."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, InvalidFile, InvalidReward, RewardOutOfRange, optional
from gumbelrace.population.arrays import LARGEST_REWARD, LARGEST_WHOLE, ROUNDED
from gumbelrace.population.base import Floats

WHOLE: dict[Any, np.dtype[Any]] = {2 ** (8 * size - 1): np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
TRUTH = {"true": 1.0, "false": 0.0}


class Allowed(NamedTuple):
    """The numbers that are allowed: from `low` to `high`."""

    low: float
    high: float
    given: bool  # by the user, not only by what can be raced
    file: str  # the name of the file they are in

    def check(
        self, block: NDArray[Any], names: Sequence[str | int], rows: NDArray[np.int64] | range
    ) -> None:
        """Raise an error that names the first number of a block that is not allowed."""
        # NaN is neither above nor below, and the least and largest of numbers with a NaN is NaN.
        if not (float(block.min()) >= self.low and float(block.max()) <= self.high):
            block = block.astype(np.float64, copy=False)
            wrong = ~((block >= self.low) & (block <= self.high))
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            place = f"{self.file}: row {rows[row]} (counted from 0), column {names[column]!r}"
            self._refuse(block[row, column], place)

    def _refuse(self, number: Any, place: str) -> None:
        infinite = np.inf if self.high < np.inf else -np.inf
        if np.isnan(number) or number == infinite or not self.given:
            raise InvalidReward(
                f"{place} is {number}; replace it by a number of at most {LARGEST_REWARD:g}, "
                "or leave the column or the row out"
            )
        raise RewardOutOfRange(
            f"{place} is {number}, outside the range {self.low:g} to {self.high:g}; widen --reward-range"
        )


def allowed(limits: tuple[float, float] | None, lowest: bool, file: str) -> Allowed:
    """Give the range as the user named it; without one, all numbers but that infinity which always wins."""
    if limits is None:
        low, high = (-LARGEST_REWARD, np.inf) if lowest else (-np.inf, LARGEST_REWARD)
        return Allowed(low, high, given=False, file=file)
    low, high = map(float, limits)  # compiled code takes numbers for what they should be
    if not -np.inf < low < high < np.inf:
        raise InvalidArgument(
            f"--reward-range is {low:g} to {high:g}; give two numbers, the lower one first"
        )
    return Allowed(low, high, given=True, file=file)


def numbers(batch: Any, file: str, first: int, decimal: str = ".") -> Floats:
    """Turn a record batch of a file, whose first row has the number `first`, into an array.

    Columns hold numbers, truth values or texts of them, with a comma before decimals if `decimal` is one.
    What is missing becomes NaN.
    """
    _check_types(batch, file)
    plain = batch if decimal == "." else _with_points(batch)
    block: Floats = np.column_stack([_column(column) for column in plain.columns])
    _check_texts(block, batch, plain, f"{file}: there is no number in", first)
    _check_rounding(block, batch, file)
    return block


def number_type(field: Any) -> np.dtype[Any] | None:
    """Give the type of NumPy that holds numbers of a type of Arrow as they are; None if there is none."""
    types = optional("pyarrow", "cli").types
    if types.is_boolean(field):
        return np.dtype(np.bool_)
    kinds = {"i": types.is_signed_integer, "u": types.is_unsigned_integer, "f": types.is_floating}
    kind = next((kind for kind, is_kind in kinds.items() if is_kind(field)), None)
    return None if kind is None else np.dtype(f"{kind}{field.bit_width // 8}")


def typed_columns(batch: Any, dtypes: Sequence[np.dtype[Any]], file: str, first: int) -> list[NDArray[Any]]:
    """Give the columns of a record batch, whose first row has the number `first`, as arrays of such types.

    What is missing becomes NaN; types that are none of floating-point numbers are of columns that have all.
    """
    plain = [number_type(column.type) for column in batch.columns]
    # To NumPy, None is another name of float64.
    others = [i for i, dtype in enumerate(dtypes) if plain[i] is None or plain[i] != dtype]
    converted = iter(numbers(batch.select(others), file, first).T) if others else iter(())
    return [
        next(converted) if i in others else _plain_column(batch.column(i), dtype)
        for i, dtype in enumerate(dtypes)
    ]


def _plain_column(column: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype == np.bool_:
        return _bits(column.buffers()[1], column.offset, len(column))
    return plain_array(column, dtype, np.nan if dtype.kind == "f" else None)


def _record_batch(columns: Sequence[Any], names: Sequence[str]) -> Any:
    return optional("pyarrow", "cli").RecordBatch.from_arrays(list(columns), list(names))


def _bits(buffer: Any, first: int, count: int) -> NDArray[np.bool_]:
    """Give bits, of which Arrow puts the lowest first, as truth values."""
    start, skipped = divmod(first, 8)
    packed = np.frombuffer(buffer, np.uint8)[start : (first + count + 7) // 8]
    return np.unpackbits(packed, bitorder="little")[skipped : skipped + count].view(np.bool_)


def narrowest(column: NDArray[Any]) -> np.dtype[Any]:
    """Give the narrowest type that holds the numbers of a column as they are.

    Examples
    --------
    >>> narrowest(np.array([0.0, 1.0, -5.0])), narrowest(np.array([0.5])), narrowest(np.array([300.0]))
    (dtype('int8'), dtype('float64'), dtype('int16'))
    """
    if column.dtype.kind != "f" or not len(column):
        return column.dtype if len(column) else np.dtype(np.int8)
    low, high = float(column.min()), float(column.max())
    if not -LARGEST_WHOLE < low <= high < LARGEST_WHOLE or (column != np.floor(column)).any():
        return column.dtype
    return next(whole for beyond, whole in WHOLE.items() if -beyond <= low <= high < beyond)


def with_point(text: str) -> str:
    """Write a number that has a decimal comma with a point; what had a point becomes no number."""
    return text.replace(".", "?").replace(",", ".")


def _with_points(batch: Any) -> Any:
    """Do `with_point` to all texts of a batch."""
    pa, compute = optional("pyarrow", "cli"), optional("pyarrow.compute", "cli")

    def changed(column: Any) -> Any:
        if not pa.types.is_string(column.type):
            return column
        return compute.replace_substring(compute.replace_substring(column, ".", "?"), ",", ".")

    return _record_batch([changed(column) for column in batch.columns], batch.schema.names)


def number(text: str) -> float | None:
    """Give the number, or truth value, that a text stands for; None if it is none."""
    if not text.isascii() or "_" in text:
        return None  # Python reads numbers that no other program would
    try:
        return float(text)
    except ValueError:
        return TRUTH.get(text.strip().lower())


def float_array(column: Any) -> Floats:
    """Give the numbers of a column of Arrow, NaN where they are missing."""
    return plain_array(column.cast(optional("pyarrow", "cli").float64(), safe=False), np.float64, np.nan)


def plain_array(column: Any, dtype: Any, missing: float | None = None) -> NDArray[Any]:
    """Give a column of Arrow as it lies in memory, with `missing` where there is none.

    Its own conversion to NumPy loads pandas, which takes long, and swallows Ctrl-C meanwhile.
    """
    if len(column) == 0:
        return np.empty(0, dtype)
    valid, values = column.buffers()[:2]
    array = np.frombuffer(values, dtype, len(column), column.offset * np.dtype(dtype).itemsize)
    if column.null_count == 0:
        return array
    there = _bits(valid, column.offset, len(column))
    return np.where(there, array, np.array(missing, dtype))


def _check_types(batch: Any, file: str) -> None:
    types = optional("pyarrow", "cli").types
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    known = (*numeric, types.is_string, types.is_large_string)
    others = [field.name for field in batch.schema if not any(test(field.type) for test in known)]
    if others:
        raise InvalidArgument(
            f"{file}: there are no numbers in {listed(others)}; choose columns of numbers by --columns"
        )


def _column(column: Any) -> Floats:
    """Give the numbers of a column, NaN where a text is none."""
    pa, trimmed = optional("pyarrow", "cli"), optional("pyarrow.compute", "cli").utf8_trim_whitespace
    for prepared in (lambda column: column, trimmed):
        with suppress(pa.ArrowInvalid):
            ready = prepared(column)
            ready.slice(0, 1).cast(pa.float64(), safe=False)  # a long cast takes long to fail
            return float_array(ready)
    texts = column.dictionary_encode()  # truth values, or what is no number at all
    known = np.array([*(number(text) for text in texts.dictionary.to_pylist()), np.nan], np.float64)
    return known.take(plain_array(texts.indices, np.int32, missing=-1))  # the last one


def _check_texts(block: Floats, batch: Any, plain: Any, complaint: str, first: int) -> None:
    """Refuse texts that are no numbers: NaN in the block, but not written so."""
    faults = []
    for i in np.flatnonzero(np.isnan(block).any(axis=0)).tolist():
        texts = [(row, plain.column(i)[row].as_py()) for row in np.flatnonzero(np.isnan(block[:, i]))]
        wrong = [row for row, text in texts if isinstance(text, str) and number(text) is None]
        faults += [(batch.schema.names[i], wrong[0], batch.column(i)[wrong[0]].as_py())] if wrong else []
    if faults:
        (name, row, text), *more = faults
        others = f" (nor in {listed([name for name, *_ in more])})" if more else ""
        raise InvalidFile(
            f"{complaint} row {first + row} (counted from 0) of column {name!r}{others} but {text[:40]!r}; "
            f"{_remedy(text)}, or choose columns of numbers by --columns"
        )


def _remedy(text: str) -> str:
    swapped = number(with_point(text)) is not None
    return "say by --decimal what stands before decimals" if swapped else "mend it"


def _check_rounding(block: Floats, batch: Any, file: str) -> None:
    """Refuse whole numbers that are too large; with a point or an exponent they are meant roughly."""
    pa, large = optional("pyarrow", "cli"), np.abs(block) >= LARGEST_WHOLE
    for i in np.flatnonzero(large.any(axis=0)).tolist():
        column = batch.column(i).filter(pa.array(large[:, i]))
        exact = not pa.types.is_floating(column.type)
        if exact and any(str(cell).strip().lstrip("+-").isdigit() for cell in column.to_pylist()):
            raise InvalidFile(f"{file}: column {batch.schema.names[i]!r} has {ROUNDED}")


def listed(names: Sequence[str], most: int = 10) -> str:
    """Put names in a row, or the first of them."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more
