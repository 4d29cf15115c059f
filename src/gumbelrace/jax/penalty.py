"""The test of `Penalty` by JAX: accept or reject a move from few rows (reasons: methods/penalty.py).

Rows are picked by their weights, with replacement. A pilot of rows of its own says how many rows the
estimate needs. What is needed seldom (a longer pilot, more rows, all rows) stands in loops that end at once
where it is not: of chains that are computed side by side, one may need it and the others wait.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.jax.model import JaxModel
from gumbelrace.jax.packages import jnp, lax, random
from gumbelrace.jax.picking import Span, Table, picked
from gumbelrace.jax.sums import chunk_of, rows_at
from gumbelrace.methods.margins import FAR
from gumbelrace.methods.penalty import (
    MARGIN,
    NEVER,
    PILOT_REACH,
    PILOT_ROWS,
    SURE_ROWS,
    UNUSABLE,
    Penalty,
)
from gumbelrace.methods.state import ROUNDING

# Rows that are read at once where the first do not suffice, and the most that are read first.
MORE, MOST_FIRST = 256, 4096
# Rows in order are read so many times faster than random ones.
SCAN_SPEED = 4


class Reading(NamedTuple):
    """How many rows the pilot has at first, and the estimate at least; the rest as `Penalty` has it."""

    pilot: int
    first: int
    most: float
    error: float


class Powers(NamedTuple):
    """How many rows, and sums of the first three powers of how far their differences are from a centre."""

    count: Any
    first: Any
    second: Any
    third: Any


class Spread(NamedTuple):
    """Variance and size of the third cumulant of what single rows say of the whole log ratio."""

    variance: Any
    third: Any


class Move(NamedTuple):
    """A move from `here` to `there`, steps from the centre of the expansion.

    `offset` is what is known of its log ratio, and the key gives what has to be drawn beyond the `first`
    uniform numbers, which pick the first rows.
    """

    centre: Any
    here: Any
    there: Any
    offset: Any
    first: Any
    key: Any


class Plan(NamedTuple):
    """What a pilot asks for."""

    side: Any  # 1 or -1 if it leaves no doubt that the move is accepted or rejected, else 0
    everything: Any  # whether to read all rows
    longer: Any  # by how many rows the pilot is to be longer
    needed: Any  # rows of the estimate


class Read(NamedTuple):
    """The pilot's rows and the estimate's, and what the pilot asks for."""

    pilot: Powers
    estimate: Powers
    plan: Plan


class Decision(NamedTuple):
    """The logarithm of the chance to accept, the rows read, and what they say of the error of its law."""

    log_chance: Any
    rows: Any
    law_error: Any


def reading_of(expected: float) -> Reading:
    """Give the rule for moves that are expected to need so many rows: few will then need a second look."""
    penalty = Penalty()
    first = 1 << int(np.ceil(np.log2(np.clip(expected, penalty.first, MOST_FIRST))))
    return Reading(max(PILOT_ROWS, first // PILOT_REACH), first, penalty.most_variance, penalty.error)


@dataclass(frozen=True)
class Test:
    """The test of one move, by the rows of a part of the table."""

    __test__ = False  # pytest would take it for one of its own

    model: JaxModel
    rule: Reading
    table: Table
    span: Span
    move: Move
    centre: Any = 0.0  # a typical difference, from which others are counted

    @property
    def few(self) -> Any:
        """Whether there are so few rows that all are read at once."""
        return takes_all(self.rule.pilot + self.rule.first, self.span.size)

    def decision(self) -> Decision:
        """Judge the move."""
        if self.few is True:  # known when it is compiled
            size = jnp.float64(self.span.size)
            return Decision(self.move.offset + self.exact(True), size, jnp.float64(0.0))
        found = self.read(self.move.first)
        return replace(self, centre=found[: self.rule.pilot].mean()).decision_after(found)

    def decision_after(self, found: Any) -> Decision:
        """Judge the move after the first rows, reading as many more as the pilot asks for."""
        pilot, estimate = (powers_of(part - self.centre) for part in jnp.split(found, [self.rule.pilot]))
        read = lax.while_loop(lacks_rows, self.more, Read(pilot, estimate, self.plan(pilot)))
        return self.judged(read)

    def more(self, read: Read) -> Read:
        """Read more rows: for the pilot as long as it lacks some, then for the estimate."""
        key = random.fold_in(self.move.key, (read.pilot.count + read.estimate.count).astype(int))
        found = self.read(random.uniform(key, (MORE,))) - self.centre
        longer, missing = read.plan.longer, read.plan.needed - read.estimate.count
        row = jnp.arange(MORE)
        pilot = plus(read.pilot, powers_of(found, row < longer))
        estimate = plus(read.estimate, powers_of(found, (longer == 0.0) & (row < missing)))
        return Read(pilot, estimate, self.plan(pilot))

    def judged(self, read: Read) -> Decision:
        """Judge the move by what was read; where that is a surprise, by all rows."""
        count, spread, sure = read.estimate.count, spread_of(read.estimate), read.plan.side != 0.0
        variance, law_error = spread.variance / count, spread.third / (3.0 * count * count)
        everything = read.plan.everything | (~sure & (variance > UNUSABLE * self.rule.most))
        total = jnp.where(everything, self.exact(everything), self.centre + read.estimate.first / count)
        log_chance = self.move.offset + total - jnp.where(everything, 0.0, penalty(variance, count))
        rows = read.pilot.count + count + jnp.where(everything, 1.0 * self.span.size, 0.0)
        return Decision(
            jnp.where(sure, read.plan.side * jnp.inf, log_chance),
            rows,
            jnp.where(everything | sure, 0.0, law_error),
        )

    def plan(self, pilot: Powers) -> Plan:
        """Say what a pilot asks for: to be longer, if it asks for many more rows than it has itself."""
        spread, size = spread_of(pilot), 1.0 * self.span.size
        alike = spread.variance <= (ROUNDING * self.centre) ** 2  # which proves nothing of other rows
        needed = jnp.where(alike, size, self.rows_needed(spread))
        side = jnp.where(alike | self.few, 0.0, self.side_beyond_doubt(pilot, spread))
        short = needed > jnp.maximum(PILOT_REACH * pilot.count, 1.0 * self.rule.first)
        wanted = jnp.where(short, 2.0 * pilot.count, needed)
        everything = (side == 0.0) & (self.few | takes_all(wanted, size))
        goes_on = (side == 0.0) & ~everything
        longer = jnp.where(goes_on & short, jnp.minimum(pilot.count, 1.0 * MORE), 0.0)
        return Plan(side, everything, longer, jnp.where(goes_on & ~short, needed, 0.0))

    def rows_needed(self, spread: Spread) -> Any:
        """Give the number of rows after which the pilot expects the estimate to be good enough."""
        for_law = jnp.sqrt(spread.third / (3.0 * self.rule.error))
        needed = MARGIN * jnp.maximum(spread.variance / self.rule.most, for_law)
        return jnp.minimum(jnp.ceil(needed), 1.0 * self.span.size)

    def side_beyond_doubt(self, pilot: Powers, spread: Spread) -> Any:
        """Give 1 or -1 if the pilot leaves no doubt that the move is accepted or rejected, else 0."""
        count, gap = pilot.count, self.move.offset + self.centre + pilot.first / pilot.count
        far = FAR * (1.0 + (FAR * FAR + 1.0) / (4.0 * count))
        skewed = (2.0 * FAR * FAR + 1.0) / 6.0 * spread.third / (spread.variance * count)
        margin = far * jnp.sqrt(spread.variance / count) + skewed + NEVER
        return jnp.where((count >= SURE_ROWS) & (jnp.abs(gap) > margin), jnp.sign(gap), 0.0)

    def read(self, uniform: Any) -> Any:
        """Pick rows, and give what each by itself says of the difference of all residuals."""
        n = picked(self.table, self.span, uniform)
        return self.differences(rows_at(self.table.rows, self.numbers(n))) * rows_at(self.table.inverse, n)

    def numbers(self, n: Any) -> Any:
        """Give which rows stand in some places of the table."""
        return n if self.table.numbers is None else rows_at(self.table.numbers, n)

    def differences(self, rows: Any) -> Any:
        """Give by how much the residuals of rows differ between the two ends of the move."""
        move = self.move
        return self.model.left_of_move(rows, self.table.whole, move.centre, (move.here, move.there))

    def exact(self, wanted: Any) -> Any:
        """Sum the differences of all rows, if that is wanted; else give 0."""
        chunk, size = min(self.model.chunk, self.span.most), self.span.size

        def add(state: Any) -> Any:
            begin, total = state
            rows, counts = self.rows_from(begin, chunk)
            return begin + chunk, total + jnp.where(counts, self.differences(rows), 0.0).sum()

        return lax.while_loop(lambda state: state[0] < jnp.where(wanted, size, 0), add, (0, 0.0))[1]

    def rows_from(self, begin: Any, chunk: int) -> tuple[Any, Any]:
        """Give a chunk of the rows in order, and which of them count."""
        if self.table.numbers is None:
            return chunk_of(self.table.rows, begin, chunk)
        n, size = begin + jnp.arange(chunk), self.span.size
        places = self.span.begin + jnp.minimum(n, size - 1)
        return rows_at(self.table.rows, self.numbers(places)), n < size


def lacks_rows(read: Read) -> Any:
    """Whether rows are still missing, of the pilot or of the estimate."""
    return (read.plan.longer > 0.0) | (read.estimate.count < read.plan.needed)


def plus(one: Powers, other: Powers) -> Powers:
    return Powers(*(a + b for a, b in zip(one, other, strict=True)))


def takes_all(rows: Any, size: int) -> Any:
    """Whether reading all rows takes no longer than reading so many random ones."""
    return rows * SCAN_SPEED >= size


def powers_of(found: Any, counts: Any = True) -> Powers:
    """Sum powers of some differences, those that count."""
    z = jnp.where(counts, found, 0.0)
    count = jnp.sum(jnp.broadcast_to(counts, z.shape).astype(float))
    return Powers(count, z.sum(), (z * z).sum(), (z * z * z).sum())


def spread_of(powers: Powers) -> Spread:
    """Estimate the spread of single differences, which does not change if the move is turned around."""
    count, mean = powers.count, powers.first / powers.count
    squares = powers.second - mean * powers.first
    cubes = powers.third - 3.0 * mean * powers.second + 2.0 * mean * mean * powers.first
    third = jnp.abs(cubes) * count / ((count - 1.0) * (count - 2.0))
    return Spread(jnp.maximum(squares, 0.0) / (count - 1.0), third)


def penalty(variance: Any, count: Any) -> Any:
    """Give the first terms of Ceperley & Dewing's series for a variance estimated from so many rows."""
    cubic = variance**3 / (3.0 * (count + 1.0) * (count + 3.0))
    return variance / 2.0 + variance**2 / (4.0 * (count + 1.0)) + cubic
