"""log p(q | r) without a chain: by importance sampling, and what the BIC of the `arch` package says."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.applications.arch import Setting
from gumbelrace.models.arch.fit import log_evidence_by_importance
from gumbelrace.models.returns import Returns

Floats = NDArray[np.float64]
DRAWS = 2000


class Estimates(NamedTuple):
    """log p(q | r) of each order if all are equally likely before, and its standard error."""

    log_probability: Floats
    error: Floats


def by_importance(setting: Setting, rng: np.random.Generator, draws: int = DRAWS) -> Estimates:
    """Estimate by draws from the Laplace approximation of each order, weighted."""
    found = [log_evidence_by_importance(fit, setting.data, rng, draws) for fit in setting.fits]
    evidence, error = np.array([(one.log_evidence, one.error) for one in found]).T
    log_p = evidence - np.logaddexp.reduce(evidence)
    # The error of log p_q = e_q - log Σ exp e_k: derivatives δ_qk - p_k, errors independent.
    jacobian = np.eye(len(found)) - np.exp(log_p)
    return Estimates(log_p, np.sqrt(np.square(jacobian) @ np.square(error)))


def bic_by_package(returns: Returns, orders: Sequence[int]) -> list[float] | None:
    """Give the BIC of each order by the package `arch`, if that is installed; the smallest is best.

    The package knows no segments: the returns are taken as one series. All orders are fitted to the same
    rows, with innovations of Student's t and no mean.

    Parameters
    ----------
    returns : Returns
        Standardised returns.
    orders : sequence of int
        Orders.
    """
    if find_spec("arch") is None:
        return None
    arch_model = import_module("arch").arch_model
    kind = {"mean": "Zero", "vol": "ARCH", "dist": "t", "rescale": False, "hold_back": max(orders)}
    models = [arch_model(returns.values, p=order, **kind) for order in orders]
    return [float(model.fit(disp="off", show_warning=False).bic) for model in models]
