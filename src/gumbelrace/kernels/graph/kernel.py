"""Gibbs sampling and annealing on a graph of pairwise factors, a whole sweep compiled.

    p(x) ∝ exp(Σ_i u_i(x_i) + Σ_{i<j} φ(x_i, x_j, w_ij))

Each variable in turn is given a label from its conditional distribution, given the factors of its
neighbours. Which of them are read, see `heads`.
"""

import copy
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike, NDArray

from gumbelrace.auditing import Comparison
from gumbelrace.core.pool import Pool
from gumbelrace.core.random import Bits, Rng, as_generator, bits_of, check_generator
from gumbelrace.core.rows import LARGEST
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.kernels.base import VISITED, WRONG, Checked, Info, Kernel, info_of
from gumbelrace.kernels.checks import check_room, check_state, check_sweeps
from gumbelrace.kernels.gibbs import Labels
from gumbelrace.kernels.graph.heads import Reading, for_absorption, for_rings, room_of
from gumbelrace.kernels.graph.layout import Layout, laid_out
from gumbelrace.kernels.graph.state import ABSORBED, RACED, RINGS, Graph, Setting, Task
from gumbelrace.kernels.graph.sweep import add_up, draw_again, sweep
from gumbelrace.kernels.graph.workspace import (
    Lent,
    checked_function,
    default_method,
    lent,
    raise_fault,
    rules_for,
    try_labels,
)
from gumbelrace.kernels.schedules import Annealing, Constant, Scan, Systematic, checked_temperature
from gumbelrace.methods.absorb import Absorb
from gumbelrace.methods.base import Asked, Method, timed_slices
from gumbelrace.methods.default import Default, chosen_method
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.loop import new_workspace, prepared, unasked
from gumbelrace.methods.state import Question, new_results
from gumbelrace.methods.thinning import Thinning
from gumbelrace.population.arrays import floats
from gumbelrace.population.base import CODE, FINE, Floats, checked_count
from gumbelrace.verdict import DRAWS_OF_A_CHAIN

# Evaluations in the first call of a sweep; how long the others may take is known from it.
FIRST_PART = 2**19
# Variables at which an audit compares laws, and draws at each.
AUDITED, ANSWERS = 8, 128


class Potential(Protocol):
    """What two neighbours add to the log probability, as `Potts`, `Ising` and `Pairwise` say it."""

    @property
    def log_factor(self) -> Any:
        """The numba function φ(label, other, weight)."""

    def bounds(self, weights: Floats) -> tuple[Floats, Floats]:
        """Give the lowest and the highest φ of each weight."""


