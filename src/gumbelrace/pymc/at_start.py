"""Whether log densities can be computed where the search for a mode begins; if not, what hinders it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, optional
from gumbelrace.pymc.functions import python_function
from gumbelrace.pymc.graph import Term, array_of, initial_point, terms_of

# What PyTensor raises if shapes do not fit or an index has no place.
UNFIT = (ValueError, TypeError, IndexError, AssertionError, NotImplementedError)


def check_at_start(model: Any, initvals: Mapping[str, Any] | None = None) -> None:
    """Refuse data that do not fit each other, and rows that are impossible at the initial point."""
    check_whole(model)
    start = initial_point(model, initvals)
    try:
        terms = terms_of(model)
        given = python_function(model.value_vars, [term.graph for term in terms])
        found = given(*(start[value.name] for value in model.value_vars))
    except optional("pymc.logprob.utils", "pymc").ParameterValueError as error:
        raise InvalidArgument(not_allowed(error)) from error
    except UNFIT as error:
        raise InvalidArgument(
            f"PyMC cannot compute the model's log density: {first_line(error)}. Do its data fit each "
            f"other? {shapes_of(model)}"
        ) from error
    if not model.discrete_value_vars:  # what is impossible in one state may be possible in another
        for term, logs in zip(terms, found, strict=True):
            check_possible(term, logs)


def check_whole(model: Any) -> None:
    """Refuse minibatches, and data with gaps."""
    ancestors = optional("pytensor.graph.traversal", "pymc").ancestors
    for variable in [*model.observed_RVs, *model.potentials]:
        before = list(ancestors([variable, model.rvs_to_values.get(variable, variable)]))
        if any("Minibatch" in type(one.owner.op).__name__ for one in before if one.owner is not None):
            raise InvalidArgument(
                f"{variable.name} is a minibatch (pm.Minibatch or total_size); give all rows, and leave "
                "total_size out: a step reads a few of them anyway"
            )
        for one in before:
            if np.ma.is_masked(array_of(one)):
                raise InvalidArgument(f"{one.name} has missing values; leave those rows out")


def check_possible(term: Term, logs: NDArray[Any]) -> None:
    """Refuse rows that have no finite log density, and say what may be the reason."""
    wrong = np.argwhere(~np.isfinite(logs))
    if not len(wrong):
        return
    place = tuple(wrong[0].tolist())
    where = f" of row {place[0]} ({len(wrong):,} such rows)" if place else ""
    raise InvalidArgument(
        f"{term.name}: at the initial point the log density{where} is {np.asarray(logs)[place]}; "
        f"{reason(term)}"
    )


def reason(term: Term) -> str:
    """Say which data are no numbers, if any, or what else may be the matter."""
    inputs = optional("pytensor.graph.traversal", "pymc").graph_inputs([term.graph])
    arrays = [(variable.name, array_of(variable)) for variable in inputs]
    wrong = [
        name or f"an array of shape {array.shape}"
        for name, array in arrays
        if array is not None and array.dtype.kind == "f" and not np.isfinite(array).all()
    ]
    if wrong:
        return f"{', '.join(wrong)} has entries that are NaN or infinite: leave those rows out"
    return "mend a value that the likelihood does not allow, or give other initvals"


def not_allowed(error: Exception) -> str:
    """Say that a likelihood refuses its parameters."""
    return (
        f"near the initial point a likelihood has parameters that it does not allow ({first_line(error)}); "
        "give other initvals, and look for missing values in the data"
    )


def first_line(error: Exception) -> str:
    """Give what an error of PyTensor says before it describes the graph."""
    return str(error).strip().partition("\n")[0].rstrip(" .")


def shapes_of(model: Any) -> str:
    """List data and observed variables with their shapes."""
    observed = {one.name: model.rvs_to_values[one] for one in model.observed_RVs}
    arrays = {one.name: array_of(one) for one in model.data_vars}
    arrays.update({name: array_of(value) for name, value in observed.items()})
    return ", ".join(f"{name} has the shape {a.shape}" for name, a in arrays.items() if a is not None)
