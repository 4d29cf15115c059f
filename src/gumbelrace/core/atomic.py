"""Files that are either as before or complete, whatever happens while they are written."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

UNFINISHED = ".new"


def write_atomically(path: Path, fill: Callable[[BinaryIO], Any]) -> None:
    """Write a file such that at any moment there is either the old one or the new one, on disk.

    Parameters
    ----------
    path : Path
        The file; a link is followed.
    fill : callable
        Writes the content to the open file it is given. If it raises, the old file stays.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "a"), lambda file: file.write(b"all"))
    ...     Path(folder, "a").read_bytes()
    b'all'
    """
    with unfinished(path) as new, open(new, "wb") as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Lend a path to write to; what is there takes the place of `path` at the end, unless it fails."""
    target = path.resolve()
    new = target.with_name(target.name + UNFINISHED)
    try:
        with named(path):
            yield new
        os.replace(new, target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Name the file in errors of the system that do not, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise
