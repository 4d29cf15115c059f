"""Checks of the decisions of a chain over orders: both kinds are counted, and wrong ones are found."""

from dataclasses import replace

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.applications.arch import fit_orders
from gumbelrace.models.arch.data import simulate
from gumbelrace.models.arch.likelihood import ArchLikelihood
from gumbelrace.models.returns import standardised
from gumbelrace.paper.arch_exact import Checked, audits

STEPS = 60


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    return fit_orders(standardised(simulate(1500, rng, (0.3, 0.3, 0.2))), (1, 2, 4), rng=rng)


def checked(fitted, kernel):
    rng = np.random.default_rng(2)
    trace = gr.run(kernel, fitted.start(kernel, rng), steps=STEPS, rng=rng, chains=2, progress=False)
    return audits(trace, STEPS, rng)


def without_control(fitted, kernel):
    plain = ArchLikelihood(fitted.data)
    models = [replace(model, kernel=replace(model.kernel, likelihood=plain)) for model in kernel.models]
    return replace(kernel, models=models, likelihood=plain, guard=None)


def test_exact_decisions_are_never_wrong(fitted):
    found = checked(fitted, fitted.kernel(gr.Exact()))
    assert found == (Checked(0, STEPS), Checked(0, STEPS))
    assert found.gibbs.interval[1] < 0.07


def test_decisions_on_a_few_rows_are_wrong(fitted):
    """Negative control: first looks at 2 rows without a control variate, and δ of nearly 1."""
    found = checked(fitted, without_control(fitted, fitted.kernel(gr.Race(delta=0.9, first=2))))
    assert found.gibbs.decisions == found.moves.decisions == STEPS
    assert found.gibbs.errors > 5
    assert found.moves.rate == found.moves.errors / STEPS > 0.05
    assert found.moves.interval[0] > 0.0
