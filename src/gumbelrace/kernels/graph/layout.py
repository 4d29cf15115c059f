"""How a graph lies in memory: each variable's neighbours, the heaviest first.

A race on random rows is hopeless against a few heavy ones, and needless if the others are tiny. So the
neighbours of a variable are sorted by span, the largest amount by which their factor can change the
difference of two labels. A *head* of the heaviest is read in order, and after k = 0, 8, 16, 32... rows the
sum of the spans still unread (the reach R_k) proves labels beaten, without error. The *tail* is
raced. The head ends at the first look after which a race of the M rows left is expected to read
less, U_k, than reading on to the next look k':

    U_k = min(race_k, k' - k + P_k'/P_k · U_k'),    P_k = min(1, R_k),
    race_k = FEWEST + RACE · M · (Σ span² + max span).

For the gap between the best two labels is of order 1, and lies below a small R with a probability of about
R; and a race for a gap of 1 needs (Nσ)² rows, and by Bernstein's second term N times the range. Equal
weights that decide little each have no head, weights that decay fast have little else, and where no race
would pay all rows are head.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray

from gumbelrace.core.jit import kernel, part
from gumbelrace.core.rows import LARGEST
from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.population.arrays import LARGEST_REWARD, check_unmasked, real_array
from gumbelrace.population.base import Floats

# Rows of the head before it is first looked at; each look doubles them.
FIRST = 8
# What a race costs at least, in rows read in order, and how many it reads for a gap of 1 at the usual δ.
FEWEST, RACE = 64.0, 8.0
# Factors whose bounds are held at a time.
HELD = 2**22
# Weights of a pair that differ by less than this share are equal but for rounding, and so is a reach.
SAME, ROUNDING = 1e-9, 1e-12


class Layout(NamedTuple):
    """The neighbours of all variables: those of variable i lie from starts[i] to before starts[i + 1]."""

    starts: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    weights: Floats
    heads: NDArray[np.int32]  # how many of each variable's are read in order
    reach: Floats  # [i, c]: sum of the spans beyond the c-th look at the head
    low: Floats  # [0, i]: of all factors of variable i; [1, i]: of its tail
    high: Floats


def laid_out(adjacency: Any, potential: Any) -> Layout:
    """Sort every variable's neighbours, once."""
    matrix = checked_adjacency(adjacency)
    n, levels = matrix.shape[0], 2
    degrees = np.diff(matrix.indptr)
    while FIRST << (levels - 2) < degrees.max(initial=0):
        levels += 1
    layout = Layout(
        matrix.indptr.astype(np.int64),
        np.empty(matrix.nnz, np.int32),
        np.empty(matrix.nnz),
        np.empty(n, np.int32),
        np.empty((n, levels)),
        np.empty((2, n)),
        np.empty((2, n)),
    )
    for first, last in _batches(layout.starts):
        edges = slice(layout.starts[first], layout.starts[last])
        low, high = _bounds(potential, matrix.data[edges])
        known = hasattr(potential, "bounds")
        indices = matrix.indices[edges].astype(np.int32, copy=False)
        _arrange(first, last, indices, matrix.data[edges], low, high, known, layout)
    return layout


