"""``gumbelrace demo``: what each solver reads, how often it errs, and how long it takes."""

from pathlib import Path
from typing import Annotated

import typer

from gumbelrace.demo import main
from gumbelrace.tables.writing import check_output


def demo(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the page here.")] = Path("demo.html"),
) -> None:
    """Show what the solvers do on a built-in problem: half a minute.

    Prints a table and writes a page with the same table, one race to watch, and what to do next. It opens
    nothing and needs no network.
    """
    check_output(out)
    main(out)
