"""Draws as PyMC gives them: natural values, deterministics, dimensions, statistics."""

import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.chain.trace import Trace
from gumbelrace.errors import InvalidArgument, NotConverged, optional
from gumbelrace.laplace.model import Floats
from gumbelrace.laplace.posterior import Posterior
from gumbelrace.pymc.functions import python_function
from gumbelrace.pymc.graph import RowGraph

# Draws for which deterministics are computed at once.
AT_ONCE = 4096


def natural_values(
    model: Any, graph: RowGraph, positions: Floats, var_names: Sequence[str] | None
) -> dict[str, NDArray[Any]]:
    """Give parameters without their transformations, and deterministics, of shape (chains, draws, ...).

    Deterministics with a value for each row are left out, unless they are named.
    """
    variables = wanted(model, var_names)
    points, shape = positions.reshape(-1, positions.shape[-1]), positions.shape[:2]
    if var_names is None:
        first, free = values_of(variables, graph)(points[:1]), {one.name for one in model.free_RVs}
        pairs = zip(variables, first, strict=True)
        variables = [v for v, values in pairs if v.name in free or not by_row(values[0], graph)]
    parts = np.array_split(points, -(-len(points) // AT_ONCE))
    columns = zip(*map(values_of(variables, graph), parts), strict=True)
    joined = [np.concatenate(column) for column in columns]
    return {
        variable.name: values.reshape(*shape, *values.shape[1:])
        for variable, values in zip(variables, joined, strict=True)
    }


def by_row(value: NDArray[Any], graph: RowGraph) -> bool:
    """Whether something has an entry for each row."""
    return not {len(leaf.array) for leaf in graph.leaves}.isdisjoint(value.shape)


def wanted(model: Any, var_names: Sequence[str] | None) -> list[Any]:
    """Give the variables to be kept: parameters and deterministics, or those named."""
    every = {variable.name: variable for variable in model.unobserved_value_vars}
    if var_names is None:
        names = optional("pymc.util", "pymc").get_default_varnames(
            model.unobserved_value_vars, include_transformed=False
        )
        return list(names)
    var_names = [var_names] if isinstance(var_names, str) else var_names
    unknown = [name for name in var_names if name not in every]
    if unknown:
        raise InvalidArgument(f"var_names has {', '.join(unknown)}; the model has {', '.join(every)}")
    return [every[name] for name in var_names]


def values_of(variables: list[Any], graph: RowGraph) -> Callable[[Floats], list[NDArray[Any]]]:
    """Give a function of points, of shape (points, d), that computes variables at each."""
    pt = optional("pytensor.tensor", "pymc")
    many = pt.tensor("many", dtype="float64", shape=(None, graph.dimension))
    outputs = optional("pytensor.graph.replace", "pymc").vectorize_graph(variables, graph.pieces(many))
    function = python_function([many], outputs)
    # What depends on no parameter has no axis of points.
    alone = [output.type.ndim == v.type.ndim for output, v in zip(outputs, variables, strict=True)]

    def values(points: Floats) -> list[NDArray[Any]]:
        found = zip(function(points), alone, strict=True)
        return [np.repeat(value[None], len(points), axis=0) if one else value for value, one in found]

    return values


def statistics(trace: Trace[Any]) -> dict[str, Any]:
    """Give what each draw took."""
    info = trace.info
    return {
        "evaluations": info.evaluations,
        "rewards": info.rewards,
        "looks": info.looks,
        "acceptance_rate": info.acceptance,
        "law_error": info.law_error,
    }


def attributes(fit: Posterior, trace: Trace[Any], seconds: float) -> dict[str, Any]:
    """Say what was promised, foreseen and found."""
    return {
        "inference_library": "gumbelrace",
        "inference_library_version": version("gumbelrace"),
        "pymc_version": version("pymc"),
        "pytensor_version": version("pytensor"),
        "sampling_time": seconds,
        "method": fit.kernel.method.name,
        "promise": str(fit.kernel.method.promise),
        "forecast": str(fit.forecast),
        "audit": str(trace.checked),
        "fraction_read": trace.fraction,
        "read": trace.kernel.remark,
    }


def as_pymc_gives_it(model: Any, posterior: dict[str, Any], stats: Any, attrs: dict[str, Any]) -> Any:
    """Give InferenceData or a DataTree, whichever the installed PyMC does."""
    of_pymc = optional("pymc.backends.arviz", "pymc")
    coords, dims = of_pymc.coords_and_dims_for_inferencedata(model)
    data = {
        "observed_data": of_pymc.find_observations(model),
        "constant_data": of_pymc.find_constants(model),
    }
    groups = {"posterior": posterior, "sample_stats": stats, **{k: v for k, v in data.items() if v}}
    shared = {"coords": coords, "dims": dims}
    if int(version("pymc").split(".")[0]) < 6:
        give = optional("arviz", "pymc").from_dict
        return give(**groups, **shared, attrs=attrs, posterior_attrs=attrs)
    return optional("arviz_base", "pymc").from_dict(
        groups, **shared, attrs={"/": attrs, "posterior": attrs}
    )


def warn_unless_converged(result: Any, model: Any) -> None:
    """Warn of what PyMC's own checks find: r-hat, effective sample sizes."""
    checks = optional("pymc.stats.convergence", "pymc")
    for found in checks.run_convergence_checks(result, model):
        if found.level != "info":  # advice about the number of chains
            warnings.warn(found.message, NotConverged, stacklevel=3)
