"""The pairwise factor f_θ(i, j) = θ·features(i, j), compiled: one function over flat arrays.

The features of a pair of mentions are

- bias: 1;
- given, middle, family, suffix: 1 for the class of agreement of that part of the names
  (`names.agreement`); the first class of each has no weight of its own;
- name_rarity: if the given names are the same, how rare the two names are (`names.rarity`), on average;
- coauthors, title, venue, place, cpc: with s the sum of squared weights (IDF) of the tokens that both have,
  *shared* = s / (1 + s), *cosine* = s over the product of the lengths of their vectors, and *unknown* = 1
  if either has no tokens;
- year: *apart* = years between them / 10, at most 2, and *unknown*;
- country: *different* and *unknown*.
"""

from typing import Any

import numba
import numpy as np

from gumbelrace.core.jit import part
from gumbelrace.models.coreference.mentions import FIELDS, Floats, Indices
from gumbelrace.models.coreference.names import FAMILY, GIVEN, MIDDLE, SUFFIX

_PARTS = {"given": GIVEN, "middle": MIDDLE, "family": FAMILY, "suffix": SUFFIX}
NAME_FEATURES = ("bias", *(f"{part}_{one}" for part, classes in _PARTS.items() for one in classes[1:]))
PAIR_FEATURES = (
    *(f"{field}_{kind}" for field in FIELDS for kind in ("shared", "cosine", "unknown")),
    "year_apart",
    "year_unknown",
    "country_different",
    "country_unknown",
    "name_rarity",
)
FEATURES = (*NAME_FEATURES, *PAIR_FEATURES)
LONGEST = 20.0  # years apart that count
SAME_GIVEN = len(GIVEN)  # codes of names with the same given name are its multiples


def name_table() -> Floats:
    """Features of each class of names: an array of shape (classes, name features)."""
    sizes = [len(classes) for classes in _PARTS.values()]
    digits = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes, order="F"))
    ones = [digits[part][:, None] == np.arange(1, size) for part, size in enumerate(sizes)]
    return np.column_stack([np.ones(digits.shape[1]), *ones]).astype(np.float64)


def split(theta: Floats) -> tuple[Floats, Floats]:
    """Turn weights of `FEATURES` into one for each class of names, and those of `PAIR_FEATURES`."""
    return name_table() @ theta[: len(NAME_FEATURES)], theta[len(NAME_FEATURES) :].copy()


@part
def _field(common: float, inverse: float, weights: Any, at: int) -> float:
    if inverse == 0.0:
        return weights[at + 2]
    return weights[at] * common / (1.0 + common) + weights[at + 1] * common * inverse


@part
def _apart(year: float, other: float, weights: Any) -> float:
    apart = abs(year - other)
    if np.isnan(apart):
        return weights[16]
    return weights[15] * 0.1 * min(apart, LONGEST)


@part
def _abroad(country: int, other: int, weights: Any) -> float:
    if country < 0 or other < 0:
        return weights[18]
    return weights[17] if country != other else 0.0


@part
def linear(i, j, data):  # type: ignore[no-untyped-def]
    """Give θ·features of mentions i and j from the data of a `Block`, and θ as `split` gives it."""
    name, codes, starts, tokens, squares, ends, inverse, year, country, rarity, name_weights, weights = data
    coauthors = title = venue = place = cpc = 0.0
    a, b = starts[i], starts[j]
    end_a, end_b = starts[i + 1], starts[j + 1]
    while a < end_a and b < end_b:
        token, other = tokens[a], tokens[b]
        if token == other:
            square = squares[token]
            if token < ends[0]:
                coauthors += square
            elif token < ends[1]:
                title += square
            elif token < ends[2]:
                venue += square
            elif token < ends[3]:
                place += square
            else:
                cpc += square
        # Without branches, which would be mispredicted half of the time.
        a += token <= other
        b += other <= token
    code = codes[name[i], name[j]]
    x = name_weights[code]
    if code % SAME_GIVEN == 0:
        x += weights[19] * 0.5 * (rarity[i] + rarity[j])
    x += _field(coauthors, inverse[i, 0] * inverse[j, 0], weights, 0)
    x += _field(title, inverse[i, 1] * inverse[j, 1], weights, 3)
    x += _field(venue, inverse[i, 2] * inverse[j, 2], weights, 6)
    x += _field(place, inverse[i, 3] * inverse[j, 3], weights, 9)
    x += _field(cpc, inverse[i, 4] * inverse[j, 4], weights, 12)
    return x + _apart(year[i], year[j], weights) + _abroad(country[i], country[j], weights)


@numba.njit
def log_factor(i, j, cap, leak, *data):  # type: ignore[no-untyped-def]
    """Give the shaped factor: at most `cap`, and softened below 0."""
    x = linear(i, j, data)  # type: ignore[no-untyped-call]
    return min(x, cap) if x > 0.0 else leak * max(x, -cap)


@numba.njit(nogil=True)
def _many(i, j, data):  # type: ignore[no-untyped-def]
    found = np.empty(len(i))
    for k in range(len(i)):
        found[k] = linear(i[k], j[k], data)  # type: ignore[no-untyped-call]
    return found


def features(i: Indices, j: Indices, data: tuple[Any, ...]) -> Floats:
    """Give the features of pairs: feature k is the linear factor whose only weight is that of k, one."""
    units = np.eye(len(FEATURES))
    return np.column_stack([_many(i, j, (*data, *split(unit))) for unit in units])
