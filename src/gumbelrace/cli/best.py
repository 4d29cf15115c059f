"""``gumbelrace best``: the column with the highest mean."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gumbelrace.cli.options import Columns, Delta, Json, Limits, Seed, Table, split_names
from gumbelrace.cli.progress import progress, waiting
from gumbelrace.cli.text import COMPILING, HINT, ground, paragraphs, percent
from gumbelrace.errors import NoPossibleArm
from gumbelrace.methods.base import Method, Outcome, Promise, checked_delta
from gumbelrace.methods.default import default_method
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.results import is_tie
from gumbelrace.tables.population import Chunks, open_scores


def best(
    file: Table,
    delta: Delta = 0.05,
    seed: Seed = 0,
    columns: Columns = None,
    limits: Limits = None,
    lowest: Annotated[bool, typer.Option("--minimum", help="Find the lowest mean instead.")] = False,
    shuffled: Annotated[
        bool, typer.Option("--shuffled", help="The rows lie in random order: read them one by one.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Read every number: no error is possible.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find the column with the highest mean, reading as few rows as needed.

    Random rows are read until only one column can have the highest mean. The answer is wrong
    with a probability of at most DELTA: of a hundred runs with `--delta 0.01` and different
    seeds, about one may name another column.

    This is *proved* if the range of the numbers is known: by `--range`, because they are true
    or false, or because the whole file had to be read anyway (.csv and .parquet). Else it is
    *assumed* that means of the rows read are normally distributed; a few huge numbers break
    that.

    For example:

    `gumbelrace best scores.npy --delta 0.01 --range 0 1`

    `gumbelrace best losses.parquet --minimum --columns small,large`
    """
    checked_delta(delta)
    with open_scores(file, split_names(columns), limits, lowest, progress) as scores:
        rng = np.random.default_rng(seed)
        population = scores.population(shuffled)
        method = Exact() if exact else default_method(population, delta)
        found = winner(population, method, rng)
        result = report(population, found.arm, promised(population, method))
        result["tied"] = level(population, found.arm) if found.tied else []
    print(json.dumps(result) if as_json else described(result, population, file))


def winner(population: Chunks, method: Method, rng: np.random.Generator) -> Outcome:
    """Race for the best column."""
    try:
        with waiting(COMPILING):
            return method.best(population, population.remainder, rng)
    except NoPossibleArm as error:
        raise NoPossibleArm("every column holds an infinity; leave out the rows that have one") from error


def level(population: Chunks, arm: int) -> list[str | int]:
    """Name all columns that have the same sum as the best, up to rounding; the file is read again."""
    sums, names = population.totals(), population.scores.names
    same = is_tie.py_func(sums[arm], sums)  # type: ignore[attr-defined]
    return [names[column] for column in np.flatnonzero(same & (sums > -np.inf))]


def promised(population: Chunks, method: Method) -> Promise:
    """Give what is promised: nothing needs to be promised of what was read from end to end."""
    if population.scores_read >= population.scores.size:
        return Promise(0.0)
    return method.promise.on(population)


def report(population: Chunks, arm: int, promise: Promise) -> dict[str, Any]:
    """Give what was found, for programs."""
    scores = population.scores
    return {
        "column": scores.names[arm],
        "columns": len(scores.names),
        "rows": scores.rows,
        "rows_read": population.rows_read,
        "numbers_read": population.scores_read,
        "share_of_rows": population.rows_read / scores.rows,
        "share_of_numbers": population.scores_read / scores.size,
        "read_through_first": scores.checked,
        "delta": promise.delta,
        "proved": promise.proved,
        "assumption": promise.assumption,
    }


def described(result: dict[str, Any], population: Chunks, file: Path) -> str:
    """Give what was found, for people."""
    error = "none: every number was read"
    if result["delta"] > 0.0:
        error = f"at most {result['delta']:g} likely, {ground(result['proved'], result['assumption'])}"
        error += "" if population.knows_range else HINT
    read = f"{result['rows_read']:,} of {result['rows']:,} rows ({percent(result['share_of_rows'])}), "
    read += f"{percent(result['share_of_numbers'])} of the numbers"
    if result["read_through_first"]:
        read += f", after {file.name} was read once to check and convert it"
    best = str(result["column"])
    if tied := [str(name) for name in result["tied"]]:
        best += f": columns {', '.join(tied[:-1])} and {tied[-1]} tie for the best"
    return paragraphs([("best column", best), ("error", error), ("read", read)])
