"""Gibbs sampling and annealing of a partition with pairwise factors (paper, section 5.3), sweeps compiled.

    p(y) ∝ exp(Σ_{i<j, y_i = y_j} f(i, j))

Each mention i in turn chooses among the clusters in use, of which cluster C adds the |C| rewards f(i, j) of
its members, and an empty one, which adds nothing.
"""

import copy
import threading
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.jit import bits_of, check_generator
from gumbelrace.kernels.annealing import Annealing, Constant, checked_temperature
from gumbelrace.kernels.base import Checked, Info, Kernel
from gumbelrace.kernels.cluster_desk import Workplace, checked_keep, checked_solver
from gumbelrace.kernels.cluster_merge import merge_some
from gumbelrace.kernels.cluster_partition import CLUSTERS, UNPLACED
from gumbelrace.kernels.cluster_sums import weight_of
from gumbelrace.kernels.cluster_sweep import sweep
from gumbelrace.kernels.cluster_whole import ALL, CHANGED, DONE, LOOKED, VISITED, WRONG
from gumbelrace.kernels.gibbs import Labels
from gumbelrace.kernels.scan import Scan, Systematic
from gumbelrace.population.pairs import Pairs
from gumbelrace.solvers.base import Solver, parts
from gumbelrace.solvers.exact import Exact


class Clusters(NamedTuple):
    """What an audit watches."""

    clusters: Any  # how many there are


