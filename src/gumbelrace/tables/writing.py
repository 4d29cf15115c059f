"""Writing tables: whole or not at all, in the kind of file that the name says."""

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gumbelrace.core.atomic import write_atomically
from gumbelrace.errors import InvalidFile, optional

Columns = Mapping[str, Sequence[Any] | np.ndarray[Any, Any]]


def make_folder(path: Path) -> Path:
    """Make a folder for results, unless something else lies there."""
    if path.exists() and not path.is_dir():
        raise InvalidFile(f"{path} is a file; name a folder for the results")
    path.mkdir(parents=True, exist_ok=True)
    return path


def check_output(path: Path) -> None:
    if not path.parent.is_dir():
        raise InvalidFile(f"there is no folder {path.parent}; make it first, or write elsewhere")
    if path.is_dir():
        raise InvalidFile(f"{path} is a folder; name a file")
    if not os.access(path.parent, os.W_OK):
        raise InvalidFile(f"you may not write into {path.parent}; write elsewhere")


def check_table_output(path: Path) -> None:
    if path.suffix.lower() not in WRITERS:
        raise InvalidFile(f"{path} is of a kind that cannot be written; name a .csv, .parquet or .npy file")
    check_output(path)
    if path.suffix.lower() == ".parquet":
        optional("pyarrow.parquet", "cli")


def write_table(path: Path, columns: Columns) -> None:
    """Write columns; there is always the old file or the new one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Path(folder, "a.csv"), {"arms": [2, 3], "shape": ["normal", "log,normal"]})
    ...     print(Path(folder, "a.csv").read_text().split())
    ['arms,shape', '2,normal', '3,"log,normal"']
    """
    write_atomically(path, lambda file: WRITERS[path.suffix.lower()](file, columns))


class Kind(StrEnum):
    """Kinds of files for tables of results."""

    CSV = "csv"
    PARQUET = "parquet"


def write_rows(folder: Path, name: str, rows: Sequence[Any], kind: Kind = Kind.CSV) -> str:
    """Write named tuples of one kind to ``name.csv``, or to a file of another kind; return its name.

    The folder must exist, and there must be a row. The same table of another kind is removed.
    """
    columns = dict(zip(rows[0]._fields, map(list, zip(*rows, strict=True)), strict=True))
    write_table(folder / f"{name}.{kind}", columns)
    for other in Kind:
        if other != kind:
            (folder / f"{name}.{other}").unlink(missing_ok=True)
    return f"{name}.{kind}"


def _csv(file: BinaryIO, columns: Columns) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    text.detach()


def _parquet(file: BinaryIO, columns: Columns) -> None:
    pa, parquet = optional("pyarrow", "cli"), optional("pyarrow.parquet", "cli")
    parquet.write_table(pa.table(dict(columns)), file)


def _npy(file: BinaryIO, columns: Columns) -> None:
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    fields = [(name, array.dtype) for name, array in arrays.items()]
    table = np.rec.fromarrays(arrays.values(), dtype=fields)
    np.save(file, table, allow_pickle=False)


WRITERS: dict[str, Callable[[BinaryIO, Columns], None]] = {".csv": _csv, ".parquet": _parquet, ".npy": _npy}
