"""What all kernels share: step(rng, state) -> (state, info), and how to check their decisions."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from gumbelrace.audit import Audited
from gumbelrace.solvers.base import Solver

State = TypeVar("State", bound=tuple[Any, ...])


class Info(NamedTuple):
    """What a step did and what it took.

    Attributes
    ----------
    evaluations : int
        Factors that were read.
    rewards : int
        Factors that the same decisions would have read without a race.
    looks : int
        How often arms were compared.
    acceptance : float
        Share of the step's moves that were accepted; of a Gibbs sweep, of the variables that changed.
    """

    evaluations: int
    rewards: int
    looks: int
    acceptance: float


class Block(NamedTuple, Generic[State]):
    """Many steps: a state and an info whose every leaf is an array with an entry for each step."""

    states: State
    info: Info


class Kernel(ABC, Generic[State]):
    """A Markov kernel: a frozen dataclass that owns its data and has a `solver` for its decisions.

    A state is a named tuple of arrays and numbers that a step never changes. The same kernel may be
    used by several threads at once.
    """

    #: Fields of the state that tune the kernel and are not variables of the target.
    tuning: ClassVar[frozenset[str]] = frozenset()

    solver: Solver

    @abstractmethod
    def step(self, rng: np.random.Generator, state: State) -> tuple[State, Info]:
        """Make one step from `state`."""

    def steps(self, rng: np.random.Generator, state: State, count: int) -> Block[State] | None:
        """Make `count` steps from `state` in one compiled call; None if the kernel cannot.

        How the steps of a chain are cut into calls changes nothing of them.
        """
        return None

    def presence(self, states: State) -> dict[str, NDArray[np.bool_]]:
        """Say in which draws fields are variables of the target, of those that are not so in all.

        Parameters
        ----------
        states : state
            Many states: each leaf an array of shape (chains, draws, ...).

        Returns
        -------
        dict
            For each such leaf, by its name, an array of shape (chains, draws).
        """
        return {}

    def with_solver(self, solver: Solver) -> Self:
        """Return the same kernel with another solver."""
        return replace(self, solver=solver)  # type: ignore[type-var]

    def audit(self, rng: np.random.Generator, state: State) -> tuple[int, int]:
        """Make one step, checking every decision; return how many were wrong, and how many there were."""
        audited = Audited(self.solver)
        self.with_solver(audited).step(rng, state)
        return audited.errors, audited.decisions
