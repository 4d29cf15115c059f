"""What a sweep over clusters needs: readers, working memory, rules, and words for faults."""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, UnknownRange
from gumbelrace.kernels.clusters.order import new_ordering
from gumbelrace.kernels.clusters.partition import arrange, new_partition
from gumbelrace.kernels.clusters.sweep import Task
from gumbelrace.kernels.clusters.values import (
    add_lines,
    enlarged,
    forget,
    is_full,
    new_sums,
    open_columns,
    read_all,
)
from gumbelrace.kernels.clusters.whole import Batch, Desk, Memo
from gumbelrace.population.base import CODE, FINE, ROW, Source
from gumbelrace.population.pair_readers import (
    COUNT,
    FIRST,
    MENTION,
    NOTHING,
    SQUARE,
    TRIANGLE,
    Fetched,
    new_store,
)
from gumbelrace.population.pairs import Pairs
from gumbelrace.solvers.base import Solver, parts
from gumbelrace.solvers.betting import Betting
from gumbelrace.solvers.betting_separate import FIRST_LOOK, OwnWagers
from gumbelrace.solvers.exact import Exact, Scan
from gumbelrace.solvers.race import Race
from gumbelrace.solvers.race_separate import looks_of_any_size

# Most values in one call of a reader.
CHUNK = 256
# What each way of keeping values stores.
STORES = {"nothing": NOTHING, "pairs": TRIANGLE, "sums": TRIANGLE, "matrix": SQUARE}


def checked_keep(keep: str) -> str:
    """Return how values are kept, if it is one of the ways."""
    if keep not in STORES:
        raise InvalidArgument(f"keep is {keep!r}; it must be one of {', '.join(map(repr, STORES))}")
    return keep


def checked_solver(solver: Solver | None, pairs: Pairs, keep: str) -> Solver:
    """Return a solver that fits, or the default one."""
    if solver is None:
        if keep in ("sums", "matrix"):
            return Exact()
        return Race() if pairs.reward_range is None else Betting()
    if not isinstance(solver, Exact | Betting | Race):
        raise InvalidArgument(f"the solver is {solver!r}; give Betting(), Race() or Exact()")
    if keep in ("sums", "matrix") and not isinstance(solver, Exact):
        raise InvalidArgument(f"keep={keep!r} knows all values: use Exact(), or keep='pairs' to race")
    if solver.needs_range and pairs.reward_range is None:
        raise UnknownRange(
            f"{type(solver).__name__} needs to know how large factors can be; give pairs a "
            "reward_range=(low, high), or use Race(Normal()), which does not need it"
        )
    return solver


def first_look(solver: Solver, size: int) -> int:
    """Give the size up to which clusters are read whole."""
    if isinstance(solver, Race):
        return solver.first_of_own
    return FIRST_LOOK if isinstance(solver, Betting) else size


def rule_for(solver: Solver, size: int, sizes: NDArray[np.int64]) -> Any:
    """Give the rule of a race of clusters whose sizes will be put into `sizes`."""
    if isinstance(solver, Race):
        shrink = solver.variance.shrink
        return looks_of_any_size(solver.bound, solver.delta, solver.first_of_own, shrink, sizes, size)
    return OwnWagers(1.0 / solver.promise.delta) if isinstance(solver, Betting) else Scan()


class Counter:
    """A number that threads add to."""

    def __init__(self) -> None:
        self.total, self._lock = 0, threading.Lock()

    def add(self, count: int) -> None:
        """Add to the total."""
        with self._lock:
            self.total += count


