"""What checks of decisions have found: errors, their interval, and what they do to a chain."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, PromiseBroken
from gumbelrace.methods.base import Promise
from gumbelrace.methods.exact import Totals

# Checks that are made by default: level of their intervals, which lie above δ by chance once in 1,000. At
# the δ of chains a single error among a hundred checks is then too many.
SURE = 0.998
# Arms that are expected less often than this are counted together.
FEWEST_EXPECTED = 5.0
# A promise about draws is broken beyond doubt if they have less than this chance under all that it allows.
NEVER = 1e-6
# A chain whose mean is off by this share of its standard deviation, or its variance or a probability by
# this much, is biased.
BIASED = 0.02


def checked_confidence(confidence: Any) -> float:
    """Return the level of an interval if it is one."""
    if not (isinstance(confidence, Real) and 0.0 < float(confidence) < 1.0):
        raise InvalidArgument(f"confidence is {confidence!r}; it must lie strictly between 0 and 1")
    return float(confidence)


@dataclass(frozen=True)
class Shift:
    """By how much errors shift the law in which a chain settles, to first order.

    Attributes
    ----------
    name : str
        What is shifted, for example ``position[0]``.
    of : str
        ``"mean"``: in standard deviations. ``"variance"``: relative to the right one. ``"probability"``: of
        the value that ``name`` names.
    value, error : float
        The estimate, and its standard error.
    """

    name: str
    of: str
    value: float
    error: float

    def __str__(self) -> str:
        """Say it in words."""
        unit = 1.0 if self.of == "mean" else 100.0
        sign = {"mean": " sd", "variance": "%", "probability": " points"}[self.of]
        if not np.isfinite(self.value):
            return f"{self.of} of {self.name} unknown"
        figures = f"{unit * self.value:+.3g} ± {unit * self.error:.2g}{sign}"
        return f"{self.of} of {self.name} {figures}"


@dataclass(frozen=True)
class LawCheck:
    """How far the law of answers is off, of a method whose answers are not right or wrong one by one.

    Attributes
    ----------
    of : str
        ``"draws"``: total variation between the law of a draw and the exact one. ``"moves"``: by how much
        moves break detailed balance, σ(-Λ) P(accept) - σ(Λ) P(accept the way back), with Λ the exact log
        ratio and σ(t) = 1 / (1 + exp(-t)); on average over moves to the less likely of the two points (of
        the others, their way back): positive if these are too likely. ``"draws of a chain"``: how much more
        often than it should the likeliest arm was drawn, on average.
    off : float
        The estimate.
    interval : (float, float)
        An interval for it.
    answers, states : int
        Answers that were compared, and the questions to which they are answers.
    p_value : float
        Of a chi-square test that the law is exact.
    seen : float
        What the method itself said of the error of its law, on average.
    chance : float
        Of draws: a bound on the chance that any law within the promise gives an arm so often, or so seldom.
    """

    of: str
    off: float
    interval: tuple[float, float]
    answers: int
    states: int
    p_value: float
    seen: float
    chance: float = 1.0

    def breaks(self, promised: float) -> bool:
        """Whether all of the interval is further from 0 than was promised, or draws are too unlikely."""
        low, high = self.interval
        return low > promised or high < -promised or self.chance < NEVER

    def reaches(self, promised: float) -> bool:
        """Whether some of the interval is further from 0 than was promised."""
        return max(map(abs, self.interval)) > promised

    def __str__(self) -> str:
        """Say what was measured."""
        low, high = self.interval
        what = MEASURED[self.of].format(off=self.off, states=self.states)
        return f"{what} (interval {low:.2g} to {high:.2g}, {self.answers} answers, p = {self.p_value:.2g})"


# What was compared (`LawCheck.of`).
DRAWS, MOVES, DRAWS_OF_A_CHAIN = "draws", "moves", "draws of a chain"
MEASURED = {
    DRAWS: "law of draws off by {off:.2g} in total variation",
    MOVES: "detailed balance off by {off:+.2g} at {states} moves",
    DRAWS_OF_A_CHAIN: "likeliest arms of {states} draws {off:+.2g} too likely",
}


@dataclass(frozen=True)
class Audit:
    """How often a method was wrong, or, if its answers are right in law only, how far the law is off.

    Attributes
    ----------
    errors, draws : int
        Draws that differ from the exact ones with the same Gumbel variables, and draws in all.
    interval : (float, float)
        Clopper-Pearson interval for the probability of an error.
    confidence : float
        Its level.
    fraction : float
        Share of all rewards that the method read.
    promise : Promise
        What the method had promised.
    impossible : int
        Draws of probability zero, which are errors too.
    bias : sequence of Shift
        Of a chain: by how much the errors shift means, variances and probabilities.
    law : LawCheck or None
        What was measured of a method that fixes no winner.
    """

    errors: int
    draws: int
    interval: tuple[float, float]
    confidence: float
    fraction: float
    promise: Promise
    impossible: int = 0
    bias: Sequence[Shift] = ()
    law: LawCheck | None = None

    @property
    def tv_bound(self) -> float:
        """Upper bound on the total variation to p(x), at the level of the interval (Proposition 1)."""
        return self.interval[1] if self.law is None else max(map(abs, self.law.interval))

    @property
    def broken(self) -> bool:
        """Whether the promise allows fewer errors, or a law that is less off, than all of the interval."""
        law_is_off = self.law is not None and self.law.breaks(self.promise.delta)
        return law_is_off or self.interval[0] > self.promise.delta

    @property
    def sure(self) -> bool:
        """Whether nothing that the draws leave open is more than was promised; exact answers are sure."""
        if self.law is not None:
            return not self.law.reaches(self.promise.delta)
        return self.draws > 0 and (self.promise.delta == 0.0 or self.interval[1] <= self.promise.delta)

    def warn(self) -> None:
        """Warn if the promise is broken, or something impossible was drawn."""
        if self.broken or self.impossible:
            hint = (
                "declare rows that can be -inf (`impossible`, or a reward_range down to it), give a "
                "reward_range, or use Exact(), and see gumbelrace.audit"
            )
            if self.law is not None:
                hint = "read more rows (first=), give weights or an expansion, or use Exact()"
            warnings.warn(
                f"checked exactly: {self}; {hint}",
                PromiseBroken,
                stacklevel=4,  # whoever called `sample` or `run`
            )

    @property
    def biased(self) -> bool:
        """Whether a shift of the chain is more than BIASED, and more than twice its standard error."""
        return any(abs(shift.value) > max(BIASED, 2.0 * shift.error) for shift in self.bias)

    @property
    def worst(self) -> list[Shift]:
        """The largest shift of each kind."""
        kinds = dict.fromkeys(shift.of for shift in self.bias)
        return [max((s for s in self.bias if s.of == kind), key=lambda s: abs(s.value)) for kind in kinds]

    def __str__(self) -> str:
        """Say what was found in one line."""
        low, high = self.interval
        counted = (
            f"{self.errors} errors in {self.draws} draws "
            f"({100.0 * self.confidence:g}% interval {low:.2g} to {high:.2g})"
        )
        found = [counted] * (self.draws > 0) + [str(self.law)] * (self.law is not None)
        return (
            f"{', '.join(found) or 'no decision was checked'}, {self.fraction:.2%} of the rewards read; "
            f"promise of {self.promise.delta:g} {self._verdict()}"
        )

    def _verdict(self) -> str:
        words = "broken" if self.broken else "kept" if self.sure else "not contradicted"
        if self.draws > 0 and not (self.broken or self.sure):
            words += f" ({self.errors} of {self.draws}; up to {self.interval[1]:.2g})"
        if self.impossible:
            words += f", {self.impossible} draws of probability zero"
        if self.bias:
            however = "and" if self.broken else "but"
            words += f", {however} the chain is biased: " if self.biased else "; bias of the chain: "
            words += ", ".join(map(str, self.worst)) + " (first order)"
        return words


def judged(arms: NDArray[np.int64], values: Totals, fraction: float, promise: Promise) -> Audit:
    """Compare draws with the best of their rows of `values`."""
    errors, interval = wrong(arms, values), clopper_pearson(wrong(arms, values), len(arms), SURE)
    return Audit(errors, len(arms), interval, SURE, fraction, promise, impossible(arms, values))


def judged_draws(
    arms: NDArray[np.int64], sums: NDArray[Any], fraction: float, promise: Promise, seen: float
) -> Audit:
    """Compare how often arms were drawn with what their sums say."""
    counts = np.bincount(arms, minlength=len(sums))
    law = judged_law(counts, scipy.special.softmax(sums), SURE, seen, promise.delta)
    nothing = clopper_pearson(0, 0, SURE)
    return Audit(0, 0, nothing, SURE, fraction, promise, int(counts[np.isneginf(sums)].sum()), law=law)


def judged_law(
    counts: NDArray[np.int64],
    chances: NDArray[Any],
    confidence: float,
    seen: float,
    promised: float = 0.0,
) -> LawCheck:
    """Compare how often arms were drawn with the exact chances."""
    draws = int(counts.sum())
    shares = counts / draws
    off = 0.5 * float(np.abs(shares - chances).sum())
    # By the triangle inequality: the shares are so far from the law by which they were drawn. On average at
    # most the first part (Jensen); no draw moves it by more than 1 / draws (McDiarmid).
    noise = 0.5 * float(np.sqrt(shares * (1.0 - shares) / draws).sum())
    noise += float(np.sqrt(np.log(1.0 / (1.0 - confidence)) / (2.0 * draws)))
    interval = max(off - noise, 0.0), min(off + noise, 1.0)
    p_values = chi_square(counts, chances), chance_within(counts, chances, promised)
    return LawCheck(DRAWS, off, interval, draws, 1, p_values[0], seen, p_values[1])


def chance_within(counts: NDArray[np.int64], chances: NDArray[Any], promised: float) -> float:
    """Bound the chance of the most surprising count if no chance of an arm is off by more than promised.

    The tails are binomial, and hold for arms that are rare as well, which those of chi-square do not.
    """
    draws, tail = counts.sum(), scipy.special.betainc
    most, least = np.minimum(chances + promised, 1.0), np.maximum(chances - promised, 0.0)
    so_many = np.where(counts > 0, tail(np.maximum(counts, 1), draws - counts + 1, most), 1.0)
    others = draws - counts
    so_few = np.where(others > 0, tail(np.maximum(others, 1), counts + 1, 1.0 - least), 1.0)
    return float(min(1.0, 2 * len(counts) * min(so_many.min(), so_few.min())))


def chi_square(counts: NDArray[np.int64], chances: NDArray[Any]) -> float:
    """Give the p value of a test that counts follow chances; arms expected too rarely go together."""
    if counts[chances == 0.0].any():
        return 0.0  # something impossible was drawn
    order = np.argsort(chances)
    expected, observed = counts.sum() * chances[order], counts[order]
    # The rarest together, until they are expected often enough.
    few = int(np.searchsorted(np.cumsum(expected), FEWEST_EXPECTED))
    few = max(few, int(np.searchsorted(expected, FEWEST_EXPECTED)) - 1)
    expected = np.append(expected[: few + 1].sum(), expected[few + 1 :])
    observed = np.append(observed[: few + 1].sum(), observed[few + 1 :])
    if len(expected) < 2:
        return 1.0
    return float(scipy.special.chdtrc(len(expected) - 1, np.sum((observed - expected) ** 2 / expected)))


def wrong(arms: NDArray[np.int64], values: Totals) -> int:
    """Count the arms that are not the best of their row of `values`, whatever rounding did."""
    highest = np.take_along_axis(values.sums + values.rounding, arms[:, None], axis=1)[:, 0]
    return int(np.sum(highest < np.max(values.sums - values.rounding, axis=1)))


def impossible(arms: NDArray[np.int64], values: Totals) -> int:
    """Count the arms that have probability zero."""
    return int(np.isneginf(np.take_along_axis(values.sums, arms[:, None], axis=1)).sum())


def clopper_pearson(errors: int, draws: int, confidence: float) -> tuple[float, float]:
    """Give the exact binomial interval for the probability of an error.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 100, 0.95)
    >>> low, round(high, 4)
    (0.0, 0.0362)
    """
    tail = (1.0 - confidence) / 2.0
    quantile = scipy.special.betaincinv
    low = quantile(errors, draws - errors + 1, tail) if errors > 0 else 0.0
    high = quantile(errors + 1, draws - errors, 1.0 - tail) if errors < draws else 1.0
    return float(low), float(high)
