"""What a batch of draws gives."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.jit import part
from gumbelrace.solvers.field import EVALUATIONS, EXHAUSTED, LEADER, LOOKS, Field


class Results(NamedTuple):
    """What a batch of draws gives (arrays with one entry for each draw)."""

    arms: NDArray[np.int64]
    evaluations: NDArray[np.int64]
    looks: NDArray[np.int64]
    exhausted: NDArray[np.bool_]


def new_results(draws: int) -> Results:
    """Make room for the results of `draws` draws."""
    arms, evaluations, looks = np.zeros((3, draws), np.int64)
    return Results(arms, evaluations, looks, np.zeros(draws, np.bool_))


def part_of(results: Results, part: slice) -> Results:
    """Give a view of the results of some of the draws."""
    arms, evaluations, looks, exhausted = results
    return Results(arms[part], evaluations[part], looks[part], exhausted[part])


@part
def record(field: Field, results: Results, draw: int) -> None:
    """Note the outcome of a draw."""
    results.arms[draw] = field.tally[LEADER]
    results.evaluations[draw] = field.tally[EVALUATIONS]
    results.looks[draw] = field.tally[LOOKS]
    results.exhausted[draw] = field.tally[EXHAUSTED] == 1
