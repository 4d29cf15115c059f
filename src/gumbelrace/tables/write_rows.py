"""Rows of an experiment as files that other programs read: CSV, and Parquet where pyarrow is installed."""

import csv
import io
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gumbelrace.atomic import write_atomically


def write_rows(folder: Path, name: str, rows: Sequence[Any]) -> list[str]:
    """Write named tuples of one kind to ``name.csv``, and to ``name.parquet`` if that can be done.

    Parameters
    ----------
    folder : Path
        Where; it must exist.
    name : str
        Name without an extension.
    rows : sequence of named tuples
        At least one.

    Returns
    -------
    list of str
        Names of the files written.

    Examples
    --------
    >>> import tempfile
    >>> from gumbelrace.experiments.records import Problem
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = write_rows(Path(folder), "problems", [Problem(2, "normal", 0.1)])
    ...     print(names[0], Path(folder, names[0]).read_text().split())
    problems.csv ['arms,shape,scale', '2,normal,0.1']
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0]._fields)
    writer.writerows(rows)
    write_atomically(folder / f"{name}.csv", lambda file: file.write(text.getvalue().encode()))
    if find_spec("pyarrow") is None:
        return [f"{name}.csv"]
    _write_parquet(folder / f"{name}.parquet", rows)
    return [f"{name}.csv", f"{name}.parquet"]


def _write_parquet(path: Path, rows: Sequence[Any]) -> None:
    import pyarrow
    import pyarrow.parquet

    columns = dict(zip(rows[0]._fields, map(list, zip(*rows, strict=True)), strict=True))
    write_atomically(path, lambda file: pyarrow.parquet.write_table(pyarrow.table(columns), file))
