"""Which way of sampling clusters is picked."""

import numpy as np
import pytest
from tests.kernels.clusters.mentions import pairs_of

import gumbelrace as gr
from gumbelrace import errors
from gumbelrace.kernels.clusters import cost as cluster_cost


def picked(monkeypatch, cost, n=2000, **options):
    monkeypatch.setattr(cluster_cost, "factor_seconds", lambda pairs, rng: cost)
    return gr.cheapest(gr.Pairs(None, (), n), np.random.default_rng(0), **options)


def test_dear_factors_are_raced_and_cheap_ones_kept(monkeypatch):
    assert picked(monkeypatch, 2e-7)[:2] == (gr.Exact(), "sums")
    assert picked(monkeypatch, 1e-4)[:2] == (gr.Race(), "pairs")
    assert picked(monkeypatch, 1e-4, solver=gr.Race(delta=0.01)).solver == gr.Race(delta=0.01)


def test_what_does_not_fit_is_not_kept(monkeypatch):
    choice = picked(monkeypatch, 1e-4, memory=1e6)
    assert choice.keep == "nothing"
    assert set(choice.seconds) == {"exact nothing", "raced nothing"}


def test_few_mentions_are_not_raced(monkeypatch):
    assert isinstance(picked(monkeypatch, 1e-4, n=100).solver, gr.Exact)


def test_the_factor_is_timed_and_the_choice_is_said():
    choice = gr.cheapest(pairs_of(np.zeros((1000, 1000)), (0.0, 1.0)), np.random.default_rng(1))
    assert 0.0 < choice.factor_seconds < 1e-3
    assert "keep=" in str(choice)
    assert isinstance(choice.solver, gr.Exact)
    gr.ClusterGibbs(pairs_of(np.zeros((5, 5))), choice.solver, choice.keep)


def test_wrong_arguments():
    with pytest.raises(errors.InvalidArgument, match="sweeps"):
        gr.cheapest(pairs_of(np.zeros((5, 5))), np.random.default_rng(0), sweeps=0)
    with pytest.raises(errors.InvalidArgument, match="race with"):
        gr.cheapest(pairs_of(np.zeros((5, 5))), np.random.default_rng(0), solver=gr.Exact())
    with pytest.raises(errors.InvalidGenerator):
        gr.cheapest(pairs_of(np.zeros((5, 5))), 0)
