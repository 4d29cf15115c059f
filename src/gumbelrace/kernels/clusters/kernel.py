"""Gibbs sampling and annealing of a partition with pairwise factors (paper, section 5.3), sweeps compiled.

    p(y) ∝ exp(Σ_{i<j, y_i = y_j} f(i, j))

Each mention i in turn chooses among the clusters in use, of which cluster C adds the |C| rewards f(i, j) of
its members, and an empty one, which adds nothing.
"""

import threading
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike, NDArray

from gumbelrace.auditing import Comparison
from gumbelrace.core.pool import Pool
from gumbelrace.core.random import Rng, as_generator, check_generator
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.kernels.base import VISITED, WRONG, Checked, Info, Kernel, info_of
from gumbelrace.kernels.checks import check_pairs, check_room, check_state, check_sweeps
from gumbelrace.kernels.clusters.choice import Task
from gumbelrace.kernels.clusters.partition import UNPLACED
from gumbelrace.kernels.clusters.worker import Keep, Worker, checked_keep, checked_method
from gumbelrace.kernels.gibbs import Labels
from gumbelrace.kernels.schedules import Annealing, Constant, Scan, Systematic, checked_temperature
from gumbelrace.methods.base import Method
from gumbelrace.methods.default import single_method
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.state import new_results
from gumbelrace.population.pairs import Pairs
from gumbelrace.verdict import DRAWS_OF_A_CHAIN

