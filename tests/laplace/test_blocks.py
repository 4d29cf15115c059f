"""Draws in blocks have the right law: decisions from few rows, and parameters about which few rows tell.

Oracles: quadrature. A coordinate's mean or mean square fails if it is more than 4.5 standard errors off, by
batches of about forty times the autocorrelation time: about 1e-5 each, so that the false-alarm rate of a
test is 2e-3 at most over seeds, and that of those of a dozen coordinates 3e-4.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.laplace.cases import (
    Separated,
    counts_in_groups,
    log_prior,
    moments_of_groups,
    rate_factor,
    rate_prior,
    rate_terms,
)
from tests.laplace.test_posterior import check_moments

import gumbelrace as gr
from gumbelrace.kernels.bends import no_bends
from gumbelrace.kernels.blocks import Blocks
from gumbelrace.laplace import blocks
from gumbelrace.laplace.compiled import CompiledModel
from gumbelrace.laplace.mode import find_mode

GROUPS, SWEEPS = 100, 40_000


@pytest.fixture(scope="module")
def large_blocks():
    """Twelve blocks of eight or nine groups, each of some 350 rows, and one of the rate and the scale."""
    group, y = counts_in_groups(GROUPS)
    names = [str(i) for i in range(2 + GROUPS)]
    model = CompiledModel(
        rate_factor, rate_terms, (group, y), len(y), rate_prior, np.zeros(2 + GROUPS), names
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            blocks, "parts_of", lambda tried, own: 12 if own and tried.changes.shape[1] > 1000 else 1
        )
        planned = blocks.plan_blocks(model, find_mode(model))
    assert [len(block.coordinates) for block in planned.blocks] == [9] * 4 + [8] * 8 + [2]
    return planned, moments_of_groups(np.bincount(group, y), np.bincount(group))


def natural_draws(planned, method):
    kernel = Blocks(planned.blocks, planned.law, log_prior=rate_prior, method=method)
    trace = gr.run(kernel, steps=SWEEPS, warmup=100, chains=4, rng=1, progress=False, check=0)
    draws = trace["position"]
    draws[:, :, 1] = np.exp(draws[:, :, 1])
    return draws, trace


def test_decisions_within_the_promise_do_not_shift_large_blocks(large_blocks):
    """102 means and mean squares, of 35,000 effective draws of the rate, which moves slowest, and more."""
    planned, moments = large_blocks
    draws, trace = natural_draws(planned, gr.Penalty())
    assert 5e-4 < trace.law_error < 2e-3
    assert trace.fraction < 0.2
    check_moments(draws, *moments)


def test_decisions_beyond_the_promise_are_noticed(large_blocks):
    """Negative control: three rows decide, whatever their law, and `law_error` says so."""
    planned, moments = large_blocks
    draws, trace = natural_draws(planned, gr.Penalty(first=3, error=np.inf, most_variance=10.0))
    assert trace.law_error > 0.05
    with pytest.raises(AssertionError):
        check_moments(draws, *moments)


COUNTS = [20, 20, 10, 30, 40, 15, 25, 50, 20, 20, 12]
NEARLY = [19, 1, 9, 29, 39, 14, 23, 49, 10, 18, 11]
WHOLLY = [20, 1, 10, *NEARLY[3:]]


def draws_of(case, kernel=None):
    d = case.x.shape[1]
    fit = gr.posterior(*case.given, start=np.zeros(d), log_prior=log_prior, progress=False)
    kernel = fit.kernel if kernel is None else kernel(fit.kernel)
    return kernel, gr.run(kernel, steps=20_000, warmup=100, chains=4, rng=3, progress=False)["position"]


@pytest.mark.parametrize(("columns", "ones"), [(11, NEARLY), (11, WHOLLY), (3, WHOLLY), (1, WHOLLY)])
def test_separated_columns_are_right(columns, ones):
    """Of the rows that have an indicator all, or all but one, are ones: its coefficient is skewed."""
    case = Separated(COUNTS[:columns], ones[:columns])
    mean, sd = case.moments()
    kernel, draws = draws_of(case)
    assert columns == 1 or isinstance(kernel, Blocks)
    check_moments(draws, mean, sd)
    np.testing.assert_allclose(draws.std(axis=(0, 1)), sd, rtol=0.05)


def test_separated_columns_by_normal_laws_are_noticed():
    """Negative control: where tails are not looked at, chains hardly get there, and stay if they do."""
    case = Separated(COUNTS, NEARLY)

    def without_bends(kernel):
        normal = [replace(block, bends=no_bends(len(block.coordinates))) for block in kernel.blocks]
        return replace(kernel, blocks=normal)

    _, draws = draws_of(case, without_bends)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(draws.std(axis=(0, 1)), case.moments()[1], rtol=0.05)
