"""Desks of ARCH likelihoods: what compiled chains need to put parameters down and race on them."""

import functools
from typing import Any

import numba
import numpy as np

from gumbelrace.models.arch.expansion import (
    Expansion,
    Known,
    always_sum,
    known_sum,
    mapped_residual,
)
from gumbelrace.models.arch.rows import ALPHA, Indices, place
from gumbelrace.packed import pack, unpack
from gumbelrace.population.compiled import Compiled
from gumbelrace.population.desk import SETTER, Desk


def desk_of(control: Expansion, tau: float, arms: int, dimensions: Indices, log_prior: Any) -> Desk:
    """Make a desk on which residuals are raced, their control variate being in the offsets."""
    lags = control.data.lags
    points, xs, models = (
        np.zeros((arms, ALPHA + 1 + lags)),
        np.zeros((arms, lags + 2)),
        np.zeros(arms, np.int64),
    )
    population = Compiled(
        mapped_residual,
        (control.raced, points, *control.parts),
        control.order,
        arms,
        None,
        control.raced,
    )
    packed = pack((xs, models, dimensions, points, tau, *control.known, *control.data.parts))
    return Desk(xs, models, population, _setter(log_prior, packed.type), packed)


@numba.njit
def put_priors(log_prior, xs, models, dimensions, points, tau, offset):  # type: ignore[no-untyped-def]
    """Lay out the parameters, and put their log priors into the offsets; return how many are possible."""
    possible = 0
    for a in range(len(xs)):
        x = xs[a, : dimensions[models[a]]]
        place(x, tau, points[a])
        offset[a] = np.nan  # stays if the prior raises an exception
        offset[a] = log_prior(x)
        possible += offset[a] > -np.inf
    return possible


@functools.lru_cache(maxsize=16)
def _setter(log_prior: Any, data_type: Any) -> Any:
    @numba.cfunc(SETTER)
    def put(context, offset, low, high):  # type: ignore[no-untyped-def]
        everything = unpack(context, data_type)
        xs, models, dimensions, points, tau = everything[:5]
        always, raced, cubic, centres, forms, starts, model_of, squares, where = everything[5:]
        known = Known(always, raced, cubic, centres, forms, starts, model_of)
        possible = put_priors(log_prior, xs, models, dimensions, points, tau, offset)
        if possible < 2:
            return 0  # decided: nothing is read
        for a in range(len(xs)):
            if offset[a] > -np.inf:
                offset[a] += known_sum(points[a], known) + always_sum(points[a], always, squares, where)
        return len(always) * possible

    return put
