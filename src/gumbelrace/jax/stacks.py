"""Blocks of parameters as arrays of equal shape, over which compiled code can go in a loop.

Points are in the law's own coordinates: θ = mode + W z. There the sum of the expansion is g·z + ½ z'Mz, and
a block that changes z by Δ lets it grow by Δ·(g + M(z + Δ/2)): of M it needs its own rows only.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.kernels.bends import no_bends
from gumbelrace.kernels.block_sweep import ParameterBlock
from gumbelrace.laplace.blocks import Planned
from gumbelrace.laplace.model import Floats


class Coordinates(NamedTuple):
    """The law's coordinates: θ = mode + W z, and the expansion in z. W and M are sparse."""

    mode: Floats
    root: Any  # W
    gradient: Floats  # g
    hessian: Any  # M
    bends: Floats  # (d, 2)

    def points(self, z: Floats) -> Floats:
        """Give θ for points of shape (..., d)."""
        steps = (self.root @ z.reshape(-1, z.shape[-1]).T).T
        points: Floats = self.mode + steps.reshape(z.shape)
        return points

    def expansion(self, z: Floats) -> Floats:
        """Give by how much the sum of the expansion differs from that at the mode, of shape (points,)."""
        found: Floats = z @ self.gradient + 0.5 * np.sum(z * (self.hessian @ z.T).T, axis=1)
        return found


class Stack(NamedTuple):
    """Blocks side by side; a number that is none, for places that are filled up, is d."""

    coordinates: Any  # (blocks, k)
    parameters: Any  # (blocks, p): those that change
    matrix: Any  # (blocks, p, k): by how much, the part of W
    columns: Any  # (blocks, c): where the rows of M are not zero
    curvature: Any  # (blocks, k, c): those rows
    gradient: Any  # (blocks, k)
    correlation: Any  # (blocks,)
    bends: Any  # (blocks, k, 2): how heavy the tails of the coordinates' laws are
    begin: Any  # (blocks,): where its part of the table of rows begins
    size: Any  # (blocks,): and how many rows that has


def coordinates_of(planned: Planned) -> Coordinates:
    """Give the coordinates that blocks are drawn in."""
    law, d = planned.law, len(planned.law.centre)
    parts = [np.meshgrid(block.parameters, block.coordinates, indexing="ij") for block in planned.blocks]
    rows, columns = (np.concatenate([part[axis].ravel() for part in parts]) for axis in (0, 1))
    values = np.concatenate([block.matrix.ravel() for block in planned.blocks])
    root = scipy.sparse.csr_array((values, (rows, columns)), shape=(d, d))
    starts, of_hessian, entries = law.hessian
    hessian = scipy.sparse.csr_array((entries, of_hessian, starts), shape=(d, d))
    bends = no_bends(d)
    for block in planned.blocks:
        bends[block.coordinates] = block.bends
    curved = scipy.sparse.csr_array(root.T @ hessian @ root)
    return Coordinates(law.centre, root, root.T @ law.gradient, curved, bends)


def stacks_of(blocks: Sequence[ParameterBlock], sizes: Sequence[int], law: Coordinates) -> list[Stack]:
    """Stack blocks of so many rows: those with few parameters apart from others, where that saves much."""
    spans = zip(np.cumsum(sizes) - sizes, sizes, strict=True)
    parts = [part_of(block, law, *span) for block, span in zip(blocks, spans, strict=True)]
    cut = min(range(len(parts)), key=lambda n: volume(parts[:n]) + volume(parts[n:]))
    apart = volume(parts[:cut]) + volume(parts[cut:]) < 0.5 * volume(parts)
    return [stacked(some, len(law.mode)) for some in ((parts[:cut], parts[cut:]) if apart else (parts,))]


def part_of(block: ParameterBlock, law: Coordinates, begin: int, size: int) -> Stack:
    """Give what compiled code needs of one block, and of its rows."""
    curvature = law.hessian[block.coordinates].toarray()
    columns = np.flatnonzero(curvature.any(axis=0))
    return Stack(
        block.coordinates,
        block.parameters,
        block.matrix,
        columns,
        curvature[:, columns],
        law.gradient[block.coordinates],
        np.float64(block.correlation),
        block.bends,
        begin,
        size,
    )


def volume(parts: Sequence[Stack]) -> int:
    """How many numbers the matrices of blocks have once they are filled up."""
    sizes = [[len(part.coordinates), len(part.parameters) + len(part.columns)] for part in parts]
    return len(parts) * int(np.prod(np.max(sizes, axis=0))) if sizes else 0


def stacked(parts: Sequence[Stack], d: int) -> Stack:
    """Fill up the arrays of blocks to equal shapes: numbers by d, others by 0."""
    places = {"coordinates", "parameters", "columns"}
    fields = {name: [getattr(part, name) for part in parts] for name in Stack._fields}
    return Stack(**{name: filled_up(found, d if name in places else 0) for name, found in fields.items()})


def filled_up(arrays: Sequence[Any], value: int) -> Any:
    """Put arrays of different shapes into one."""
    shapes = [np.shape(array) for array in arrays]
    found = np.full((len(arrays), *map(max, zip(*shapes, strict=True))), value, np.asarray(arrays[0]).dtype)
    for n, (array, shape) in enumerate(zip(arrays, shapes, strict=True)):
        window: Any = (n, *map(slice, shape))
        found[window] = array
    return found