# Mentions whose law is compared in an audited sweep, and how often each chooses.
AUDITED, ANSWERS = 8, 128


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
    keep : Keep or str, optional
        What is kept of the values: "nothing"; "pairs" (each is computed at most once; 2n² bytes); "sums"
        (that, and every mention's sum with every cluster of two and more, 8n bytes each; exact). Default,
        up to 20,000 mentions: "sums", or "pairs" with a method that races; above, "nothing".
    scan, annealing
        As in `Gibbs`. With `Geometric` and a temperature of 0 at the end, the chain searches for the best
        partition.
    merges : bool
        After each sweep, try to merge clusters. This is part of a search: it does not leave p invariant.
    delta, method : optional
        Who decides (`Race`, `Betting`, `Absorb` or `Exact`), and its δ: one or neither. Default: `Exact`
        where sums are kept, else `Betting` where the factor has a range, else ``Race()``, at a δ of 0.05,
        which holds for each mention that is visited. ``Race(variance=methods.Marginal(shrink=0))`` has
        the paper's variance. `Absorb` finds no winners: mergers, and choices at a temperature of 0, are
        left to the default race.

    Notes
    -----
    A race reads the members of each cluster in a random order of its own, from the chain's generator: no
    choice shares it with another. So a race that keeps pairs does not ask for the same ones again, and
    computes most of them in the end.

    A race does not read all of a cluster, and so may overlook a factor of -inf; `Exact` never does.

    The state's labels are numbers of clusters, or -1 for mentions that are in none yet and have no factors;
    they enter when they are first visited. A step's `evaluations` are the factors that its choices read,
    computed or kept; `rewards` those of an exact sweep without merges, n(n-1) once all mentions are placed.
    What is kept belongs to a thread, and changes nothing of a chain but its speed: each chain of a run
    keeps its own, and a run that goes on from a checkpoint computes it again.

    Examples
    --------
    >>> import numba, numpy as np, gumbelrace as gr
    >>> @numba.njit
    ... def log_factor(i, j, x):
    ...     return 1.0 - abs(x[i] - x[j])
    >>> rng = np.random.default_rng(0)
    >>> x = np.repeat([0.0, 10.0, 20.0], 50) + rng.normal(0.0, 0.3, 150)
    >>> kernel = gr.ClusterGibbs(gr.pairs(log_factor, (x,), size=150))
    >>> state = kernel.start()
    >>> for _ in range(5):
    ...     state, info = kernel.step(rng, state)
    >>> np.unique(state.labels, return_counts=True)[1]
    array([50, 50, 50])
    """

    pairs: Pairs
    _: KW_ONLY
    keep: Keep | str | None = None
    merges: bool = False
    scan: Scan = field(default_factory=Systematic)
    annealing: Annealing = field(default_factory=Constant)
    delta: InitVar[float | None] = None
    method: Method = None  # type: ignore[assignment]
    _keep_asked: Keep | str | None = field(init=False, repr=False)
    _local: threading.local = field(init=False, repr=False, default_factory=threading.local)
    _computed: list[NDArray[np.int64]] = field(init=False, repr=False, default_factory=list)

    tuning: ClassVar[frozenset[str]] = frozenset({"sweep"})

    def __post_init__(self, delta: float | None) -> None:
        check_pairs(self.pairs)
        check_sweeps(self.scan, self.annealing)
        asked = None if delta is None and self.method is None else single_method(delta, self.method)
        keep = checked_keep(self.keep, asked, self.pairs.size)
        put = object.__setattr__  # the dataclass is frozen for others
        put(self, "_keep_asked", self.keep)
        put(self, "keep", keep)
        put(self, "method", checked_method(asked, self.pairs, keep))

    def with_method(self, method: Method) -> Self:
        """Return the same kernel with another method; what is kept is not shared."""
        return replace(self, method=method, keep=self._keep_asked)

    def sampling(self, temperature: float = 1.0) -> Self:
        """Return a kernel that samples at one temperature, without merges; what is kept is shared."""
        annealing = Constant(temperature)
        other = replace(self, merges=False, annealing=annealing, method=self.method, keep=self._keep_asked)
        for name in ("_local", "_computed"):
            object.__setattr__(other, name, getattr(self, name))
        return other

    @property
    def computed(self) -> int:
        """Factors computed so far, in all threads; those that are kept, once for each thread."""
        return sum(int(count[0]) for count in self._computed)

    def start(self, labels: ArrayLike | None = None, *, placed: bool = True, rng: Rng = None) -> Labels:
        """Give the state of a chain that starts from labels.

        By default every mention has a cluster of its own; with ``placed=False`` none, and they enter one by
        one in the first sweep.
        """
        as_generator(rng)
        if labels is not None:
            return Labels(self._checked_labels(labels))
        n = self.pairs.size
        return Labels(np.arange(n, dtype=np.int32) if placed else np.full(n, UNPLACED, np.int32))

    def step(self, rng: np.random.Generator, state: Labels) -> tuple[Labels, Info]:
        """Make one sweep: n mentions choose their clusters."""
        labels, tally, law_error = self._sweep(rng, state)
        return Labels(labels, state.sweep + 1), info_of(tally)._replace(law_error=law_error)

    def audit(self, rng: np.random.Generator, state: Labels) -> Checked[Labels]:
        """Make a sweep, choosing exactly as well, and one that only chooses exactly.

        Rows and noise come from one generator: after the first choice the two sweeps differ by chance
        as well, which makes what is estimated from them noisier, and not wrong.

        Choices that find no winner are compared instead: those of a few mentions, made again and again.
        """
        if not self.method.finds_winners and self.annealing(state.sweep) > 0.0:
            law = self._compared(check_generator(rng), state)
            return Checked(0, 0, state, state, 0, self.method.promise, np.nan, law)
        noise = int(check_generator(rng).integers(2**63))
        labels, tally, _ = self._sweep(np.random.default_rng(noise), state, audited=True)
        errors, decisions = int(tally[WRONG]), int(tally[VISITED])
        exact, _ = self.with_method(Exact()).step(np.random.default_rng(noise), state)
        return Checked(errors, decisions, Labels(labels, state.sweep + 1), exact)

    def _compared(self, rng: np.random.Generator, state: Labels) -> Comparison:
        """Compare the law of the choices of a few mentions with the exact one."""
        check_state(state, Labels)
        labels, compared = self._checked_labels(state.labels), Comparison(DRAWS_OF_A_CHAIN)
        temperature, placed = float(self.annealing(state.sweep)), np.flatnonzero(labels != UNPLACED)
        for i in rng.choice(placed, min(len(placed), AUDITED), replace=False):
            with self._workers.lend() as worker, rng.bit_generator.lock:
                task, found = Task(temperature, worker.limit, False), new_results(ANSWERS)
                worker.begin(labels)
                values = worker.visit_again(rng, task, i, found.arms)
                found.law_error[:] = worker.work.law_error[0] / ANSWERS
            compared.add_draws(found, scipy.special.softmax(values / temperature))
        return compared

    def watched(self, states: Labels) -> Clusters:
        """Give the number of clusters: their labels mean nothing."""
        labels = np.sort(np.asarray(states.labels), axis=-1)
        return Clusters(1.0 + np.count_nonzero(np.diff(labels, axis=-1), axis=-1))

    def log_weight(self, state: Labels) -> tuple[float, int]:
        """Give log p of a state up to a constant, read exactly, and the factors computed for it."""
        labels = self._checked_labels(state.labels)
        with self._workers.lend() as worker:
            before = int(worker.readers.computed[0])
            worker.begin(labels)
            weight = worker.log_weight()
            worker.end()
            return weight, int(worker.readers.computed[0]) - before

    def _sweep(
        self, rng: np.random.Generator, state: Labels, audited: bool = False
    ) -> tuple[NDArray[Any], NDArray[np.int64], float]:
        check_state(state, Labels)
        before = self._checked_labels(state.labels)
        temperature = float(checked_temperature(self.annealing(state.sweep)))
        mentions = self.scan.order(check_generator(rng), len(before))
        with self._workers.lend() as worker, rng.bit_generator.lock:
            task = Task(temperature, worker.limit, audited)
            worker.begin(before)
            worker.visit(rng, task, mentions)
            if self.merges:
                worker.merge(rng, task)
            tally, law_error = worker.work.tally.copy(), float(worker.work.law_error[0])
            return worker.end().astype(before.dtype), tally, law_error / max(len(mentions), 1)

    @property
    def _workers(self) -> Pool[Worker]:
        """The workers of this thread."""
        if not hasattr(self._local, "workers"):
            self._local.workers = Pool(self._new_worker)
        workers: Pool[Worker] = self._local.workers
        return workers

    def __getstate__(self) -> dict[str, Any]:
        """Leave to pickle and copies what users gave: workers are made anew."""
        return {name: value for name, value in vars(self).items() if name not in ("_local", "_computed")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _local=threading.local(), _computed=[])

    def _new_worker(self) -> Worker:
        keep = checked_keep(self.keep, self.method, self.pairs.size)
        worker = Worker(self.pairs, self.method, keep)
        self._computed.append(worker.readers.computed)
        return worker

    def _checked_labels(self, given: ArrayLike) -> NDArray[Any]:
        labels, n = np.asarray(given), self.pairs.size
        if labels.shape != (n,):
            raise ShapeMismatch(f"the state's labels have shape {labels.shape}; it must be ({n},)")
        if not np.issubdtype(labels.dtype, np.signedinteger):
            raise InvalidArgument(f"the state's labels are {labels.dtype}; they must be signed integers")
        if labels.min() < UNPLACED or labels.max() >= n:
            raise InvalidArgument(
                f"the state's labels must lie in 0...{n - 1}, or be -1 for a mention that is not placed"
            )
        check_room(labels, n)
        return labels
