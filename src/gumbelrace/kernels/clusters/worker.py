"""What one thread needs to sweep over clusters: readers, a workspace, a rule, and words for faults."""

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.orders import ROUNDS, Streams
from gumbelrace.core.random import bits_of
from gumbelrace.core.rows import LARGEST
from gumbelrace.errors import InvalidArgument, UnknownRange
from gumbelrace.kernels.base import VISITED, new_tally
from gumbelrace.kernels.clusters.choice import (
    Calls,
    Contest,
    Task,
    draw_again,
    merge_some,
    put_exact,
    sweep,
)
from gumbelrace.kernels.clusters.partition import CLUSTERS, Partition, arrange, new_partition
from gumbelrace.kernels.clusters.values import (
    BEST_OF,
    UPDATES,
    Arms,
    Batch,
    Lines,
    Workspace,
    add_to_sums,
    enlarged,
    log_weight_of,
    new_sums,
    no_sums,
)
from gumbelrace.methods.absorb import Absorb
from gumbelrace.methods.absorb_independent import AbsorbingOwn
from gumbelrace.methods.base import Asked, Method, timed_slices
from gumbelrace.methods.betting import Betting
from gumbelrace.methods.betting_independent import FIRST_LOOK, IndependentWagers
from gumbelrace.methods.default import SINGLE_DELTA, Default, single_method
from gumbelrace.methods.exact import Exact, Scan
from gumbelrace.methods.independent import Groups, IndependentWorkspace, new_independent
from gumbelrace.methods.loop import prepared
from gumbelrace.methods.race import Race
from gumbelrace.methods.race_independent import looks_of_any_size
from gumbelrace.methods.state import Question
from gumbelrace.population.base import CODE, FINE, ROW, Source
from gumbelrace.population.pairs import COUNT, FIRST, MENTION, Pairs, Readers

# Most values in one call of a reader.
CHUNK = 256
# Of more mentions nothing is kept unless asked for: values and sums of so many take about a gigabyte.
MOST_KEPT = 20_000


class Keep(StrEnum):
    """What is kept of the factor's values.

    Attributes
    ----------
    NOTHING
        They are computed whenever they are read.
    PAIRS
        Each is computed at most once; 2n² bytes.
    SUMS
        That, and every mention's sum with every cluster of two and more, 8n bytes each; exact.
    """

    NOTHING = "nothing"
    PAIRS = "pairs"
    SUMS = "sums"


def checked_keep(keep: Keep | str | None, method: Method | None, size: int) -> Keep:
    """Return what is kept, or by default what makes sampling fastest."""
    if keep is None:
        if size > MOST_KEPT:
            return Keep.NOTHING
        return Keep.SUMS if method is None or isinstance(method, Exact) else Keep.PAIRS
    try:
        return Keep(keep)
    except ValueError:
        ways = ", ".join(repr(str(way)) for way in Keep)
        raise InvalidArgument(f"keep is {keep!r}; it must be one of {ways}") from None


def checked_method(method: Method | None, pairs: Pairs, keep: Keep) -> Method:
    """Return a method that fits, or the default one."""
    if method is None:
        method = Exact() if keep == Keep.SUMS else single_method(None, None)
    if isinstance(method, Default):
        method = method.where(pairs.reward_range is not None)
    if not isinstance(method, Exact | Betting | Race | Absorb):
        raise InvalidArgument(f"the method is {method!r}; give Absorb(), Betting(), Race() or Exact()")
    if keep == Keep.SUMS and not isinstance(method, Exact):
        raise InvalidArgument("keep='sums' knows all values: use Exact(), or keep='pairs' to race")
    if method.needs_range and pairs.reward_range is None:
        raise UnknownRange(
            f"{type(method).__name__} needs to know how large factors can be; give pairs a "
            "reward_range=(low, high), or use Race(), which does not need it"
        )
    return method


