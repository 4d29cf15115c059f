"""What experiments hand over to a report: plain rows that a table or a file can hold."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gumbelrace.applications.demo import WatchedRace
from gumbelrace.verdict import clopper_pearson


class Problem(NamedTuple):
    """A distribution of section 5.1: D arms, the shape of their rewards, and their deviation σ."""

    arms: int
    shape: str
    scale: float


class Record(NamedTuple):
    """What one method did on one problem at one δ."""

    arms: int
    shape: str
    scale: float
    method: str
    delta: float
    draws: int
    errors: int
    read: float  # share of the rewards
    seconds: float  # processor time a draw
    scan_seconds: float  # of an exact scan, measured in turns with it

    @property
    def problem(self) -> Problem:
        """The problem that was solved."""
        return Problem(self.arms, self.shape, self.scale)

    @property
    def error(self) -> float:
        """Share of the draws that were wrong."""
        return self.errors / self.draws

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson interval of the error, 95%."""
        return clopper_pearson(self.errors, self.draws, 0.95)

    @property
    def speed_up(self) -> float:
        """Time of an exact scan over that of a draw."""
        return self.scan_seconds / self.seconds


class Claim(NamedTuple):
    """A statement of the paper, what we found, and whether it held (None: it cannot be said)."""

    paper: str
    ours: str
    held: bool | None
    why: str = ""


class Broken(NamedTuple):
    """What one method did at one δ in a case made to break Racing-Normal."""

    case: str
    method: str
    delta: float
    draws: int
    errors: int
    read: float  # share of the rewards

    @property
    def error(self) -> float:
        """Share of the draws that were wrong."""
        return self.errors / self.draws

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson interval of the error, 95%."""
        return clopper_pearson(self.errors, self.draws, 0.95)


class BoundPoint(NamedTuple):
    """G(T): how far apart two means must be for a method to tell them apart after T rows."""

    method: str
    rows: int
    width: float  # in standard deviations of a reward


class Level(NamedTuple):
    """B_Normal at one δ and share of the first look: the paper's number and ours in both readings."""

    delta: float
    first_fraction: float
    printed: float
    two_sided: float
    one_sided: float


class DataFile(NamedTuple):
    """A file that a study leaves beside its page, and what is in it."""

    name: str
    contents: str


class SyntheticStudy(NamedTuple):
    """All that the page of section 5.1 shows."""

    facts: Mapping[str, str]  # what was run, in words: label -> value
    notes: Sequence[str]  # where it departs from the paper
    probabilities: Sequence[float]  # p(X) of Figure 1a
    records: Sequence[Record]
    claims: Sequence[Claim]
    broken: Sequence[Broken]
    bounds: Sequence[BoundPoint]
    levels: Sequence[Level]
    race: WatchedRace
    files: Sequence[DataFile] = ()
