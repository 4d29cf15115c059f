"""Mentions of authors: columns of text, parsed once into integers and sets of words, and their blocks."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.models.coreference.names import Codes, Name, agreement, parse_name, rarity, tokens_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Indices = NDArray[np.int64]
COLUMNS = (
    *("author", "coauthors", "title", "venue", "year"),
    *("affiliation", "city", "country", "cpc", "block", "label"),
)
# Sets of tokens that two mentions may share, in this order everywhere.
FIELDS = ("coauthors", "title", "venue", "place", "cpc")
MISSING = -1
# Words below this weight are in so many rows that sharing one says nothing: of 100,000 rows, in 3% or more.
LEAST_WEIGHT = 0.3


class TokenSets(NamedTuple):
    """A set of tokens for each row, as in a compressed sparse matrix."""

    starts: Indices  # row r has tokens[starts[r]:starts[r + 1]]
    tokens: Integers  # numbers of the tokens, sorted within a row
    # Weight of each token: its inverse document frequency, log(rows / rows with it) / log(rows): 1 for a
    # token of one row and 0 for one of all rows, in small files and large ones.
    weights: Floats

    @property
    def rows(self) -> Indices:
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def lengths(self) -> Floats:
        """Euclidean length of each row's vector of weights."""
        squares = self.weights[self.tokens] ** 2
        return np.sqrt(np.bincount(self.rows, squares, len(self.starts) - 1))


@dataclass(frozen=True, eq=False)
class Mentions:
    """Mentions of authors, parsed. See `mentions`, which makes them.

    Attributes
    ----------
    names : tuple of Name
        The distinct names.
    name : ndarray of shape (n,)
        Which of `names` each mention has.
    rarity : ndarray of shape (n,)
        How rare each mention's name is, from 0 to 1. See `names.rarity`.
    sets : tuple of TokenSets
        One for each of `FIELDS`.
    year : ndarray of shape (n,)
        Years, NaN where missing.
    country, label : ndarray of shape (n,)
        Numbers of countries and of true persons, -1 where missing.
    block : ndarray of shape (n,)
        Number of each mention's block. Mentions of different blocks are different persons.
    block_names : tuple of str
        Names of the blocks, sorted.
    """

    names: tuple[Name, ...]
    name: Indices
    rarity: Floats
    sets: tuple[TokenSets, ...]
    year: Floats
    country: Indices
    label: Indices
    block: Indices
    block_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.name)

    @functools.cached_property
    def lengths(self) -> Floats:
        """Euclidean length of each mention's vector of weights, in each of `FIELDS`."""
        return np.column_stack([one.lengths() for one in self.sets])

    def rows_by_block(self) -> list[Indices]:
        """Rows of each block, in the order of `block_names`."""
        order = np.argsort(self.block, kind="stable")
        ends = np.cumsum(np.bincount(self.block, minlength=len(self.block_names)))
        return np.split(order, ends[:-1])


def mentions(columns: Mapping[str, Sequence[str]]) -> Mentions:
    """Parse mentions of authors.

    Parameters
    ----------
    columns : mapping from name to texts
        One text for each mention, "" where it is missing. `author` must be there. The others are optional:
        `coauthors` and `cpc` (any codes or keywords) with ";" in between, `title`, `venue` (or a company),
        `year`, `affiliation`, `city`, `country`, `block` (mentions of different blocks are different
        persons; by default family name and first initial), and `label` (the true person).

    Returns
    -------
    Mentions

    Examples
    --------
    >>> found = mentions({"author": ["Wei Li", "Li, W.", "José Cruz"], "year": ["1999", "", "2001"]})
    >>> found.block_names, found.block, found.year
    (('cruz j', 'li w'), array([1, 1, 0]), array([1999.,   nan, 2001.]))
    """
    _check(columns)
    empty = [""] * len(columns["author"])
    full = {name: columns.get(name, empty) for name in COLUMNS}
    parsed = _Cached(parse_name)
    name, names = _numbered([parsed(text) for text in full["author"]])
    sets = _sets(full, parsed)
    blocks = full["block"] if "block" in columns else [names[number].key for number in name]
    block_names, block = np.unique(np.array(blocks, dtype=object), return_inverse=True)
    return Mentions(
        names=names,
        name=name,
        rarity=rarity(names, set(parsed.values()))[name],
        sets=sets,
        year=_years(full["year"]),
        country=_labels(full["country"]),
        label=_labels(full["label"]),
        block=block.astype(np.int64),
        block_names=tuple(map(str, block_names)),
    )


