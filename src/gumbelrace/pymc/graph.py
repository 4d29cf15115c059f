"""The log factors of a PyMC model as a graph of those rows that are asked for.

PyMC gives the log factors of all rows as one vector. Whatever in its graph has the rows along an axis, data
or observed values, is an input here, of which only the rows asked for are read. Lengths that PyMC has fixed
to the number of rows are those of the rows asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, optional
from gumbelrace.laplace.model import Floats
from gumbelrace.pymc.special import is_trigamma, trigamma

# An observed variable with fewer rows than a step reads at least is a part of the prior: read in full.
FEWEST_ROWS = 32
PICKED = (
    "rows are picked from others within the model, as by mu[mask]; pick them from the data, as by "
    "x[mask], or use pm.sample"
)


class Leaf(NamedTuple):
    """An array with the rows along an axis, as PyMC's graph has it, and as an input with the rows first."""

    variable: Any
    axis: int
    input: Any
    array: NDArray[Any]

    @property
    def name(self) -> str:
        """What a user knows it by."""
        return self.variable.name or f"an array of shape {np.moveaxis(self.array, 0, self.axis).shape}"

    def at(self, rows: Any) -> Any:
        """Give some rows of it, where they were."""
        move = optional("pytensor.tensor", "pymc").moveaxis
        return move(self.input[rows], 0, self.axis)


class RowGraph(NamedTuple):
    """The posterior of a PyMC model, as graphs.

    Attributes
    ----------
    values : list
        PyMC's variables of the parameters, transformed to have no constraints.
    shapes : list of tuple
        Their shapes.
    prior : variable
        All terms of the log posterior without rows.
    terms : variable
        Log factors of the rows asked for.
    rows : variable
        The numbers of these rows.
    leaves : list of Leaf
        The data.
    size : int
        Number of rows, N.
    """

    values: list[Any]
    shapes: list[tuple[int, ...]]
    prior: Any
    terms: Any
    rows: Any
    leaves: list[Leaf]
    size: int

    @property
    def names(self) -> list[str]:
        """The name of each coordinate of the parameter vector."""
        return [
            value.name + (f"[{', '.join(map(str, place))}]" if place else "")
            for value, shape in zip(self.values, self.shapes, strict=True)
            for place in product(*map(range, shape))
        ]

    def pieces(self, vector: Any) -> dict[Any, Any]:
        """Cut vectors, of shape (..., d), into what stands for each variable."""
        pieces, first = {}, 0
        for value, shape in zip(self.values, self.shapes, strict=True):
            last = first + int(np.prod(shape))
            piece = vector[..., first:last].reshape((*list(vector.shape)[:-1], *shape))
            pieces[value] = piece.astype(value.type.dtype)  # discrete ones are integers
            first = last
        return pieces

    @property
    def dimension(self) -> int:
        """Number of parameters, d."""
        return sum(int(np.prod(shape)) for shape in self.shapes)


class Term(NamedTuple):
    """Log factors of one observed variable, or a potential, and how many rows they have; 0: it has none."""

    name: str
    variable: Any
    graph: Any
    length: int


def graph_of(model: Any) -> RowGraph:
    """Take a PyMC model apart into rows and the rest."""
    terms, start = terms_of(model), model.initial_point()
    values = list(model.continuous_value_vars)
    long = read_by_rows(terms, {value: np.shape(start[value.name]) for value in model.value_vars})
    of_prior = [*model.free_RVs, *(term.variable for term in terms if term not in long)]
    prior = model.logp(vars=of_prior)
    (prior,) = rebuilt([prior], frozen([prior]))
    rows = optional("pytensor.tensor", "pymc").lvector("rows")
    leaves = leaves_of(long)
    graphs, first = list[tuple[Any, int]](), 0
    lengths = sorted({term.length for term in long}, reverse=True)
    for length in lengths:
        together = [term for term in long if term.length == length]
        before = first if len(lengths) > 1 else None
        graphs.append((of_rows(together, leaves, rows, before), first))
        first += length
    shapes = [np.shape(start[value.name]) for value in values]
    try:
        of_each = chosen(graphs, rows)
    except ValueError as error:  # lengths that stay as they are, whichever rows are asked for
        raise InvalidArgument(f"{', '.join(term.name for term in long)}: {PICKED}") from error
    return RowGraph(values, shapes, prior, of_each, rows, leaves, first)


def terms_of(model: Any) -> list[Term]:
    """List observed variables and potentials."""
    observed = optional("pymc.backends.arviz", "pymc").find_observations(model)
    variables = [*model.observed_RVs, *model.potentials]
    if not variables:
        return []
    graphs = model.logp(vars=variables, sum=False)
    terms = []
    for variable, graph in zip(variables, graphs, strict=True):
        length = 0
        if graph.type.ndim > 0:
            data = observed.get(variable.name)
            length = length_of(graph, model) if data is None else len(data)
        terms.append(Term(variable.name, variable, graph, length))
    return terms


def read_by_rows(terms: Sequence[Term], shapes: Mapping[Any, tuple[int, ...]]) -> list[Term]:
    """Give the terms that are read row by row; what the others say belongs to the prior, read in full.

    Those are short, or have a parameter for each of their rows, as one value observed of each group has.
    """
    long = [term for term in terms if term.length >= FEWEST_ROWS]
    if not long:
        raise InvalidArgument(no_rows(terms))
    latent = {term.name: parameters_of_rows(term, shapes) for term in long}
    if all(latent.values()):
        name, count = latent[long[0].name][0], long[0].length
        raise InvalidArgument(
            f"{name} has an entry for each of {count:,} rows; integrate it out (by a Student-t or negative "
            "binomial likelihood, for example), or use pm.sample"
        )
    return [term for term in long if not latent[term.name]]


def parameters_of_rows(term: Term, shapes: Mapping[Any, tuple[int, ...]]) -> list[str]:
    """Name the parameters, which a term depends on, with as many entries as it has rows."""
    inputs = set(optional("pytensor.graph.traversal", "pymc").graph_inputs([term.graph]))
    return [value.name for value, shape in shapes.items() if term.length in shape and value in inputs]


def length_of(graph: Any, model: Any) -> int:
    """Give the number of rows of a term, which PyMC may not know beforehand."""
    if graph.type.shape[0] is not None:
        return int(graph.type.shape[0])
    pytensor = optional("pytensor", "pymc")
    values = model.value_vars
    counted = pytensor.function(values, graph.shape[0], mode="FAST_COMPILE", on_unused_input="ignore")
    start = model.initial_point()
    return int(counted(*(start[value.name] for value in values)))


def no_rows(terms: Sequence[Term]) -> str:
    if not terms:
        return "the model has no observed variables: there are no rows to draw from; use pm.sample"
    names = ", ".join(term.name for term in terms)
    return (
        f"{names}: no observed variable has {FEWEST_ROWS} rows or more. One log probability for all rows "
        "(a Gaussian process, a time series, a matrix over rows) or few rows: use pm.sample"
    )


def leaves_of(terms: Iterable[Term]) -> list[Leaf]:
    """Find what has the rows along an axis, in the terms of each number of rows."""
    found: dict[Any, Leaf] = {}
    for term in terms:
        for variable in optional("pytensor.graph.traversal", "pymc").graph_inputs([term.graph]):
            array = array_of(variable)
            if array is not None and term.length in array.shape and variable not in found:
                axis = array.shape.index(term.length)
                found[variable] = leaf_of(variable, array, axis)
    return list(found.values())


def leaf_of(variable: Any, array: NDArray[Any], axis: int) -> Leaf:
    moved = np.ascontiguousarray(np.moveaxis(array, axis, 0))
    shape = (None, *moved.shape[1:])
    given = optional("pytensor.tensor", "pymc").tensor(dtype=str(moved.dtype), shape=shape)
    return Leaf(variable, axis, given, moved)


def array_of(variable: Any) -> NDArray[Any] | None:
    """Give what an input of a graph holds, if it is an array."""
    data = (
        variable.get_value(borrow=True)
        if hasattr(variable, "get_value")
        else getattr(variable, "data", None)
    )
    return data if isinstance(data, np.ndarray) and data.ndim > 0 else None


def frozen(graphs: Sequence[Any]) -> dict[Any, Any]:
    """Give constants for data that users may change later: they are as they are now."""
    constant = optional("pytensor.tensor", "pymc").constant
    inputs = optional("pytensor.graph.traversal", "pymc").graph_inputs(graphs)
    return {
        variable: constant(variable.get_value(), dtype=variable.type.dtype)
        for variable in inputs
        if hasattr(variable, "get_value") and hasattr(variable.type, "dtype")
    }


