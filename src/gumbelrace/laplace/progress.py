"""Lines that say what is being done before and after the chains: compiling and a pilot take seconds."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Progress:
    """Says on standard error what is being done, and how long it took.

    Examples
    --------
    >>> said = Progress(wanted=False)
    >>> with said("mode"):
    ...     pass
    """

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted

    def tell(self, line: str) -> None:
        """Write a line."""
        if self._wanted:
            print(f"gumbelrace: {line}", file=sys.stderr, flush=True)

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        """Say that something begins, and when it has ended."""
        begun = time.perf_counter()
        self.tell(f"{what} ...")
        yield
        self.tell(f"{what}: {time.perf_counter() - begun:.1f} s")
