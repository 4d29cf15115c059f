"""Prices from files: CSV, CSV compressed by gzip, and Parquet."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument
from gumbelrace.tables.columns import read_columns, texts

# What stands for a missing value, in lower case.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "nat"})
ZONE = re.compile(r"\s*(Z|[+-]\d\d:?\d\d)$")
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")
UNITS = ("D", "h", "m", "s", "ms", "us", "ns")


class Prices(NamedTuple):
    """A file's prices: what `returns_from_prices` takes."""

    times: NDArray[np.datetime64]
    prices: NDArray[np.float64]
    segments: NDArray[Any] | None


def read_prices(
    path: str | Path,
    price: str = "close",
    time: str = "datetime",
    segment: str | None = None,
    unit: str | None = None,
) -> Prices:
    r"""Read prices from a file with a header.

    Parameters
    ----------
    path : str or Path
        A file that ends in .csv, .csv.gz or .parquet; CSV is UTF-8 with commas.
    price, time : str
        Columns of the prices and of their times. Times are ISO dates, such as 2024-01-31 09:35:00. Time
        zones are dropped: the clock stays as it is written, so that days are those of the place.
    segment : str, optional
        Column of labels: returns and lags never cross from one into another.
    unit : str, optional
        If times are numbers: what they count since 1970, one of D, h, m, s, ms, us and ns.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "prices.csv"
    ...     _ = path.write_text("datetime,close\n2024-01-31 09:35,100.0\n2024-01-31 09:40,\n")
    ...     read_prices(path).prices
    array([100.,  nan])
    """
    names = [time, price, *([segment] if segment else [])]
    if unit is not None and unit not in UNITS:
        raise InvalidArgument(f"unit is {unit!r}; it must be one of {', '.join(UNITS)}")
    columns = read_columns(path, names)
    times, prices = _times(columns[0], time, unit), _numbers(columns[1], price)
    return Prices(times, prices, np.array(texts(columns[2])) if segment else None)


def _numbers(column: Any, name: str) -> NDArray[np.float64]:
    """Turn a column into numbers, NaN where they are missing."""
    values = np.asarray(column)
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    cells = ["nan" if _is_missing(cell) else cell for cell in column]
    try:
        return np.array(cells, dtype=object).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"column {name!r} holds what is no number: {error}") from error


def _times(column: Any, name: str, unit: str | None) -> NDArray[np.datetime64]:
    """Turn a column into times, NaT where they are missing."""
    values = np.asarray(column)
    if values.dtype.kind == "M":
        return values
    if unit is not None:
        return _counted(_numbers(column, name), unit)
    cells = ["NaT" if _is_missing(cell) else ZONE.sub("", str(cell)) for cell in column]
    if values.dtype.kind in "iuf" or any(map(NUMBER.fullmatch, cells)):
        raise InvalidArgument(
            f"column {name!r} holds numbers; say what they count since 1970, for example with unit 's'"
        )
    try:
        return np.array(cells, dtype="datetime64[us]")
    except ValueError as error:
        raise InvalidArgument(
            f"column {name!r} holds what is no time: {error}; write 2024-01-31 09:35"
        ) from error


def _counted(counts: NDArray[np.float64], unit: str) -> NDArray[np.datetime64]:
    whole = np.where(np.isfinite(counts), counts, 0.0).astype(np.int64)
    times = whole.astype(f"datetime64[{unit}]")
    times[~np.isfinite(counts)] = np.array("NaT", times.dtype)
    return times


def _is_missing(cell: Any) -> bool:
    return cell is None or str(cell).strip().lower() in MISSING
