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
from gumbelrace.models.arch.rows import ALPHA, Floats, Indices, log_factor, place, row
from gumbelrace.packed import pack, unpack
from gumbelrace.population.compiled import Compiled
from gumbelrace.population.desk import SETTER, Desk
from gumbelrace.shuffle import Rows


def controlled_desk(control: Expansion, tau: float, arms: int, dimensions: Indices, log_prior: Any) -> Desk:
    """Make a desk on which residuals are raced, their control variate being in the offsets."""
    points, xs, models = _room(control.data.lags, arms)
    population = Compiled(
        mapped_residual,
        (control.raced, points, *control.parts),
        control.order,
        arms,
        None,
        control.raced,
    )
    packed = pack((xs, models, dimensions, points, tau, *control.known, *control.data.parts))
    return Desk(xs, models, population, _controlled_setter(log_prior, packed.type), packed)


def plain_desk(data: Any, tau: float, arms: int, dimensions: Indices, log_prior: Any) -> Desk:
    """Make a desk on which the log factors themselves are raced."""
    points, xs, models = _room(data.lags, arms)
    population = Compiled(_log_factor_of_arm, (points, *data.parts), Rows(data.size), arms, None)
    packed = pack((xs, models, dimensions, points, tau))
    return Desk(xs, models, population, _plain_setter(log_prior, packed.type), packed)


def _room(lags: int, arms: int) -> tuple[Floats, Floats, Indices]:
    return np.zeros((arms, ALPHA + 1 + lags)), np.zeros((arms, lags + 2)), np.zeros(arms, np.int64)


@row
def _log_factor_of_arm(n, arm, points, squares, where):  # type: ignore[no-untyped-def]
    return log_factor(n, points[arm], squares, where)


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
def _plain_setter(log_prior: Any, data_type: Any) -> Any:
    @numba.cfunc(SETTER)
    def put(context, offset, low, high):  # type: ignore[no-untyped-def]
        xs, models, dimensions, points, tau = unpack(context, data_type)
        put_priors(log_prior, xs, models, dimensions, points, tau, offset)
        return 0

    return put


@functools.lru_cache(maxsize=16)
def _controlled_setter(log_prior: Any, data_type: Any) -> Any:
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
