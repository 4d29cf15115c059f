"""The factor of author coreference: weights of its features, and how its values are shaped."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from gumbelrace.core.atomic import write_atomically
from gumbelrace.errors import InvalidArgument, InvalidFile
from gumbelrace.models.coreference.block import Block
from gumbelrace.models.coreference.features import FEATURES, log_factor, split
from gumbelrace.models.coreference.mentions import Floats
from gumbelrace.population.pairs import Pairs, pairs


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
        return pairs(log_factor, self.data(block), len(block), self.shaping.reward_range)

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
