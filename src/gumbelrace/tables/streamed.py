"""Tables that can only be read from front to back become a temporary file that can be read anywhere."""

import errno
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gumbelrace.cli.checks import Allowed
from gumbelrace.cli.progress import progress
from gumbelrace.cli.rows import Indices, Layout, RowFile
from gumbelrace.errors import InvalidFile
from gumbelrace.population.base import Floats, Range

# Most numbers that are held at a time.
HELD = 2**18


class Streamed(NamedTuple):
    """A table that is read a batch of rows after the other."""

    names: Sequence[str]
    batches: Callable[[Indices], Iterator[Floats]]  # of the columns with these numbers
    done: Callable[[], float]  # how much was read
    total: float  # of this much


@contextmanager
def written(
    table: Streamed, columns: Indices, allowed: Allowed, path: Path
) -> Iterator[tuple[RowFile, Range]]:
    """Write columns of a table into a temporary file, which is gone afterwards; lend it and its range."""
    names = [table.names[column] for column in columns]
    low, high = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    rows = 0
    with tempfile.TemporaryFile() as file:
        with progress(f"reading {path.name}", table.total) as advance:
            for batch in table.batches(columns):
                allowed.check(batch, names, range(rows, rows + len(batch)))
                np.minimum(low, batch.min(axis=0), out=low)
                np.maximum(high, batch.max(axis=0), out=high)
                with room(path):
                    file.write(np.ascontiguousarray(batch).data)
                rows += len(batch)
                advance(table.done())
        if rows == 0:
            raise InvalidFile(f"{path} has no rows; give at least one")
        with room(path):
            file.flush()
        layout = Layout(0, np.dtype(np.float64), rows, len(names))
        yield RowFile(file, layout, "the temporary file"), (low, high)


@contextmanager
def room(path: Path) -> Iterator[None]:
    """Say what to do if there is no room for a temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise InvalidFile(
            f"{tempfile.gettempdir()} has no room for the numbers of {path}; set TMPDIR to a larger folder"
        ) from error
