"""One evaluation, tried until it succeeds or patience ends. Plain functions and coroutines share this code.

Between tries it waits: by an exponential back-off with jitter, or as long as the exception says
(`retry_after`) or the user's `pause` does. The latter two are limits of rates: nobody starts an evaluation
before they are over, and they do not count as tries; who was refused waits longer, by a jitter that doubles
each time, so that not all start at once. A score that raises `EvaluationFailed` says that no try can
succeed, of whatever candidate: it ends the campaign, as does a service that refuses again and again.
"""

import math
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar

from gumbelrace.errors import EvaluationFailed, InvalidArgument

Pause = Callable[[Exception], float | str | None]
Sleep = Callable[[float], Awaitable[None]]
Value = TypeVar("Value")

FIRST_WAIT, LONGEST_WAIT, MOST_DOUBLINGS = 0.5, 60.0, 50
# Jitter after a first limit of rates, in units of the pause that it asks for, or of the shortest there is.
FIRST_JITTER, SHORTEST_PAUSE = 0.1, 0.02
# A service that refuses one evaluation so often is out of order, which no candidate is to blame for.
MOST_REFUSALS = 100
NAP = 0.1  # seconds after which one looks again whether to stop


class Outcome(NamedTuple):
    """What came of an evaluation; the score is None if it failed."""

    score: float | None
    seconds: float
    attempts: int
    error: str | None


@dataclass
class Tries:
    """Tries of one evaluation that have failed, and those that a limit of rates has refused."""

    failed: int = 0
    refused: int = 0


@dataclass
class Patience:
    """How failures are met, and what all evaluations share of it.

    Attributes
    ----------
    retries : int
        Further tries after the first.
    pause : callable, optional
        Gives the seconds for which nobody shall start after an exception (or a date, as of HTTP), or None.
    stopping : bool
        Whether no further try shall be made.
    """

    retries: int = 3
    pause: Pause | None = None
    stopping: bool = False
    _quiet_until: float = field(default=0.0, init=False)

    def wait_after(self, error: Exception, tries: Tries) -> float:
        """Count the try, give the seconds to wait before the next, and note a limit of rates."""
        seconds = self.limit(error)
        if seconds is None:
            tries.failed += 1
            return random.uniform(0.5, 1.0) * _doubled(FIRST_WAIT, tries.failed)
        tries.refused += 1
        if tries.refused >= MOST_REFUSALS:
            raise EvaluationFailed(
                f"{tries.refused} tries of one evaluation met a limit of rates: call again later, or with "
                f"fewer workers ({type(error).__name__}: {error})"
            ) from error
        self._quiet_until = max(self._quiet_until, time.monotonic() + seconds)
        jitter = _doubled(FIRST_JITTER * max(seconds, SHORTEST_PAUSE), tries.refused)
        return seconds + random.uniform(0.0, jitter)

    def limit(self, error: Exception) -> float | None:
        """Give the seconds for which a limit of rates asks, if it is one."""
        asked = self.pause(error) if self.pause is not None else None
        asked = getattr(error, "retry_after", None) if asked is None else asked
        return None if asked is None else seconds_of(asked)

    @property
    def quiet(self) -> float:
        """Seconds for which nobody may start."""
        return max(self._quiet_until - time.monotonic(), 0.0)


async def evaluated(
    score: Callable[[], Awaitable[float]], sleep: Sleep, patience: Patience
) -> Outcome | None:
    """Evaluate until it succeeds or patience ends; None if it was stopped before either."""
    tries, begun = Tries(), time.monotonic()
    while not patience.stopping:
        if (quiet := patience.quiet) > 0.0:
            await rest(quiet, sleep, patience)
            continue  # there may be another limit by now
        try:
            value = checked(await score())
            return Outcome(value, time.monotonic() - begun, tries.failed + tries.refused + 1, None)
        except EvaluationFailed:
            raise
        except Exception as error:
            wait = patience.wait_after(error, tries)
            if tries.failed > patience.retries:
                text = f"{type(error).__name__}: {error}"
                return Outcome(None, time.monotonic() - begun, tries.failed + tries.refused, text)
            await rest(wait, sleep, patience)
    return None


async def rest(seconds: float, sleep: Sleep, patience: Patience) -> None:
    """Sleep, but not after a stop."""
    until = time.monotonic() + seconds
    while not patience.stopping and (left := until - time.monotonic()) > 0.0:
        await sleep(min(left, NAP))


def seconds_of(asked: float | str) -> float:
    """Give the seconds to wait, of a number or of the date that a header Retry-After may be.

    Examples
    --------
    >>> seconds_of("2.5"), seconds_of("Wed, 21 Oct 2015 07:28:00 GMT")
    (2.5, 0.0)
    """
    try:
        seconds = float(asked)
    except (TypeError, ValueError):
        seconds = _seconds_until(asked)
    if not math.isfinite(seconds):
        raise InvalidArgument(
            f"retry_after or pause gave {asked!r}: give seconds, or the date of an HTTP header"
        )
    return max(seconds, 0.0)


def _doubled(first: float, times: int) -> float:
    return min(first * 2.0 ** min(times - 1, MOST_DOUBLINGS), LONGEST_WAIT)


def _seconds_until(date: Any) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (TypeError, ValueError, AttributeError):
        return math.nan


def checked(value: Any) -> float:
    """Give a score as a number, or raise."""
    number = float(value)
    if math.isnan(number):
        raise ValueError("the score is NaN")
    return number


def finished(coroutine: Coroutine[Any, Any, Value]) -> Value:
    """Run a coroutine that never waits for another."""
    try:
        coroutine.send(None)
    except StopIteration as result:
        value: Value = result.value
        return value
    raise RuntimeError("the coroutine waits for another")
