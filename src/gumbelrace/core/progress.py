"""How far long work is: a plain line now and then on standard error, for logs and wherever nobody watches.

Commands ask for such lines; the library by itself writes none.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Seconds until the first line, and from one to the next.
FIRST, OFTEN = 15.0, 30.0
# Whether chains write lines where there is no terminal.
WANTED: ContextVar[bool] = ContextVar("WANTED", default=False)


class Lines:
    """Says now and then how far some work is; call it with how much of `total` is done.

    Examples
    --------
    >>> clock = iter([0.0, 5.0, 20.0, 40.0])
    >>> sys.stderr, before = sys.stdout, sys.stderr
    >>> lines = Lines("clustering", 100.0, lambda: next(clock))
    >>> for done in (10.0, 25.0, 50.0):
    ...     lines(done)
    gumbelrace: clustering: 25%, about 60 s left
    >>> sys.stderr = before
    """

    def __init__(self, doing: str, total: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._doing, self._total, self._clock = doing, total, clock
        self._began, self._due = clock(), FIRST
        self._before: float | None = None  # what an earlier run had done

    def __call__(self, done: float) -> None:
        """Write a line, if it is time for one."""
        spent = self._clock() - self._began
        if self._before is None:
            self._before = done if spent < 1.0 else 0.0
        if spent < self._due:
            return
        self._due = spent + OFTEN
        more = done - self._before
        left = f", about {duration(spent * (self._total - done) / more)} left" if more > 0.0 else ""
        say(f"{self._doing}: {done / max(self._total, 1e-300):.0%}{left}")


@contextmanager
def ticking(doing: str) -> Iterator[None]:
    """Say now and then for how long work of unknown length has been going on."""
    done = threading.Event()
    thread = threading.Thread(target=_tick, args=(doing, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _tick(doing: str, done: threading.Event) -> None:
    began, wait = time.monotonic(), FIRST
    while not done.wait(wait):
        say(f"{doing}: {duration(time.monotonic() - began)} so far")
        wait = OFTEN


def duration(seconds: float) -> str:
    """Write a time in the unit that people would use.

    Examples
    --------
    >>> duration(40.2), duration(200.0), duration(9000.0)
    ('40 s', '3 min', '2.5 h')
    """
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def say(text: str) -> None:
    """Write one line."""
    print(f"gumbelrace: {text}", file=sys.stderr, flush=True)
