"""What a PyMC model must be like, checked before it is trusted: each message says what to do."""

from typing import Any

import numpy as np

from gumbelrace.errors import InvalidArgument, optional
from gumbelrace.laplace.model import Floats
from gumbelrace.pymc.functions import inputs, python_function, vectors
from gumbelrace.pymc.graph import Leaf, RowGraph, rebuilt

# Rows that are computed together and apart, at how many points, how far from the start, and how equal the
# results are.
ROWS, POINTS, SPREAD, EQUAL = 24, 2, 0.1, 1e-9
NOT_BY_ROWS = (
    "log factors that depend on other rows cannot be read row by row; compute such columns before the "
    "model, or use pm.sample"
)


def check_model(model: Any) -> None:
    """Refuse what is not meant for this."""
    if optional("pytensor", "pymc").config.floatX != "float64":
        raise InvalidArgument("pytensor.config.floatX is not float64; single precision does not suffice")
    check_complete(model)
    if model.discrete_value_vars:
        names = ", ".join(value.name for value in model.discrete_value_vars)
        raise InvalidArgument(f"{names}: discrete parameters; sum them out, or use pm.sample")
    if not model.continuous_value_vars:
        raise InvalidArgument("the model has no parameters; there is nothing to draw")


def check_complete(model: Any) -> None:
    """Refuse data with gaps, for which PyMC makes parameters."""
    free = {variable.name for variable in model.free_RVs}
    for variable in model.observed_RVs:
        name = variable.name.removesuffix("_observed")
        if f"{name}_unobserved" in free:
            raise InvalidArgument(
                f"{name} has missing values, which PyMC draws as parameters; leave those rows out, or use "
                "pm.sample"
            )


def check_latent(graph: RowGraph) -> None:
    """Refuse parameters that every row has one of."""
    lengths = {len(leaf.array) for leaf in graph.leaves}
    for value, shape in zip(graph.values, graph.shapes, strict=True):
        if own := lengths.intersection(shape):
            raise InvalidArgument(
                f"{value.name} has an entry for each of {max(own)} rows; integrate it out (by a "
                "Student-t or negative binomial likelihood, for example), or use pm.sample"
            )


def check_by_rows(graph: RowGraph, start: Floats) -> None:
    """Refuse log factors that change with the rows that are computed beside them."""
    rng = np.random.default_rng(0)
    both = rng.choice(graph.size, min(ROWS, graph.size), replace=False)
    places = rng.permutation(len(both))[: len(both) // 2]
    half, data = both[places], [leaf.array for leaf in graph.leaves]
    try:
        terms = interpreted(graph)
        points = [start + SPREAD * rng.standard_normal(len(start)) for _ in range(POINTS)]
        found = [(terms(both, point, *data), terms(half, point, *data)) for point in points]
        by_rows = all(
            apart.shape == half.shape and alike(together[places], apart) for together, apart in found
        )
    except (ValueError, TypeError, IndexError, AssertionError) as error:
        raise InvalidArgument(f"{guilty(graph.leaves)}: {NOT_BY_ROWS}") from error
    if not by_rows:
        mixed = [leaf for leaf in graph.leaves if mixes(terms, graph, leaf, points[0], both)]
        raise InvalidArgument(f"{guilty(mixed or graph.leaves)}: {NOT_BY_ROWS}")


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
    return ", ".join(leaf.name for leaf in leaves)
