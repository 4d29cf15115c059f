"""Traces for ArviZ. Its packages are imported when first used."""

from collections.abc import Mapping, Sequence
from typing import Any

from gumbelrace.chain.layout import named
from gumbelrace.kernels.base import Info, Kernel
from gumbelrace.optional import optional


def tree(
    kernel: Kernel[Any],
    states: Any,
    info: Info,
    dims: Mapping[str, Sequence[str]] | None,
    coords: Mapping[str, Sequence[Any]] | None,
) -> Any:
    """Give the DataTree of a trace."""
    fields = dict(named(states))
    tuning = {name for name in fields if name.split(".")[0] in kernel.tuning}
    statistics = {
        "evaluations": info.evaluations,
        "rewards": info.rewards,
        "looks": info.looks,
        "acceptance_rate": info.acceptance,
        **{name: fields[name] for name in fields if name in tuning},
    }
    posterior = {name: fields[name] for name in fields if name not in tuning}
    groups = {"posterior": posterior, "sample_stats": statistics}
    attributes = dict.fromkeys(("/", *groups), _attributes(kernel))
    return package("arviz_base").from_dict(groups, dims=dims, coords=coords, attrs=attributes)


def diagnostic(name: str, data: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Give a diagnostic of arviz_stats for each variable: a number, or an array for an array."""
    found = getattr(package("arviz_stats"), name)(data, **options)
    return {str(variable): found[variable].values[()] for variable in found.data_vars}


def _attributes(kernel: Kernel[Any]) -> dict[str, str]:
    from importlib.metadata import version

    return {
        "inference_library": "gumbelrace",
        "inference_library_version": version("gumbelrace"),
        "kernel": type(kernel).__qualname__,
        "solver": type(getattr(kernel, "solver", None)).__qualname__,
    }


def package(name: str) -> Any:
    """Import a package of the extra ``arviz``, or say how to install it."""
    return optional(name, "arviz")
