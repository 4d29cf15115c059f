"""``gumbelrace best`` and ``gumbelrace sample``: the columns of a table raced, or drawn by their sums."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy  # its parts load when first used
import typer
from numpy.typing import NDArray

from gumbelrace.cli.shared import (
    Decimal,
    Delta,
    Seed,
    Separator,
    grouped,
    no_default,
    paragraphs,
    progress,
    split_names,
    waiting,
)
from gumbelrace.cli.text import one_line
from gumbelrace.errors import InvalidFile, NoPossibleArm
from gumbelrace.methods.base import Method, Promise, checked_delta
from gumbelrace.methods.default import race_of
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.race import DECLARED
from gumbelrace.methods.state import is_tie
from gumbelrace.population.base import Floats
from gumbelrace.sampling import DRAW
from gumbelrace.tables.delimited import dialect
from gumbelrace.tables.population import Chunks, Scores, Wanted, open_scores
from gumbelrace.tables.source import STANDARD_INPUT
from gumbelrace.tables.writing import check_table_output, write_table

SHOWN = 20  # columns
COMPILING = "racing (the first run compiles)"
IN_WORDS = "no number is -inf, unless --reward-range goes down to it"
HINT = "; --reward-range LOW HIGH would prove it"
ADDED_UP = "; then the file was added up, and the other draws are exact"
NOTHING_IS_BEST = "{}: every column holds an infinity; leave out the rows that have one"
NOTHING_TO_DRAW = "{}: every column holds a -inf: none can be drawn; leave these rows out"

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class TableOptions:
    """What both commands take."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Table with a column for each candidate: .npy, .npz (one array), .csv, .tsv, "
            ".csv.gz, .parquet, or - for standard input.",
            show_default=False,
        ),
    ]
    delta: Delta = 0.05
    seed: Seed = 0
    columns: Annotated[
        str | None,
        no_default("A,B,...", "Use these columns only, by name, or by number in a .npy file."),
    ] = None
    reward_range: Annotated[
        tuple[float, float] | None,
        no_default(
            "LOW HIGH", "Every number lies between these: makes the answer a proved one.", "--reward-range"
        ),
    ] = None
    separator: Separator = None
    decimal: Decimal = None
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False

    @property
    def name(self) -> str:
        return "standard input" if self.file == STANDARD_INPUT else str(self.file)

    def open(self, lowest: bool = False) -> AbstractContextManager[Scores]:
        checked_delta(self.delta)
        csv = dialect(self.separator, self.decimal)
        wanted = Wanted(split_names(self.columns), self.reward_range, lowest, csv)
        return open_scores(self.file, wanted, progress)


@dataclass(frozen=True)
class BestOptions(TableOptions):
    """What `best` takes besides."""

    lowest: Annotated[bool, typer.Option("--minimum", help="Find the lowest mean instead.")] = False
    shuffled: Annotated[
        bool, typer.Option("--shuffled", help="The rows lie in random order: read them one by one.")
    ] = False
    exact: Annotated[bool, typer.Option("--exact", help="Read every number: no error is possible.")] = False


@dataclass(frozen=True)
class SampleOptions(TableOptions):
    """What `sample` takes besides."""

    draws: Annotated[int, typer.Option(min=1, metavar="N", help="Number of draws.")] = 1000
    out: Annotated[
        Path | None,
        no_default("FILE", "Write the draws, and what each has read, to this .csv, .parquet or .npy file."),
    ] = None
    log_prior: Annotated[
        Path | None, no_default("FILE", "Table of one row, which is added to the sums.")
    ] = None


@grouped
def best(options: BestOptions) -> None:
    """Find the column with the highest mean, reading as few rows as needed.

    Random rows are read until only one column can have the highest mean. The answer is wrong
    with a probability of at most DELTA: of a hundred runs with `--delta 0.01` and different
    seeds, about one may name another column.

    This is *proved* if the range of the numbers is known: by `--reward-range`, because they are true
    or false, or because the whole file had to be read anyway (.csv and .parquet). Else it is
    *assumed* that means of the rows read are normally distributed; a few huge numbers break
    that.

    For example:

    `gumbelrace best scores.npy --delta 0.01 --reward-range 0 1`

    `gumbelrace best losses.parquet --minimum --columns small,large`
    """
    with options.open(options.lowest) as scores:
        population = scores.population(options.shuffled)
        method = Exact() if options.exact else race_of(population, options.delta)
        with one_is_possible(NOTHING_IS_BEST.format(options.name)), waiting(COMPILING):
            found = method.best(population, population.remainder, np.random.default_rng(options.seed))
        result = best_report(population, found.arm, method)
        result["tied"] = tied_with(population, found.arm) if found.tied else []
    print(json.dumps(result) if options.as_json else best_text(result, population, Path(options.name).name))


@grouped
def sample(options: SampleOptions) -> None:
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
    if options.out is not None:
        check_out(options.out, options.file)
    with options.open() as scores:
        population = scores.population()
        method = race_of(population, options.delta)
        prior, rng = read_prior(options.log_prior, population), np.random.default_rng(options.seed)
        drawn = draw_all(population, prior, method, options.draws, rng)
    if options.out is not None:
        write_table(options.out, {"column": np.array(scores.names)[drawn.arms], "numbers_read": drawn.read})
    result = sample_report(population, drawn, method, options.out)
    print(json.dumps(result) if options.as_json else sample_text(result, population))


@contextmanager
def one_is_possible(otherwise: str) -> Iterator[None]:
    """Say in words of tables that every state is impossible."""
    try:
        yield
    except NoPossibleArm as error:
        raise NoPossibleArm(otherwise) from error


