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
    new = unfinished_path(path)
    try:
        with named(path):
            yield new
        os.replace(new, path.resolve())
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def unfinished_path(path: Path) -> Path:
    """Give where a file is written before it gets its name; a link is followed."""
    target = path.resolve()
    return target.with_name(target.name + UNFINISHED)


@contextmanager
def alone(path: Path, busy: Exception) -> Iterator[None]:
    """Hold the lock of a file, made if it is not there; raise `busy` if another process holds it.

    A killed process keeps nobody out.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with open(path, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        except OSError:  # a file system without locks
            pass
        if not _is_at(file, path):  # another one had it, and has just given it its name
            raise busy
        yield


def _is_at(file: BinaryIO, path: Path) -> bool:
    return path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Name the file in errors of the system that do not, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise
