"""Files that are either as before or complete, whatever happens while they are written."""

import os
from collections.abc import Callable
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
    path = path.resolve()
    unfinished = path.with_name(path.name + UNFINISHED)
    try:
        with open(unfinished, "wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
