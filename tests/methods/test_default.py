"""Which method decides: one rule for `delta` and `method` wherever both can be given."""

from dataclasses import fields

import numpy as np
import pytest
from tests.kernels.clusters.mentions import pairs_of

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.default import Default, DefaultInLaw
from gumbelrace.methods.state import Question

REWARDS = np.random.default_rng(1).uniform(size=(2000, 3)) * [1.0, 1.0, 1.1]


def likelihood(points):
    return gr.table(-((REWARDS[:, :1] - points[:, 0]) ** 2))


def conditional(labels, variable):
    return REWARDS, None


def candidate():
    pseudoprior = gr.kernels.NormalPseudoprior([0.5], [[0.01]])
    kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1))
    return gr.kernels.Candidate(kernel, pseudoprior, lambda x: -0.5 * x @ x)


KERNELS = {
    "Metropolis": lambda **by: gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1), **by),
    "Slice": lambda **by: gr.Slice(likelihood, 0.1, **by),
    "Langevin": lambda **by: gr.Langevin(likelihood, lambda i, x: 0.0 * x, size=2000, batch=9, **by),
    "Gibbs": lambda **by: gr.Gibbs(conditional, 2, **by),
    "GraphGibbs": lambda **by: gr.GraphGibbs(1.0 - np.eye(4), 2, gr.models.Potts(), **by),
    "ClusterGibbs": lambda **by: gr.ClusterGibbs(
        pairs_of(np.zeros((4, 4)), (0.0, 1.0)), keep="pairs", **by
    ),
    "CarlinChib": lambda **by: gr.CarlinChib(
        [candidate()], lambda points: likelihood(np.array(points)), **by
    ),
}
CALLS = {
    "sample": lambda **by: gr.sample(REWARDS, rng=0, **by),
    "best": lambda **by: gr.best(REWARDS, rng=0, **by),
    "audit": lambda **by: gr.audit(REWARDS, draws=3, rng=0, **by),
}


@pytest.mark.parametrize("make", [*KERNELS.values(), *CALLS.values()], ids=[*KERNELS, *CALLS])
def test_both_are_refused(make):
    with pytest.raises(InvalidArgument, match=r"write method=Race\(delta=0.01\)"):
        make(delta=0.01, method=gr.Race())
    with pytest.raises(InvalidArgument, match="delta"):
        make(delta=1.5)
    with pytest.raises(InvalidArgument, match="method"):
        make(method="Race")


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (gr.Exact(), "give delta or method, not both: Exact has no delta of its own"),
        (gr.Race(gr.methods.Serfling()), r"write method=Race\(bound=Serfling\(\), delta=0.1\)"),
        (gr.Race(gr.methods.Normal(student=False), first=9), r"Race\(bound=.*student=False.*, first=9\)"),
        (gr.Betting(), r"write method=Betting\(delta=0.1\)"),
        (Default(), "not both: leave method out"),
        (DefaultInLaw(Question.DRAW), "not both: leave method out"),
    ],
)
def test_the_advice_can_be_followed(method, words):
    with pytest.raises(InvalidArgument, match=words):
        gr.best(REWARDS, method=method, delta=0.1)


def test_the_default_method_is_shown_in_words():
    assert repr(KERNELS["Gibbs"](delta=0.01).method) == "default method (delta=0.01)"
    assert "default method (delta=0.001; 1e-05 where no range is known)" in repr(KERNELS["Slice"]())
    assert "default method (Absorb)" in repr(KERNELS["Gibbs"]())


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls(call):
    assert call().promise == gr.Promise(0.05)
    assert call(delta=0.01).promise == gr.Promise(0.01)
    assert call(method=gr.Exact()).promise == gr.Promise(0.0)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    make = KERNELS[name]
    assert make(method=gr.Betting(0.3)).method == gr.Betting(0.3)
    method = make(delta=0.01).method
    assert method in (Default(0.01, 0.01), gr.Betting(0.01), gr.Race(delta=0.01))
    assert make().with_method(gr.Exact()).method == gr.Exact()
    assert make(delta=0.01).with_method(gr.Exact()).method == gr.Exact()


@pytest.mark.parametrize(
    ("name", "method"),
    [("Metropolis", gr.Penalty()), ("Langevin", gr.Penalty()), ("Gibbs", gr.Absorb())],
)
def test_chains_need_no_winner_by_default(name, method):
    default = KERNELS[name]().method
    assert not default.finds_winners
    assert default.promised(gr.table(REWARDS)) == method.promised(gr.table(REWARDS))


def test_a_race_decides_where_means_of_a_few_rows_tell_little():
    default, rng = DefaultInLaw(Question.DRAW), np.random.default_rng(0)
    independent = gr.independent(lambda index, arm: np.ones(len(index)), [10, 20], reward_range=(0, 1))
    assert default.promised(independent) == gr.Betting(1e-3).promise
    impossible = gr.table(np.where(rng.random((50, 2)) < 0.1, -np.inf, 0.0))
    assert default.promised(impossible).delta == Default().of(impossible).promise.delta


def test_the_default_of_kernels_errs_less_than_that_of_a_single_decision():
    assert KERNELS["Slice"]().method == Default(1e-3, 1e-5)
    assert KERNELS["GraphGibbs"]().method == gr.Thinning()
    assert KERNELS["GraphGibbs"](delta=0.01).method == gr.Betting(0.01)
    assert gr.GraphGibbs(1.0 - np.eye(4), 2, gr.models.Potts().log_factor).method == gr.Race(delta=1e-5)


@pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS)
def test_options_of_kernels_are_named_and_end_alike(make):
    options = [item.name for item in fields(make()) if item.kw_only and item.init]
    wanted = ["log_prior", "method"] if "log_prior" in options else ["method"]
    assert options[-len(wanted) :] == wanted
    assert not any(
        item.kw_only is False and item.name in ("log_prior", "method") for item in fields(make())
    )
