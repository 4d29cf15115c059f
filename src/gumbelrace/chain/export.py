"""Traces for ArviZ. Its packages are imported when first used."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.chain.layout import named_leaves
from gumbelrace.errors import optional
from gumbelrace.kernels.base import Info, Kernel

DIMENSIONS = ("chain", "draw")  # of all arrays in ArviZ


def tree(
    kernel: Kernel[Any],
    states: Any,
    info: Info,
    dims: Mapping[str, Sequence[str]] | None,
    coords: Mapping[str, Sequence[Any]] | None,
) -> Any:
    presence = kernel.presence(states)
    fields = {name: _masked(values, presence.get(name)) for name, values in named_leaves(states)}
    tuning = {name for name in fields if name.split(".")[0] in kernel.tuning}
    statistics = {
        "evaluations": info.evaluations,
        "rewards": info.rewards,
        "looks": info.looks,
        "acceptance_rate": info.acceptance,
    }
    posterior = {name: fields[name] for name in fields if name not in tuning}
    tuned = _renamed({name: fields[name] for name in tuning}, statistics)
    groups = {"posterior": _renamed(posterior), "sample_stats": {**statistics, **tuned}}
    attributes = dict.fromkeys(("/", *groups), _attributes(kernel))
    return optional("arviz_base", "arviz").from_dict(groups, dims=dims, coords=coords, attrs=attributes)


def _masked(values: NDArray[Any], present: NDArray[np.bool_] | None) -> NDArray[Any]:
    """Put NaN where a field is not a variable of the target."""
    if present is None:
        return values
    shape = present.shape + (1,) * (values.ndim - present.ndim)
    return np.where(present.reshape(shape), values, np.nan)


def _renamed(fields: Mapping[str, Any], taken: Collection[str] = ()) -> dict[str, Any]:
    """Give fields other names where theirs would be lost: those of dimensions, and those that are taken."""
    renamed: dict[str, Any] = {}
    for name, values in fields.items():
        free = name
        while free in DIMENSIONS or free in taken or (free != name and free in fields):
            free += "_"
        renamed[free] = values
    return renamed


def diagnostic(name: str, data: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Give a diagnostic of arviz_stats for each variable: a number, or an array for an array."""
    found = getattr(optional("arviz_stats", "arviz"), name)(data, **options)
    return {str(variable): found[variable].values[()] for variable in found.data_vars}


def _attributes(kernel: Kernel[Any]) -> dict[str, str]:
    from importlib.metadata import version

    return {
        "inference_library": "gumbelrace",
        "inference_library_version": version("gumbelrace"),
        "kernel": type(kernel).__qualname__,
        "method": type(getattr(kernel, "method", None)).__qualname__,
    }
