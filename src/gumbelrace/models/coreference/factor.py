"""The factor f_θ(i, j) = θ·features(i, j) of two mentions, compiled; and how its values are shaped.

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

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numba
import numpy as np

from gumbelrace.core.atomic import write_atomically
from gumbelrace.core.jit import part
from gumbelrace.errors import InvalidArgument, InvalidFile
from gumbelrace.models.coreference.mentions import FIELDS, Block, Floats, Indices
from gumbelrace.models.coreference.names import FAMILY, GIVEN, MIDDLE, SUFFIX
from gumbelrace.population.pairs import Pairs, pairs

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


@dataclass(frozen=True)
class Shaping:
    """How log odds x become a factor: x + shift, then at most `cap`, and `leak` times that where negative.

    A sum over pairs counts every one of them in full, although they are not independent: a few very
    different mentions would forbid a merge that many others support. A cap and a leak below 1 weaken them,
    and give the factor a known range, which `Betting` needs.

    Attributes
    ----------
    cap : float
        Largest absolute value of x + shift that counts, > 0.
    leak : float
        Share of a negative value that is kept, in (0, 1].
    shift : float
        Added first: a positive one favours few large clusters.

    Examples
    --------
    >>> Shaping(cap=4.0, leak=0.25).reward_range
    (-1.0, 4.0)
    """

    cap: float = np.inf
    leak: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        if not (self.cap > 0.0 and 0.0 < self.leak <= 1.0 and np.isfinite(self.shift)):
            raise InvalidArgument(
                f"{self}: the cap must be positive, the leak in (0, 1] and the shift a finite number"
            )

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """Lowest and highest value of the factor; None if there is no cap."""
        return (-self.leak * self.cap, self.cap) if np.isfinite(self.cap) else None


@dataclass(frozen=True, eq=False)
class Factor:
    """Pairwise factor f(i, j) = shaped(θ·features(i, j)): log odds that two mentions are of one person.

    Parameters
    ----------
    weights : mapping from name to float
        θ: a weight for each of `FEATURES`.
    shaping : Shaping
        By default none.

    Examples
    --------
    >>> from gumbelrace.models.coreference import Factor, block_of, mentions
    >>> found = mentions({"author": ["Wei Li", "Wei Li", "Wen Li"], "coauthors": ["B Ma", "B Ma", "C Wu"]})
    >>> block = block_of(found, found.rows_by_block()[0])
    >>> same, different = Factor.default().pairs(block).values([0, 0], [1, 2])
    >>> bool(same > 0 > different)
    True
    """

    weights: Mapping[str, float]
    shaping: Shaping = field(default_factory=Shaping)

    def __post_init__(self) -> None:
        missing = [name for name in FEATURES if name not in self.weights]
        unknown = [name for name in self.weights if name not in FEATURES]
        if missing or unknown:
            what = f"no weight of {missing[0]!r}" if missing else f"a weight of {unknown[0]!r}, no feature"
            raise InvalidArgument(f"there is {what}; the features are {', '.join(FEATURES)}")
        if not np.isfinite(self.theta).all():
            raise InvalidArgument("a weight is not finite; give numbers")

    @property
    def theta(self) -> Floats:
        """The weights in the order of `FEATURES`."""
        return np.array([self.weights[name] for name in FEATURES], np.float64)

    def pairs(self, block: Block) -> Pairs:
        """Make the pairwise factor of a block's mentions, compiled."""
        return pairs(log_factor, self.data(block), len(block), reward_range=self.shaping.reward_range)

    def data(self, block: Block) -> tuple[Any, ...]:
        """Give what the compiled `log_factor` takes after the two mentions."""
        theta = self.theta
        theta[FEATURES.index("bias")] += self.shaping.shift
        return (float(self.shaping.cap), float(self.shaping.leak), *block.data, *split(theta))

    def save(self, path: str | Path) -> None:
        """Write weights and shaping as JSON."""
        shaping = asdict(self.shaping)
        shaping["cap"] = self.shaping.cap if np.isfinite(self.shaping.cap) else None
        content = {"weights": {name: float(self.weights[name]) for name in FEATURES}, "shaping": shaping}
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        write_atomically(Path(path), lambda file: file.write(text.encode()))

    @classmethod
    def load(cls, path: str | Path) -> "Factor":
        """Read what `save` wrote."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidFile(f"{path} cannot be read as a file of weights: {error}") from error
        return cls._parsed(text, str(path))

    @classmethod
    def default(cls) -> "Factor":
        """Give the weights and the shaping that come with the library.

        Weights were fitted to pairs of mentions of two files together, authors of DBLP (all labelled) and
        inventors of PatentsView (some persons labelled), in half of the blocks; the shaping was chosen on
        those blocks. ``benchmarks/coreference_weights.py`` does it, and says what they reach on the rest.
        """
        file = resources.files("gumbelrace.models.coreference").joinpath("default_weights.json")
        return cls._parsed(file.read_text(encoding="utf-8"), "default_weights.json")

    @classmethod
    def _parsed(cls, text: str, path: str) -> "Factor":
        try:
            content = json.loads(text)
            weights = {str(name): float(weight) for name, weight in content["weights"].items()}
            shaping = {
                key: np.inf if value is None else float(value) for key, value in content["shaping"].items()
            }
            return cls(weights, Shaping(**shaping))
        except InvalidArgument as error:
            raise InvalidFile(f"{path}: {error}") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidFile(
                f"{path} is no file of weights ({error!r}); write one with Factor.save"
            ) from error
