"""Control variates: approximations of the log factors whose sums are known."""

from typing import TYPE_CHECKING

from gumbelrace.lazy import later

_NAMES = {
    "gumbelrace.control_variates.data": ("DataTaylor",),
    "gumbelrace.control_variates.by_jax": ("derivatives_by_jax", "jax_taylor"),
    "gumbelrace.control_variates.expansion": ("ParameterTaylor",),
    "gumbelrace.control_variates.parameters": ("stored_taylor",),
    "gumbelrace.core.rows": ("Rows",),
    "gumbelrace.population.control": ("ControlVariate",),
}

if TYPE_CHECKING:
    from gumbelrace.control_variates.data import DataTaylor as DataTaylor
    from gumbelrace.control_variates.by_jax import (
        derivatives_by_jax as derivatives_by_jax,
        jax_taylor as jax_taylor,
    )
    from gumbelrace.control_variates.expansion import ParameterTaylor as ParameterTaylor
    from gumbelrace.control_variates.parameters import stored_taylor as stored_taylor
    from gumbelrace.core.rows import Rows as Rows
    from gumbelrace.population.control import ControlVariate as ControlVariate
else:  # hidden from type checkers, which would take any name at all
    __all__, __getattr__, __dir__ = later(__name__, _NAMES)
