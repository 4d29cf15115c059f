"""Options that commands share."""

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
Limits = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--range",
        metavar="LOW HIGH",
        help="Every number lies between these: makes the answer a proved one.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
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


def fields(column: Sequence[str] | None) -> dict[str, str]:
    """Take apart FIELD=NAME."""
    pairs = [text.partition("=") for text in column or ()]
    for field, sign, _ in pairs:
        if not (field and sign):
            raise InvalidArgument(f"--column is {field!r}; give FIELD=NAME, such as author=inventor")
    return {field: name for field, _, name in pairs}
