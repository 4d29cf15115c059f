"""What a batch of draws gives."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import part
from gumbelrace.methods.field import ALIVE, EVALUATIONS, EXHAUSTED, LEADER, LOOKS, Field

# Sums that differ by less than this share of their size are equal but for rounding.
ROUNDING = 1e-13


class Results(NamedTuple):
    """What a batch of draws gives (arrays with one entry for each draw)."""

    arms: NDArray[np.int64]
    evaluations: NDArray[np.int64]
    looks: NDArray[np.int64]
    exhausted: NDArray[np.bool_]
    tied: NDArray[np.bool_]


def new_results(draws: int) -> Results:
    """Make room for the results of `draws` draws."""
    arms, evaluations, looks = np.zeros((3, draws), np.int64)
    exhausted, tied = np.zeros((2, draws), np.bool_)
    return Results(arms, evaluations, looks, exhausted, tied)


def part_of(results: Results, part: slice) -> Results:
    """Give a view of the results of some of the draws."""
    arms, evaluations, looks, exhausted, tied = results
    return Results(arms[part], evaluations[part], looks[part], exhausted[part], tied[part])


@part
def record(field: Field, results: Results, draw: int) -> None:
    """Note the outcome of a draw."""
    results.arms[draw] = field.tally[LEADER]
    results.evaluations[draw] = field.tally[EVALUATIONS]
    results.looks[draw] = field.tally[LOOKS]
    results.exhausted[draw] = field.tally[EXHAUSTED] == 1
    several = results.exhausted[draw] and field.tally[ALIVE] > 1
    results.tied[draw] = several and is_tie(field.podium[0], field.podium[1])


@part
def is_tie(best: float, next_best: float) -> bool:
    """Whether two sums differ by no more than rounding."""
    return best - next_best <= ROUNDING * (abs(best) + abs(next_best))
