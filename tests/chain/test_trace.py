"""Traces: ArviZ, effective sample sizes, and the audit of a chain."""

import sys
from typing import NamedTuple

import numpy as np
import pytest
from tests.chain.kernels import MIXED, Autoregression, Choice, Point, Raced, Scaled, Tuned, Walk
from tests.common import seeded
from tests.kernels.nested import Nested

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, MissingPackage
from gumbelrace.kernels.base import Checked, Info, Kernel
from gumbelrace.methods.state import new_results

START = Scaled(np.zeros(2), 1.0)


def tuned():
    return gr.run(Tuned(), START, steps=30, rng=seeded(), chains=3)


def test_shares_and_names():
    trace = tuned()
    assert trace.names == ["position", "scale"]
    assert trace.fraction == 0.5
    assert trace.acceptance == 0.25
    assert (trace.chains, trace.draws) == (3, 30)
    assert repr(trace) == str(trace)
    assert str(trace) == (
        "Trace of Tuned: 3 chains of 30 draws (position, scale), 50.00% of factors read, acceptance 0.25"
    )
    with pytest.raises(KeyError, match="position, scale"):
        trace["velocity"]


def test_a_trace_without_draws():
    trace = gr.run(Tuned(), START, steps=0, rng=seeded(), chains=2, warmup=3)
    assert trace["position"].shape == (2, 0, 2)
    assert trace.fraction == 0.0
    assert np.isnan(trace.acceptance)
    assert "0 draws" in repr(trace)
    with pytest.raises(InvalidArgument, match="no draws"):
        trace.audit(rng=seeded())


def test_going_on_from_the_last_states():
    first = gr.run(Tuned(), START, steps=5, rng=seeded(), chains=2)
    second = gr.run(Tuned(), first.last, steps=5, rng=seeded(1), chains=2)
    np.testing.assert_allclose(second["scale"][:, -1], 0.9**10)


# ---- ArviZ ----


def test_groups_of_arviz():
    trace = tuned()
    tree = trace.to_arviz(dims={"position": ["axis"]}, coords={"axis": ["east", "north"]})
    position = tree["posterior"]["position"]
    assert position.dims == ("chain", "draw", "axis")
    assert position.coords["axis"].values.tolist() == ["east", "north"]
    assert (position.values == trace["position"]).all()
    assert list(tree["posterior"].data_vars) == ["position"]
    statistics = tree["sample_stats"]
    assert set(statistics.data_vars) == {
        "evaluations",
        "rewards",
        "looks",
        "acceptance_rate",
        "law_error",
        "scale",
    }
    assert (statistics["acceptance_rate"].values == 0.25).all()
    assert (statistics["scale"].values == trace["scale"]).all()
    for node in (tree, tree["posterior"], statistics):
        assert node.attrs["inference_library"] == "gumbelrace"
        assert node.attrs["inference_library_version"] == gr.__version__
        assert node.attrs["kernel"] == "Tuned"


def test_arviz_on_disk(tmp_path):
    import xarray

    trace = gr.run(Walk(), MIXED, steps=20, rng=seeded(), chains=2)
    trace.to_arviz().to_netcdf(tmp_path / "trace.nc", engine="h5netcdf")
    with xarray.open_datatree(tmp_path / "trace.nc", engine="h5netcdf") as tree:
        for name in trace.names:
            assert tree["posterior"][name].dtype == trace[name].dtype
            assert (tree["posterior"][name].values == trace[name]).all()
        assert tree["sample_stats"].attrs["kernel"] == "Walk"


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_effective_sample_size(correlation):
    """AR(1) with 4 x 2500 draws: n (1 - φ) / (1 + φ), within 15%; no correlation does not fit φ = 0.5."""
    trace = gr.run(Autoregression(correlation), Point(0.0), steps=2500, rng=seeded(4), chains=4, warmup=50)
    expected = 10_000 * (1 - correlation) / (1 + correlation)
    assert trace.ess()["x"] == pytest.approx(expected, rel=0.15)
    assert trace.ess(relative=True)["x"] == pytest.approx(expected / 10_000, rel=0.15)
    assert trace.rhat()["x"] == pytest.approx(1.0, abs=0.01)


def test_chains_apart_have_a_large_rhat():
    starts = [Point(0.0), Point(1000.0)]
    trace = gr.run(Autoregression(0.999), starts, steps=200, rng=seeded(), chains=2)
    assert trace.rhat()["x"] > 1.5


def test_diagnostics_of_arrays():
    found = tuned().ess()
    assert list(found) == ["position"]
    assert found["position"].shape == (2,)


@pytest.mark.parametrize("package", ["arviz_base", "arviz_stats"])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, package):
    trace = tuned()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=r'pip install "gumbelrace\[arviz\]"'):
        trace.ess()


# ---- Audit ----


class Guess(gr.Method):
    """Returns either arm, reads nothing, and promises an error of at most 0.05."""

    promise = gr.Promise(0.05)

    def rule(self, population):
        raise NotImplementedError

    def best_each(self, population, offsets, rng):
        results = new_results(len(offsets))
        results.arms[:] = rng.integers(population.arms, size=len(offsets))
        return results


def test_the_audit_finds_the_error_of_a_guess():
    """A guess of two arms is wrong half of the time: outside the 99.99% interval once in 10,000 seeds."""
    trace = gr.run(Raced(Guess()), Choice(0), steps=1000, rng=seeded(1), chains=2)
    report = trace.audit(share=0.5, rng=seeded(2), confidence=0.9999)
    assert report.draws == 1000
    assert report.interval[0] <= 0.5 <= report.interval[1]
    assert report.broken
    assert report.fraction == trace.fraction == 0.0


