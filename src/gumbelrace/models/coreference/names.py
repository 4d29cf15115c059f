"""Names of persons: folded to plain letters, parsed, and how well two of them agree."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, optional

# Letters that Unicode does not decompose into a plain letter and an accent.
PLAIN = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"})
# Within a name these join what they stand between: Chih-Sheng, O'Neil.
JOINED = re.compile(r"[-'’`‐‑]")
WORD = re.compile(r"[^\W_]+")
NAME_WORD = re.compile(r"[^\W\d_]+")
SUFFIXES = frozenset({"jr", "sr", "ii", "iii", "iv", "2nd", "3rd", "4th"})
PARTICLES = frozenset(
    {"van", "von", "de", "der", "den", "del", "della", "dos", "da", "du", "la", "ter", "ten"}
)

Codes = NDArray[np.uint8]

# Classes, the first of each kind being what weights are relative to.
GIVEN = ("same", "initial", "prefix", "close", "different")
MIDDLE = ("none", "one", "same", "different")
FAMILY = ("same", "close", "different")
SUFFIX = ("same", "one", "different")
CLOSE = 0.85  # normalised similarity from which on a difference passes for a slip or a spelling
MOST_NAMES = 20_000


class Name(NamedTuple):
    """A person's name, folded: plain lower-case letters.

    Attributes
    ----------
    given : str
        First given name, or its initial, or "" if there is none. "Chih-Sheng" is one name, chihsheng.
    middle : str
        Further given names or initials, with spaces in between.
    family : str
        Family name with its particles, joined: "van der Berg" is vanderberg.
    suffix : str
        Such as jr or iii.
    """

    given: str
    middle: str
    family: str
    suffix: str

    @property
    def key(self) -> str:
        """Family name and first initial: the block of the name.

        Examples
        --------
        >>> parse_name("Müller, Jürgen K.").key
        'muller j'
        """
        return f"{self.family} {self.given[:1]}".rstrip()


def folded(text: str) -> str:
    """Give a text in lower case without accents.

    Examples
    --------
    >>> folded("Łukasz Müller-Sørensen")
    'lukasz muller-sorensen'
    """
    if text.isascii():
        return text.lower()
    # Letters made for mathematics show what they are, and have a lower case, only when taken apart.
    plain = unicodedata.normalize("NFKD", text).lower().translate(PLAIN)
    parts = unicodedata.normalize("NFKD", plain)
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def tokens_of(text: str) -> list[str]:
    """Give the folded words and numbers of a text, single letters left out.

    Examples
    --------
    >>> tokens_of("A Theory of 2-D Fields")
    ['theory', 'of', 'fields']
    """
    return [word for word in WORD.findall(folded(text)) if len(word) > 1]


def parse_name(text: str) -> Name:
    """Parse "Given M. Family, Jr." or "Family, Given M.".

    Digits are left out, such as those that tell persons of one name apart.

    Examples
    --------
    >>> parse_name("José R. de la Cruz, Jr.")
    Name(given='jose', middle='r', family='delacruz', suffix='jr')
    >>> parse_name("Chang, Chih-Sheng")
    Name(given='chihsheng', middle='', family='chang', suffix='')
    """
    parts = [part.split() for part in JOINED.sub("", folded(text)).replace(".", " ").split(",")]
    parts, suffix = _without_suffix([part for part in parts if part])
    # Circled numbers and the like are neither digits nor letters.
    lists = [[w for piece in part for w in NAME_WORD.findall(piece) if w.isalpha()] for part in parts]
    if len(lists) > 1:
        family, forenames = lists[0], [word for part in lists[1:] for word in part]
    else:
        forenames, family = _split(lists[0] if lists else [])
    return Name("".join(forenames[:1]), " ".join(forenames[1:]), "".join(family), suffix)


def rarity(names: Sequence[Name], population: Collection[Name]) -> NDArray[np.float64]:
    """Say how rare names are among distinct names of a population: the fewer namesakes, the closer to 1.

    With p and q the shares of distinct names that have this given name and this family name, it is
    log(1 / pq) / log(1 / smallest pq possible). A share is never taken to be 0.

    Examples
    --------
    >>> names = [parse_name(text) for text in ("Wei Li", "Wei Ma", "Bo Li", "Al Wu")]
    >>> rarity(names, names).round(2)
    array([0.5 , 0.75, 0.75, 1.  ])
    """
    given, family = Counter(name.given for name in population), Counter(name.family for name in population)
    counts = [max(given[name.given], 1) * max(family[name.family], 1) for name in names]
    log_size = np.log(max(len(population), 2))
    found: NDArray[np.float64] = 1.0 - np.log(np.array(counts, np.float64)) / (2.0 * log_size)
    return np.clip(found, 0.0, 1.0)


def _without_suffix(parts: list[list[str]]) -> tuple[list[list[str]], str]:
    """Take a suffix off the end, wherever a name is left without it."""
    if len(parts) > 1 and len(parts[-1]) == 1 and parts[-1][0] in SUFFIXES:
        return parts[:-1], parts[-1][0]
    if parts and len(parts[-1]) > 2 - (len(parts) > 1) and parts[-1][-1] in SUFFIXES:
        return [*parts[:-1], parts[-1][:-1]], parts[-1][-1]
    return parts, ""


def _split(name: list[str]) -> tuple[list[str], list[str]]:
    """Split a name in the usual order before its family name; the first of two words is a given name."""
    start = len(name) - 1
    while start > 1 and name[start - 1] in PARTICLES:
        start -= 1
    return name[: max(start, 0)], name[max(start, 0) :]


def agreement(names: Sequence[Name]) -> Codes:
    """Give the class of each pair of distinct names: an array of shape (m, m), m at most 20,000.

    A class is ``given + 5 * (middle + 4 * (family + 3 * suffix))``, each an index into `GIVEN`, `MIDDLE`,
    `FAMILY` and `SUFFIX`.

    Examples
    --------
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
    distinct, number = np.unique(np.array(texts, dtype=object), return_inverse=True)
    table: Codes = classes([str(text) for text in distinct]).astype(np.uint8)
    return table[number[:, None], number]


def _equal(texts: list[str]) -> NDArray[np.bool_]:
    number = np.unique(np.array(texts, dtype=object), return_inverse=True)[1]
    same: NDArray[np.bool_] = number[:, None] == number
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
