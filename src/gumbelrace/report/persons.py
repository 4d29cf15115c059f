"""Persons found among mentions: lists to open, the doubtful mentions, and a box to search all of them.

A page holds the name of every person as long as that takes `MOST_NAMED` characters, and the mentions of as
many as take `MOST_LISTED`, the largest and the least sure first; the rest is in the table of clusters.
"""

import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.certainty import BY_ITSELF, DOUBTFUL, Sure
from gumbelrace.report.page import (
    Column,
    Entries,
    Entry,
    Finder,
    Section,
    Table,
    Text,
    Verdict,
    count,
    short,
)

# Characters of the page's data: a page has less than 5 MB in all.
MOST_NAMED, MOST_LISTED = 2_400_000, 1_400_000
# Persons in a list, mentions of one of them, mentions in the list of doubtful ones, and words of a kind.
PERSONS, MENTIONS, DOUBTS, WORDS = 12, 25, 20, 5
LONGEST_NAME, LONGEST_TITLE, LONGEST_VENUE, LONGEST_ID = 48, 70, 32, 40
FIELDS = ("author", "coauthors", "title", "venue", "year")
TITLES = ("probability", "name", "year", "otherwise with", "title", "venue", "mention")
LABELS = ("Written as", "Venues", "Co-authors", "Block")
READING = (
    "A mention's probability is the share of {sweeps} sweeps at temperature 1, after the search, in which "
    "it sits with most others of its cluster (if it is alone there: in which it is alone); one below "
    f"{DOUBTFUL:g} is doubtful. It comes from the model, and is as good as its weights."
)
BY_CHANCE = (
    " Other sweeps would give others: one between 0.05 and 0.95 is off by about {error:.2f} by chance."
)


@dataclass(frozen=True, eq=False)
class Register:
    """Mentions, and the persons that they were found to be of.

    Attributes
    ----------
    ids : sequence of str
        What mentions are called.
    texts : mapping of str
        Columns of the file by their names, of `FIELDS` those that it has.
    blocks : sequence of str
        The name of each mention's block.
    clusters : ndarray of int
        The number of each mention's person, -1 for none.
    sure : Sure or None
        How sure that is.
    table : str
        The file with all of it.
    """

    ids: Sequence[str]
    texts: Mapping[str, Sequence[str]]
    blocks: Sequence[str]
    clusters: NDArray[np.int64]
    sure: Sure | None
    table: str

    @functools.cached_property
    def members(self) -> list[NDArray[np.int64]]:
        """Rows of each person's mentions, the doubtful ones first."""
        order = np.lexsort((self.probability, self.clusters))
        order = order[np.count_nonzero(self.clusters < 0) :]
        return np.split(order, np.cumsum(np.bincount(self.clusters[order]))[:-1])

    @functools.cached_property
    def probability(self) -> NDArray[np.float64]:
        size = len(self.clusters)
        return np.ones(size) if self.sure is None else np.array(self.sure.probability, np.float64)

    @functools.cached_property
    def sizes(self) -> NDArray[np.int64]:
        return np.array([len(rows) for rows in self.members])

    @functools.cached_property
    def doubts(self) -> NDArray[np.float64]:
        """Mentions of each person that are expected to be someone else's."""
        return np.array([np.sum(1.0 - self.probability[rows]) for rows in self.members])

    @functools.cached_property
    def names(self) -> list[str]:
        """The name that most of a person's mentions have, of these the longest."""
        return [self._name(rows) for rows in self.members]

    def _name(self, rows: NDArray[np.int64]) -> str:
        written = Counter(self.texts["author"][row] for row in rows)
        name = max(written, key=lambda name: (written[name], len(name), name))
        return short(name, LONGEST_NAME) or "?"

    @property
    def largest(self) -> list[int]:
        return np.lexsort((np.arange(len(self.sizes)), -self.sizes)).tolist()  # type: ignore[no-any-return]

    @property
    def least_sure(self) -> list[int]:
        """Persons of two and more mentions, those with most doubts first."""
        order = np.lexsort((np.arange(len(self.sizes)), -self.doubts)).tolist()
        return [one for one in order if self.sizes[one] > 1 and self.doubts[one] > 0.0]

    def text(self, field: str, row: int) -> str:
        return self.texts[field][row] if field in self.texts else ""


def persons_section(register: Register, sweeps: int) -> Section:
    """Give the section that says who is who."""
    lists = [Entries("The largest", [entry(register, one) for one in register.largest[:PERSONS]])]
    reading = []
    if register.sure is not None:
        least_sure = [entry(register, one) for one in register.least_sure[:PERSONS]]
        lists += [Entries("The least sure", least_sure)] if least_sure else []
        by_chance = BY_CHANCE.format(error=register.sure.error) if register.sure.error > 0.0 else ""
        reading = [Text(READING.format(sweeps=sweeps) + by_chance), *doubtful(register)]
    return Section("Who is who", [finder(register), *lists, *reading])