def of_rows(terms: Sequence[Term], leaves: Sequence[Leaf], rows: Any, first: int | None) -> Any:
    """Give the sum of terms of one length, of some rows.

    `first` is the number of their first row, where terms of other lengths have rows as well.
    """
    size, graphs = terms[0].length, [term.graph for term in terms]
    within = rows if first is None else (rows - first).clip(0, size - 1)
    picked = {leaf.variable: leaf.at(within) for leaf in leaves if len(leaf.array) == size}
    summed = 0.0
    for graph in rebuilt(graphs, {**frozen(graphs), **picked}, (size, rows.shape[0])):
        summed = summed + (
            graph if graph.type.ndim == 1 else graph.sum(axis=tuple(range(1, graph.type.ndim)))
        )
    return summed


def chosen(graphs: Sequence[tuple[Any, int]], rows: Any) -> Any:
    """Give the graph that a row belongs to, where there are several, each beginning with a row."""
    switch = optional("pytensor.tensor", "pymc").switch
    terms, _ = graphs[0]
    for graph, first in graphs[1:]:
        terms = switch(rows < first, terms, graph)
    return terms


def rebuilt(
    graphs: Sequence[Any], replacements: Mapping[Any, Any], length: tuple[int, Any] | None = None
) -> list[Any]:
    """Build graphs anew with other inputs; `length` is a fixed number of rows, and what replaces it."""
    made, traversal = dict(replacements), optional("pytensor.graph.traversal", "pymc")
    for node in traversal.toposort(graphs, blockers=list(replacements)):
        inputs = [made.get(given, given) for given in node.inputs]
        if length is not None:
            inputs = with_length(node, inputs, *length)
        if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            made.update(zip(node.outputs, applied(node, inputs, length), strict=True))
    return [made.get(graph, graph) for graph in graphs]


def applied(node: Any, inputs: list[Any], length: tuple[int, Any] | None) -> list[Any]:
    """Apply what a node does to other inputs; if it has a graph within, of fixed lengths, by that."""
    if isinstance(node.op, optional("pytensor.compile.builders", "pymc").OpFromGraph):
        within = node.op.fgraph
        within = within.unfreeze() if hasattr(within, "unfreeze") else within
        return rebuilt(within.outputs, dict(zip(within.inputs, inputs, strict=True)), length)
    if is_trigamma(node):
        return [trigamma(inputs[0])]
    outputs: list[Any] = node.op.make_node(*inputs).outputs
    return outputs


def with_length(node: Any, inputs: list[Any], fixed: int, length: Any) -> list[Any]:
    """Put another length where a node gives something as many entries as there are rows."""
    basic, shape = optional("pytensor.tensor.basic", "pymc"), optional("pytensor.tensor.shape", "pymc")
    if isinstance(node.op, basic.Alloc | shape.SpecifyShape):
        return [inputs[0], *(length if is_number(side, fixed) else side for side in inputs[1:])]
    if isinstance(node.op, shape.Reshape) and fixed in np.atleast_1d(getattr(inputs[1], "data", 0)):
        sides = [length if side == fixed else int(side) for side in inputs[1].data]
        return [inputs[0], basic.stack(sides)]
    return inputs


def is_number(variable: Any, number: int) -> bool:
    """Whether a variable is constant, and this number."""
    basic = optional("pytensor.tensor.basic", "pymc")
    value = basic.get_scalar_constant_value(variable, raise_not_constant=False)
    return isinstance(value, np.ndarray | np.integer | int) and int(value) == number


def start_of(model: Any, initvals: Mapping[str, Any] | None = None) -> Floats:
    """Give PyMC's initial point as a vector; `initvals` are values to start from instead, as PyMC's are."""
    start = initial_point(model, initvals)
    pieces = [np.ravel(start[value.name]) for value in model.continuous_value_vars]
    return np.concatenate(pieces).astype(np.float64)


def initial_point(model: Any, initvals: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Give PyMC's initial point, with some values instead of its own."""
    make = optional("pymc.initial_point", "pymc").make_initial_point_fn
    if not isinstance(initvals, Mapping | None):
        raise InvalidArgument(
            f"initvals is {initvals!r}; give one mapping from names to values, for all chains"
        )
    unknown = set(initvals or ()) - {*model.named_vars, *(value.name for value in model.value_vars)}
    if unknown:
        raise InvalidArgument(
            f"initvals has {', '.join(sorted(unknown))}; the model has {', '.join(model.named_vars)}"
        )
    point: dict[str, Any] = make(model=model, overrides=dict(initvals or {}), return_transformed=True)(None)
    return point
