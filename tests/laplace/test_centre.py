"""Blocks lie where the posterior is: a scale of many effects, of few rows each, is drawn right and often.

Oracle: quadrature. 604 means and mean squares by 5.5 standard errors, from 40 batches: the false-alarm rate
is 2e-3 over seeds.
"""

import numpy as np
import pytest
from tests.laplace.cases import counts_in_groups, moments_of_groups, rate_factor, rate_prior, rate_terms
from tests.laplace.test_posterior import check_moments

import gumbelrace as gr
from gumbelrace.kernels.blocks import Blocks
from gumbelrace.laplace import blocks
from gumbelrace.laplace.centre import NO_TILT, Centre, Parts, centre_of
from gumbelrace.laplace.compiled import CompiledModel
from gumbelrace.laplace.mode import find_mode

GROUPS, SIZE, SWEEPS = 300, 4_800, 10_000
D = 2 + GROUPS
RATE, SCALE = 0, 1


@pytest.fixture(scope="module")
def case():
    """Three hundred groups of about sixteen rows, their mode, and the moments of the posterior."""
    group, y = counts_in_groups(GROUPS, SIZE)
    data = rate_factor, rate_terms, (group, y), SIZE, rate_prior
    model = CompiledModel(*data, np.zeros(D), [str(i) for i in range(D)])
    return model, find_mode(model), moments_of_groups(np.bincount(group, y), np.bincount(group))


def natural(theta):
    draws = np.array(theta)
    draws[..., SCALE] = np.exp(draws[..., SCALE])
    return draws


def test_the_centre_is_close_to_the_mean(case):
    """Effects integrated out; the mode of all parameters, a negative control, is far from it."""
    model, mode, (mean, sd) = case
    off = (natural(mode.theta) - mean) / sd
    assert off[SCALE] < -3.0
    centre = centre_of(model, mode, Parts(np.arange(2, D), np.array([RATE, SCALE])))
    off = (natural(centre.near.theta) - mean) / sd
    assert np.abs(off[:2]).max() < 0.3
    law = np.sqrt(np.diag(np.linalg.inv(centre.precision))[:2]) * [1.0, mean[SCALE]]
    np.testing.assert_allclose(law, sd[:2], rtol=0.1)


def test_effects_are_at_their_mode_there(case):
    model, mode, _ = case
    near = centre_of(model, mode, Parts(np.arange(2, D), np.array([RATE, SCALE]))).near
    slopes = (near.prior.gradient + near.factors.gradient)[2:]
    curvatures = -np.diag(near.prior.hessian + near.factors.hessian)[2:]
    assert np.linalg.norm(slopes / np.sqrt(curvatures)) < 1e-3


@pytest.mark.parametrize("parts", [Parts(np.arange(D), np.arange(0)), Parts(np.arange(0), np.arange(D))])
def test_without_shared_parameters_the_mode_is_the_centre(case, parts):
    model, mode, _ = case
    centre = centre_of(model, mode, parts)
    np.testing.assert_array_equal(centre.near.theta, mode.theta)
    np.testing.assert_array_equal(centre.precision, mode.precision)
    assert centre.tilt.at(np.ones(D)) == 0.0


def drawn(case, sweeps):
    planned = blocks.plan_blocks(*case[:2])
    kernel = Blocks(planned.blocks, planned.law, log_prior=rate_prior)
    trace = gr.run(kernel, steps=sweeps, warmup=100, chains=4, rng=5, progress=False, check=0)
    return natural(trace["position"])


def effective_share(draws):
    """Effective draws for each that was made, from means of batches of a hundred."""
    means = draws.reshape(-1, 100).mean(axis=1)
    return draws.var() / (100.0 * means.var())


def test_a_scale_of_effects_with_few_rows_is_right(case):
    draws = drawn(case, SWEEPS)
    check_moments(draws, *case[2], far=5.5)
    np.testing.assert_allclose(draws.std(axis=(0, 1)), case[2][1], rtol=0.05)
    assert effective_share(draws[:, :, SCALE]) > 0.15


def test_around_the_mode_of_all_parameters_the_scale_hardly_moves(case, monkeypatch):
    """Negative control."""
    monkeypatch.setattr(
        blocks, "centre_of", lambda model, mode, parts: Centre(mode, mode.precision, NO_TILT)
    )
    assert effective_share(drawn(case, 2_000)[:, :, SCALE]) < 0.05
