"""Options that commands share."""

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gumbelrace.errors import InvalidArgument

Table = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Table with a column for each candidate: .npy, .csv, .csv.gz or .parquet.",
        show_default=False,
    ),
]
Delta = Annotated[
    float, typer.Option(metavar="DELTA", help="How likely an error may be: more than 0, less than 1.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="The same seed gives the same result.")]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...",
        help="Use these columns only, by name, or by number in a .npy file.",
        show_default=False,
    ),
]
RewardRange = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--reward-range",
        metavar="LOW HIGH",
        help="Every number lies between these: makes the answer a proved one.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Folder = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Write the page and the data here; made if missing.")
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Threads; default: as many as processors.", show_default=False),
]

Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="FIELD=NAME",
        help="Read FIELD (author, coauthors, label, ...) from the column NAME; may be repeated.",
        show_default=False,
    ),
]
Complete = Annotated[
    bool,
    typer.Option("--complete", help="All mentions of the labelled persons have labels."),
]


def split_names(columns: str | None) -> list[str] | None:
    """Take names apart that have commas in between."""
    return None if columns is None else [name.strip() for name in next(csv.reader([columns]), [])]


def processors() -> int:
    """Count the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fields(column: Sequence[str] | None) -> dict[str, str]:
    """Take apart FIELD=NAME."""
    pairs = [text.partition("=") for text in column or ()]
    for field, sign, _ in pairs:
        if not (field and sign):
            raise InvalidArgument(f"--column is {field!r}; give FIELD=NAME, such as author=inventor")
    return {field: name for field, _, name in pairs}