@pytest.mark.parametrize("method", [gr.Betting(), gr.Exact()])
def test_the_audit_of_a_sound_method(method):
    """P(error) ≤ δ: broken only if the 99.99% interval lies above."""
    trace = gr.run(Raced(method), Choice(0), steps=500, rng=seeded(1), chains=2)
    report = trace.audit(share=0.3, rng=seeded(2), confidence=0.9999)
    assert not report.broken
    assert report.draws == 300
    assert report.promise == method.promise
    assert report.fraction == trace.fraction > 0.0


def test_the_audit_of_a_kernel_without_a_method_says_what_is_missing():
    trace = gr.run(Autoregression(), Point(0.0), steps=20, rng=seeded(1), progress=False)
    with pytest.raises(InvalidArgument, match=r"Autoregression has no method.*field `method`"):
        trace.audit(rng=seeded())


def test_the_audit_is_the_same_for_the_same_seed():
    trace = gr.run(Raced(Guess()), Choice(0), steps=100, rng=seeded(1))
    assert trace.audit(0.5, rng=seeded(3)) == trace.audit(0.5, rng=seeded(3))
    assert trace.audit(1e-9, rng=seeded()).draws == 1


class Picky(Kernel):
    """Takes only states of the very types that it gives."""

    method = gr.Exact()

    def step(self, rng, state):
        assert [type(value) for value in state] == [type(value) for value in MIXED]
        assert state.inner.grid.flags.f_contiguous
        return Walk().step(rng, state)

    def audit(self, rng, state):
        after, _ = self.step(rng, state)
        return Checked(1, 1, after, after)


def test_the_audit_gives_the_kernel_states_as_it_knows_them():
    trace = gr.run(Picky(), MIXED, steps=10, rng=seeded())
    report = trace.audit(1.0, rng=seeded())
    assert (report.errors, report.draws) == (10, 10)


class Noting(Autoregression):
    """Notes the states that it is asked to audit."""

    method, noted = gr.Exact(), []

    def audit(self, rng, state):
        self.noted.append(state.x)
        return Checked(0, 1, state, state)


def test_the_audit_takes_no_state_twice():
    trace = gr.run(Noting(), Point(0.0), steps=20, rng=seeded(), chains=3)
    trace.audit(1.0, rng=seeded())
    assert sorted(Noting.noted) == sorted(trace["x"].ravel())


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, float("nan")])
def test_a_share_is_a_share(share):
    with pytest.raises(InvalidArgument, match="share"):
        gr.run(Raced(), Choice(0), steps=5, rng=seeded()).audit(share, rng=seeded())


def test_info_is_a_named_tuple_of_arrays():
    trace = tuned()
    assert isinstance(trace.info, Info)
    assert isinstance(trace.states, Scaled)
    assert {array.shape for array in trace.info} == {(3, 30)}


# ---- Fields that are not always variables ----


class Jump(NamedTuple):
    model: int
    parameters: tuple
    draw: int
    draw_: int
    looks: int


class Jumping(Kernel):
    """Between two models whose parameters are 0 and 1, and mean nothing while the other is current."""

    tuning = frozenset({"looks"})

    def presence(self, states):
        return {f"parameters.{k}": states.model == k for k in range(2)}

    def step(self, rng, state):
        model = int(rng.integers(2))
        parameters = tuple(np.full(2, k, dtype=int) if k == model else np.array([7, 7]) for k in range(2))
        return Jump(model, parameters, 1, 2, 3), Info(0, 0, 4, 0.0)


JUMP = Jump(0, (np.zeros(2, int), np.zeros(2, int)), 1, 2, 3)


def test_what_is_not_a_variable_is_masked():
    trace = gr.run(Jumping(), JUMP, steps=200, rng=seeded(), chains=2)
    posterior = trace.to_arviz()["posterior"]
    for k in range(2):
        there = trace["model"] == k
        values = posterior[f"parameters.{k}"].values
        assert (values[there] == k).all()
        assert np.isnan(values[~there]).all()
        assert (posterior[f"parameters.{k}"].mean(("chain", "draw")) == k).all()
    assert (trace["parameters.0"][trace["model"] == 1] == 7).all()


def test_names_that_arviz_needs_get_an_underscore():
    tree = gr.run(Jumping(), JUMP, steps=20, rng=seeded()).to_arviz()
    assert (tree["posterior"]["draw__"].values == 1).all()
    assert (tree["posterior"]["draw_"].values == 2).all()
    assert (tree["sample_stats"]["looks_"].values == 3).all()
    assert (tree["sample_stats"]["looks"].values == 4).all()


def test_effective_draws_of_a_model_are_those_in_which_it_is_current():
    """Carlin-Chib, as in the docstring of `to_arviz`: no pseudoprior draws among a model's own."""
    import arviz_stats

    problem = Nested()
    kernel = problem.kernel()
    start = problem.start(kernel, seeded(5), 0)
    trace = gr.run(kernel, start, steps=2000, rng=seeded(6), chains=2, progress=False)
    posterior, model = trace.to_arviz()["posterior"], trace["model"]
    x = posterior["parameters.1"].sel(chain=[0])[..., 0].dropna("draw")
    assert x.size == (model[0] == 1).sum()
    ess = float(arviz_stats.ess(x.values))
    assert 50 < ess < 1.5 * x.size
    own = posterior["parameters.1"].mean(("chain", "draw")).values
    np.testing.assert_allclose(own, trace["parameters.1"][model == 1].mean(axis=0))
