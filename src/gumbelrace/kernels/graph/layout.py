"""How a graph lies in memory: each variable's neighbours, the heaviest first.

They are sorted by span, the largest amount by which their factor can change the difference of two labels.
Of what lies beyond k = 0, 8, 16, 32... of them a summary is kept: `heads` chooses by it how many are read.
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

# Neighbours before the first look at what lies beyond them; each look doubles them.
FIRST = 8
# Factors whose bounds are held at a time.
HELD = 2**22
# Weights of a pair that differ by less than this share are equal but for rounding, and so is a reach.
SAME, ROUNDING = 1e-9, 1e-12


class Layout(NamedTuple):
    """The neighbours of all variables: those of variable i lie from starts[i] to before starts[i + 1]."""

    starts: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    weights: Floats
    known: bool  # whether factors have bounds; else spans only compare them
    reach: Floats  # [i, c]: sum of the spans beyond the c-th look
    squares: Floats  # sum of their squares
    widest: Floats  # the largest of them
    low: Floats  # bounds of these factors
    high: Floats

    @property
    def variables(self) -> int:
        """How many there are."""
        return len(self.starts) - 1


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
        hasattr(potential, "bounds"),
        *(np.empty((n, levels)) for _ in range(5)),
    )
    for first, last in _batches(layout.starts):
        edges = slice(layout.starts[first], layout.starts[last])
        low, high = _bounds(potential, matrix.data[edges])
        indices = matrix.indices[edges].astype(np.int32, copy=False)
        _arrange(first, last, indices, matrix.data[edges], low, high, layout)
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
        summarise(layout, i, order, low[start - base : stop - base], high[start - base : stop - base])


@part
def summarise(layout: Layout, i: int, order: NDArray[np.int64], low: Floats, high: Floats) -> None:
    """Note what lies beyond each look at the neighbours of a variable."""
    size, level, span, total, squares = len(order), layout.reach.shape[1] - 1, 0.0, 0.0, 0.0
    bottom, top = np.inf, -np.inf
    for k in range(size, -1, -1):
        if k < size:
            span = high[order[k]] - low[order[k]]
            total, squares = total + span, squares + span * span
            bottom, top = min(bottom, low[order[k]]), max(top, high[order[k]])
        while level >= 0 and k == min(look_at(level), size):
            layout.reach[i, level], layout.squares[i, level] = total * (1.0 + ROUNDING), squares
            layout.widest[i, level] = span
            layout.low[i, level] = bottom if layout.known else -np.inf
            layout.high[i, level] = top if layout.known else LARGEST_REWARD
            level -= 1


@part
def look_at(level: int) -> int:
    """Give the neighbour before which a look is: 0, FIRST, 2·FIRST, 4·FIRST..."""
    return 0 if level == 0 else FIRST << (level - 1)