def entry(register: Register, person: int) -> Entry:
    """Give a person to open, with its first mentions."""
    rows = register.members[person]
    columns = [Column(title, is_number=title in ("probability", "year")) for title in TITLES]
    cells = [mention(register, int(row)) for row in rows[:MENTIONS]]
    left = len(rows) - MENTIONS
    more = f"And {count(left)} more: the rows of `{register.table}` with cluster {person}."
    lines = dict(zip(LABELS, described(register, person), strict=True))
    return Entry(
        f"{register.names[person]}, {head(register, person)}",
        {label: words for label, words in lines.items() if words},
        Table(columns, cells),
        more if left > 0 else "",
        Verdict(text, "open") if (text := alarm(register, person)) else None,
    )


def head(register: Register, person: int) -> str:
    """Say how many mentions there are, and from when."""
    size = len(register.members[person])
    years = [register.text("year", int(row)).strip() for row in register.members[person]]
    known = sorted(short(year, 8) for year in years if year)
    span = "" if not known else f", {known[0]}" if known[0] == known[-1] else f", {known[0]}–{known[-1]}"
    return f"{count(size)} mention{'' if size == 1 else 's'}{span}"


def alarm(register: Register, person: int) -> str:
    """Say how many mentions are doubtful."""
    doubtful = int(np.count_nonzero(register.probability[register.members[person]] < DOUBTFUL))
    return f"{count(doubtful)} doubtful" if doubtful else ""


def described(register: Register, person: int) -> list[str]:
    """Give the words of `LABELS`."""
    rows = register.members[person]
    written = (register.texts["author"][row] for row in rows)
    venues = (register.text("venue", int(row)) for row in rows)
    others = chain.from_iterable(register.text("coauthors", int(row)).split(";") for row in rows)
    block = short(register.blocks[int(rows[0])], LONGEST_NAME)
    return [most_common(written, "; "), most_common(venues, "; "), most_common(others, "; "), block]


def most_common(words: Iterable[str], between: str) -> str:
    counts = Counter(one for word in words if (one := short(word, LONGEST_NAME)))
    common = sorted(counts, key=lambda word: (-counts[word], word))
    rest = len(common) - WORDS
    return between.join(common[:WORDS]) + (f" and {count(rest)} more" if rest > 0 else "")


def mention(register: Register, row: int) -> list[str]:
    """Give the cells of `TITLES`."""
    return [
        "" if register.sure is None else f"{register.probability[row]:.2f}",
        short(register.texts["author"][row], LONGEST_NAME),
        short(register.text("year", row), 8),
        otherwise(register, row),
        short(register.text("title", row), LONGEST_TITLE),
        short(register.text("venue", row), LONGEST_VENUE),
        short(register.ids[row], LONGEST_ID),
    ]


def otherwise(register: Register, row: int) -> str:
    """Say where else a mention may belong."""
    if register.sure is None or register.sure.runner_up[row] < BY_ITSELF:
        return ""
    other, share = register.sure.runner_up[row], register.sure.runner_up_probability[row]
    who = "nobody else" if other == BY_ITSELF else f"{register.names[other]} #{other}"
    return f"{who} ({share:.2f})"


def doubtful(register: Register) -> list[Any]:
    """List the mentions that are most likely someone else's, of persons with others."""
    sure = register.sure
    assert sure is not None
    low = np.flatnonzero(register.probability < DOUBTFUL).tolist()
    elsewhere = [row for row in low if sure.runner_up[row] >= 0]
    rows = sorted(elsewhere, key=lambda row: (-sure.runner_up_probability[row], row))[:DOUBTS]
    if not rows:
        return []
    titles = ("put with", *TITLES)
    columns = [Column(title, is_number=title in ("probability", "year")) for title in titles]
    cells = [
        [f"{register.names[cluster]} #{cluster}", *mention(register, row)]
        for row in rows
        if (cluster := int(register.clusters[row])) >= 0
    ]
    return [Table(columns, cells, "Mentions that are likely to be someone else's")]


def finder(register: Register) -> Finder:
    """Give the box to search in: all names if they fit, and the mentions of as many as fit."""
    rows, size = [], 0
    for person in register.largest:
        row: list[Any] = [person, register.names[person], head(register, person), alarm(register, person)]
        size += len(json.dumps(row, ensure_ascii=False).encode()) + 1
        if size > MOST_NAMED:
            break
        rows.append(row)
    place = {row[0]: row for row in rows}
    for person, details in listed(register):
        if person in place:
            place[person] += details
    table = register.table
    left = len(register.sizes) - len(rows)
    where = f" The {count(left)} smallest are in `{table}` only." if left else ""
    data = {
        "columns": TITLES,
        "labels": LABELS,
        "rest": f"All of its mentions are the rows of {table} with cluster {{}}.",
        "persons": rows,
    }
    label = f"Find one of {count(len(rows))} persons by name, or by number as #12." + where
    return Finder(label, data, f"Searching needs JavaScript; all persons are in `{table}`.")


def listed(register: Register) -> Iterator[tuple[int, list[Any]]]:
    """Give details of the largest and the least sure persons, in turn, as long as there is room."""
    in_turn = chain.from_iterable(zip_longest(register.largest, register.least_sure))
    size = 0
    for person in dict.fromkeys(one for one in in_turn if one is not None):
        rows = islice(register.members[person].tolist(), MENTIONS)
        details = [described(register, person), [mention(register, row) for row in rows]]
        details.append(len(register.members[person]))
        size += len(json.dumps(details, ensure_ascii=False).encode())
        if size > MOST_LISTED:
            return
        yield person, details