def tied_with(population: Chunks, arm: int) -> list[str | int]:
    """Name all columns that have the same sum as the best, up to rounding; the file is read again."""
    sums, names = population.totals(), population.scores.names
    same = is_tie.py_func(sums[arm], sums)  # type: ignore[attr-defined]
    return [names[column] for column in np.flatnonzero(same & (sums > -np.inf))]


def check_out(out: Path, file: Path) -> None:
    """Check, before anything is drawn, that draws can be written there."""
    check_table_output(out)
    if out.exists() and file.exists() and out.samefile(file):
        raise InvalidFile(f"{out} is the table itself; write the draws elsewhere")


def read_prior(path: Path | None, population: Chunks) -> Floats:
    """Read log f0 from a table of one row with the same columns."""
    names = [str(name) for name in population.scores.names]
    if path is None:
        return np.zeros(len(names))
    with open_scores(path, Wanted(names)) as table:
        if table.rows != 1:
            raise InvalidFile(f"{path} has {table.rows:,} rows; a log prior has one")
        return table.population().totals()


class Drawn(NamedTuple):
    """Draws: their columns, and the numbers that each has read."""

    arms: Indices
    read: Indices


def draw_all(
    population: Chunks, prior: Floats, method: Method, draws: int, rng: np.random.Generator
) -> Drawn:
    """Race for each draw; once as much was read as there is, add everything up and race no more."""
    raced: list[tuple[int, int]] = []
    offset, before = prior + population.remainder, 0
    nothing = NOTHING_TO_DRAW.format(population.scores.allowed.file)
    with one_is_possible(nothing), progress(COMPILING, draws) as advance:
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
        arms[:] = rng.choice(len(sums), draws, p=scipy.special.softmax(sums))
    return Drawn(arms, read)


def report(population: Chunks, promise: Promise) -> dict[str, Any]:
    scores, assumption = population.scores, promise.assumption
    return {
        "columns": len(scores.names),
        "rows": scores.rows,
        "numbers_read": population.scores_read,
        "read_through_first": scores.checked,
        "proved": promise.proved,
        "assumption": None if assumption is None else assumption.replace(DECLARED, IN_WORDS),
        "notes": list(scores.notes),
    }


def best_report(population: Chunks, arm: int, method: Method) -> dict[str, Any]:
    """Give what was found, for programs; of what was read from end to end nothing needs a promise."""
    scores = population.scores
    everything = population.scores_read >= scores.size
    promise = Promise(0.0) if everything else method.promise.on(population)
    return {
        "column": scores.names[arm],
        "rows_read": population.rows_read,
        "share_of_rows": population.rows_read / scores.rows,
        "share_of_numbers": population.scores_read / scores.size,
        "delta": promise.delta,
        **report(population, promise),
    }


def sample_report(population: Chunks, drawn: Drawn, method: Method, out: Path | None) -> dict[str, Any]:
    scores, draws = population.scores, len(drawn.arms)
    counts = np.bincount(drawn.arms, minlength=len(scores.names)).tolist()
    return {
        "draws": draws,
        "counts": dict(zip(map(str, scores.names), counts, strict=True)),
        "fraction": population.scores_read / (draws * scores.size),
        "added_up": bool(population.added_up),
        "total_variation": method.promise.delta,
        "out": None if out is None else str(out),
        **report(population, method.promise),
    }


def ground(result: dict[str, Any], population: Chunks) -> str:
    """Say what a bound rests on, and what would prove it."""
    words = "proved" if result["proved"] else f"assuming that {result['assumption']}"
    return words + ("" if population.knows_range else HINT)


def best_text(result: dict[str, Any], population: Chunks, file: str) -> str:
    error = "none: every number was read"
    if result["delta"] > 0.0:
        error = f"at most {result['delta']:g} likely, {ground(result, population)}"
    read = f"{result['rows_read']:,} of {result['rows']:,} rows ({percent(result['share_of_rows'])}), "
    read += f"{percent(result['share_of_numbers'])} of the numbers"
    if result["read_through_first"]:
        read += f", after {file} was read once to check and convert it"
    best = str(result["column"])
    if tied := [str(name) for name in result["tied"]]:
        best += f": columns {', '.join(tied[:-1])} and {tied[-1]} tie for the best"
    notes = [("note", note) for note in result["notes"]]
    return paragraphs([("best column", best), ("error", error), ("read", read), *notes])


def sample_text(result: dict[str, Any], population: Chunks) -> str:
    law = f"within {result['total_variation']:g} of the exact one in total variation, "
    law += ground(result, population)
    read = f"{percent(result['fraction'])} of the numbers a draw, {result['numbers_read']:,} in all"
    parts = [("law", law), ("read", read + ADDED_UP * result["added_up"])]
    parts += [("note", note) for note in result["notes"]]
    if result["out"] is not None:
        parts.append(("written", result["out"]))
    return f"{shares(result['counts'], result['draws'])}\n\n{paragraphs(parts)}"


def shares(counts: dict[str, int], draws: int) -> str:
    most = sorted(((one_line(name), count) for name, count in counts.items()), key=lambda item: -item[1])
    width = max(len("column"), *(len(name) for name, _ in most[:SHOWN]))
    rows = [f"{name:<{width}}  {count:>9,}  {count / draws:>7.2%}" for name, count in most[:SHOWN]]
    if len(most) > SHOWN:
        rest = sum(count for _, count in most[SHOWN:])
        rows.append(f"... and {len(most) - SHOWN:,} columns with {rest:,} draws together")
    return "\n".join([f"{'column':<{width}}  {'draws':>9}  {'share':>7}", *rows])


def percent(share: float) -> str:
    return f"{100 * share:.3g}%"