class Worker:
    """Sweeps for one thread, and keeps values from one sweep to the next."""

    def __init__(self, pairs: Pairs, method: Method, keep: Keep) -> None:
        partition = new_partition(pairs.size)
        self.readers = pairs.readers(partition.members, keep != Keep.NOTHING)
        self.limit = _first_look(method, pairs.size)
        self.work = _new_workspace(partition, self.readers, pairs.limits, self.limit)
        self.order = _order(partition, self.work.arms)
        self._method, self._winners = method, _who_finds_winners(method, pairs)
        self._pairs, self._keep, self._summed = pairs, keep, np.empty(0, np.int32)

    def begin(self, labels: NDArray[Any]) -> None:
        """Lay out the clusters of the labels given, and what is kept of them."""
        work, summed = self.work, self._summed
        arrange(work.partition, labels)
        work.tally[:], work.source.fault[:], work.site[COUNT] = 0, 0, 0
        work.law_error[:] = 0.0
        self._summed = np.empty(0, np.int32)  # an error leaves sums of no labels
        if self._keep == Keep.SUMS and not np.array_equal(summed, labels):
            self._sum_up()

    def end(self) -> NDArray[np.int32]:
        """Give the labels, and trust what is kept of their clusters."""
        self._summed = self.work.partition.labels.copy()
        return self._summed

    def visit(self, rng: np.random.Generator, task: Task, mentions: NDArray[np.int64]) -> None:
        """Let mentions choose their clusters."""
        calls, _kept_alive = self._calls(rng, task.temperature)
        for some in self._parts(len(mentions)):
            stop = min(some.stop, len(mentions))
            while (done := int(self.work.tally[VISITED])) < stop:
                if self._keep == Keep.SUMS and self.work.sums.unused[0] == 0:
                    self.work = self.work._replace(sums=enlarged(self.work.sums))
                    calls, _kept_alive = self._calls(rng, task.temperature)
                sweep(calls, self.work, bits_of(rng), task, mentions[done:stop])
                self._check()

    def visit_again(self, rng: np.random.Generator, task: Task, i: int, chosen: NDArray[np.int64]) -> Any:
        """Let a mention choose again and again; give the exact values of what it may choose."""
        calls, _kept_alive = self._calls(rng, task.temperature)
        values = np.zeros(self.work.partition.counts[CLUSTERS] + 1)
        put_exact(calls, self.work, bits_of(rng), i, values)
        draw_again(calls, self.work, bits_of(rng), task, i, chosen)
        self._check()
        return values

    def merge(self, rng: np.random.Generator, task: Task) -> None:
        """Try to merge clusters: whether two belong together is asked of who finds winners."""
        partition = self.work.partition
        clusters = partition.ids[: partition.counts[CLUSTERS]].copy()
        calls, _kept_alive = self._calls(rng, 0.0)
        for some in timed_slices(len(clusters)):
            merge_some(calls, self.work, bits_of(rng), task, clusters[some])
            self._check()

    def _calls(self, rng: np.random.Generator, temperature: float) -> tuple[Calls, Any]:
        """Prepare what a sweep calls; also give what must stay alive meanwhile.

        Without noise there is nothing that errors could be absorbed into.
        """
        method = self._method if temperature > 0.0 else self._winners
        rule = _rule(method, self._pairs, self.work.arms.sizes)
        work, sums, bits = self.work, self._keep == Keep.SUMS, bits_of(rng)
        best = BEST_OF.stored(work, Keep)
        groups, update = Groups(best.entry, best.address), UPDATES.entry(work, Keep) if sums else 0
        source, sizes = work.source, work.arms.sizes
        lines = source._replace(reader=self.readers.lines.address, low=work.lines.low, high=work.lines.high)
        races = [
            _contest(
                new_independent(rule, of, self.order, (bits, bits), sizes)._replace(groups=groups),
                temperature,
            )
            for of in (source, lines)
        ]
        (choice, _), (merger, _) = races
        absorbs = isinstance(rule, AbsorbingOwn)
        return Calls(best.address, best.entry, update, choice, merger, absorbs), (best, races)

    def log_weight(self) -> float:
        """Sum the values of all pairs of mentions that are in one cluster."""
        total, mentions = 0.0, np.arange(self._pairs.size)
        for some in self._parts(len(mentions)):
            total += log_weight_of(self.work, mentions[some])
            self._check()
        return total

    def _sum_up(self) -> None:
        partition, mentions = self.work.partition, np.arange(self._pairs.size)
        clusters = int(partition.counts[CLUSTERS])
        large = partition.ids[:clusters][partition.sizes[:clusters] > 1]
        self.work = self.work._replace(sums=new_sums(self._pairs.size, large))
        for some in self._parts(len(mentions)):
            add_to_sums(self.work, mentions[some])
            self._check()

    def _parts(self, mentions: int) -> Any:
        # The first part takes little time even if values are dear.
        return timed_slices(mentions, 1 + 2**16 // self._pairs.size)

    def _check(self) -> None:
        """Raise what went wrong in compiled code, by pair."""
        code, row = (int(self.work.source.fault[entry]) for entry in (CODE, ROW))
        if code != FINE:
            self._pairs.blame(code, self._partner(row), row)

    def _partner(self, row: int) -> int:
        """Give the mention with which the value of another one went wrong; in a sum, look for it."""
        mention, first, count = (int(self.work.site[entry]) for entry in (MENTION, FIRST, COUNT))
        if count == 0:
            return mention
        members, (low, high) = self.work.partition.members[first : first + count], self._pairs.limits
        values = self._pairs.values(row, members)
        return int(members[np.argmax(~((low <= values) & (values <= high)))])


def _contest(workspace: IndependentWorkspace, temperature: float) -> tuple[Contest, Any]:
    """Prepare a race; also give what must stay alive meanwhile."""
    state = workspace.state
    if isinstance(workspace.rule, AbsorbingOwn):
        Asked(Question.DRAW, temperature).put(state)
    if isinstance(workspace.rule, Scan):  # all clusters are small to it: it never races
        return Contest(0, 0, state.tally, state.offset, state.law_error), workspace
    plan, kept_alive = prepared(workspace)
    return Contest(plan.address, plan.words, state.tally, state.offset, state.law_error), kept_alive


def _first_look(method: Method, size: int) -> int:
    """Give the size up to which all of a cluster is read."""
    if isinstance(method, Race):
        return method.first_of_independent
    if isinstance(method, Absorb):
        return method.first
    return FIRST_LOOK if isinstance(method, Betting) else size


def _who_finds_winners(method: Method, pairs: Pairs) -> Method:
    """Give the method, or where it finds no winner, the default race."""
    race = Default(SINGLE_DELTA, SINGLE_DELTA).where(pairs.reward_range is not None)
    return method if method.finds_winners else race


def _rule(method: Method, pairs: Pairs, sizes: NDArray[np.int64]) -> Any:
    """Give the rule of a choice among clusters whose sizes will be put into `sizes`."""
    if isinstance(method, Race):
        first, shrink = method.first_of_independent, method.variance.shrink
        return looks_of_any_size(method.bound, method.delta, first, shrink, sizes, pairs.size)
    if isinstance(method, Absorb):
        return method.rule_of_own(pairs.limits[0] == -np.inf and pairs.reward_range is not None)
    return IndependentWagers(1.0 / method.promise.delta) if isinstance(method, Betting) else Scan()


def _new_workspace(
    partition: Partition, readers: Readers, limits: tuple[float, float], limit: int
) -> Workspace:
    n = len(partition.labels)
    count = n // (1 + limit) + limit + 2  # home, large clusters, groups of small ones, the empty one
    segments, starts, sizes = np.zeros((3, count), np.int64)
    arms = Arms(segments, starts, sizes, np.zeros(count), np.zeros(limit + 1))
    rows, owner = np.zeros((2, CHUNK), np.int64)
    source = _source(readers, limits, count)
    return Workspace(
        partition,
        source,
        Lines(source.low.copy(), source.high.copy()),
        noise=np.zeros(n + 1),
        totals=np.zeros(n + 2),
        arms=arms,
        batch=Batch(rows, owner, np.zeros((1, CHUNK)), np.zeros(1, np.int64)),
        sums=no_sums(n),
        turn=np.zeros(2, np.int64),
        site=readers.site,
        tally=new_tally(),
        law_error=np.zeros(1),
    )


def _source(readers: Readers, limits: tuple[float, float], arms: int) -> Source:
    reader, context = readers.values.address, readers.packed.words.ctypes.data
    low, high = np.full(arms, limits[0]), np.full(arms, limits[1])
    fault, ruled_out = np.zeros(3, np.int64), np.zeros(arms, np.uint8)
    return Source(reader, context, arms, CHUNK, True, low, high, np.empty((0, 0)), 1.0, fault, ruled_out)


def _order(partition: Partition, arms: Arms) -> Streams:
    """Give the streams of the arms' members, in an order that each race shuffles anew."""
    count, swaps = len(arms.sizes), np.zeros(len(partition.labels), np.int32)
    # Rows are mentions: their numbers have no end of their own. No arm has a key.
    endless, widths = np.full(count, LARGEST, np.int64), np.zeros(count, np.int64)
    keys, cursor = np.empty((0, ROUNDS), np.uint64), np.zeros((count, 3), np.int64)
    return Streams(1, endless, arms.sizes, arms.starts, partition.members, swaps, widths, keys, cursor)
