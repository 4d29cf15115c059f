"""Returns for the ARCH commands: from a file of prices, or simulated."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from gumbelrace.cli.options import no_default
from gumbelrace.models.arch.data import Overnight, Returns, returns_from_prices, simulate, standardised
from gumbelrace.tables.prices import read_prices

Price = Annotated[str, typer.Option(metavar="COLUMN", help="Column of the prices.")]
Time = Annotated[str, typer.Option(metavar="COLUMN", help="Column of their times.")]
Segment = Annotated[str | None, no_default("COLUMN", "Column of labels that returns never cross.")]
AtNight = Annotated[Overnight, typer.Option(help="What becomes of returns from one day to another.")]


def simulated_returns(count: int, seed: int) -> Returns:
    return standardised(simulate(count, np.random.default_rng([seed, 10])))


def returns_of(path: Path, price: str, time: str, segment: str | None, overnight: Overnight) -> Returns:
    return returns_from_prices(*read_prices(path, price, time, segment), overnight)


def described(returns: Returns, rows: int) -> dict[str, str]:
    """Say what the series is, and how many rows have all lags."""
    segments = len(returns.lengths)
    return {
        "Returns": f"{len(returns.values):,} in {segments:,} segment{'' if segments == 1 else 's'}",
        "Rows with all lags": f"{rows:,}",
        "Repairs": str(returns.repairs),
        "Standardised by": f"mean {returns.mean:.3g}, deviation {returns.scale:.3g}",
    }