def checked_adjacency(adjacency: Any) -> Any:
    """Return the weights as a CSR array with sorted columns and no zeros, or say what is wrong."""
    check_unmasked(adjacency, "the adjacency")
    if isinstance(adjacency, list | tuple):
        adjacency = real_array(adjacency, "the adjacency")
    if len(getattr(adjacency, "shape", ())) != 2 or adjacency.shape[0] != adjacency.shape[1]:
        shape = getattr(adjacency, "shape", type(adjacency).__name__)
        raise ShapeMismatch(f"the adjacency is {shape}; it must be square, (n, n)")
    if not 1 <= adjacency.shape[0] <= LARGEST:
        raise InvalidArgument(f"there are {adjacency.shape[0]} variables; there must be 1 to {LARGEST}")
    if np.iscomplexobj(adjacency):
        raise InvalidArgument("the adjacency has complex weights; they must be real")
    # A user's matrix is never put in order in place.
    matrix = scipy.sparse.csr_array(adjacency, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise InvalidArgument("the adjacency has a weight that is NaN or infinite")
    matrix.eliminate_zeros()
    _check_symmetry(matrix)
    return matrix


def _check_symmetry(matrix: Any) -> None:
    diagonal = matrix.diagonal()
    if diagonal.any():
        i = int(np.flatnonzero(diagonal)[0])
        raise InvalidArgument(
            f"variable {i} has a weight of {diagonal[i]:.6g} with itself; the diagonal must be zero "
            "(what depends on one variable belongs into `unary`)"
        )
    turned = matrix.T.tocsr()
    same = np.array_equal(matrix.indptr, turned.indptr) and np.array_equal(matrix.indices, turned.indices)
    if not same or not np.allclose(matrix.data, turned.data, rtol=SAME, atol=0.0):
        raise InvalidArgument(
            "the adjacency is not symmetric; give w_ij = w_ji, for example weights + weights.T"
        )


def _batches(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut the variables into batches of about HELD factors."""
    cuts = np.searchsorted(starts, np.arange(HELD, starts[-1], HELD))
    ends = np.unique(np.concatenate([[0], cuts, [len(starts) - 1]]))
    return [(int(first), int(last)) for first, last in pairwise(ends)]


def _bounds(potential: Any, weights: Floats) -> tuple[Floats, Floats]:
    """Bound each factor; where nothing is known, say how large it is compared with the others."""
    if not hasattr(potential, "bounds"):
        return -0.5 * np.abs(weights), 0.5 * np.abs(weights)
    low, high = (np.asarray(side, np.float64) for side in potential.bounds(weights))
    if low.shape != weights.shape or high.shape != weights.shape:
        raise ShapeMismatch("the potential's bounds must be two arrays with an entry for each weight")
    if not ((low <= high) & (high < np.inf)).all():
        raise InvalidArgument("the potential's bounds must have low <= high < inf for every weight")
    return low, high


@kernel
def _arrange(
    first: int,
    last: int,
    neighbours: NDArray[np.int32],
    weights: Floats,
    low: Floats,
    high: Floats,
    known: bool,
    layout: Layout,
) -> None:
    """Lay out the variables from `first` to before `last`."""
    base = layout.starts[first]
    for i in range(first, last):
        start, stop = layout.starts[i], layout.starts[i + 1]
        spans = high[start - base : stop - base] - low[start - base : stop - base]
        order = np.argsort(-spans)
        for k in range(stop - start):
            layout.neighbours[start + k] = neighbours[start - base + order[k]]
            layout.weights[start + k] = weights[start - base + order[k]]
        head = best_head(spans, order, layout.reach[i])
        layout.heads[i] = head
        for side in range(2):
            bottom, top = np.inf, -np.inf
            for k in range(side * head, stop - start):
                bottom = min(bottom, low[start - base + order[k]])
                top = max(top, high[start - base + order[k]])
            layout.low[side, i] = bottom if known else -np.inf
            layout.high[side, i] = top if known else LARGEST_REWARD
        if not known:
            layout.reach[i] = np.inf


@part
def best_head(spans: Floats, order: NDArray[np.int64], reach: Floats) -> int:
    """Choose how many rows to read in order, and note the reach beyond each look at them."""
    size = len(spans)
    head, next_look, next_reach, expected = size, size, 0.0, 0.0
    total, squares, level = 0.0, 0.0, len(reach) - 1
    for k in range(size, -1, -1):
        if k < size:
            total += spans[order[k]]
            squares += spans[order[k]] ** 2
        while level >= 0 and k == min(look_at(level), size):
            reach[level] = total * (1.0 + ROUNDING)
            level -= 1
        if k < size and (k == 0 or is_look(k)):
            raced = FEWEST + RACE * (size - k) * (squares + spans[order[k]])
            undecided = min(1.0, next_reach) / min(1.0, total) if total > 0.0 else 0.0
            expected = next_look - k + undecided * expected
            if raced < expected:
                head, expected = k, raced
            next_look, next_reach = k, total
    return head


@part
def is_look(k: int) -> bool:
    """Whether the head is looked at after `k` rows."""
    return k % FIRST == 0 and (k // FIRST) & (k // FIRST - 1) == 0


@part
def look_at(level: int) -> int:
    """Give the row of the head at which it is looked at: 0, FIRST, 2·FIRST, 4·FIRST..."""
    return 0 if level == 0 else FIRST << (level - 1)
