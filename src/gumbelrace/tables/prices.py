"""Prices from files: CSV, CSV compressed by gzip, and Parquet."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument
from gumbelrace.tables.columns import RECOGNISED, cells_of, find_name, open_columns, texts
from gumbelrace.tables.delimited import Dialect
from gumbelrace.tables.numbers import with_point

# What stands for a missing value, in lower case.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "nat"})
ZONE = re.compile(r"\s*(Z|[+-]\d\d:?\d\d)$")
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
UNITS = ("D", "h", "m", "s", "ms", "us", "ns")
# Seconds from 1973 to 2100, and how many of each unit are in one: their ranges do not meet.
SECONDS, IN_A_SECOND = (1e8, 4.1e9), {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


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
    dialect: Dialect = RECOGNISED,
) -> Prices:
    r"""Read prices from a file with a header.

    Parameters
    ----------
    path : str or Path
        A file that ends in .csv, .tsv, .csv.gz or .parquet; CSV is UTF-8.
    price, time : str
        Columns of the prices and of their times, in any case. Times are ISO dates, such as
        2024-01-31 09:35:00, or seconds since 1970, or milli-, micro- or nanoseconds. Time zones are
        dropped: the clock stays as it is written, so that days are those of the place.
    segment : str, optional
        Column of labels: returns and lags never cross from one into another.
    unit : str, optional
        If times are other numbers: what they count since 1970, one of D, h, m, s, ms, us and ns.
    dialect : Dialect, optional
        What lies between columns of CSV, and before decimals; recognised by default.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "prices.csv"
    ...     _ = path.write_text("datetime,close\n2024-01-31 09:35,100.0\n2024-01-31 09:40,\n")
    ...     read_prices(path).prices
    array([100.,  nan])
    """
    if unit is not None and unit not in UNITS:
        raise InvalidArgument(f"unit is {unit!r}; it must be one of {', '.join(UNITS)}")
    wanted = {"--time": time, "--price": price} | ({"--segment": segment} if segment else {})
    with open_columns(Path(path), dialect) as file:
        names = [find_name(name, file.names, file.name, option) for option, name in wanted.items()]
        columns = cells_of(file, names)
    place = f"{file.name}: column {{!r}}"
    times = _times(columns[0], place.format(names[0]), unit)
    prices = _numbers(columns[1], place.format(names[1]), file.decimal)
    return Prices(times, prices, np.array(texts(columns[2])) if segment else None)


def _numbers(column: Any, place: str, decimal: str = ".") -> NDArray[np.float64]:
    """Turn a column into numbers, NaN where they are missing."""
    values = np.asarray(column)
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    cells = ["nan" if _is_missing(cell) else cell for cell in column]
    if decimal == ",":
        cells = [with_point(str(cell)) for cell in cells]
    try:
        return np.array(cells, dtype=object).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"{place} holds what is no number: {error}; mend it, or see --decimal"
        ) from error


def _times(column: Any, place: str, unit: str | None) -> NDArray[np.datetime64]:
    """Turn a column into times, NaT where they are missing."""
    values = np.asarray(column)
    if values.dtype.kind == "M":
        return values
    cells = ["NaT" if _is_missing(cell) else ZONE.sub("", str(cell)) for cell in column]
    if unit is not None or values.dtype.kind in "iuf" or any(map(NUMBER.fullmatch, cells)):
        counts = _numbers(column, place)
        return _counted(counts, unit or _unit_of(counts, place))
    try:
        return np.array(cells, dtype="datetime64[us]")
    except ValueError as error:
        raise InvalidArgument(f"{place} holds what is no time: {error}; write 2024-01-31 09:35") from error


def _unit_of(counts: NDArray[np.float64], place: str) -> str:
    """Recognise by their size what numbers count since 1970."""
    known = counts[np.isfinite(counts)]
    for unit, factor in IN_A_SECOND.items():
        if (known >= SECONDS[0] * factor).all() and (known <= SECONDS[1] * factor).all():
            return unit
    raise InvalidArgument(
        f"{place} holds numbers that are no seconds or milliseconds since 1970, such as {known[0]:.12g}; "
        "write 2024-01-31 09:35"
    )


def _counted(counts: NDArray[np.float64], unit: str) -> NDArray[np.datetime64]:
    known = np.where(np.isfinite(counts), counts, 0.0)
    if unit == "s" and (known % 1.0).any():
        known, unit = 1e6 * known, "us"
    whole = known.astype(np.int64)
    times = whole.astype(f"datetime64[{unit}]")
    times[~np.isfinite(counts)] = np.array("NaT", times.dtype)
    return times


def _is_missing(cell: Any) -> bool:
    return cell is None or str(cell).strip().lower() in MISSING
