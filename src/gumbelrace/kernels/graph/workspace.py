"""What a sweep needs besides the graph: a reader, working memory, a method's rule, and words for faults."""

import functools
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from gumbelrace.core.jit import READER
from gumbelrace.core.orders import FEWEST, Stream, new_streams
from gumbelrace.core.packed import pack, unpack
from gumbelrace.core.random import EQUAL_CHANCES
from gumbelrace.core.rows import Rows
from gumbelrace.errors import (
    FactorFailed,
    InvalidArgument,
    InvalidReward,
    NoPossibleArm,
    RewardOutOfRange,
    UnknownRange,
)
from gumbelrace.kernels.base import SITE, new_tally
from gumbelrace.kernels.graph.heads import Reading, for_race, read_whole
from gumbelrace.kernels.graph.layout import Layout
from gumbelrace.kernels.graph.state import Workspace
from gumbelrace.methods.absorb import Absorb
from gumbelrace.methods.base import Method
from gumbelrace.methods.betting import Betting
from gumbelrace.methods.default import Default
from gumbelrace.methods.exact import Exact
from gumbelrace.methods.race import Race, looks
from gumbelrace.methods.reading import new_block
from gumbelrace.methods.thinning import Thinning
from gumbelrace.population.arrays import NO_REWARD
from gumbelrace.population.base import (
    ARM,
    CODE,
    FAILED,
    IMPOSSIBLE,
    NOT_A_REWARD,
    ROW,
    Source,
    unlimited,
)
from gumbelrace.population.compiled import Compiled
from gumbelrace.population.trial import Call, check_result, try_out

# Most factors in one call of the reader.
CHUNK = 256
# Sizes of tails for which `Race` has coefficients of its own: as many leading bits are kept.
LEADING_BITS = 4
# What a potential is called with.
FORM = "log_factor(label, other, weight)"
KINDS = {"label": np.int64(0), "other": np.int32(0), "weight": 0.0}


def checked_function(potential: Any) -> Any:
    """Return the numba function of a potential."""
    function = getattr(potential, "log_factor", potential)
    if not isinstance(function, Dispatcher):
        raise InvalidArgument(
            f"the potential is {potential!r}; give Potts(), Ising(), Pairwise(log_factor, bound), or a "
            "function log_factor(label, other, weight) decorated with @numba.njit"
        )
    check_result(Call(function, FORM, KINDS))
    return function


def try_labels(function: Any, arms: int, layout: Layout) -> None:
    """Refuse a potential that reads beyond an array at the last label: compiled code checks no index."""
    last = {"label": np.int64(arms - 1), "other": np.int32(arms - 1)}
    try_out(Call(function, FORM, {**last, "weight": float(layout.weights[0])}))


class Lent(NamedTuple):
    """What one thread needs for a sweep."""

    workspace: Workspace
    source: Source
    stream: Stream
    kept_alive: Any


def lent(layout: Layout, function: Any, arms: int) -> Lent:
    """Make what one more thread needs."""
    n, longest = layout.variables, int(np.diff(layout.starts).max())
    labels, first = np.zeros(n, np.int32), np.zeros(1, np.int64)
    others, scales = np.zeros(CHUNK, np.int32), np.zeros(CHUNK)
    packed = pack((first, layout.neighbours, layout.weights, labels, others, scales))
    reader = _reader(function, packed.type)
    source = _source(reader.address, packed.words.ctypes.data, arms)
    (offset, values, spare), names = np.empty((3, arms)), np.empty(arms, np.int64)
    of_variable = offset, values, names, new_block(arms, CHUNK), spare
    rows, picked = np.arange(CHUNK), np.zeros(CHUNK, np.int64)
    workspace = Workspace(labels, first, rows, picked, new_tally(), *of_variable, np.zeros(1))
    return Lent(workspace, source, _stream(longest), (reader, packed))


def _source(reader: int, context: int, arms: int) -> Source:
    low, high = unlimited(arms)
    fault, ruled_out = np.zeros(3, np.int64), np.zeros(arms, np.uint8)
    return Source(reader, context, arms, CHUNK, True, low, high, np.empty((0, 0)), 1.0, fault, ruled_out)