@dataclass(frozen=True, eq=False)
class ClusterGibbs(Kernel[Labels]):
    """Gibbs sampling of clusters of mentions that pairwise factors hold together; a step is a sweep.

    Parameters
    ----------
    pairs : Pairs
        The factor f(i, j), made by `gumbelrace.pairs`.
    solver : Race, Betting or Exact, optional
        Default: `Exact` where all values are kept, else `Betting` where the factor has a range, else
        ``Race(Normal())``. Its δ holds for each mention that is visited.
        ``Race(variance=Marginal(shrink=0))`` has the paper's variance.
    keep : str
        What is kept of the values: "nothing"; "pairs" (each is computed at most once; 2n² bytes); "sums"
        (that, and every mention's sum with every cluster of two and more, 8n bytes each; exact); "matrix"
        (all are computed first; 4n² bytes; exact). All exact ways make the same draws.
    scan, annealing
        As in `Gibbs`. With `Geometric` and a temperature of 0 at the end, the chain searches for the best
        partition.
    merges : bool
        After each sweep, try to merge clusters. This is part of a search: it does not leave p invariant.
    same_order : bool, optional
        Whether a mention reads the members of clusters in the same random order in every sweep, so that
        races ask for the same pairs again, or in a new one. Default: with ``keep="pairs"``. An unlucky
        order then stays unlucky; how often a choice is wrong is the same.

    Notes
    -----
    A race does not read all of a cluster, and so may overlook a factor of -inf; `Exact` never does.

    The state's labels are numbers of clusters, or -1 for mentions that are in none yet and have no factors;
    they enter when they are first visited. A step's `evaluations` are the factors computed in it, `rewards`
    those of an exact sweep without merges, n(n-1) once all mentions are placed. What is kept belongs to a
    thread: each chain of a run keeps its own, and a run that goes on from a checkpoint computes it again.

    Examples
    --------
    >>> import numba, numpy as np, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(i, j, x):
    ...     return 1.0 - abs(x[i] - x[j])
    >>> rng = np.random.default_rng(0)
    >>> x = np.repeat([0.0, 10.0, 20.0], 50) + rng.normal(0.0, 0.3, 150)
    >>> kernel = gr.ClusterGibbs(gr.pairs(log_factor, (x,), size=150))
    >>> state = kernel.start(rng)
    >>> for _ in range(5):
    ...     state, info = kernel.step(rng, state)
    >>> np.unique(state.labels, return_counts=True)[1]
    array([50, 50, 50])
    """

    pairs: Pairs
    solver: Solver = None  # type: ignore[assignment]
    keep: str = "nothing"
    scan: Scan = field(default_factory=Systematic)
    annealing: Annealing = field(default_factory=Constant)
    merges: bool = False
    same_order: bool | None = None
    _local: threading.local = field(init=False, repr=False, default_factory=threading.local)

    tuning: ClassVar[frozenset[str]] = frozenset({"sweep"})

    def __post_init__(self) -> None:
        if not isinstance(self.pairs, Pairs):
            raise InvalidArgument(f"pairs is a {type(self.pairs).__name__}; make it with gumbelrace.pairs")
        checked_keep(self.keep)
        self._use(self.solver)

    def _use(self, solver: Solver | None) -> None:
        # The dataclass is frozen for others.
        object.__setattr__(self, "solver", checked_solver(solver, self.pairs, self.keep))

    def with_solver(self, solver: Solver) -> Self:
        """Return the same kernel with another solver; what is kept is not shared."""
        other = copy.copy(self)
        object.__setattr__(other, "_local", threading.local())
        other._use(solver)
        return other

    def start(self, rng: np.random.Generator, placed: bool = True) -> Labels:
        """Give every mention a cluster of its own, or none: they enter one by one in the first sweep."""
        check_generator(rng)
        n = self.pairs.size
        return Labels(np.arange(n, dtype=np.int32) if placed else np.full(n, UNPLACED, np.int32))

    def step(self, rng: np.random.Generator, state: Labels) -> tuple[Labels, Info]:
        """Make one sweep: n mentions choose their clusters."""
        labels, place = self._sweep(rng, state)
        tally = place.desk.tally
        acceptance = float(tally[CHANGED] / tally[VISITED])
        info = Info(int(place.fetched.made[0]), int(tally[ALL]), int(tally[LOOKED]), acceptance)
        return Labels(labels, state.sweep + 1), info

    def audit(self, rng: np.random.Generator, state: Labels) -> Checked[Labels]:
        """Make a sweep, choosing exactly as well, and one that only chooses exactly.

        Rows and noise come from one generator: after the first choice the two sweeps differ by chance
        as well, which makes what is estimated from them noisier, and not wrong.
        """
        noise = int(rng.integers(2**63))
        labels, place = self._sweep(np.random.default_rng(noise), state, audited=True)
        errors, decisions = int(place.desk.tally[WRONG]), int(place.desk.tally[VISITED])
        exact, _ = self.with_solver(Exact()).step(np.random.default_rng(noise), state)
        return Checked(errors, decisions, Labels(labels, state.sweep + 1), exact)

    def watched(self, states: Labels) -> Clusters:
        """Give the number of clusters: their labels mean nothing."""
        labels = np.sort(np.asarray(states.labels), axis=-1)
        return Clusters(1.0 + np.count_nonzero(np.diff(labels, axis=-1), axis=-1))

    def log_weight(self, state: Labels) -> tuple[float, int]:
        """Give log p of a state up to a constant, read exactly, and the factors computed for it."""
        place, total = self._workplace(), 0.0
        place.begin(self._checked_labels(state.labels))
        mentions = np.arange(self.pairs.size)
        for some in parts(len(mentions), place.first_part()):
            total += weight_of(place.source, place.desk, mentions[some])
            place.check()
        place.end()
        return total, int(place.fetched.made[0])

    def _sweep(
        self, rng: np.random.Generator, state: Labels, audited: bool = False
    ) -> tuple[NDArray[Any], Workplace]:
        before = self._checked_labels(state.labels)
        temperature = checked_temperature(float(self.annealing(state.sweep)))
        order = self.scan.order(check_generator(rng), len(before))
        place = self._workplace()
        place.task = place.task._replace(temperature=temperature, audited=audited)
        with rng.bit_generator.lock:
            place.begin(before)
            self._visit(place, rng, order)
            if self.merges:
                self._merge(place, rng)
        return place.end().astype(before.dtype), place

    def _workplace(self) -> Workplace:
        if not hasattr(self._local, "place"):
            same = self.keep == "pairs" if self.same_order is None else self.same_order
            same = same and not isinstance(self.solver, Exact)  # which reads all, in whatever order
            self._local.place = Workplace(self.pairs, self.solver, self.keep, same)
        place: Workplace = self._local.place
        return place

    def _visit(self, place: Workplace, rng: np.random.Generator, order: NDArray[np.int64]) -> None:
        for some in parts(len(order), place.first_part()):
            stop = min(some.stop, len(order))
            while (done := int(place.desk.tally[DONE])) < stop:
                place.make_room()
                sweep(place.rule, place.source, place.desk, bits_of(rng), place.task, order[done:stop])
                place.check()

    def _merge(self, place: Workplace, rng: np.random.Generator) -> None:
        partition, sources = place.desk.partition, (place.source, place.lines)
        clusters = partition.ids[: partition.counts[CLUSTERS]].copy()
        for some in parts(len(clusters), 1):
            merge_some(place.rule, *sources, place.desk, bits_of(rng), place.task, clusters[some])
            place.check()

    def _checked_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        labels, n = np.asarray(labels), self.pairs.size
        if labels.shape != (n,):
            raise ShapeMismatch(f"the state's labels have shape {labels.shape}; it must be ({n},)")
        if not np.issubdtype(labels.dtype, np.signedinteger):
            raise InvalidArgument(f"the state's labels are {labels.dtype}; they must be signed integers")
        if labels.min() < UNPLACED or labels.max() >= n:
            raise InvalidArgument(
                f"the state's labels must lie in 0...{n - 1}, or be -1 for a mention that is not placed"
            )
        return labels
