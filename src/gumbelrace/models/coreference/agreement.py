"""How well two names agree, as a class, for all pairs of a block's distinct names at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument
from gumbelrace.models.coreference.names import Name
from gumbelrace.optional import optional

Codes = NDArray[np.uint8]

# Classes, the first of each kind being what weights are relative to.
GIVEN = ("same", "initial", "prefix", "close", "different")
MIDDLE = ("none", "one", "same", "different")
FAMILY = ("same", "close", "different")
SUFFIX = ("same", "one", "different")
CLOSE = 0.85  # normalised similarity from which on a difference passes for a slip or a spelling
MOST_NAMES = 20_000


def agreement(names: Sequence[Name]) -> Codes:
    """Give the class of each pair of names, one number for the four parts of a name.

    Parameters
    ----------
    names : sequence of Name
        Distinct names of a block, at most 20,000.

    Returns
    -------
    ndarray of shape (m, m)
        ``given + 5 * (middle + 4 * (family + 3 * suffix))``, each a place in `GIVEN`, `MIDDLE`, `FAMILY`
        and `SUFFIX`.

    Examples
    --------
    >>> from gumbelrace.models.coreference.names import parse_name
    >>> codes = agreement([parse_name("Wei K. Li"), parse_name("W. Li"), parse_name("Bo Li")])
    >>> [GIVEN[code % 5] for code in codes[0]], [MIDDLE[code // 5 % 4] for code in codes[0]]
    (['same', 'initial', 'different'], ['same', 'one', 'one'])
    """
    if len(names) > MOST_NAMES:
        raise InvalidArgument(
            f"a block has {len(names)} distinct names; give a block column with smaller blocks"
        )
    given, middle = _spread([n.given for n in names], _given), _spread([n.middle for n in names], _middle)
    joined = _equal([(n.given + n.middle).replace(" ", "") for n in names])
    both = joined & np.array([bool(n.middle) for n in names])
    # Chih Sheng and Chih-Sheng: the same name, written as one or two.
    given[joined], middle[both | both.T] = 0, MIDDLE.index("same")
    family, suffix = _spread([n.family for n in names], _close), _spread([n.suffix for n in names], _suffix)
    codes: Codes = given + 5 * (middle + 4 * (family + 3 * suffix)).astype(np.uint8)
    return codes


def _spread(texts: list[str], classes: Any) -> Codes:
    """Class the distinct texts, and give the classes of all pairs of texts."""
    distinct, place = np.unique(np.array(texts, dtype=object), return_inverse=True)
    table: Codes = classes([str(text) for text in distinct]).astype(np.uint8)
    return table[place[:, None], place]


def _equal(texts: list[str]) -> NDArray[np.bool_]:
    place = np.unique(np.array(texts, dtype=object), return_inverse=True)[1]
    same: NDArray[np.bool_] = place[:, None] == place
    return same


def _given(texts: list[str]) -> NDArray[Any]:
    short = np.array([len(text) < 2 for text in texts])
    compatible = short[:, None] | short  # an initial, or nothing
    starts = _prefixes(texts)
    similar = _similarity(texts) >= CLOSE
    choices = [np.eye(len(texts), dtype=bool) & ~short, starts & compatible, starts, similar & ~compatible]
    return np.select(choices, range(4), 4)


def _prefixes(texts: list[str]) -> NDArray[np.bool_]:
    """Whether one of two texts begins with the other; texts are sorted, so those that do are neighbours."""
    found = np.zeros((len(texts), len(texts)), bool)
    listed = np.array(texts, dtype=object)
    first = np.searchsorted(listed, listed)
    last = np.searchsorted(listed, np.array([text + chr(0x10FFFF) for text in texts], dtype=object))
    for row, (start, end) in enumerate(zip(first, last, strict=True)):
        found[row, start:end] = True
    return found | found.T


def _middle(texts: list[str]) -> NDArray[Any]:
    """Class middle names by the first of them, an initial agreeing with every name that it begins."""
    empty = np.array([not text for text in texts])
    first = [text.split(" ")[0] for text in texts]
    short = np.array([len(text) == 1 for text in first])
    same = _equal(first) | (_equal([text[:1] for text in first]) & (short[:, None] | short))
    return np.select([empty[:, None] & empty, empty[:, None] | empty, same], range(3), 3)


def _suffix(texts: list[str]) -> NDArray[Any]:
    empty = np.array([not text for text in texts])
    return np.select([np.eye(len(texts), dtype=bool), empty[:, None] | empty], range(2), 2)


def _close(texts: list[str]) -> NDArray[Any]:
    return np.select([np.eye(len(texts), dtype=bool), _similarity(texts) >= CLOSE], range(2), 2)


def _similarity(texts: list[str]) -> NDArray[np.float32]:
    distance, process = (optional(f"rapidfuzz.{part}", "coreference") for part in ("distance", "process"))
    scorer = distance.JaroWinkler.normalized_similarity
    table: NDArray[np.float32] = process.cdist(texts, texts, scorer=scorer, dtype=np.float32)
    return table
