"""Functions that PyTensor makes of a posterior; few by numba, since each takes seconds to compile."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from gumbelrace.core.jit import call
from gumbelrace.errors import optional
from gumbelrace.pymc.graph import RowGraph, rebuilt

# Parameters that a density does not allow have a log density of -inf, as in PyMC's own functions.
CHECKED = "local_check_parameter_to_ninf_switch"
# Rows that are summed in one call: few enough for a processor's cache, and directions at once.
ROWS_AT_ONCE, DIRECTIONS_AT_ONCE = 1024, 16
# A density may have only the shape of a parameter, as a flat prior does: then it has no slope along it.
MAY_BE_FLAT = {"disconnected_inputs": "ignore", "return_disconnected": "zero"}


# at(point, dimension, found) -> 0
POINT = types.int64(types.CPointer(types.float64), types.int64, types.CPointer(types.float64))


class Functions(NamedTuple):
    """What compiled code calls.

    Attributes
    ----------
    residuals : numba function
        As `BatchedLikelihood` takes it.
    steepened : numba function
        The same of data that begin with a number for each row, by which the slope of its expansion is
        multiplied.
    sums : callable
        ``sums(rows, theta, directions, data)``: log factors summed over rows, their gradient, and the
        Hessian times each direction, of shape (directions, d). ``sums(..., factors)``: each row counts as
        many times.
    touched : callable
        ``touched(rows, theta, data)``: which parameters each row depends on, row by row, as where those of
        each begin, and the parameters.
    log_prior : numba function
        ``log_prior(theta)``.
    prior : callable
        ``prior(theta, directions)``: what `sums` gives, of the log prior; by NumPy.
    """

    residuals: Any
    steepened: Any
    sums: Any
    touched: Any
    log_prior: Any
    prior: Any


def functions_of(graph: RowGraph) -> Functions:
    """Compile what a posterior needs."""
    return Functions(*functions_of_rows(graph), log_prior_of(graph), prior_of(graph))


def functions_of_rows(graph: RowGraph) -> tuple[Any, Any, Any, Any]:
    """Compile what is read of rows: residuals of both kinds, sums, and what each row depends on."""
    factors = factors_of_rows()
    theta, directions, *outputs = derivatives_of(graph, (factors * graph.terms).sum())
    given = compiled([graph.rows, theta, directions, factors, *inputs(graph)], *outputs)
    return *residuals_of(graph), by_chunks(given), row_by_row(given)


def residuals_of(graph: RowGraph) -> tuple[Any, Any]:
    """Compile what expansions leave of rows; second, of expansions that are steeper."""
    centre, step = vectors(graph, "centre", "step")
    factors = factors_of_rows()
    values = used(graph, graph.terms)
    directions = {value: value.type() for value in values}
    slope = along(graph.terms, values, directions)
    curvature = along(slope, values, directions)
    here, aside = graph.pieces(centre), graph.pieces(step)
    at_centre = {**here, **{directions[value]: aside[value] for value in values}}
    expansion = rebuilt([graph.terms + factors * slope + 0.5 * curvature], at_centre)[0]
    there = rebuilt([graph.terms], graph.pieces(centre + step))[0]
    given = compiled([graph.rows, centre, step, factors, *inputs(graph)], there - expansion)

    @numba.njit
    def residuals(rows, arm, centre, steps, *data):  # type: ignore[no-untyped-def]
        return given(rows, centre, steps[arm], np.ones(len(rows)), *data)[0]

    @numba.njit
    def steepened(rows, arm, centre, steps, factors, *data):  # type: ignore[no-untyped-def]
        return given(rows, centre, steps[arm], factors[rows], *data)[0]

    return residuals, steepened


def factors_of_rows() -> Any:
    """Make a variable that stands for a number of each row."""
    return optional("pytensor.tensor", "pymc").dvector("factors")


def derivatives_of(graph: RowGraph, total: Any) -> list[Any]:
    """Give variables for a point and for directions, and of a sum: value, gradient, Hessian products."""
    pt = optional("pytensor.tensor", "pymc")
    (theta,) = vectors(graph, "theta")
    many = pt.tensor("directions", dtype="float64", shape=(None, graph.dimension))
    values = used(graph, total)
    directions = {value: value.type() for value in values}
    grad = optional("pytensor.gradient", "pymc").grad
    slopes = grad(total, values, **MAY_BE_FLAT)
    along_all = inner(slopes, [directions[value] for value in values])
    # With something of the direction in each, which may have no curvature: all have an axis of directions.
    curved = [
        curvature + 0.0 * directions[value]
        for value, curvature in zip(values, grad(along_all, values, **MAY_BE_FLAT), strict=True)
    ]
    ways, spread = graph.pieces(many), optional("pytensor.graph.replace", "pymc").vectorize_graph
    products = spread(curved, {directions[value]: ways[value] for value in values})
    gradient = joined(graph, dict(zip(values, slopes, strict=True)), ())
    hessian = joined(graph, dict(zip(values, products, strict=True)), (many.shape[0],))
    return [theta, many, *rebuilt([total, gradient, hessian], graph.pieces(theta))]


def by_chunks(given: Any) -> Any:
    """Give sums over all rows and directions, of what is computed for some of them at once.

    The loop is Python's: numba would compile all that `given` calls once more.
    """
    given.targetoptions["nogil"] = True  # other threads sum other rows meanwhile

    def sums(rows, theta, directions, data, factors=None):  # type: ignore[no-untyped-def]
        value, gradient, products = 0.0, np.zeros_like(theta), np.zeros_like(directions)
        for first in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[first : first + ROWS_AT_ONCE]
            times = np.ones(len(some)) if factors is None else factors[some]
            for k in range(0, len(directions), DIRECTIONS_AT_ONCE):
                ways = slice(k, k + DIRECTIONS_AT_ONCE)
                total, slopes, curved = given(some, theta, directions[ways], times, *data)
                products[ways] += curved
            value += float(total)
            gradient += slopes
        return value, gradient, products

    return sums


def row_by_row(given: Any) -> Any:
    """Give the search for the parameters that rows depend on: along which they have a slope."""

    def touched(rows, theta, data):  # type: ignore[no-untyped-def]
        nowhere, once = np.zeros((1, len(theta))), np.ones(1)
        slopes = (given(rows[k : k + 1], theta, nowhere, once, *data)[1] for k in range(len(rows)))
        found = [np.flatnonzero(slope) for slope in slopes]
        return np.cumsum([0, *map(len, found)]), np.concatenate(found)

    return touched


def prior_of(graph: RowGraph) -> Any:
    """Give a function of the log prior's derivatives; NaN where PyMC refuses the parameters."""
    theta, directions, *outputs = derivatives_of(graph, graph.prior)
    given = python_function([theta, directions], outputs)

    def prior(theta, directions):  # type: ignore[no-untyped-def]
        try:
            value, gradient, products = given(theta, directions)
        except ValueError:
            return np.nan, np.full_like(theta, np.nan), np.full_like(directions, np.nan)
        return float(value), gradient, products

    return prior


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


