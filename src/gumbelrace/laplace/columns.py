"""Tables that are read from front to back, and how arrays of a model's data are made of their columns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, ShapeMismatch

Array = NDArray[Any]

# Rows that are read at a time. Random numbers of a pass are drawn for each chunk: another length would give
# other ones.
CHUNK = 65_536


class Table(Protocol):
    """Columns of numbers in one file or several; `open_table` gives one."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""

    @property
    def size(self) -> int:
        """Number of rows, N."""

    @property
    def shards(self) -> Sequence["Table"]:
        """The files, each a table."""

    def chunks(
        self, columns: Sequence[str], rows: int = CHUNK
    ) -> Iterable[tuple[int, Mapping[str, Array]]]:
        """Give the number of the first row of each chunk, and its columns, in the order of the file."""


class Chunk(NamedTuple):
    """Some rows: the file that they are from, the number of the chunk in it, and arrays of their data."""

    shard: int
    number: int
    data: tuple[Any, ...]


class Columns:
    """Data of a model, with the names of columns in the place of arrays.

    Parameters
    ----------
    given : sequence
        For each item of the data, the name of a column, a list of names (which become the columns of a
        matrix), or anything else, which all rows share.

    Examples
    --------
    >>> columns = Columns((["a", "b"], "y", 3.0))
    >>> columns.names
    ['a', 'b', 'y']
    >>> columns.data({"a": np.zeros(2), "b": np.ones(2), "y": np.ones(2)})[0]
    array([[0., 1.],
           [0., 1.]])
    """

    def __init__(self, given: Sequence[Any]) -> None:
        self.given = tuple(given)
        self.of_rows = [isinstance(one, str) or is_names(one) for one in self.given]
        listed = [[one] if isinstance(one, str) else list(one) for one in self.named]
        self.names = list(dict.fromkeys(name for names in listed for name in names))
        if not self.names:
            raise InvalidArgument(
                'with a table, data are the names of its columns, for example (["x0", "x1"], "y")'
            )

    @property
    def named(self) -> list[Any]:
        """Those items that are names, or lists of them."""
        return [one for one, is_row in zip(self.given, self.of_rows, strict=True) if is_row]

    def check(self, table: Table) -> None:
        """Refuse a table that lacks some of the columns."""
        known = list(table.columns)
        missing = [name for name in self.names if name not in known]
        if missing:
            more = ", ..." if len(known) > 10 else ""
            raise InvalidArgument(
                f"the table has no column {missing[0]!r}; it has {', '.join(known[:10])}{more}"
            )

    def data(self, arrays: Mapping[str, Array]) -> tuple[Any, ...]:
        """Give the data of some rows."""
        return tuple(self._item(one, arrays) for one in self.given)

    def _item(self, one: Any, arrays: Mapping[str, Array]) -> Any:
        if isinstance(one, str):
            return np.ascontiguousarray(arrays[one])
        return np.stack([arrays[name] for name in one], axis=1) if is_names(one) else one

    def rows_of(self, data: tuple[Any, ...]) -> list[Array]:
        """Give the arrays among data that have rows."""
        return [item for item, is_row in zip(data, self.of_rows, strict=True) if is_row]

    def with_rows(self, arrays: Sequence[Array]) -> tuple[Any, ...]:
        """Give data whose arrays with rows are these."""
        rest = iter(arrays)
        return tuple(
            next(rest) if is_row else one for one, is_row in zip(self.given, self.of_rows, strict=True)
        )


def is_names(one: Any) -> bool:
    """Whether something is a list of names."""
    return isinstance(one, list | tuple) and bool(one) and all(isinstance(name, str) for name in one)


def checked_table(table: Any) -> Table:
    """Return a table, if it can be read from front to back and has rows."""
    for part in ("columns", "size", "shards", "chunks"):
        if not hasattr(table, part):
            raise InvalidArgument(f"table is a {type(table).__name__}; give open_table(path)")
    if table.size < 1:
        raise ShapeMismatch("the table has no rows")
    found: Table = table
    return found
