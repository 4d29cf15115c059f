"""Writing draws: all of them or nothing."""

import csv
import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gumbelrace.atomic import write_atomically
from gumbelrace.cli.from_parquet import parquet_package
from gumbelrace.errors import InvalidFile

Indices = NDArray[np.int64]
Write = Callable[[BinaryIO, Sequence[Any], Indices, Indices], None]
FIELDS = ("column", "numbers_read")


def check_draws(path: Path, source: Path) -> None:
    """Check, before anything is drawn, that draws can be written there."""
    if path.suffix.lower() not in WRITERS:
        raise InvalidFile(f"{path} is of a kind that cannot be written; name a .csv, .parquet or .npy file")
    check_output(path)
    if path.exists() and path.samefile(source):
        raise InvalidFile(f"{path} is the table itself; write the draws elsewhere")
    if path.suffix.lower() == ".parquet":
        parquet_package()


def check_output(path: Path) -> None:
    """Check that a file can be written there."""
    if not path.parent.is_dir():
        raise InvalidFile(f"there is no folder {path.parent}; make it first, or write elsewhere")
    if path.is_dir():
        raise InvalidFile(f"{path} is a folder; name a file")
    if not os.access(path.parent, os.W_OK):
        raise InvalidFile(f"you may not write into {path.parent}; write elsewhere")


def write_draws(path: Path, names: Sequence[Any], arms: Indices, read: Indices) -> None:
    """Write the column of each draw and what it read; there is always the old file or the new one."""
    write_atomically(path, lambda file: WRITERS[path.suffix.lower()](file, names, arms, read))


def _csv(file: BinaryIO, names: Sequence[Any], arms: Indices, read: Indices) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows((names[arm], count) for arm, count in zip(arms.tolist(), read.tolist(), strict=True))
    text.detach()


def _parquet(file: BinaryIO, names: Sequence[Any], arms: Indices, read: Indices) -> None:
    parquet = parquet_package()
    import pyarrow as pa

    columns = pa.DictionaryArray.from_arrays(arms, list(names)).dictionary_decode()
    parquet.write_table(pa.table([columns, read], names=FIELDS), file)


def _npy(file: BinaryIO, names: Sequence[Any], arms: Indices, read: Indices) -> None:
    columns = np.array(names)[arms]
    draws = np.empty(len(arms), [(FIELDS[0], columns.dtype), (FIELDS[1], np.int64)])
    draws[FIELDS[0]], draws[FIELDS[1]] = columns, read
    np.save(file, draws, allow_pickle=False)


WRITERS: dict[str, Write] = {".csv": _csv, ".parquet": _parquet, ".npy": _npy}
