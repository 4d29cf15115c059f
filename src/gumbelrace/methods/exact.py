"""The exact scan: the race that gives up at once and reads everything."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import Bits, bits_of, kernel
from gumbelrace.core.shuffle import Streams, rewind_all
from gumbelrace.methods import rules, separate
from gumbelrace.methods.base import Method, Promise
from gumbelrace.methods.differences import Differences, add_up_differences, new_differences
from gumbelrace.methods.field import ALIVE, Field, admit, new_field, reset
from gumbelrace.methods.own import Own, enter_own
from gumbelrace.methods.reading import FEW_ADDITIONS, ROUNDING, Sample
from gumbelrace.methods.rules import implements
from gumbelrace.methods.separate import OwnGear
from gumbelrace.population.base import CODE, FINE, IMPOSSIBLE, Floats, Population, SharedPopulation, Source


class Scan(NamedTuple):
    """A rule that reads everything."""

    keeps: bool = False

    def working_memory(self, arms: int) -> int:
        """Nothing is needed."""
        return 0


@implements(rules.begin, Scan)
def _begin(rule: Scan, work: int, source: Source, field: Field, size: int) -> None:
    return None


@implements(rules.next_look, Scan)
def _next_look(rule: Scan, taken: int, size: int) -> int:
    return 0


@implements(rules.judge, Scan)
def _judge(
    rule: Scan, work: int, source: Source, field: Field, sample: Sample, taken: int, size: int
) -> None:
    return None


@implements(separate.is_patient, Scan)
def _is_patient(rule: Scan) -> bool:
    return False


@implements(separate.look_size, Scan)
def _look_size(rule: Scan, look: int, looks: int, size: int) -> int:
    return size


@implements(separate.judge_own, Scan)
def _judge_own(
    rule: Scan, work: int, source: Source, field: Field, own: Own, sizes: NDArray[np.int64]
) -> None:
    return None


@dataclass(frozen=True)
class Exact(Method):
    """Read every reward: the answer is exact, and the cost is what the other methods save.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> population = gr.table(np.array([[0.0, 1.0], [0.5, 1.0], [9.0, 1.0]]))
    >>> gr.Exact().best(population, None, np.random.default_rng(0))
    Outcome(arm=0, evaluations=6, looks=0, exhausted=True, fraction=1, promise=0 proved)
    """

    @property
    def promise(self) -> Promise:
        """No error at all."""
        return Promise(0.0)

    def rule(self, population: Population) -> Scan:
        """Give the rule that reads everything."""
        return Scan()


class Totals(NamedTuple):
    """Sums of the rewards of every arm, less a part that all arms share; -inf for impossible arms."""

    sums: Floats
    rounding: Floats  # how far each may be off
    shared: float

    def plus(self, offsets: Floats) -> "Totals":
        """Add offsets, one row for each draw."""
        sums = self.sums + offsets
        added = FEW_ADDITIONS * (np.abs(offsets) + np.abs(self.sums) + np.abs(sums))
        return Totals(sums, np.where(sums > -np.inf, self.rounding + added, 0.0), self.shared)


def compared(population: Population, log_prior: Floats | None = None) -> Totals:
    """Sum the rewards of every arm as far as they can differ; what a prior rules out is not read."""
    population.draw_order(None)  # any order does
    sums, sizes, shared = _raced_totals(population, log_prior)
    raced = Totals(sums, ROUNDING * sizes, shared)
    known = population.known
    if known is None:
        return raced
    return raced._replace(rounding=raced.rounding + FEW_ADDITIONS * known.sizes).plus(known.sums)


def _raced_totals(population: Population, log_prior: Floats | None) -> tuple[Floats, Floats, float]:
    offset = 0.0 if log_prior is None else np.where(np.isneginf(log_prior), -np.inf, 0.0)
    if not isinstance(population, SharedPopulation):
        with population.streams() as streams, population.source() as source:
            rng = np.random.default_rng(0)  # the order of the rows does not matter to their sum
            gear = separate.new_own_gear(Scan(), source)
            gear.field.offset[:] = offset
            _totals_separate(Scan(), gear, source, streams, bits_of(rng), population.sizes)
            sums, squares = gear.field.sums, gear.own.squares
        # Σ|x| ≤ N|mean| + √(N Σ(x - mean)²): arms of different sizes have no part in common to be left out.
        return _only_alive(gear.field), np.abs(sums) + np.sqrt(population.sizes * squares), 0.0
    with population.source() as source:
        field, differences = new_field(source.arms), new_differences(source)
        field.offset[:] = offset
        _totals_shared(field, differences, source, population.size)
    return _only_alive(field), differences.sizes, float(differences.shared[0])


@kernel
def _totals_shared(field: Field, differences: Differences, source: Source, size: int) -> None:
    reset(field, source)
    admit(field, source)
    add_up_differences(differences, field, source, size)
    if source.fault[CODE] == FINE and field.tally[ALIVE] == 0:
        source.fault[CODE] = IMPOSSIBLE
    for a in range(field.tally[ALIVE]):
        field.sums[field.arms[a]] += field.lost[field.arms[a]]


@kernel
def _totals_separate(
    rule: Scan, gear: OwnGear, source: Source, streams: Streams, bits: Bits, sizes: NDArray[np.int64]
) -> None:
    reset(gear.field, source)
    enter_own(gear.field, gear.own, source)
    separate.look(rule, gear, source, streams, bits, sizes)
    rewind_all(streams)


def _only_alive(field: Field) -> Floats:
    """Give the sums of the arms still in the race, -inf for the others."""
    sums, alive = np.full(len(field.sums), -np.inf), field.arms[: field.tally[ALIVE]]
    sums[alive] = field.sums[alive]
    return sums
