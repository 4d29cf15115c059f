"""What a PyMC model must be like, checked before it is trusted: each message says what to do."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, optional
from gumbelrace.laplace.model import Floats
from gumbelrace.pymc.at_start import not_allowed
from gumbelrace.pymc.functions import inputs, python_function, vectors
from gumbelrace.pymc.graph import Leaf, RowGraph, rebuilt, terms_of

# All rows are computed together and in so many parts, at how many points, how far from the start, and how
# equal the results are.
PARTS, POINTS, SPREAD, EQUAL = 8, 2, 0.1, 1e-9
NOT_BY_ROWS = (
    "log factors that depend on other rows cannot be read row by row; compute such columns before the "
    "model, or use pm.sample"
)


def check_model(model: Any) -> None:
    """Refuse what is not meant for draws around a mode."""
    check_complete(model)
    if model.continuous_value_vars:
        return
    if model.discrete_value_vars:
        names = ", ".join(value.name for value in model.discrete_value_vars)
        raise InvalidArgument(
            f"{names}: all parameters are discrete; use pm.sample(step=gumbelrace.pymc.Gibbs([{names}]))"
        )
    raise InvalidArgument("the model has no parameters; there is nothing to draw")


def check_complete(model: Any) -> None:
    """Refuse single precision, and data with gaps, for which PyMC makes parameters."""
    if optional("pytensor", "pymc").config.floatX != "float64":
        raise InvalidArgument("pytensor.config.floatX is not float64; single precision does not suffice")
    free = {variable.name for variable in model.free_RVs}
    for variable in model.observed_RVs:
        name = variable.name.removesuffix("_observed")
        if f"{name}_unobserved" in free:
            raise InvalidArgument(
                f"{name} has missing values, which PyMC draws as parameters; leave those rows out, or use "
                "pm.sample"
            )


def check_by_rows(graph: RowGraph, *starts: Floats) -> None:
    """Refuse log factors that change, near some point, with the rows that are computed beside them."""
    rng, invalid = np.random.default_rng(0), optional("pymc.logprob.utils", "pymc").ParameterValueError
    every, spread = rng.permutation(graph.size), SPREAD * is_continuous(graph)
    points = [start + spread * rng.standard_normal(len(start)) for start in starts * POINTS]
    try:
        terms = interpreted(graph)
        by_rows = all(computed_alike(terms, graph, point, every) for point in points)
    except invalid as error:
        raise InvalidArgument(not_allowed(error)) from error
    except (ValueError, TypeError, IndexError, AssertionError) as error:
        raise InvalidArgument(f"{guilty(graph.leaves)}: {NOT_BY_ROWS}") from error
    if not by_rows:
        mixed = [
            leaf
            for leaf in graph.leaves
            if any(mixes(terms, graph, leaf, point, every) for point in points)
        ]
        raise InvalidArgument(f"{guilty(mixed or graph.leaves)}: {NOT_BY_ROWS}")


def computed_alike(terms: Any, graph: RowGraph, point: Floats, every: NDArray[np.int64]) -> bool:
    """Whether rows have the same log factors if all are computed as if only some are."""
    data = [leaf.array for leaf in graph.leaves]
    together = terms(np.arange(graph.size), point, *data)
    for some in np.array_split(every, min(PARTS, graph.size)):
        apart = terms(some, point, *data)
        if apart.shape != some.shape or not alike(together[some], apart):
            return False
    return True


def kinks(model: Any) -> list[str]:
    """Name the observed variables and potentials whose log densities have kinks, at an absolute value."""
    ancestors, found = optional("pytensor.graph.traversal", "pymc").ancestors, []
    for term in terms_of(model):
        nodes = {variable.owner for variable in ancestors([term.graph]) if variable.owner is not None}
        # An absolute value that is only compared with something is no part of the density.
        added = {given for node in nodes if is_real(node) for given in node.inputs}
        kinked = (node for node in nodes if is_absolute(node) and node.outputs[0] in added)
        density = density_of(term.variable)
        if "Laplace" in density or any(set(model.value_vars) & set(ancestors(n.inputs)) for n in kinked):
            found.append(f"{term.name} ({density})" if density else term.name)
    return found


def is_real(node: Any) -> bool:
    """Whether a node of a graph gives real numbers."""
    return str(getattr(node.outputs[0].type, "dtype", "")).startswith("float")


def density_of(variable: Any) -> str:
    """Give the name of an observed variable's distribution; "" of a potential."""
    known = getattr(getattr(variable.owner, "op", None), "_print_name", None) if variable.owner else None
    return str(known[0]) if known else ""


def is_absolute(node: Any) -> bool:
    """Whether a node of a graph is an absolute value."""
    basic = optional("pytensor.scalar.basic", "pymc")
    return isinstance(getattr(node.op, "scalar_op", None), basic.Abs)


def is_continuous(graph: RowGraph) -> NDArray[np.bool_]:
    """Say which entries of a parameter vector are real numbers."""
    real = [value.type.dtype.startswith("float") for value in graph.values]
    return np.repeat(real, [int(np.prod(shape)) for shape in graph.shapes])


def interpreted(graph: RowGraph) -> Any:
    """Give the log factors of rows as a function that needs no compiler."""
    (theta,) = vectors(graph, "theta")
    terms = rebuilt([graph.terms], graph.pieces(theta))[0]
    return python_function([graph.rows, theta, *inputs(graph)], terms)


def alike(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=EQUAL, atol=EQUAL, equal_nan=True))


def mixes(terms: Any, graph: RowGraph, leaf: Leaf, point: Floats, rows: Any) -> bool:
    """Whether the log factor of a row changes if other rows of this array do."""
    changed = leaf.array.copy()
    changed[rows[1:-1]] = leaf.array[rows[1]]
    data = [other.array for other in graph.leaves]
    instead = [changed if other is leaf else other.array for other in graph.leaves]
    ends = [0, -1]  # what cumulates does so from one of them
    return not alike(terms(rows, point, *data)[ends], terms(rows, point, *instead)[ends])


def guilty(leaves: list[Leaf]) -> str:
    return ", ".join(leaf.name for leaf in leaves) or "the model"
