"""``gumbelrace best`` and ``gumbelrace sample``: the columns of a table raced, or drawn by their sums."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy  # its parts load when first used
import typer

from gumbelrace.cli.shared import (
    Decimal,
    Delta,
    Seed,
    Separator,
    grouped,
    no_default,
    progress,
    split_names,
    waiting,
)
from gumbelrace.cli.table_reports import (
    Drawn,
    best_of_race,
    best_of_totals,
    best_text,
    sample_report,
    sample_text,
)
from gumbelrace.errors import InvalidFile, NoPossibleArm
from gumbelrace.methods.base import Method, Promise, checked_delta
from gumbelrace.methods.default import race_of
from gumbelrace.methods.exact import Exact
from gumbelrace.population.base import Floats
from gumbelrace.sampling import DRAW
from gumbelrace.tables.delimited import dialect
from gumbelrace.tables.population import Chunks, Scores, Wanted, open_scores
from gumbelrace.tables.source import STANDARD_INPUT
from gumbelrace.tables.totals import Totals, open_scores_or_totals
from gumbelrace.tables.writing import check_table_output, write_table

COMPILING = "racing (the first run compiles)"
NOTHING_IS_BEST = "{}: every column holds an infinity; leave out the rows that have one"
NOTHING_TO_DRAW = "{}: every column holds a -inf: none can be drawn; leave these rows out"


@dataclass(frozen=True)
class TableOptions:
    """What both commands take."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Table with a column for each candidate: .npy, .npz (one array), .csv, .tsv, "
            ".csv.gz, .parquet, a folder of them or a pattern ('part-*.parquet'), or - for standard input.",
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

    def open(self, lowest: bool = False) -> AbstractContextManager[Scores | Totals]:
        checked_delta(self.delta)
        csv = dialect(self.separator, self.decimal)
        wanted = Wanted(split_names(self.columns), self.reward_range, lowest, csv)
        return open_scores_or_totals(self.file, wanted, progress)


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

    Of arrays (.npy, .npz) random rows are read until only one column can have the highest mean. The answer
    is wrong with a probability of at most DELTA: of a hundred runs with `--delta 0.01` and different
    seeds, about one may name another column. This is *proved* if the range of the numbers is known: by
    `--reward-range`, or because they are true or false. Else it is *assumed* that means of the rows read
    are normally distributed; a few huge numbers break that.

    All other files can only be read from front to back. They are added up meanwhile, and the answer is
    exact.

    For example:

    `gumbelrace best scores.npy --delta 0.01 --reward-range 0 1`

    `gumbelrace best losses.parquet --minimum --columns small,large`
    """
    with options.open(options.lowest) as table, one_is_possible(NOTHING_IS_BEST.format(options.name)):
        if isinstance(table, Totals):
            check_possible(table.sums)
            result, knows_range = best_of_totals(table, options.lowest), True
        else:
            result, knows_range = raced(table, options)
    print(
        json.dumps(result) if options.as_json else best_text(result, Path(options.name).name, knows_range)
    )


def raced(scores: Scores, options: BestOptions) -> tuple[dict[str, Any], bool]:
    """Race the columns of an array; say also whether the range of its numbers is known."""
    population = scores.population(options.shuffled or None)
    method = Exact() if options.exact else race_of(population, options.delta)
    with waiting(COMPILING):
        found = method.best(population, rng=np.random.default_rng(options.seed))
    return best_of_race(population, found, method, options.lowest), population.knows_range


@grouped
def sample(options: SampleOptions) -> None:
    """Draw columns with probability proportional to exp(sum of the column).

    The numbers are log factors: the logarithm of a column's probability is the sum of its
    numbers, up to a constant. Of arrays (.npy, .npz) each draw reads random rows until the others are
    unlikely to change it. Once the draws have read as much as there is in the file, it is added up: the
    other draws are exact and need nothing more, and the exact probabilities are shown beside the shares.
    All other files are added up at once.

    The law of a draw that was raced for is within DELTA of the exact one in total variation: no event is
    more likely, or less, by more than DELTA. This is *proved* if the range of the numbers is known, as for
    `gumbelrace best`.

    For example:

    `gumbelrace sample loglik.npy --draws 1000 --out draws.csv`

    `gumbelrace sample loglik.parquet --log-prior prior.csv`
    """
    if options.out is not None:
        check_out(options.out, options.file)
    rng, nothing = np.random.default_rng(options.seed), NOTHING_TO_DRAW.format(options.name)
    with options.open() as table, one_is_possible(nothing):
        prior = read_prior(options.log_prior, [str(name) for name in table.names])
        if isinstance(table, Totals):
            promise, knows_range = Promise(0.0), True
            drawn = draw_exactly(prior + table.sums, options.draws, rng, table.size)
        else:
            population = table.population()
            method, knows_range = race_of(population, options.delta), population.knows_range
            promise, drawn = method.promise, draw_all(population, prior, method, options.draws, rng)
    if options.out is not None:
        write_draws(options.out, drawn, table.names)
    result = sample_report(table, drawn, promise, options.out)
    print(
        json.dumps(result) if options.as_json else sample_text(result, Path(options.name).name, knows_range)
    )


@contextmanager
def one_is_possible(otherwise: str) -> Iterator[None]:
    """Say in words of tables that every state is impossible."""
    try:
        yield
    except NoPossibleArm as error:
        raise NoPossibleArm(otherwise) from error


def check_possible(sums: Floats) -> None:
    if np.isneginf(sums).all():
        raise NoPossibleArm


def check_out(out: Path, file: Path) -> None:
    """Check, before anything is drawn, that draws can be written there."""
    check_table_output(out)
    if out.exists() and file.exists() and out.samefile(file):
        raise InvalidFile(f"{out} is the table itself; write the draws elsewhere")


def read_prior(path: Path | None, names: list[str]) -> Floats:
    """Read log f0 from a table of one row with the same columns."""
    if path is None:
        return np.zeros(len(names))
    with open_scores(path, Wanted(names)) as table:
        if table.rows != 1:
            raise InvalidFile(f"{path} has {table.rows:,} rows; a log prior has one")
        return table.population().totals()


def draw_all(
    population: Chunks, prior: Floats, method: Method, draws: int, rng: np.random.Generator
) -> Drawn:
    """Race for each draw; once as much was read as there is, add everything up and race no more."""
    raced: list[tuple[int, int]] = []
    before = 0
    with progress(COMPILING, draws) as advance:
        while len(raced) < draws and before < population.scores.size:
            outcome = method.answer(DRAW, population, prior, rng)
            raced.append((outcome.arm, population.scores_read - before))
            before = population.scores_read
            advance(len(raced))
    arms, read = np.array(raced, np.int64).T
    if len(raced) == draws:
        return Drawn(arms, read)
    sums = prior + population.totals()
    exact = draw_exactly(sums, draws - len(raced), rng, population.scores_read - before)
    return Drawn(np.append(arms, exact.arms), np.append(read, exact.read), exact.probabilities)


def draw_exactly(sums: Floats, draws: int, rng: np.random.Generator, read: int) -> Drawn:
    """Draw by the sums of all columns; the first draw answers for what was read to know them."""
    check_possible(sums)
    probabilities = scipy.special.softmax(sums)
    first = np.where(np.arange(draws) == 0, read, 0)
    return Drawn(rng.choice(len(sums), draws, p=probabilities), first, probabilities)


def write_draws(out: Path, drawn: Drawn, names: tuple[str, ...] | tuple[int, ...]) -> None:
    """Write the draws, what each has read, and how probable what it drew is, if that is known."""
    columns = {"column": np.array(names)[drawn.arms], "numbers_read": drawn.read}
    if drawn.probabilities is not None:
        columns["probability"] = drawn.probabilities[drawn.arms]
    write_table(out, columns)
