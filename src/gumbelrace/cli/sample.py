"""``gumbelrace sample``: columns drawn with probability proportional to the exponential of their sums."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from gumbelrace.cli.options import Columns, Delta, Json, Limits, Seed, Table, split_names
from gumbelrace.cli.progress import progress
from gumbelrace.cli.text import COMPILING, HINT, ground, paragraphs, percent
from gumbelrace.errors import InvalidFile, NoPossibleArm
from gumbelrace.methods.base import Method, checked_delta
from gumbelrace.methods.default import default_method
from gumbelrace.population.base import Floats
from gumbelrace.sampling import DRAW
from gumbelrace.tables.population import Chunks, open_scores
from gumbelrace.tables.writing import check_table_output, write_table

HELD = 2**20  # Gumbel variables at a time
SHOWN = 20  # columns
ADDED_UP = "; then the file was added up, and the other draws are exact"

Indices = NDArray[np.int64]


class Drawn(NamedTuple):
    """Draws: their columns, and the numbers that each has read."""

    arms: Indices
    read: Indices


def sample(
    file: Table,
    draws: Annotated[int, typer.Option(min=1, metavar="N", help="Number of draws.")] = 1000,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the draws, and what each has read, to this .csv, .parquet or .npy file.",
            show_default=False,
        ),
    ] = None,
    delta: Delta = 0.05,
    seed: Seed = 0,
    columns: Columns = None,
    limits: Limits = None,
    log_prior: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Table of one row, which is added to the sums.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw columns with probability proportional to exp(sum of the column).

    The numbers are log factors: the logarithm of a column's probability is the sum of its
    numbers, up to a constant. Each draw reads random rows until the others are unlikely to
    change it. Once the draws have read as much as there is in the file, it is added up, and the
    other draws need nothing more.

    The law of a draw is within DELTA of the exact one in total variation: no event is more
    likely, or less, by more than DELTA. This is *proved* if the range of the numbers is known,
    as for `gumbelrace best`.

    For example:

    `gumbelrace sample loglik.npy --draws 1000 --out draws.csv`

    `gumbelrace sample loglik.parquet --log-prior prior.csv`
    """
    checked_delta(delta)
    if out is not None:
        check_out(out, file)
    with open_scores(file, split_names(columns), limits, progress=progress) as scores:
        rng = np.random.default_rng(seed)
        population = scores.population()
        method = default_method(population, delta)
        drawn = draw_all(population, prior_of(log_prior, population), method, draws, rng)
    if out is not None:
        write_table(out, {"column": np.array(scores.names)[drawn.arms], "numbers_read": drawn.read})
    result = report(population, drawn, method, out)
    print(json.dumps(result) if as_json else described(result, population))


def check_out(out: Path, file: Path) -> None:
    """Check, before anything is drawn, that draws can be written there."""
    check_table_output(out)
    if out.exists() and out.samefile(file):
        raise InvalidFile(f"{out} is the table itself; write the draws elsewhere")


def prior_of(path: Path | None, population: Chunks) -> Floats:
    """Read log f0 from a table of one row with the same columns."""
    names = [str(name) for name in population.scores.names]
    if path is None:
        return np.zeros(len(names))
    with open_scores(path, names) as table:
        if table.rows != 1:
            raise InvalidFile(f"{path} has {table.rows:,} rows; a log prior has one")
        return table.population().totals()


def draw_all(
    population: Chunks, prior: Floats, method: Method, draws: int, rng: np.random.Generator
) -> Drawn:
    """Race for each draw; once as much was read as there is, add everything up and race no more."""
    raced: list[tuple[int, int]] = []
    offset, before = prior + population.remainder, 0
    with possible(), progress(COMPILING, draws) as advance:
        while len(raced) < draws and before < population.scores.size:
            outcome = method.answer(DRAW, population, offset, rng)
            raced.append((outcome.arm, population.scores_read - before))
            before = population.scores_read
            advance(len(raced))
        exact = draw_exactly(population, prior, draws - len(raced), rng)
    arms, read = np.array(raced, np.int64).T
    return Drawn(np.append(arms, exact.arms), np.append(read, exact.read))


def draw_exactly(population: Chunks, prior: Floats, draws: int, rng: np.random.Generator) -> Drawn:
    """Draw from the sums of all columns; the first draw answers for what was read to know them."""
    arms, read = np.zeros((2, draws), np.int64)
    if draws > 0:
        before, sums = population.scores_read, prior + population.totals()
        read[0] = population.scores_read - before
        if np.isneginf(sums).all():
            raise NoPossibleArm
        held = max(1, HELD // len(sums))
        for first in range(0, draws, held):
            some = arms[first : first + held]
            some[:] = (sums + rng.gumbel(size=(len(some), len(sums)))).argmax(axis=1)
    return Drawn(arms, read)


@contextmanager
def possible() -> Iterator[None]:
    """Say in words of tables that every state is impossible."""
    try:
        yield
    except NoPossibleArm as error:
        raise NoPossibleArm("every column holds a -inf: none can be drawn; leave these rows out") from error


def report(population: Chunks, drawn: Drawn, method: Method, out: Path | None) -> dict[str, Any]:
    """Give what was drawn, for programs."""
    scores, draws = population.scores, len(drawn.arms)
    counts = np.bincount(drawn.arms, minlength=len(scores.names)).tolist()
    return {
        "draws": draws,
        "counts": dict(zip(map(str, scores.names), counts, strict=True)),
        "columns": len(scores.names),
        "rows": scores.rows,
        "numbers_read": population.scores_read,
        "fraction": population.scores_read / (draws * scores.size),
        "added_up": bool(population.added_up),
        "read_through_first": scores.checked,
        "total_variation": method.promise.delta,
        "proved": method.promise.proved,
        "assumption": method.promise.assumption,
        "out": None if out is None else str(out),
    }


def described(result: dict[str, Any], population: Chunks) -> str:
    """Give what was drawn, for people."""
    law = f"within {result['total_variation']:g} of the exact one in total variation, "
    law += ground(result["proved"], result["assumption"]) + ("" if population.knows_range else HINT)
    read = f"{percent(result['fraction'])} of the numbers a draw, {result['numbers_read']:,} in all"
    parts = [("law", law), ("read", read + ADDED_UP * result["added_up"])]
    if result["out"] is not None:
        parts.append(("written", result["out"]))
    return f"{shares(result['counts'], result['draws'])}\n\n{paragraphs(parts)}"


def shares(counts: dict[str, int], draws: int) -> str:
    """Lay out the columns drawn most often."""
    most = sorted(counts.items(), key=lambda item: -item[1])
    width = max(len("column"), *(len(name) for name, _ in most[:SHOWN]))
    rows = [f"{name:<{width}}  {count:>9,}  {count / draws:>7.2%}" for name, count in most[:SHOWN]]
    if len(most) > SHOWN:
        rest = sum(count for _, count in most[SHOWN:])
        rows.append(f"... and {len(most) - SHOWN:,} columns with {rest:,} draws together")
    return "\n".join([f"{'column':<{width}}  {'draws':>9}  {'share':>7}", *rows])
