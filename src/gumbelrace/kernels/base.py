"""What all kernels share: step(rng, state) -> (state, info), and how to check their decisions.

Also what a compiled sweep counts, for graphs and for clusters.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from gumbelrace.auditing import Audited, Comparison
from gumbelrace.core.random import Rng, as_generator, check_generator
from gumbelrace.errors import InvalidArgument
from gumbelrace.kernels.balance import audited_law
from gumbelrace.methods.base import Method, Promise
from gumbelrace.methods.exact import Exact

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
    law_error : float
        How far the law of the step's decisions is off, by what was read, if a method is right in law only.
    """

    evaluations: int
    rewards: int
    looks: int
    acceptance: float
    law_error: float = 0.0


class Checked(NamedTuple, Generic[State]):
    """A step that was made twice with the same random numbers: by the method, and exactly.

    Of a method that fixes no winner: the ends of a step whose move is accepted and rejected, and by how
    much the first is too likely.

    Attributes
    ----------
    errors, decisions : int
        Wrong decisions of the step, and all of them.
    raced, exact : state
        Where the step went, and where it would have gone without an error.
    impossible : int
        Decisions for something of probability zero.
    promise : Promise or None
        What was promised of the decisions; None: what the kernel's method promises.
    weight : float
        How likely the difference of the two ends is; NaN if that is not known.
    law : Comparison or None
        What was found of decisions that are right in law only.
    """

    errors: int
    decisions: int
    raced: State
    exact: State
    impossible: int = 0
    promise: Promise | None = None
    weight: float = 1.0
    law: Comparison | None = None


class Block(NamedTuple, Generic[State]):
    """Many steps: a state and an info whose every leaf is an array with an entry for each step."""

    states: State
    info: Info


class Kernel(ABC, Generic[State]):
    """A Markov kernel: a frozen dataclass that owns its data and has a `method` for its decisions.

    A state is a named tuple of arrays and numbers that a step never changes. The same kernel may be
    used by several threads at once.
    """

    #: Fields of the state that tune the kernel and are not variables of the target.
    tuning: ClassVar[frozenset[str]] = frozenset()

    #: What a trace says of where rows came from, if there is something to be said.
    remark = ""

    method: Method

    @abstractmethod
    def step(self, rng: np.random.Generator, state: State) -> tuple[State, Info]:
        """Make one step from `state`."""

    def start(self, *args: Any, **options: Any) -> State:
        """Give a state to start from; kernels that can tell none by themselves say what they need.

        All take ``rng=``, a generator, a seed or None, whether or not they need it.
        """
        raise InvalidArgument(
            f"{type(self).__name__} knows no state to start from; give one: run(kernel, state, steps=...)"
        )

    def chain(self, state: State | None = None, *, rng: Rng = None) -> Iterator[tuple[State, Info]]:
        """Make steps for as long as they are asked for: a chain with a stopping rule of your own.

        Parameters
        ----------
        state : state, optional
            Where to start. Default: ``start(rng=rng)``.
        rng : numpy.random.Generator, int, or None
            A generator, a seed, or None for no seed.

        Returns
        -------
        iterator of (state, info)
            As `step` gives them.

        Examples
        --------
        >>> import numpy as np, gumbelrace as gr
        >>> ring = np.roll(np.eye(50), 1, axis=1) + np.roll(np.eye(50), -1, axis=1)
        >>> kernel = gr.GraphGibbs(3.0 * ring, labels=2, potential=gr.models.Potts())
        >>> for state, info in kernel.chain(rng=0):
        ...     if (state.labels == state.labels[0]).all():
        ...         break
        """
        generator = as_generator(rng)  # now, and not at the first step
        start = self.start(rng=generator) if state is None else self.as_state(state)
        return self._endless(generator, start)

    def _endless(self, rng: np.random.Generator, state: State) -> Iterator[tuple[State, Info]]:
        while True:
            state, info = self.step(rng, state)
            yield state, info

    def as_state(self, state: State) -> State:
        """Give a start the dtypes that the states of a chain have: all of them must agree with it."""
        return state

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

    def with_method(self, method: Method) -> Self:
        """Return the same kernel with another method."""
        return replace(self, method=method)  # type: ignore[type-var]

    def audit(self, rng: np.random.Generator, state: State) -> Checked[State]:
        """Make one step, checking every decision; after an error, make it again without.

        Where decisions are right in law only, see how far the law is off.
        """
        method = method_of(self)
        noise, rows = (int(seed) for seed in check_generator(rng).integers(2**63, size=2))
        if not method.finds_winners:
            taken, left, asked = audited_law(self, method, (noise, rows), state)
            counted = asked.errors, asked.decisions
            return Checked(*counted, taken, left, 0, asked.promise, asked.weight, asked.compared)
        audited = Audited(method, np.random.default_rng(rows))
        raced, _ = self.with_method(audited).step(np.random.default_rng(noise), state)
        exact = raced
        if audited.errors > 0:
            never_wrong = self.with_method(Audited(Exact(), np.random.default_rng(rows)))
            exact, _ = never_wrong.step(np.random.default_rng(noise), state)
        found = audited.errors, audited.decisions
        return Checked(*found, raced, exact, audited.impossible, audited.promise)

    def watched(self, states: State) -> tuple[Any, ...]:
        """Give what an audit watches of states (or of one): a named tuple, here of all their fields."""
        return states


def method_of(kernel: Kernel[Any]) -> Method:
    """Give the method whose decisions an audit checks; a user's own kernel may have none."""
    method = getattr(kernel, "method", None)
    if not isinstance(method, Method):
        raise InvalidArgument(
            f"{type(kernel).__name__} has no method whose decisions could be checked; give the kernel a "
            "field `method`, or an `audit` of its own that says what was promised"
        )
    return method


# Entries of a tally: factors read, those of an exact sweep, looks; variables that changed, were visited, or
# were decided wrongly (where that is checked); the variable at hand, and rows of the winner.
READ, ALL, LOOKED, CHANGED, VISITED, WRONG, SITE, ROWS = range(8)


def new_tally() -> NDArray[np.int64]:
    """Give a tally of zeros."""
    return np.zeros(8, np.int64)


def info_of(tally: NDArray[np.int64]) -> Info:
    """Say what a sweep took."""
    acceptance = float(tally[CHANGED] / tally[VISITED])
    return Info(int(tally[READ]), int(tally[ALL]), int(tally[LOOKED]), acceptance)
