"""One block of mentions as flat arrays: what the compiled factor reads."""

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument
from gumbelrace.models.coreference.mentions import Floats, Indices, Integers, Mentions, TokenSets
from gumbelrace.models.coreference.names import Codes, agreement


@dataclass(frozen=True, eq=False)
class Block:
    """Mentions among which persons are told apart.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Rows of the mentions in the file.
    label : ndarray of shape (n,)
        True persons, -1 where unknown.
    name, codes : ndarray
        Which distinct name each mention has, and the class of each pair of those. See `names.agreement`.
    starts, tokens : ndarray
        Tokens that at least two mentions share, of all fields: those of mention i are
        ``tokens[starts[i]:starts[i + 1]]``, sorted.
    squares : ndarray
        Squared weight of each token.
    ends : ndarray of shape (fields,)
        Tokens of field k are those below ``ends[k]`` that are no earlier field's.
    inverse : ndarray of shape (n, fields)
        One over the length of a mention's vector of weights in a field; 0 if it has no tokens there.
    year, country, rarity : ndarray of shape (n,)
        As in `Mentions`.
    """

    rows: Indices
    label: Indices
    name: Integers
    codes: Codes
    starts: Integers
    tokens: Integers
    squares: NDArray[np.float32]
    ends: Integers
    inverse: NDArray[np.float32]
    year: NDArray[np.float32]
    country: Integers
    rarity: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def data(self) -> tuple[Any, ...]:
        """What the compiled factor takes."""
        return tuple(getattr(self, field.name) for field in fields(self)[2:])


def block_of(mentions: Mentions, rows: Indices) -> Block:
    """Gather the mentions of some rows, at least one.

    Examples
    --------
    >>> from gumbelrace.models.coreference.mentions import mentions
    >>> found = mentions({"author": ["Wei Li"] * 2 + ["W. Li"], "title": ["A race", "Race", "Trees"]})
    >>> block = block_of(found, found.rows_by_block()[0])
    >>> len(block), block.codes.shape, block.tokens
    (3, (2, 2), array([0, 0], dtype=int32))
    """
    if len(rows) == 0:
        raise InvalidArgument("a block without mentions; give at least one row")
    used, name = np.unique(mentions.name[rows], return_inverse=True)
    starts, tokens, squares, ends = _shared([_chosen(one, rows) for one in mentions.sets], len(rows))
    lengths = mentions.lengths[rows]
    return Block(
        rows=rows,
        label=mentions.label[rows],
        name=name.astype(np.int32),
        codes=agreement([mentions.names[number] for number in used]),
        starts=starts,
        tokens=tokens,
        squares=squares,
        ends=ends,
        inverse=np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0).astype(np.float32),
        year=mentions.year[rows].astype(np.float32),
        country=mentions.country[rows].astype(np.int32),
        rarity=mentions.rarity[rows].astype(np.float32),
    )


def blocks(mentions: Mentions, least: int = 1, most: int | None = None) -> list[Block]:
    """Gather every block with `least` to `most` mentions."""
    return [
        block_of(mentions, rows)
        for rows in mentions.rows_by_block()
        if least <= len(rows) <= (len(mentions) if most is None else most)
    ]


class _Entries(NamedTuple):
    """Tokens of some mentions, one entry for each."""

    row: Indices
    token: Integers
    weights: Floats


def _chosen(sets: TokenSets, rows: Indices) -> _Entries:
    counts = sets.starts[rows + 1] - sets.starts[rows]
    first = np.repeat(sets.starts[rows] - (np.cumsum(counts) - counts), counts)
    token = sets.tokens[first + np.arange(counts.sum())]
    return _Entries(np.repeat(np.arange(len(rows)), counts), token, sets.weights)


def _shared(fields: list[_Entries], size: int) -> tuple[Integers, Integers, NDArray[np.float32], Integers]:
    """Give numbers to tokens of two or more mentions, field after field, and sort them by mention."""
    rows, tokens = [], []
    squares: list[Floats] = []
    for field in fields:
        used, number, count = np.unique(field.token, return_inverse=True, return_counts=True)
        often = count > 1
        kept = often[number]
        rows.append(field.row[kept])
        tokens.append((np.cumsum(often) - 1)[number[kept]] + sum(len(part) for part in squares))
        squares.append(field.weights[used[often]] ** 2)
    row, token = np.concatenate(rows), np.concatenate(tokens)
    order = np.lexsort((token, row))
    starts = np.searchsorted(row[order], np.arange(size + 1))
    ends = np.cumsum([len(part) for part in squares])
    return (
        starts.astype(np.int32),
        token[order].astype(np.int32),
        np.concatenate(squares).astype(np.float32),
        ends.astype(np.int32),
    )
