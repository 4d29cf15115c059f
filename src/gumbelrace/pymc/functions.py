"""Numba functions that PyTensor makes of a posterior: three, since each takes seconds to compile."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from gumbelrace.core.jit import call
from gumbelrace.errors import optional
from gumbelrace.pymc.graph import RowGraph, rebuilt

# PyMC's checks of parameters are left out: what is impossible is NaN, and said so where it is read.
UNCHECKED = "local_remove_check_parameter"
# Rows that are summed in one call: few enough for a processor's cache, and directions at once.
ROWS_AT_ONCE, DIRECTIONS_AT_ONCE = 1024, 16


# at(point, dimension, found) -> 0
POINT = types.int64(types.CPointer(types.float64), types.int64, types.CPointer(types.float64))


class Functions(NamedTuple):
    """What compiled code calls.

    Attributes
    ----------
    residuals : numba function
        As `BatchedLikelihood` takes it.
    sums : numba function
        ``sums(rows, theta, directions, data)``: log factors summed over rows, their gradient, and the
        Hessian times each direction, of shape (directions, d).
    log_prior : numba function
        ``log_prior(theta)``.
    """

    residuals: Any
    sums: Any
    log_prior: Any


def functions_of(graph: RowGraph) -> Functions:
    """Compile what a posterior needs."""
    return Functions(residuals_of(graph), sums_of(graph), log_prior_of(graph))


def residuals_of(graph: RowGraph) -> Any:
    centre, step = vectors(graph, "centre", "step")
    values = used(graph)
    directions = {value: value.type() for value in values}
    slope = along(graph.terms, values, directions)
    curvature = along(slope, values, directions)
    here, aside = graph.pieces(centre), graph.pieces(step)
    at_centre = {**here, **{directions[value]: aside[value] for value in values}}
    expansion = rebuilt([graph.terms + slope + 0.5 * curvature], at_centre)[0]
    there = rebuilt([graph.terms], graph.pieces(centre + step))[0]
    given = compiled([graph.rows, centre, step, *inputs(graph)], there - expansion)

    @numba.njit
    def residuals(rows, arm, centre, steps, *data):  # type: ignore[no-untyped-def]
        return given(rows, centre, steps[arm], *data)[0]

    return residuals


def sums_of(graph: RowGraph) -> Any:
    pt = optional("pytensor.tensor", "pymc")
    (theta,) = vectors(graph, "theta")
    many = pt.tensor("directions", dtype="float64", shape=(None, graph.dimension))
    values, total = used(graph), graph.terms.sum()
    directions = {value: value.type() for value in values}
    slopes = optional("pytensor.gradient", "pymc").grad(total, values)
    # With something of the direction in each, which may have no curvature: all have an axis of directions.
    curved = [
        along(slope, values, directions) + 0.0 * directions[value]
        for value, slope in zip(values, slopes, strict=True)
    ]
    ways, spread = graph.pieces(many), optional("pytensor.graph.replace", "pymc").vectorize_graph
    products = spread(curved, {directions[value]: ways[value] for value in values})
    gradient = joined(graph, dict(zip(values, slopes, strict=True)), ())
    hessian = joined(graph, dict(zip(values, products, strict=True)), (many.shape[0],))
    outputs = rebuilt([total, gradient, hessian], graph.pieces(theta))
    return by_chunks(compiled([graph.rows, theta, many, *inputs(graph)], *outputs))


def by_chunks(given: Any) -> Any:
    """Compile sums over all rows and directions, of what is computed for some of them at once."""

    @numba.njit(nogil=True)
    def sums(rows, theta, directions, data):  # type: ignore[no-untyped-def]
        value, d = 0.0, len(theta)
        gradient, products = np.zeros(d), np.zeros((len(directions), d))
        for first in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[first : first + ROWS_AT_ONCE]
            for k in range(0, len(directions), DIRECTIONS_AT_ONCE):
                ways = directions[k : k + DIRECTIONS_AT_ONCE]
                total, slopes, curved = given(some, theta, ways, *data)
                # Entry by entry: numba compiles sums of arrays for many seconds.
                for i in range(d):
                    gradient[i] += slopes[i] if k == 0 else 0.0
                    for j in range(len(ways)):
                        products[k + j, i] += curved[j, i]
                value += total.item() if k == 0 else 0.0
        return value, gradient, products

    return sums


def log_prior_of(graph: RowGraph) -> Any:
    (theta,) = vectors(graph, "theta")
    given = compiled([theta], rebuilt([graph.prior], graph.pieces(theta))[0])

    @numba.cfunc(POINT)
    def at_address(point, dimension, found):  # type: ignore[no-untyped-def]
        found[0] = given(numba.carray(point, dimension))[0].item()
        return 0

    address = at_address.address

    @numba.njit
    def log_prior(theta):  # type: ignore[no-untyped-def]
        found = np.full(1, np.nan)
        call(address, (theta.ctypes.data, len(theta), found.ctypes.data))
        return found[0]

    log_prior.called = at_address  # to be kept as long as it may be called
    return log_prior


def vectors(graph: RowGraph, *names: str) -> list[Any]:
    """Make variables that stand for parameter vectors."""
    tensor = optional("pytensor.tensor", "pymc").tensor
    return [tensor(name, dtype="float64", shape=(graph.dimension,)) for name in names]


def inputs(graph: RowGraph) -> list[Any]:
    return [leaf.input for leaf in graph.leaves]


def used(graph: RowGraph) -> list[Any]:
    """Give the parameters that the log factors depend on."""
    found = set(optional("pytensor.graph.traversal", "pymc").ancestors([graph.terms]))
    return [value for value in graph.values if value in found]


def along(graph: Any, values: Sequence[Any], directions: dict[Any, Any]) -> Any:
    """Differentiate along a direction."""
    gradient = optional("pytensor.gradient", "pymc")
    derived = getattr(gradient, "pushforward", None) or gradient.Rop
    ways = [directions[value] for value in values]
    return derived(graph, list(values), ways, disconnected_outputs="ignore", return_disconnected="zero")


def joined(graph: RowGraph, parts: dict[Any, Any], batch: tuple[Any, ...]) -> Any:
    """Put derivatives by each variable, of shape (*batch, *shape), into vectors; others are zero."""
    pt = optional("pytensor.tensor", "pymc")
    vectors = []
    for value, shape in zip(graph.values, graph.shapes, strict=True):
        sides = (*batch, int(np.prod(shape)))
        vectors.append(parts[value].reshape(sides) if value in parts else pt.zeros(sides))
    return pt.concatenate(vectors, axis=-1)


def compiled(given: Sequence[Any], *outputs: Any) -> Any:
    """Have PyTensor make a numba function."""
    mode = optional("pytensor.compile.mode", "pymc").get_mode("NUMBA").including(UNCHECKED)
    make = optional("pytensor", "pymc").function
    with warnings.catch_warnings():
        # What has no numba version is called by Python: slower, and nothing a user could change.
        warnings.filterwarnings("ignore", "Numba will use object mode")
        # Nor does numba use the library that PyTensor looks for.
        warnings.filterwarnings("ignore", "PyTensor could not link to a BLAS")
        function = make(list(given), list(outputs), mode=mode, on_unused_input="ignore")
    return function.vm.jit_fn
