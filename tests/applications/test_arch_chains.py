"""What a study of orders derives from its chains, and from those of its exact twin."""

from dataclasses import replace

import numpy as np
import pytest

from gumbelrace.applications import arch_chains
from gumbelrace.applications.arch import fit_orders
from gumbelrace.applications.arch_chains import EXACT, RACED, Order, Plan, run_chains
from gumbelrace.applications.arch_compared import with_twin
from gumbelrace.models.arch.data import simulate, standardised

PLAN = Plan(steps=6000, chains=2, seed=3, adapt=100, audited=20)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    rng = np.random.default_rng(1)
    fitted = fit_orders(standardised(simulate(1500, rng, (0.3, 0.3, 0.2))), (1, 2, 4), rng=rng)
    folder = tmp_path_factory.mktemp("study")
    return with_twin(run_chains(fitted, PLAN, folder, progress=False), 4000, folder, progress=False)


def test_both_samplers_agree(study):
    """Seed 3; differences beyond 5 standard errors have a probability below 1e-4 (errors are estimated)."""
    assert all(one.visits and np.isfinite(one.exact) for one in study.orders)
    assert max(study.apart, study.apart_from_exact) < 5.0
    assert study.audit.errors <= 3
    assert 0 < study.audit.draws <= 2 * PLAN.audited


def test_a_shift_is_noticed(study):
    """Negative control: importance sampling that is off by 0.5 in one order."""
    shift = np.array([0.5, 0.0, 0.0])
    importance = study.importance._replace(log_probability=study.importance.log_probability + shift)
    assert replace(study, importance=importance).apart > 5.0


def test_tracks_end_where_the_first_chain_does(study):
    for sampler in (study.raced, study.exact):
        last = {track.order: track for track in study.tracks if track.sampler == sampler.name}
        for one in sampler.by_chain[0]:
            assert last[one.order].log_probability == pytest.approx(one.log_probability, abs=1e-9)
    reads = [track.evaluations for track in study.tracks if track.sampler == RACED and track.order == 2]
    assert reads == sorted(reads)


def test_exact_sampling_reads_every_row_of_every_model(study):
    assert study.exact.cost.evaluations == 3 * study.fitted.data.size
    assert study.exact.cost.share == 1.0
    assert 0.0 < study.raced.cost.share < 1.7
    assert study.raced.cost.steps == 12_000


def test_correlations_start_at_one_and_fall(study):
    for name in (RACED, EXACT):
        found = [one.correlation for one in study.correlations if one.sampler == name]
        assert found[0] == pytest.approx(1.0)
        assert abs(np.mean(found[20:])) < 0.3


def test_parameters_are_those_of_the_best_order(study):
    order = study.fitted.orders[study.best]
    found = {one.name: one for one in study.parameters}
    assert list(found) == [*(f"α{i}" for i in range(order + 1)), "ν"]
    assert all(one.low < one.mean < one.high for one in found.values())
    mode, nu = study.fitted.fits[study.best].model.natural(study.fitted.fits[study.best].mean)
    for one, value in zip(found.values(), [*mode, nu], strict=True):
        assert abs(one.mean - value) < 2 * one.deviation


def test_an_interrupted_chain_is_not_made_into_a_result(study, tmp_path, monkeypatch):
    """`run` hears Ctrl-C and gives half a trace: the study must end there, and go on when asked again."""
    half = replace(study.raced.trace, interrupted=True)
    monkeypatch.setattr(arch_chains, "run", lambda *words, **options: half)
    with pytest.raises(KeyboardInterrupt):
        run_chains(study.fitted, PLAN, tmp_path, progress=False)


def test_alone_it_is_the_same_chain_without_the_others(study, tmp_path):
    alone = run_chains(study.fitted, PLAN, tmp_path, progress=False)
    assert [one[:3] for one in alone.orders] == [one[:3] for one in study.orders]
    assert all(isinstance(one, Order) for one in alone.orders)
    assert alone.samplers == (alone.raced,)
    assert (alone.audit.errors, alone.audit.draws) == (study.audit.errors, study.audit.draws)


def test_errors_of_probabilities_follow_from_those_of_logarithms(study):
    """Oracle: probabilities of 20,000 sets of logarithms with independent normal errors, to 5%. Seed 5."""
    log_p, error = np.array([(one.log_probability, one.error) for one in study.raced.orders]).T
    drawn = log_p + error * np.random.default_rng(5).normal(size=(20_000, len(log_p)))
    spread = np.std(np.exp(drawn - np.logaddexp.reduce(drawn, axis=1, keepdims=True)), axis=0)
    np.testing.assert_allclose(study.probability_errors, spread, rtol=0.05)
    assert study.probability == (np.exp(log_p[study.best]), study.probability_errors[study.best])


def test_many_rows_are_audited_less(study, tmp_path, monkeypatch):
    """A few likelihoods may be read: so many steps are checked, but some at least."""
    monkeypatch.setattr(arch_chains, "AUDIT_READS", 7 * study.fitted.exact_reads)
    monkeypatch.setattr(arch_chains, "FEWEST_AUDITED", 5)
    short = replace(PLAN, steps=200, adapt=50)
    assert 7 <= run_chains(study.fitted, short, tmp_path / "a", progress=False).audit.draws <= 14
    monkeypatch.setattr(arch_chains, "AUDIT_READS", 0)
    assert 5 <= run_chains(study.fitted, short, tmp_path / "b", progress=False).audit.draws <= 10
