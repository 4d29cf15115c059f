"""From which generator a table's order is drawn, where several threads may come first.

The order that the draws of a table share is drawn when it is first read (`Table.draw_order`). In a run, the
first to read a table that was there before may be any chain, and after a resume any step: then the order
follows from the seed of the run alone. A table that is made within a step is that chain's own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from gumbelrace.core.jit import beside


class Run:
    """A run whose chains share tables; its randomness is that of its generator before the first step."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._seed = [int(word) for word in beside(rng).integers(2**32, size=8)]

    def generator(self, size: int, arms: int) -> np.random.Generator:
        """Give the generator of the order of a table."""
        return np.random.default_rng([*self._seed, size, arms])


current: ContextVar[Run | None] = ContextVar("current", default=None)


@contextmanager
def of_one_run(rng: np.random.Generator) -> Iterator[None]:
    """Within it, and in threads with a copy of its context, tables made before have orders by `rng`."""
    before = current.set(Run(rng))
    try:
        yield
    finally:
        current.reset(before)