class Workplace:
    """What one thread works on, and what it keeps from one sweep to the next."""

    def __init__(self, pairs: Pairs, solver: Solver, keep: str) -> None:
        n, self.pairs, self.keep = pairs.size, pairs, keep
        limit = first_look(solver, n)
        # Its own cluster, the large ones, groups of small ones, and the empty one
        partition, arms = new_partition(n), n // (1 + limit) + limit + 2
        self.fetched = pairs.fetched(partition.members, new_store(n, STORES[keep]))
        self.desk = Desk(
            partition,
            _new_memo(n, arms),
            _new_batch(),
            new_sums(n, keep == "sums"),
            new_ordering(n, arms),
            self.fetched.site,
            np.zeros(7, np.int64),
        )
        self.source = _source(self.fetched, pairs.limits, arms)
        self.lines = self.source._replace(reader=self.fetched.lines.address)
        self.rule = rule_for(solver, n, self.desk.memo.sizes)
        self.task = Task(0.0, limit, False)
        self._summed: NDArray[np.int32] | None = None
        self._full = False

    def begin(self, labels: NDArray[Any]) -> None:
        """Lay out the clusters of the labels given, and what is kept of them."""
        desk, summed = self.desk, self._summed
        desk.partition.labels[:], desk.tally[:], self.source.fault[:] = labels, 0, 0
        self.fetched.made[:], desk.site[COUNT], self._summed = 0, 0, None
        arrange(desk.partition)
        if self.keep == "matrix" and not self._full:
            self._read_all()
        if self.keep == "sums" and not (summed is not None and np.array_equal(summed, labels)):
            self._sum_up()

    def end(self) -> NDArray[np.int32]:
        """Give the labels, and trust what is kept of their clusters."""
        labels = self.desk.partition.labels.copy()
        self._summed = labels
        return labels

    def make_room(self) -> None:
        """Make room for the sums of more clusters, if it is needed."""
        if is_full(self.desk.sums):
            self.desk = self.desk._replace(sums=enlarged(self.desk.sums))

    def _read_all(self) -> None:
        order = np.arange(self.pairs.size)
        for some in parts(len(order), self.first_part()):
            read_all(self.source, self.desk, order[some])
            self.check()
        self._full = True

    def _sum_up(self) -> None:
        forget(self.desk)
        open_columns(self.desk)
        while is_full(self.desk.sums):
            self.make_room()
            open_columns(self.desk)
        order = np.arange(self.pairs.size)
        for some in parts(len(order), self.first_part()):
            add_lines(self.source, self.desk, order[some])
            self.check()

    def first_part(self) -> int:
        """Give a number of mentions that takes little time even if values are dear."""
        return 1 + 2**16 // self.pairs.size

    def check(self) -> None:
        """Raise what went wrong in compiled code, by pair."""
        code, row = (int(self.source.fault[entry]) for entry in (CODE, ROW))
        if code != FINE:
            self.pairs.blame(code, self._partner(row), row)

    def _partner(self, row: int) -> int:
        """Give the mention with which the value of another one went wrong; in a sum, look for it."""
        mention, first, count = (int(self.desk.site[entry]) for entry in (MENTION, FIRST, COUNT))
        if count == 0:
            return mention
        members, (low, high) = self.desk.partition.members[first : first + count], self.pairs.limits
        values = self.pairs.values(row, members)
        return int(members[np.argmax(~((low <= values) & (values <= high)))])


def _source(fetched: Fetched, limits: tuple[float, float], arms: int) -> Source:
    reader, context = fetched.values.address, fetched.packed.words.ctypes.data
    low, high = np.full(arms, limits[0]), np.full(arms, limits[1])
    fault, ruled_out = np.zeros(3, np.int64), np.zeros(arms, np.uint8)
    return Source(reader, context, arms, CHUNK, True, low, high, np.empty((0, 0)), 1.0, fault, ruled_out)


def _new_memo(size: int, arms: int) -> Memo:
    return Memo(
        np.zeros(size + 1),
        np.zeros(size + 1),
        np.zeros(size + 1),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms),
    )


def _new_batch() -> Batch:
    rows, owner = np.zeros((2, CHUNK), np.int64)
    return Batch(rows, owner, np.zeros((1, CHUNK)), np.zeros(1, np.int64))
