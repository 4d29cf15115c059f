"""What passes over a table gave, kept in a folder: a pass that was made is not made again."""

import hashlib
import re
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from gumbelrace.chain.checkpoint import damage, opened
from gumbelrace.core.atomic import write_atomically
from gumbelrace.core.pool import of_shards
from gumbelrace.laplace.columns import CHUNK, Array, Columns, Table

# Rows of each file that tell it from another one.
TOLD_BY = 4096


@dataclass(frozen=True)
class PassStore:
    """The folder of a checkpoint; None: nothing is kept."""

    folder: Path | None = None

    def found(self, name: str) -> list[Array] | None:
        """Give what is kept under a name."""
        path = self._path(name)
        if path is None or not path.exists():
            return None
        with damage(path), np.load(path, allow_pickle=False) as stored:
            return [stored[f"part_{k}"] for k in range(len(stored.files))]

    def keep(self, name: str, result: list[Array]) -> None:
        """Keep a result."""
        path = self._path(name)
        if path is not None:
            parts = {f"part_{k}": part for k, part in enumerate(result)}
            write_atomically(path, lambda file: np.savez(file, **parts))  # type: ignore[arg-type]

    def _path(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{re.sub('[^a-z0-9]+', '-', name)}.npz"


@contextmanager
def opened_store(path: str | PathLike[str] | None, identity: dict[str, Any]) -> Iterator[PassStore]:
    """Lend the store in a folder: a new one, or that of the same passes."""
    if path is None:
        yield PassStore()
        return
    with opened(path, identity) as folder:
        yield PassStore(folder)


def table_fingerprint(table: Table, columns: Columns, workers: Executor | None = None) -> dict[str, str]:
    """Give a fingerprint of each file of a table: rows, the first of them, when it was written."""
    found = of_shards(workers, partial(_of_file, columns), table.shards)
    return {f"file {k}": digest for k, digest in enumerate(found)}


def _of_file(columns: Columns, shard: Table) -> str:
    written = [stamp and stamp[:2] for stamp in getattr(shard, "stamps", ())]  # of a file
    digest = hashlib.sha256(f"{shard.size} {columns.names} {written}".encode())
    for _, arrays in islice(shard.chunks(columns.names, min(TOLD_BY, CHUNK)), 1):
        for name in columns.names:
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
