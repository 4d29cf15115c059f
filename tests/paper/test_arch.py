"""The paper's own setting on a small series, whose every order is reached."""

from dataclasses import replace

import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.applications.arch import by_importance, fit_orders
from gumbelrace.applications.arch_chains import EXACT, RACED, Plan
from gumbelrace.kernels.langevin import LangevinState
from gumbelrace.models.arch.data import simulate, standardised
from gumbelrace.models.arch.likelihood import ArchLikelihood
from gumbelrace.paper import arch
from gumbelrace.paper.arch import Checked, audits, claims, reads_to_converge, run_paper_setting
from gumbelrace.paper.arch_setting import ACCEPTANCE, fit_paper_setting

PLAN = Plan(steps=600, chains=2, first=50, seed=3, adapt=600, audited=30)
STEPS = 60


@pytest.fixture(scope="module")
def setting():
    rng = np.random.default_rng(1)
    return fit_paper_setting(standardised(simulate(1500, rng, (0.3, 0.3, 0.2))), (1, 2, 4), rng=rng)


@pytest.fixture(scope="module")
def study(setting, tmp_path_factory):
    reference = by_importance(setting, np.random.default_rng(2), 2000)
    return run_paper_setting(setting, reference, PLAN, tmp_path_factory.mktemp("paper"), progress=False)


@pytest.mark.parametrize("exact", [False, True])
def test_steps_are_accepted_as_often_as_the_paper_wants(setting, exact):
    """500 correlated steps after a warm-up of 400: within 0.12 of 36%, about five deviations."""
    kernel = setting.kernel(gr.Exact() if exact else gr.Race())
    candidate, rng = kernel.models[2], np.random.default_rng(4)
    state, accepted = candidate.state(setting.fits[2].mean), 0.0
    assert isinstance(state, LangevinState)
    for _ in range(500):
        state, info = candidate.kernel.step(rng, state)
        accepted += info.acceptance
    assert accepted / 500 == pytest.approx(ACCEPTANCE, abs=0.12)


def test_all_of_the_exact_twin_is_read_once(study):
    assert study.exact.cost.evaluations == study.setting.exact_reads == 4 * study.setting.data.size
    assert 0.2 < study.raced.cost.share < 2.0


def test_both_samplers_agree_with_the_evidence(study):
    """Seed 3; 5 standard errors and half a nat, as errors of 1,200 correlated steps are rough."""
    assert study.reached == [0, 1, 2]
    for sampler in (study.raced, study.exact):
        for one, oracle in zip(sampler.orders, study.reference.log_probability, strict=True):
            assert abs(one.log_probability - oracle) < 5.0 * one.error + 0.5


def test_tracks_end_at_the_adapted_weights(study):
    for name, trace in study.adapting.items():
        last = {track.order: track for track in study.tracks if track.sampler == name}
        weights = np.asarray(trace["log_weights"])[0, -1]
        found = np.array([last[order].log_probability for order in (1, 2, 4)])
        np.testing.assert_allclose(np.diff(found), -np.diff(weights), atol=1e-9)


def test_reads_to_converge(study, monkeypatch):
    """Oracle: a bound that every estimate keeps, and one that none does."""
    monkeypatch.setattr(arch, "CLOSE", 1e3)
    first = np.asarray(study.adapting[RACED].info.evaluations)[0, 0]
    assert reads_to_converge(RACED, study) == first
    assert reads_to_converge(EXACT, study) == study.setting.exact_reads
    monkeypatch.setattr(arch, "CLOSE", 1e-9)
    assert reads_to_converge(EXACT, study) == np.inf
    assert [claim.held for claim in claims(study) if "three times" in claim.paper] == [None]


def test_a_bias_between_samplers_is_noticed(study):
    """Oracle: the t statistic of runs made up, once with equal means and once without."""

    def made_up(sampler, values):
        chains = [
            [one._replace(log_probability=value + one.order) for one in sampler.by_chain[0]]
            for value in values
        ]
        return replace(sampler, by_chain=chains)

    exact = made_up(study.exact, [0.0, 0.1, 0.2])
    same = replace(study, raced=made_up(study.raced, [0.2, 0.1, 0.0]), exact=exact)
    assert same.apart.max() == pytest.approx(0.0, abs=1e-9)
    assert ([*claims(same)][-1].held, [*claims(same)][-1].why) == (True, "")
    agreed = replace(study, raced=made_up(study.raced, [0.0, 0.0]), exact=made_up(study.exact, [0.0, 0.0]))
    assert (agreed.apart == 0.0).all()
    off = replace(study, raced=made_up(study.raced, [0.5, 0.6, 0.7]), exact=exact)
    assert off.apart == pytest.approx(np.full(len(off.setting.orders), 0.5 / np.sqrt(2 * 0.01 / 3)))
    assert [*claims(off)][-1].held is False
    order, found = off.setting.orders[int(off.apart.argmax())], off.raced.orders[int(off.apart.argmax())]
    assert (
        f"order {order}, where {found.visits / off.raced.trace['model'].size:.2%} of"
        in [*claims(off)][-1].why
    )


def test_claims_follow_what_was_found(study):
    held = {claim.paper: claim.held for claim in claims(study)}
    assert len(held) == 7
    assert held["Adapted weights make the chain visit every order sufficiently often."]
    worse = next(claims(replace(study, reductions=(3.0, 3.0))))
    assert worse.held is False
    assert "3 times" in worse.ours
    assert study.reductions[0] > 100.0


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
