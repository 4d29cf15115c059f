"""How many neighbours of a variable are read: which of them are head, and what becomes of the others.

Random rows tell little of a few heavy ones, and need not be read if the others are tiny. So a *head* of the
heaviest is read in order. The *tail* is left to a method, or not read at all. Where the head ends follows
from what lies beyond the looks of the layout, at k = 0, 8, 16, 32... rows: M rows, whose spans add up to
the reach R, and their squares to Q.

A race lets the reach prove labels beaten at each look, without error. Its head ends at the first look after
which a race of the M rows left is expected to read less, U_k, than reading on to the next look k':

    U_k = min(race_k, k' - k + P_k'/P_k · U_k'),    P_k = min(1, R_k),
    race_k = FEWEST + RACE · M · (Q + max span).

For the gap between the best two labels is of order 1, and lies below a small R with a probability of about
R; and a race for a gap of 1 needs (Nσ)² rows, and by Bernstein's second term N times the range. Equal
weights that decide little each have no head, weights that decay fast have little else, and where no race
would pay all rows are head.

Absorption needs T rows such that the variance of the sums, M Q / T (1 - T/M), is at most s² (`Absorb`), and
a row that was not seen, of which the range says how much it could be, matters less than the error:

    T = max(LEAST, M / (1 + s²/Q), M / (1 + c/range)),    c³/24 = error,

after a pilot. Its head makes the sum of all three smallest. Where R changes no law by more than the error,
the tail is not read: labels whose log probabilities are off by R at most have a law that is off by
tanh(R/4).

Of neighbours that ring (`rings`), about (κ + 1) L are read, L bounding the sum of their spans: the head
makes k + (κ + 1) L smallest.

At a temperature, all spans and ranges are divided by it. A row that is read at random takes as long as some
that are read in order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import kernel, part
from gumbelrace.kernels.graph.layout import Layout, look_at
from gumbelrace.methods.absorb import Absorbing
from gumbelrace.methods.absorb_moments import LARGEST_DERIVATIVE, LEAST, rows_at_first
from gumbelrace.methods.rules import implements

# What a race costs at least, in rows read in order, and how many it reads for a gap of 1 at the usual δ.
FEWEST, RACE = 64.0, 8.0
# What a row that is absorbed or that rings costs, in rows read in order.
AT_RANDOM = 4.0


class Reading(NamedTuple):
    """How the neighbours of each variable are read; what is neither head nor tail is not."""

    heads: NDArray[np.int32]  # how many are read in order
    tails: NDArray[np.int32]  # how many after these are left to the method
    levels: NDArray[np.int32]  # the look at which the head ends
    expected: NDArray[np.float64]  # how many will be read, about


class Room(NamedTuple):
    """What absorption allows, in units of the factors: noise, and errors of the law."""

    first: int  # rows of a pilot
    variance: float
    jump: float  # of a row that was not seen
    reach: float  # of rows that are not read


class Ringing(NamedTuple):
    """What neighbours that ring ask for."""

    temperature: float


def room_of(rule: Absorbing, arms: int, temperature: float) -> Room:
    """Give the room of a draw at a temperature."""
    deviation = rule.of_two.deviation / np.sqrt(2.0) if arms == 2 else rule.of_many.deviation
    jump = np.cbrt(3.0 * rule.error / LARGEST_DERIVATIVE)
    return Room(
        rule.first, (deviation * temperature) ** 2, jump * temperature, 4.0 * rule.error * temperature
    )


def new_reading(layout: Layout) -> Reading:
    """Make room."""
    heads, tails, levels = np.zeros((3, layout.variables), np.int32)
    return Reading(heads, tails, levels, np.zeros(layout.variables))


def read_whole(layout: Layout) -> Reading:
    """Read everything in order."""
    degrees, reading = np.diff(layout.starts), new_reading(layout)
    reading.heads[:], reading.expected[:] = degrees, degrees
    return reading


def for_race(layout: Layout) -> Reading:
    """Choose the heads of races."""
    reading = new_reading(layout)
    choose_for_race(layout, reading)
    return reading


def for_absorption(layout: Layout, room: Room) -> Reading:
    """Choose the heads of absorption."""
    reading = new_reading(layout)
    choose_cheapest(layout, room, reading)
    return reading


def for_rings(layout: Layout, temperature: float) -> Reading:
    """Choose the heads where the tail rings."""
    reading = new_reading(layout)
    choose_cheapest(layout, Ringing(temperature), reading)
    return reading


@kernel
def choose_for_race(layout: Layout, reading: Reading) -> None:
    """Choose where each head ends, from the last look to the first."""
    for i in range(len(reading.heads)):
        size = layout.starts[i + 1] - layout.starts[i]
        next_look, next_reach = begin(reading, i, size), 0.0
        for level in range(layout.reach.shape[1] - 1, -1, -1):
            k, reach = look_at(level), layout.reach[i, level]
            if k < size:
                undecided = min(1.0, next_reach) / min(1.0, reach) if reach > 0.0 else 0.0
                reading.expected[i] = next_look - k + undecided * (reading.expected[i])
                raced = FEWEST + RACE * (size - k) * (layout.squares[i, level] + layout.widest[i, level])
                put(reading, i, level, size - k, raced)
                next_look, next_reach = k, reach


@kernel
def choose_cheapest(layout: Layout, tail: Room | Ringing, reading: Reading) -> None:
    """Choose where each head ends such that head and tail take least, and whether there is a tail."""
    for i in range(len(reading.heads)):
        size = layout.starts[i + 1] - layout.starts[i]
        reading.expected[i] = begin(reading, i, size)
        for level in range(layout.reach.shape[1] - 1, -1, -1):
            if look_at(level) < size:
                rows = rows_of_tail(tail, layout, i, level)
                left = size - look_at(level) if rows > 0.0 else 0
                put(reading, i, level, left, look_at(level) + AT_RANDOM * rows)


def rows_of_tail(tail: Room | Ringing, layout: Layout, i: int, level: int) -> float:
    """Give how many rows beyond a look are read for a tail; 0: they are not needed."""
    raise NotImplementedError


@part
def begin(reading: Reading, i: int, size: int) -> int:
    """Begin with a head that is all there is."""
    reading.heads[i], reading.tails[i], reading.expected[i] = size, 0, 0.0
    return size


@part
def put(reading: Reading, i: int, level: int, tail: int, expected: float) -> None:
    """Let the head end at a look, if less is read then."""
    if expected < reading.expected[i]:
        reading.heads[i], reading.levels[i] = look_at(level), level
        reading.tails[i], reading.expected[i] = tail, expected


@implements(rows_of_tail, Ringing)
def _rows_that_ring(tail: Ringing, layout: Layout, i: int, level: int) -> float:
    total = span_beyond(layout, i, level) / tail.temperature
    return (surplus(total) + 1.0) * total


@implements(rows_of_tail, Room)
def _rows_absorbed(room: Room, layout: Layout, i: int, level: int) -> float:
    left = layout.starts[i + 1] - layout.starts[i] - look_at(level)
    rows = max(LEAST, left / (1.0 + room.variance / layout.squares[i, level]))
    if layout.known:
        wide = layout.high[i, level] - layout.low[i, level]
        rows = max(rows, left / (1.0 + room.jump / wide))
    is_little = layout.known and layout.reach[i, level] <= room.reach
    return 0.0 if is_little else rows_at_first(room.first, left) + float(rows)


@part
def span_beyond(layout: Layout, i: int, level: int) -> float:
    """Sum the bounds of the spans of the factors of a variable beyond a look: L."""
    size, total = int(layout.starts[i + 1] - layout.starts[i]), 0.0
    while look_at(level) < size:
        total += in_stratum(layout, i, level) * layout.widest[i, level]
        level += 1
    return float(total)


@part
def in_stratum(layout: Layout, i: int, level: int) -> int:
    """Count the neighbours of a variable from a look to the next one."""
    return min(look_at(level + 1), int(layout.starts[i + 1] - layout.starts[i])) - look_at(level)


@part
def surplus(total: float) -> float:
    """Give κ for spans that add up to L."""
    return max(1.0, total / 2.0)
