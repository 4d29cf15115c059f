"""One evaluation, tried until it succeeds or patience ends. Plain functions and coroutines share this code.

Between tries it waits: by an exponential back-off with jitter, or as long as the exception says
(`retry_after`, in seconds) or the user's `pause` does. The latter two are limits of rates: nobody starts an
evaluation before they are over, and they do not count as tries. A score that raises `EvaluationFailed` says
that no try can succeed, of whatever candidate: it ends the campaign.
"""

import math
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from gumbelrace.errors import EvaluationFailed

Pause = Callable[[Exception], float | None]
Sleep = Callable[[float], Awaitable[None]]
Value = TypeVar("Value")

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
# A server that asks for patience more often than this has failed.
MOST_TRIES = 100
NAP = 0.1  # seconds after which one looks again whether to stop


class Outcome(NamedTuple):
    """What came of an evaluation; the score is None if it failed."""

    score: float | None
    seconds: float
    attempts: int
    error: str | None


@dataclass
class Patience:
    """How failures are met, and what all evaluations share of it.

    Attributes
    ----------
    retries : int
        Further tries after the first.
    pause : callable, optional
        Gives the seconds for which nobody shall start after an exception, or None.
    stopping : bool
        Whether no further try shall be made.
    """

    retries: int = 3
    pause: Pause | None = None
    stopping: bool = False
    _quiet_until: float = field(default=0.0, init=False)

    def wait_after(self, error: Exception, failed: int) -> float:
        """Give the seconds to wait before the next try, and note a limit of rates."""
        seconds = self.limit(error)
        if seconds is None:
            return random.uniform(0.5, 1.0) * min(FIRST_WAIT * 2.0 ** (failed - 1), LONGEST_WAIT)
        self._quiet_until = max(self._quiet_until, time.monotonic() + seconds)
        return 0.0

    def limit(self, error: Exception) -> float | None:
        """Give the seconds for which a limit of rates asks, if it is one."""
        asked = self.pause(error) if self.pause is not None else None
        asked = getattr(error, "retry_after", None) if asked is None else asked
        return None if asked is None else max(float(asked), 0.0)

    @property
    def quiet(self) -> float:
        """Seconds for which nobody may start."""
        return max(self._quiet_until - time.monotonic(), 0.0)


async def evaluated(
    score: Callable[[], Awaitable[float]], sleep: Sleep, patience: Patience
) -> Outcome | None:
    """Evaluate until it succeeds or patience ends; None if it was stopped before either."""
    failed, tries, begun = 0, 0, time.monotonic()
    while True:
        if (quiet := patience.quiet) > 0.0:
            await rest(quiet, sleep, patience)
        if patience.stopping:
            return None
        tries += 1
        try:
            value = checked(await score())
            return Outcome(value, time.monotonic() - begun, tries, None)
        except EvaluationFailed:
            raise
        except Exception as error:
            failed += patience.limit(error) is None
            if failed > patience.retries or tries >= MOST_TRIES:
                return Outcome(None, time.monotonic() - begun, tries, f"{type(error).__name__}: {error}")
            await rest(patience.wait_after(error, failed), sleep, patience)


async def rest(seconds: float, sleep: Sleep, patience: Patience) -> None:
    """Sleep, but not after a stop."""
    until = time.monotonic() + seconds
    while not patience.stopping and (left := until - time.monotonic()) > 0.0:
        await sleep(min(left, NAP))


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
