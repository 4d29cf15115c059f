"""Mentions of authors who never were: persons of all sizes, who share names, topics and colleagues.

A person has a name (some are common), a community of colleagues, a topic with its words and venues, a place
and some years of activity. Most write little and some a lot: their mentions follow a power law. A mention
shows part of that: initials for names, middle names left out, slips of the pen, words that any title may
have, strangers among the coauthors.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.random import Rng, as_generator
from gumbelrace.population.base import checked_count

Indices = NDArray[np.int64]

# How many there are of each: families grow with the mentions, so that blocks keep their size.
MENTIONS_A_FAMILY = 400
GIVEN_NAMES = 80
COMMUNITY = 10
PERSONS_A_COMMUNITY = 4
MENTIONS_A_TOPIC = 300
TOPIC_WORDS, COMMON_WORDS = 60, 500
TOPIC_VENUES, COMMON_VENUES = 5, 10
LARGEST_SHARE = 0.1  # of all mentions: the most that one person has
TAIL = 1.1  # of the power law: P(more than k mentions) falls as k to minus this
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


class _People(NamedTuple):
    """What is true of each person, in numbers."""

    family: Indices
    given: Indices
    middle: Indices
    community: Indices
    topic: Indices
    place: Indices
    start: Indices


def simulate(n: int, rng: Rng = None) -> dict[str, list[str]]:
    """Simulate mentions whose true persons are known.

    Parameters
    ----------
    n : int
        Number of mentions.
    rng : numpy.random.Generator, int, or None
        Random source.

    Returns
    -------
    dict from str to list of str
        Columns for `mentions`, with the persons under `label`.

    Examples
    --------
    >>> columns = simulate(1000, np.random.default_rng(0))
    >>> sorted(columns)
    ['affiliation', 'author', 'coauthors', 'label', 'title', 'venue', 'year']
    """
    n, rng = checked_count(n, "n"), as_generator(rng)
    person = _persons(n, rng)
    people = _people(int(person.max()) + 1, n, rng)
    return {
        "author": [_name(people, one, rng) for one in person],
        "coauthors": [_colleagues(people, one, rng) for one in person],
        "title": [_title(int(people.topic[one]), rng) for one in person],
        "venue": [_venue(int(people.topic[one]), rng) for one in person],
        "year": [str(year) for year in people.start[person] + rng.integers(0, 15, n)],
        "affiliation": [_place(int(people.place[one]), rng) for one in person],
        "label": [f"person {one}" for one in person],
    }


def _persons(n: int, rng: np.random.Generator) -> Indices:
    sizes = np.minimum(rng.pareto(TAIL, n) + 1.0, max(LARGEST_SHARE * n, 1.0)).astype(np.int64)
    people = np.repeat(np.arange(n), sizes)[:n]
    return rng.permutation(people)


def _people(count: int, n: int, rng: np.random.Generator) -> _People:
    topics, communities = max(n // MENTIONS_A_TOPIC, 2), max(count // PERSONS_A_COMMUNITY, 1)
    community = rng.integers(communities, size=count)
    return _People(
        family=_popular(max(n // MENTIONS_A_FAMILY, 1), count, rng),
        given=_popular(GIVEN_NAMES, count, rng),
        middle=rng.integers(-10, 16, count),
        community=community,
        topic=rng.integers(topics, size=communities)[community],
        place=rng.integers(topics, size=count),
        start=rng.integers(1980, 2015, count),
    )


def _popular(kinds: int, count: int, rng: np.random.Generator) -> Indices:
    """Draw from kinds of which the first is the most common: popularity falls as 1 / (rank + 4)."""
    share = 1.0 / (np.arange(kinds) + 5.0)
    return rng.choice(kinds, count, p=share / share.sum())


def _word(number: int, kind: str = "") -> str:
    """Spell a number in syllables, two or more; a kind of word has an ending of its own."""
    word, rest = "", number + len(SYLLABLES)
    while rest:
        rest, syllable = divmod(rest, len(SYLLABLES))
        word += SYLLABLES[syllable]
    return word + kind


def _name(people: _People, person: int, rng: np.random.Generator) -> str:
    given, middle = _word(int(people.given[person]), "n"), int(people.middle[person])
    if rng.random() < 0.25:
        given = given[0] + "."
    elif rng.random() < 0.03:
        given = _slip(given, rng)
    initial = f" {chr(97 + middle)}." if middle >= 0 and rng.random() < 0.6 else ""
    return f"{given}{initial} {_word(int(people.family[person]), 's')}".title()


def _slip(text: str, rng: np.random.Generator) -> str:
    """Leave out a letter other than the first, or swap it with the next."""
    at = int(rng.integers(1, len(text) - 1))
    swapped = text[at + 1] + text[at] if rng.random() < 0.5 else text[at + 1]
    return text[:at] + swapped + text[at + 2 :]


def _colleagues(people: _People, person: int, rng: np.random.Generator) -> str:
    home = int(people.community[person])
    count = int(rng.integers(0, 5))
    strange = rng.random(count) < 0.3
    community = np.where(strange, rng.integers(people.community.max() + 1, size=count), home)
    members = community * COMMUNITY + rng.integers(COMMUNITY, size=count)
    return ";".join(_colleague(int(one), rng) for one in np.unique(members))


def _colleague(number: int, rng: np.random.Generator) -> str:
    given = _word(number % 97, "n")
    written = given[0] + "." if rng.random() < 0.15 else given
    return f"{written} {_word(number, 'r')}".title()


def _title(topic: int, rng: np.random.Generator) -> str:
    special = topic * TOPIC_WORDS + rng.integers(TOPIC_WORDS, size=3)
    common = _popular(COMMON_WORDS, 4, rng)
    return " ".join([_word(int(one), "l") for one in special] + [_word(int(one), "x") for one in common])


def _venue(topic: int, rng: np.random.Generator) -> str:
    if rng.random() < 0.3:
        return _word(int(rng.integers(COMMON_VENUES)), "q")
    return _word(topic * TOPIC_VENUES + int(rng.integers(TOPIC_VENUES)), "c")


def _place(place: int, rng: np.random.Generator) -> str:
    return "" if rng.random() < 0.5 else f"{_word(place, 'h')} {_word(place % 7, 'u')}"
