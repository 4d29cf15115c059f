"""What a normal variable of standard deviation s lacks of a Gumbel variable, or of a logistic one.

Each correction is a distribution with few values: N(0, s²) + C is nearly Gumbel. They were found by linear
programming; `benchmarks/corrections.py` makes the table.
"""

import csv
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.core.random import Bits, uniform
from gumbelrace.population.base import Floats

FILE, COLUMNS = "corrections.csv", ("law", "deviation", "error", "value", "weight")
GUMBEL, PAIR = "gumbel", "pair"


class Correction(NamedTuple):
    """A distribution of C: its values, and the chance not to exceed each."""

    deviation: float  # of the normal part
    error: float  # of any arm's probability p, relative to p (1 - p)
    values: Floats
    up_to: Floats


@lru_cache
def corrections(law: str) -> tuple[Correction, ...]:
    """Give the corrections of a law, in the order of their deviations."""
    with Path(__file__).with_name(FILE).open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["law"] == law]
    return tuple(
        _correction(float(deviation), list(group))
        for deviation, group in groupby(lines, itemgetter("deviation"))
    )


def _correction(deviation: float, lines: list[dict[str, str]]) -> Correction:
    values, weights = (np.array([float(line[name]) for line in lines]) for name in ("value", "weight"))
    return Correction(deviation, float(lines[0]["error"]), values, np.cumsum(weights))


def widest(law: str, error: float) -> Correction:
    """Give the correction with the largest normal part whose error is not above `error`."""
    return [found for found in corrections(law) if found.error <= error][-1]


def finest(law: str) -> float:
    """Give the smallest error of a correction."""
    return min(found.error for found in corrections(law))


@part
def draw_correction(correction: Correction, bits: Bits) -> float:
    """Draw C."""
    u, first, last = uniform(bits), 0, len(correction.up_to) - 1
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if u < correction.up_to[middle] else (middle + 1, last)
    return correction.values[first]
