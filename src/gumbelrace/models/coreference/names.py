"""Names of persons: folded to plain letters and parsed into given, middle, family and suffix."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


def words(text: str) -> list[str]:
    """Give the folded words and numbers of a text, single letters left out.

    Examples
    --------
    >>> words("A Theory of 2-D Fields")
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
    whole = np.log(max(len(population), 2))
    found: NDArray[np.float64] = 1.0 - np.log(np.array(counts, np.float64)) / (2.0 * whole)
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
