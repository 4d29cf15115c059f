"""Rows picked by their weights with replacement, by Walker's table."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gumbelrace.core.random import alias_of
from gumbelrace.jax.model import JaxModel, Weighted
from gumbelrace.jax.packages import jnp
from gumbelrace.jax.sums import rows_at
from gumbelrace.laplace.model import Floats


class Table(NamedTuple):
    """The rows, and Walker's table by which they are picked; that of blocks is one after the other."""

    rows: Any
    whole: Any
    keep: Any
    other: Any
    inverse: Any  # of the chance of each row
    numbers: Any = None  # of the rows in the table; None: all of them, in their order


class Span(NamedTuple):
    """A part of the table: where it begins, and how many rows it has, at most `most`."""

    begin: Any
    size: Any
    most: int


def table_of(model: JaxModel, weights: Floats | None) -> Table:
    """Make the table by which rows are picked."""
    return Table(model.rows, model.whole, *walker(model.size, weights))


def table_of_parts(model: JaxModel, parts: Sequence[Weighted]) -> Table:
    """Make the tables of several parts of the rows, one after the other."""
    ends = np.cumsum([len(part.numbers) for part in parts])
    tables = [
        walker(len(part.numbers), part.weights, int(end) - len(part.numbers))
        for part, end in zip(parts, ends, strict=True)
    ]
    numbers = np.concatenate([part.numbers for part in parts]).astype(np.int32)
    keep, other, inverse = map(np.concatenate, zip(*tables, strict=True))
    return Table(model.rows, model.whole, keep, other, inverse, numbers)


def walker(size: int, weights: Floats | None, begin: int = 0) -> tuple[Any, Any, Any]:
    """Give `keep`, `other` and `inverse` of a table's part."""
    alias = alias_of(np.ones(size) if weights is None else weights)
    return alias.keep, (begin + alias.other).astype(np.int32), size / alias.chance


def picked(table: Table, span: Span, uniform: Any) -> Any:
    """Pick places by their weights: one part of a uniform number says which, the rest which of its two."""
    place = uniform * span.size
    n = place.astype(jnp.int32)
    kept = place - n < rows_at(table.keep, span.begin + n)
    return jnp.where(kept, span.begin + n, rows_at(table.other, span.begin + n))