def used(graph: RowGraph, output: Any) -> list[Any]:
    """Give the parameters that a part of the graph depends on."""
    found = set(optional("pytensor.graph.traversal", "pymc").ancestors([output]))
    return [value for value in graph.values if value in found]


def along(graph: Any, values: Sequence[Any], directions: dict[Any, Any]) -> Any:
    """Differentiate along a direction: J d, as the gradient by v of ⟨Jᵀv, d⟩, whatever v is.

    PyTensor's own `Rop` loses what a sum such as ``a + b`` owes to one of the two, since both have the same
    entry of Jᵀv.
    """
    grad, cotangent = optional("pytensor.gradient", "pymc").grad, graph.zeros_like()
    back = grad(None, list(values), known_grads={graph: cotangent}, **MAY_BE_FLAT)
    product = inner(back, [directions[value] for value in values])
    return grad(product, cotangent, **MAY_BE_FLAT)


def inner(one: Sequence[Any], other: Sequence[Any]) -> Any:
    """Give the inner product of two vectors that are in pieces."""
    pt = optional("pytensor.tensor", "pymc")
    return sum((pt.sum(a * b) for a, b in zip(one, other, strict=True)), start=pt.zeros(()))


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
    mode = optional("pytensor.compile.mode", "pymc").get_mode("NUMBA").including(CHECKED)
    make = optional("pytensor", "pymc").function
    with warnings.catch_warnings():
        # What has no numba version is called by Python: slower, and nothing a user could change.
        warnings.filterwarnings("ignore", "Numba will use object mode")
        # Nor does numba use the library that PyTensor looks for.
        warnings.filterwarnings("ignore", "PyTensor could not link to a BLAS")
        function = make(list(given), list(outputs), mode=mode, on_unused_input="ignore")
    return function.vm.jit_fn


def python_function(given: list[Any], outputs: Any) -> Any:
    """Make a function of graphs that NumPy computes, and that needs no compiler."""
    mode = optional("pytensor.compile.mode", "pymc").Mode(linker="py", optimizer=None)
    return optional("pytensor", "pymc").function(given, outputs, mode=mode, on_unused_input="ignore")