@dataclass(frozen=True, eq=False)
class GraphGibbs(Kernel[Labels]):
    """Gibbs sampling on a graph with pairwise factors; a step is a sweep.

    Parameters
    ----------
    adjacency : scipy.sparse matrix or array, or ndarray
        Weights w_ij of shape (n, n): symmetric, zero diagonal; pairs of weight zero are no neighbours.
    labels : int
        Number of labels D of each variable.
    potential : Potts, Ising, Pairwise, or numba function
        φ(label, other, weight); of a bare function no bounds are known.
    unary : array_like of shape (n, D) or (D,), optional
        Log factors of single variables; -inf forbids a label.
    scan, annealing
        As in `Gibbs`.
    delta, method : optional
        Who decides (`Thinning`, `Absorb`, `Betting`, `Race` or `Exact`), and its δ: one of them, or
        neither. Default: `Thinning` where the potential has bounds, else ``Race(delta=1e-5)``. With a δ:
        `Betting` or `Race`; it holds for each variable that is visited. Factors that can be -inf are
        always read where the bounds say so.

    Notes
    -----
    A step's `evaluations` count a factor once for each label for which it was read; `rewards` are the
    D·nnz of an exact sweep.

    `Thinning` draws a label given the few neighbours that ring (Poisson minibatches): p is invariant,
    exactly, and a label is slightly more likely to stay. `Absorb` reads heavy neighbours, and so many of
    the light ones that the error of their sum fits into the noise. Both read as `Exact` does, but no more
    than it takes to prove a label the best, at a temperature of 0.

    Every draw of a label reads the factors in a random order of its own: decisions share nothing.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> ring = np.roll(np.eye(100), 1, axis=1) + np.roll(np.eye(100), -1, axis=1)
    >>> kernel = gr.GraphGibbs(0.8 * ring, labels=3, potential=gr.models.Potts())
    >>> rng = np.random.default_rng(0)
    >>> state = kernel.start(rng=rng)
    >>> for _ in range(10):
    ...     state, info = kernel.step(rng, state)
    >>> state.labels.shape, state.sweep, info.rewards
    ((100,), 10, 600)
    """

    adjacency: Any = field(repr=False)
    labels: int
    potential: Potential | Callable[..., float]
    _: KW_ONLY
    unary: ArrayLike | None = field(default=None, repr=False)
    scan: Scan = field(default_factory=Systematic)
    annealing: Annealing = field(default_factory=Constant)
    delta: InitVar[float | None] = None
    method: Method = None  # type: ignore[assignment]
    _layout: Layout = field(init=False, repr=False)
    _unary: Floats = field(init=False, repr=False)
    _workspaces: Pool[Lent] = field(init=False, repr=False)
    _rules: Any = field(init=False, repr=False)

    tuning: ClassVar[frozenset[str]] = frozenset({"sweep"})

    def __post_init__(self, delta: float | None) -> None:
        arms = checked_count(self.labels, "labels")
        if arms > LARGEST:
            raise InvalidArgument(f"labels is {arms}; there may be at most {LARGEST}")
        function = checked_function(self.potential)
        check_sweeps(self.scan, self.annealing)
        layout = laid_out(self.adjacency, self.potential)
        if len(layout.weights):
            try_labels(function, arms, layout)
        put = object.__setattr__  # the dataclass is frozen for others
        put(self, "_layout", layout)
        put(self, "_unary", _checked_unary(self.unary, layout.variables, arms))
        put(self, "_workspaces", Pool(functools.partial(lent, layout, function, arms)))
        self._use(chosen_method(delta, self.method))

    def _use(self, method: Method) -> None:
        layout, arms, put = self._layout, self.labels, object.__setattr__  # frozen for others
        method = default_method(method, layout) if isinstance(method, Default) else method
        put(self, "_rules", rules_for(method, layout, arms))
        put(self, "method", method)

    def with_method(self, method: Method) -> Self:
        """Return the same kernel with another method; the graph is not laid out again."""
        other = copy.copy(self)
        other._use(method)
        return other

    def start(self, labels: ArrayLike | None = None, *, rng: Rng = None) -> Labels:
        """Give the state of a chain that starts from labels; by default random ones that `unary` allows."""
        if labels is not None:
            return Labels(self._checked_labels(labels))
        allowed = np.isfinite(self._unary)
        noise = as_generator(rng).random((self._layout.variables, self.labels))
        return Labels(np.argmax(np.where(allowed, noise, -1.0), axis=1).astype(np.int32))

    def step(self, rng: np.random.Generator, state: Labels) -> tuple[Labels, Info]:
        """Make one sweep: n variables are given new labels."""
        labels, tally, law_error = self._sweep(rng, state)
        return Labels(labels, state.sweep + 1), info_of(tally)._replace(law_error=law_error)

    def audit(self, rng: np.random.Generator, state: Labels) -> Checked[Labels]:
        """Make a sweep, deciding exactly as well; after an error, make it again without.

        Draws that find no winner are compared instead, at a few variables: given a label from its exact
        conditional law, a variable must have that law after its visit, too.
        """
        if not self.method.finds_winners and self.annealing(state.sweep) > 0.0:
            law = self._compared(check_generator(rng), state)
            return Checked(0, 0, state, state, 0, self.method.promise, np.nan, law)
        noise, rows = (int(seed) for seed in check_generator(rng).integers(2**63, size=2))
        of_rows = np.random.default_rng(rows)
        labels, tally, _ = self._sweep(np.random.default_rng(noise), state, of_rows)
        raced = exact = Labels(labels, state.sweep + 1)
        if tally[WRONG] > 0:
            exact, _ = self.with_method(Exact()).step(np.random.default_rng(noise), state)
        return Checked(int(tally[WRONG]), int(tally[VISITED]), raced, exact)

    def _compared(self, rng: np.random.Generator, state: Labels) -> Comparison:
        """Compare the law of labels at a few variables, drawn again and again, with the exact one."""
        check_state(state, Labels)
        compared, n = Comparison(DRAWS_OF_A_CHAIN), self._layout.variables
        for i in rng.choice(n, min(n, AUDITED), replace=False):
            with self._set_up(rng, state) as setting:
                add_up(setting.plan, setting.graph, setting.workspace, i)
                chances = scipy.special.softmax(setting.workspace.values / setting.task.temperature)
            found = new_results(ANSWERS)
            found.arms[:] = rng.choice(self.labels, ANSWERS, p=chances)
            with self._set_up(rng, state) as setting:
                draw_again(*setting, (np.array([i]), found.arms))
                found.law_error[:] = setting.workspace.law_error[0] / ANSWERS
            compared.add_draws(found, chances)
        return compared

    def _sweep(
        self, rng: np.random.Generator, state: Labels, of_rows: np.random.Generator | None = None
    ) -> tuple[NDArray[Any], NDArray[np.int64], float]:
        """Make a sweep; give labels, tally, and how far the law of its draws was off on average.

        If rows have a generator of their own, decide everything exactly as well.
        """
        check_state(state, Labels)
        order = self.scan.order(check_generator(rng), self._layout.variables)
        with self._set_up(rng, state, of_rows) as setting:
            workspace = setting.workspace
            for part in timed_slices(len(order), self._first_part()):
                sweep(*setting, order[part])
                if setting.plan.source.fault[CODE] != FINE:
                    break
            labels, law_error = workspace.labels.copy(), float(workspace.law_error[0]) / len(order)
            tally = workspace.tally.copy()
        return labels.astype(np.asarray(state.labels).dtype), tally, law_error

    @contextmanager
    def _set_up(
        self, rng: np.random.Generator, state: Labels, of_rows: np.random.Generator | None = None
    ) -> Iterator[Setting]:
        """Lend what compiled code needs to visit variables, and raise what went wrong there."""
        before = self._checked_labels(state.labels)
        noise, of_row = bits_of(rng), bits_of(rng if of_rows is None else of_rows)
        rule, (reading, task) = self._rules[0], self._task(state.sweep, noise, of_rows is not None)
        graph = Graph(self._layout, reading, self._unary)
        with self._workspaces.lend() as thread, rng.bit_generator.lock:
            workspace, source, stream, _ = thread
            workspace.labels[:], workspace.tally[:], source.fault[:] = before, 0, 0
            workspace.law_error[0] = 0.0
            longest = np.array([len(stream.seen)])  # its rows are blocks of one
            room = new_workspace(rule, source, stream, (noise, of_row), longest)
            asks = task.tail != RINGS and reading.tails.any()
            plan, _kept_alive = prepared(room) if asks else (unasked(room), None)
            Asked(Question.DRAW if task.tail == ABSORBED else Question.WINNER, task.temperature).put(
                plan.state
            )
            yield Setting(plan, stream, graph, workspace, task)
            if source.fault[CODE] != FINE:
                raise_fault(workspace, source, self._layout)

    def _task(self, sweep: int, noise: Bits, audited: bool) -> tuple[Reading, Task]:
        """Say how the neighbours are read in a sweep, and what is done with them."""
        temperature = float(checked_temperature(self.annealing(sweep)))
        (rule, reading), tail, layout = self._rules, RACED, self._layout
        if temperature > 0.0 and isinstance(self.method, Absorb):
            tail, reading = ABSORBED, for_absorption(layout, room_of(rule, self.labels, temperature))
        elif temperature > 0.0 and isinstance(self.method, Thinning):
            tail, reading = RINGS, for_rings(layout, temperature)
        certify = tail == RACED and not isinstance(self.method, Exact)
        return reading, Task(noise, temperature, tail, certify, audited)

    def _first_part(self) -> int:
        """Give a number of variables that surely takes little time."""
        return 1 + FIRST_PART * self._layout.variables // (1 + self.labels * len(self._layout.weights))

    def _checked_labels(self, given: ArrayLike) -> NDArray[Any]:
        labels, n = np.asarray(given), self._layout.variables
        if labels.shape != (n,):
            raise ShapeMismatch(f"the state's labels have shape {labels.shape}; it must be ({n},)")
        if not np.issubdtype(labels.dtype, np.integer):
            raise InvalidArgument(f"the state's labels are {labels.dtype}; they must be integers")
        if labels.min() < 0 or labels.max() >= self.labels:
            raise InvalidArgument(f"the state's labels must lie in 0...{self.labels - 1}")
        check_room(labels, self.labels)
        return labels


def _checked_unary(unary: ArrayLike | None, n: int, arms: int) -> Floats:
    """Return unary log factors of shape (n, arms), or (1, arms) if all variables share them."""
    if unary is None:
        return np.zeros((1, arms))
    checked = np.atleast_2d(np.array(floats(unary, "unary"), order="C"))
    if np.ndim(unary) not in (1, 2) or checked.shape not in ((n, arms), (1, arms)):
        raise ShapeMismatch(f"unary has shape {np.shape(unary)}; it must be ({n}, {arms}) or ({arms},)")
    if np.isnan(checked).any() or np.isposinf(checked).any():
        raise InvalidArgument("unary has a NaN or +inf; give logarithms of factors")
    if np.isneginf(checked).all(axis=1).any():
        i = int(np.argmax(np.isneginf(checked).all(axis=1)))
        raise InvalidArgument(f"unary is -inf for every label of variable {i}; one must be possible")
    return checked
