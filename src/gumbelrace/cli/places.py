"""Where results go, and what this machine has for the work."""

import os
from pathlib import Path
from typing import Annotated

import typer

from gumbelrace.errors import InvalidFile

Folder = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Write the page and the data here; made if missing.")
]

Jobs = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Threads; default: as many as processors.", show_default=False),
]


def made(folder: Path) -> Path:
    """Make a folder, unless something else lies there."""
    if folder.exists() and not folder.is_dir():
        raise InvalidFile(f"{folder} is a file; name a folder for the results")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def processors() -> int:
    """Count the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