def _stream(rows: int) -> Stream:
    """Make a stream that fits every tail of at most so many rows: longer ones need no swaps."""
    streams = new_streams(np.array([min(rows, FEWEST - 1)]))
    return Stream(streams, np.zeros(rows, np.uint8), EQUAL_CHANCES, EQUAL_CHANCES)


@functools.lru_cache(maxsize=64)
def _reader(potential: Any, data_type: Any) -> Any:
    """Make a reader of a variable's factors: row n is the one at first[0] + n."""

    @numba.cfunc(READER)
    def read(context, rows, n_rows, arms, n_arms, out, stride):  # type: ignore[no-untyped-def]
        first, neighbours, weights, labels, others, scales = unpack(context, data_type)
        for i in range(n_rows):
            k = first[0] + rows[i]
            others[i], scales[i] = labels[neighbours[k]], weights[k]
        # One label after the other, with unsigned indices: simple potentials run in vector registers.
        for a in range(n_arms):
            place = np.uint64(arms[a] * stride)
            for i in range(np.uint64(n_rows)):
                out[place + i] = potential(arms[a], others[i], scales[i])
        return n_rows * n_arms

    return read


def default_method(method: Default, layout: Layout) -> Method:
    """Give the default method of a graph.

    Where factors have bounds, draws from those that ring are exact and read the least. Without bounds
    nothing says how much neighbours can do that are not read; a δ that was asked for is that of a race.
    """
    return Thinning() if layout.known and method == Default() else method.where(layout.known)


def rules_for(method: Method, layout: Layout, arms: int) -> tuple[Any, Reading]:
    """Give the rule for all tails, and how neighbours are read; who adds noise later knows better then."""
    if not isinstance(method, Exact | Betting | Race | Absorb | Thinning):
        ways = "Thinning(), Absorb(), Betting(), Race() or Exact()"
        raise InvalidArgument(f"the method is {method!r}; give {ways}")
    if method.needs_range and not layout.known:
        raise UnknownRange(
            f"{type(method).__name__} needs to know how large factors can be; give the potential as "
            "Pairwise(log_factor, bound), or use Race(), which does not need it"
        )
    if isinstance(method, Race):
        reading = for_race(layout)
        return looks(method, _size_classes(reading.tails), arms), reading
    if isinstance(method, Betting):
        return _rule(method, arms), for_race(layout)
    # Of those that ring, the sweep draws by itself.
    return _rule(Exact() if isinstance(method, Thinning) else method, arms), read_whole(layout)


def _rule(method: Method, arms: int) -> Any:
    """Give the rule of a method that asks for no size."""
    return method.rule(Compiled(None, (), Rows(1), arms, None))


def _size_classes(tails: NDArray[np.int32]) -> tuple[int, ...]:
    """Give sizes such that every tail has one that is not much larger."""
    # A larger population needs more looks and wider bounds: rounding sizes up errs on the safe side.
    spare = np.maximum(np.frexp(tails)[1] - LEADING_BITS, 0)
    return tuple(np.unique(np.maximum(-(-tails // 2**spare) * 2**spare, 1)).tolist())


def raise_fault(workspace: Workspace, source: Source, layout: Layout) -> None:
    """Say what went wrong in a sweep, by variable, neighbour and label."""
    code, row, label = (int(source.fault[entry]) for entry in (CODE, ROW, ARM))
    i = int(workspace.tally[SITE])
    if code == IMPOSSIBLE:
        raise NoPossibleArm(
            f"every label of variable {i} is impossible, given its neighbours' labels; start from a "
            "state of positive probability"
        )
    k = int(workspace.first[0]) + row
    j, weight = int(layout.neighbours[k]), layout.weights[k]
    other = int(workspace.labels[j])
    pair = f"log_factor({label}, {other}, {weight:.6g}) of variable {i} and its neighbour {j}"
    if code == FAILED:
        raise FactorFailed(
            f"{pair}, or one soon after it, raised an exception; its own message is on standard error"
        )
    if code == NOT_A_REWARD:
        raise InvalidReward(f"{pair} {NO_REWARD}; rescale it; -inf means an impossible label")
    raise RewardOutOfRange(f"{pair} lies outside the potential's bounds; widen them or mend the factor")
