"""``gumbelrace shuffle``: the rows of a table in random order."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from gumbelrace.cli.shared import (
    Decimal,
    Seed,
    Separator,
    grouped,
    no_default,
    paragraphs,
    progress,
    split_names,
)
from gumbelrace.errors import InvalidArgument
from gumbelrace.tables.delimited import dialect
from gumbelrace.tables.disk import DiskTable, open_table
from gumbelrace.tables.opened import open_files
from gumbelrace.tables.record import record_path
from gumbelrace.tables.shuffle import shuffle as shuffle_rows

UNITS = {"": 1.0, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?(?:e\d+)?)\s*([kmgt]?b)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class ShuffleOptions:
    """What `shuffle` takes."""

    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Table: .npy, .npz, .csv, .tsv, .csv.gz, .parquet, a folder of them, or a pattern.",
            show_default=False,
        ),
    ]
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help=".npy, .parquet or .csv file.", show_default=False)
    ]
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory to use, such as 500MB.")] = "1GB"
    seed: Seed = 0
    columns: Annotated[str | None, no_default("A,B,...", "Write these columns only.")] = None
    missing: Annotated[bool, typer.Option("--missing", help="Numbers may be missing (NaN).")] = False
    separator: Separator = None
    decimal: Decimal = None

    def open(self) -> DiskTable:
        """Open the source, with all columns that have a name unless some are named."""
        names = split_names(self.columns)
        if names is None:
            with open_files(Path(self.source), dialect(self.separator, self.decimal)) as file:
                names = [name for name in file.names if name]
        return open_table(self.source, names, separator=self.separator, decimal=self.decimal)


@grouped
def shuffle(options: ShuffleOptions) -> None:
    """Write the rows of a table in random order.

    Rows in random order are read from front to back: `gumbelrace best` and `sample` then need no jumps, and
    few rows. A record beside TARGET, a JSON file, tells them; it has the columns, the number of rows, the
    seed and a checksum.

    The table may be larger than memory: rows are scattered to temporary files beside TARGET, and each of
    these is put in random order. TARGET appears when all is written.

    For example:

    `gumbelrace shuffle scores.csv shuffled.npy --seed 1`

    `gumbelrace shuffle parts/ shuffled.parquet --memory 4GB`
    """
    memory = amount(options.memory)
    with options.open() as table:
        shuffle_rows(
            table,
            options.target,
            seed=options.seed,
            memory=memory,
            missing=options.missing,
            progress=progress,
        )
        rows = f"{table.size:,} rows of {len(table.columns):,} columns, in random order"
    written = f"{options.target}: {rows}"
    print(paragraphs([("written", written), ("record", str(record_path(options.target)))]))


def amount(text: str) -> float:
    """Give the number of bytes that a text such as 500MB means.

    Examples
    --------
    >>> amount("1.5 GB"), amount("2e9"), amount("64kb")
    (1500000000.0, 2000000000.0, 64000.0)
    """
    found = AMOUNT.fullmatch(text)
    if found is None:
        raise InvalidArgument(f"--memory is {text!r}; give a number of bytes, such as 500MB or 4GB")
    return float(found[1]) * UNITS[(found[2] or "").upper()]
