"""How often decisions of a chain over orders are wrong: draws of the order, and moves of its parameter."""

from typing import Any, NamedTuple

import numpy as np

from gumbelrace.chain.trace import Trace
from gumbelrace.kernels.carlin_chib import ModelChoice
from gumbelrace.verdict import clopper_pearson

CONFIDENCE = 0.95


class Checked(NamedTuple):
    """Decisions that were made again exactly, and how many differed."""

    errors: int
    decisions: int

    @property
    def rate(self) -> float:
        """Share that was wrong."""
        return self.errors / max(self.decisions, 1)

    @property
    def interval(self) -> tuple[float, float]:
        """95% Clopper-Pearson interval for the probability of an error."""
        return clopper_pearson(self.errors, self.decisions, CONFIDENCE)


class Audits(NamedTuple):
    """Checks of both kinds of decisions."""

    gibbs: Checked  # draws of the order
    moves: Checked  # Metropolis-Hastings tests of its parameter


def audits(trace: Trace[ModelChoice], steps: int, rng: np.random.Generator) -> Audits:
    """Make steps from states picked at random, checking both decisions of each.

    Parameters
    ----------
    trace : Trace
        Chains of a `CarlinChib` kernel.
    steps : int
        Number of steps; at most as many as there are states.
    rng : numpy.random.Generator
        Picks the states and makes the steps.
    """
    kernel: Any = trace.kernel
    kept, counts = trace.chains * trace.draws, np.zeros((2, 2), np.int64)
    for place in rng.choice(kept, min(steps, kept), replace=False):
        _, *checks = kernel.audited(rng, trace.state(*divmod(int(place), trace.draws)))
        counts += [[check.errors, check.decisions] for check in checks]
    (wrong_moves, moves), (wrong_draws, draws) = counts.tolist()
    return Audits(Checked(wrong_draws, draws), Checked(wrong_moves, moves))