def _check(columns: Mapping[str, Sequence[str]]) -> None:
    unknown = sorted(set(columns) - set(COLUMNS))
    if unknown:
        raise InvalidArgument(f"there is no column {unknown[0]!r}; the columns are {', '.join(COLUMNS)}")
    if "author" not in columns:
        raise InvalidArgument("there is no column 'author'; give the names of the authors")
    size = len(columns["author"])
    for column, texts in columns.items():
        if len(texts) != size:
            raise ShapeMismatch(
                f"column {column!r} has {len(texts)} texts and 'author' has {size}; give one a mention"
            )
    if size == 0:
        raise InvalidArgument("there are no mentions; give at least one")


def _numbered(names: Sequence[Name]) -> tuple[Indices, tuple[Name, ...]]:
    numbers: dict[Name, int] = {}
    index = [numbers.setdefault(name, len(numbers)) for name in names]
    return np.array(index, np.int64), tuple(numbers)


def _sets(columns: Mapping[str, Sequence[str]], parsed: Callable[[str], Name]) -> tuple[TokenSets, ...]:
    lists = _Cached(tokens_of)
    places = zip(columns["affiliation"], columns["city"], strict=True)
    return (
        token_sets(_persons(text, parsed) for text in columns["coauthors"]),
        token_sets(map(tokens_of, columns["title"])),
        token_sets(map(lists, columns["venue"])),
        token_sets(lists(affiliation) + lists(city) for affiliation, city in places),
        token_sets((_parts(text.lower()) for text in columns["cpc"]), least=0.0),
    )


def _persons(text: str, parsed: Callable[[str], Name]) -> list[str]:
    names = map(parsed, _parts(text))
    return [f"{name.given} {name.family}" for name in names]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


class _Cached(dict[str, Any]):
    """A function of texts that are often equal."""

    def __init__(self, function: Callable[[str], Any]) -> None:
        self._function = function

    def __call__(self, text: str) -> Any:
        if text not in self:
            self[text] = self._function(text)
        return self[text]


def _years(texts: Sequence[str]) -> Floats:
    def year(text: str) -> float:
        try:
            return float(text) if text.strip() else np.nan
        except ValueError:
            raise InvalidArgument(f"{text!r} is no year; write 1999, or nothing if it is missing") from None

    known = _Cached(year)
    years = np.array([known(text) for text in texts], np.float64)
    return np.where(np.isfinite(years), years, np.nan)


def _labels(texts: Sequence[str]) -> Indices:
    numbers: dict[str, int] = {}
    stripped = [text.strip() for text in texts]
    index = [numbers.setdefault(text, len(numbers)) if text else MISSING for text in stripped]
    return np.array(index, np.int64)


def token_sets(texts: Iterable[Iterable[str]], least: float = LEAST_WEIGHT) -> TokenSets:
    """Give numbers to the words of each row; words with a weight below `least` are left out.

    Examples
    --------
    >>> sets = token_sets([["the", "race"], ["the", "walk"], ["the", "race"], []])
    >>> sets.starts, sets.tokens, sets.weights.round(2)
    (array([0, 1, 2, 3, 3]), array([0, 1, 0], dtype=int32), array([0.5, 1. ]))
    """
    vocabulary: dict[str, int] = {}
    counts: list[int] = []
    flat: list[int] = []
    for row in texts:
        found = {vocabulary.setdefault(word, len(vocabulary)) for word in row}
        counts.append(len(found))
        flat.extend(found)
    rows = np.repeat(np.arange(len(counts)), counts)
    return _weighed(rows, np.array(flat, np.int64), len(counts), least)


def _weighed(rows: Indices, tokens: Indices, size: int, least: float) -> TokenSets:
    frequency = np.bincount(tokens)
    weights = 1.0 - np.log(np.maximum(frequency, 1)) / np.log(max(size, 2))
    kept = weights >= least
    number = np.cumsum(kept) - 1
    chosen = kept[tokens] if len(tokens) else np.zeros(0, bool)
    rows, tokens = rows[chosen], number[tokens[chosen]]
    order = np.lexsort((tokens, rows))
    starts = np.searchsorted(rows[order], np.arange(size + 1))
    return TokenSets(starts, tokens[order].astype(np.int32), weights[kept])


@dataclass(frozen=True, eq=False)
class Block:
    """Mentions among which persons are told apart."""

    rows: Indices  # rows of the mentions in the file
    label: Indices  # true persons, -1 where unknown
    name: Integers  # which distinct name each mention has
    codes: Codes  # the class of each pair of these; see `names.agreement`
    # Tokens that two or more mentions share, of all fields: mention i has tokens[starts[i]:starts[i + 1]].
    starts: Integers
    tokens: Integers
    squares: NDArray[np.float32]  # squared weight of each token
    ends: Integers  # tokens of field k are those below ends[k] that are no earlier field's
    inverse: NDArray[np.float32]  # (n, fields): 1 / length of the vector of weights, 0 without tokens
    year: NDArray[np.float32]  # as in `Mentions`
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
    """Tokens of some mentions, an entry for each."""

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
