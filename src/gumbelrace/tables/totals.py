"""Columns of CSV and Parquet files added up in one pass.

Such a file must be read from front to back, whatever is asked. Once that is done its sums are known, and
nothing is left to be raced for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gumbelrace.core.pool import processors
from gumbelrace.population.base import Floats
from gumbelrace.tables.numbers import allowed
from gumbelrace.tables.opened import ArrayFile, OpenFile, open_files
from gumbelrace.tables.population import (
    SILENT,
    Checks,
    Progress,
    Scores,
    Wanted,
    check_rows,
    names_and_notes,
    scores_of,
)
from gumbelrace.tables.record import is_shuffled
from gumbelrace.tables.source import files_of


class Totals(NamedTuple):
    """Sums of all rows of some columns."""

    file: str
    names: tuple[str, ...]
    sums: Floats  # the higher the better: of opposite sign where the lowest is meant
    rows: int
    notes: tuple[str, ...] = ()  # what a user should know of how the file was read

    @property
    def size(self) -> int:
        return self.rows * len(self.names)


@contextmanager
def open_scores_or_totals(
    path: Path, wanted: Wanted, progress: Progress = SILENT
) -> Iterator[Scores | Totals]:
    """Open a table: an array, any rows of which can be read, to be raced on; any other is added up."""
    with open_files(path, wanted.dialect) as file:
        if not isinstance(file, ArrayFile):
            yield totals_of(file, wanted, progress)
            return
        with scores_of(file, wanted) as scores:
            yield replace(scores, shuffled=is_shuffled(files_of(path)))


def totals_of(file: OpenFile, wanted: Wanted, progress: Progress = SILENT) -> Totals:
    """Check the columns that are wanted of an open file, and add them up."""
    names, notes = names_and_notes(file, wanted)
    checks = Checks(names, allowed(wanted.limits, wanted.lowest, file.name))
    rows, sums = 0, np.zeros(len(names))
    with progress(f"reading {file.name}", file.total) as advance:
        for columns in file.arrays(names, processors()):
            checks.look(columns, rows)
            sums += [column.sum(dtype=np.float64) for column in columns]
            rows += len(columns[0])
            advance(file.done())
    check_rows(rows, file.name)
    return Totals(file.name, tuple(names), -sums if wanted.lowest else sums, rows, tuple(notes))
