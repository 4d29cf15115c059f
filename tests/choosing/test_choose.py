"""`choose` and `choose_async`: answers, failures, budgets, and what is said."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

import gumbelrace as gr
from gumbelrace.choosing.claims import order_of
from gumbelrace.choosing.result import amount
from gumbelrace.choosing.store import Store
from gumbelrace.errors import EvaluationFailed, InvalidArgument, InvalidGenerator, RewardOutOfRange

SCORES = (np.random.default_rng(4).random((4, 300)) < np.array([[0.4], [0.5], [0.75], [0.7]])).astype(float)


def score(candidate, example):
    return SCORES[candidate, example]


async def slow_score(candidate, example):
    await asyncio.sleep(0.0)
    return SCORES[candidate, example]


def options(**changes):
    settled = {"score_range": (0, 1), "rng": 1, "workers": 4, "progress": False, "retries": 0}
    return {"candidates": range(4), "examples": range(300), **settled, **changes}


def test_threads_tasks_and_both_calls_agree():
    def found(choice):
        return choice.best, choice.within, choice.decided, choice.out_at.tolist()

    first = found(gr.choose(score, **options()))
    assert first[:3] == (2, 0.0, True)
    assert found(gr.choose(slow_score, **options(workers=7))) == first
    assert found(asyncio.run(gr.choose_async(slow_score, **options()))) == first
    assert found(asyncio.run(gr.choose_async(score, **options(workers=2)))) == first


def test_numba_is_not_loaded():
    code = """
import sys, gumbelrace as gr
gr.choose
assert "numba" not in sys.modules
gr.choose(lambda c, e: float(c), candidates=[0, 1], examples=range(50), score_range=(0, 1), rng=0)
assert not {"numba", "scipy"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_statement():
    choice = gr.choose(score, **options(tolerance=0.1, cost=0.01))
    assert str(choice).startswith("2 is the best or within 0.1 of it (error at most 0.05, proved). ")
    assert f"{choice.evaluations:,} of 1,200 evaluations, {amount(choice.cost)}." in str(choice)
    assert str(gr.choose(score, **options())).startswith("2 is the best (error at most 0.05, proved). ")
    states = {row.name: row.state for row in choice.table}
    assert states["2"] == "best"
    assert set(states.values()) <= {"best", "no better", "out"}
    assert "candidate" in repr(choice)
    assert choice.ahead == choice.evaluations - choice.campaign.scores.settled.sum()


def test_ties_are_said():
    choice = gr.choose(lambda candidate, example: example % 2, **options(examples=range(20)))
    assert choice.within == 0.0
    assert set(choice.tied) == {"1", "2", "3"}
    assert "0 is the best, tied with 1, 2, 3 (" in str(choice)


def test_without_a_winner_the_future_is_told_by_a_distance():
    choice = gr.choose(score, **options(claim="future examples", candidates=[2, 3]))
    assert choice.ended == "examples"
    assert 0.0 < choice.within < 0.3
    assert not choice.decided
    assert "within" in str(choice)
    assert "no more examples" in str(choice)


@pytest.mark.parametrize(
    "cost", [None, 0.5, [0.5, 0.5, 0.5, 0.5], {"0": 0.5, "1": 0.5, "2": 0.5, "3": 0.5}]
)
def test_a_budget_is_kept(cost):
    unit = 1.0 if cost is None else 0.5
    choice = gr.choose(score, **options(budget=100 * unit, cost=cost, tolerance=0.001))
    assert (choice.evaluations, choice.cost, choice.ended) == (100, 100 * unit, "budget")
    assert 0.0 < choice.within <= 1.0
    assert "the budget is spent" in str(choice)


def test_a_smaller_budget_knows_less():
    """The distance from the best that is left, on the same scores."""
    left = [gr.choose(score, **options(budget=budget, delta=1e-6)).within for budget in (40, 200, 600)]
    assert left[0] > left[1] > left[2] > 0.0


def fails_sometimes(candidate, example):
    if (candidate, example) in FAILING:
        raise ConnectionError("no answer")
    return SCORES[candidate, example]


FAILING = {(c, e) for c in range(4) for e in range(300) if (7 * c + e) % 40 == 0}


def test_failures_are_the_lowest_scores():
    lowest = np.array([[0.0 if (c, e) in FAILING else SCORES[c, e] for e in range(300)] for c in range(4)])
    choice = gr.choose(fails_sometimes, **options())
    same = gr.choose(lambda candidate, example: lowest[candidate, example], **options())
    assert choice.out_at.tolist() == same.out_at.tolist()
    assert {(int(f.name), f.example) for f in choice.failures} <= FAILING
    assert choice.failures[0].error == "ConnectionError: no answer"
    assert f"; {len(choice.failures)} failed, scored 0." in str(choice)


def test_failures_as_worst_cases_cost_more_and_widen_intervals():
    lowest, worst = (
        gr.choose(fails_sometimes, **options(on_failure=kind, delta=0.01))
        for kind in ("lowest", "worst case")
    )
    assert worst.evaluations >= lowest.evaluations
    assert "counted as worst cases" in str(worst)
    truth = SCORES.mean(axis=1)
    assert all(
        row.low - 1e-9 <= mean <= row.high + 1e-9 for row, mean in zip(worst.table, truth, strict=True)
    )


def test_a_failure_may_stop_and_what_was_paid_is_kept(tmp_path):
    asked = []

    def counted(candidate, example):
        asked.append((candidate, example))
        return fails_sometimes(candidate, example)

    kept = {"on_failure": "stop", "store": tmp_path / "run.db", "examples": list(range(300))}
    with pytest.raises(EvaluationFailed, match=r"candidate '\d' on example \d+ failed.*ConnectionError"):
        gr.choose(counted, **options(**kept))
    failed = set(asked) & FAILING
    before, asked[:] = set(asked) - failed, []
    with pytest.raises(EvaluationFailed):
        gr.choose(counted, **options(**kept))
    assert not before & set(asked)
    asked.clear()
    choice = gr.choose(counted, **options(**{**kept, "on_failure": "lowest"}))
    assert choice.reused >= len(before)
    assert not before & set(asked)


def test_scores_outside_of_the_range_are_refused():
    with pytest.raises(RewardOutOfRange, match=r"candidate '\d' on example \d+ scored 7"):
        gr.choose(lambda candidate, example: 7, **options())


def test_nan_is_a_failure():
    choice = gr.choose(lambda candidate, example: float("nan") if candidate else 1.0, **options())
    assert choice.best == 0
    assert choice.failures[0].error == "ValueError: the score is NaN"


def test_ctrl_c_keeps_what_is_under_way(tmp_path):
    asked = []

    def interrupted(candidate, example):
        asked.append((candidate, example))
        if len(asked) == 100:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.001)
        return SCORES[candidate, example]

    kept = {"store": tmp_path / "run.db", "examples": list(range(300)), "delta": 1e-6}
    choice = gr.choose(interrupted, **options(**kept))
    assert choice.ended == "interrupted"
    assert choice.evaluations == len(asked) < 400
    assert "it was interrupted" in str(choice)
    gr.choose(interrupted, **options(**kept))
    assert len(set(asked)) == len(asked)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_ends_coroutines_too():
    asked = []

    async def interrupted(candidate, example):
        asked.append((candidate, example))
        if len(asked) == 50:
            os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.001)
        return SCORES[candidate, example]

    choice = gr.choose(interrupted, **options(delta=1e-6))
    assert (choice.ended, choice.evaluations) == ("interrupted", len(asked))


@pytest.mark.parametrize("times", [1, 2])
def test_a_cancelled_call_keeps_what_is_under_way(tmp_path, times):
    asked = []

    async def slow(candidate, example):
        asked.append((candidate, example))
        await asyncio.sleep(0.01)
        return SCORES[candidate, example]

    kept = {"store": tmp_path / "run.db", "examples": list(range(300)), "delta": 1e-6}

    async def main():
        call = asyncio.ensure_future(gr.choose_async(slow, **options(**kept)))
        await asyncio.sleep(0.1)
        for _ in range(times):
            call.cancel()
            await asyncio.sleep(0.001)
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
    assert 0 < len(asked) < 1200
    gr.choose(slow, **options(**kept, budget=len(asked) + 20))
    assert len(set(asked)) == len(asked)


def test_a_fault_of_a_worker_is_raised():
    def leaves(candidate, example):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        gr.choose(leaves, **options())


@pytest.mark.parametrize("kind", [score, slow_score])
def test_nobody_goes_on_when_results_cannot_be_kept(monkeypatch, kind):
    """A full disk, say: evaluations that nobody can keep must not be paid for."""
    asked = []

    def counted(candidate, example):
        asked.append(example)
        return kind(candidate, example)

    async def counted_slowly(candidate, example):
        asked.append(example)
        return await kind(candidate, example)

    def full(self, cells):
        raise OSError("no space left")

    monkeypatch.setattr(Store, "write", full)
    with pytest.raises(OSError, match="no space left"):
        gr.choose(counted if kind is score else counted_slowly, **options())
    so_far = len(asked)
    time.sleep(0.05)
    assert len(asked) == so_far < 1200


def test_choose_within_a_loop_names_the_other():
    async def main():
        gr.choose(slow_score, **options())

    with pytest.raises(InvalidArgument, match=r"await gumbelrace\.choose_async"):
        asyncio.run(main())


def test_orders_are_uniform():
    """The 24 orders of 4 examples over 4,800 seeds, by a chi-squared test that fails one time in 10,000."""
    found = [tuple(order_of([seed, 0], 4)) for seed in range(4800)]
    counts = np.array([found.count(order) for order in permutations(range(4))])
    assert chi2.sf(((counts - 200.0) ** 2 / 200.0).sum(), 23) > 1e-4


def test_an_order_does_not_follow_from_simulated_scores():
    """Scores drawn by the seed that is also given to `choose`: the order must not sort them."""
    uniform = np.random.default_rng(0).random(500)
    choice = gr.choose(
        lambda candidate, example: uniform[example],
        candidates=[0, 1],
        examples=range(500),
        **{key: value for key, value in options(rng=0).items() if key not in ("candidates", "examples")},
    )
    order = choice.campaign.terms.rows
    assert abs(np.corrcoef(uniform[order], np.arange(500))[0, 1]) < 0.2


def test_many_candidates_work():
    rng = np.random.default_rng(0)
    scores = rng.random((1000, 60)) < np.r_[np.full(999, 0.2), 0.95][:, None]
    choice = gr.choose(
        lambda candidate, example: scores[candidate, example],
        **options(candidates=range(1000), examples=range(60), tolerance=0.05),
    )
    assert choice.best == 999


@pytest.mark.parametrize(
    "changes",
    [
        {"score_range": (1, 0)},
        {"score_range": (0, np.inf)},
        {"delta": 0.0},
        {"delta": 1.0},
        {"tolerance": -0.1},
        {"budget": 0},
        {"cost": [1.0, 2.0]},
        {"cost": -1.0},
        {"cost": {"0": 1.0}},
        {"workers": 0},
        {"retries": -1},
        {"claim": "all examples"},
        {"on_failure": "drop"},
        {"candidates": []},
        {"examples": []},
    ],
)
def test_what_makes_no_sense_is_refused(changes):
    with pytest.raises(InvalidArgument):
        gr.choose(score, **options(**changes))


@pytest.mark.parametrize("rng", ["1", True, 1.5])
def test_a_seed_is_a_number(rng):
    with pytest.raises(InvalidGenerator):
        gr.choose(score, **options(rng=rng))


def test_paths_end_where_the_table_does():
    choice = gr.choose(score, **options())
    for number, row in enumerate(choice.table):
        path = choice.path(number, points=5)
        assert np.allclose((path.mean[-1], path.low[-1], path.high[-1]), (row.mean, row.low, row.high))
        assert (np.diff(path.low) >= -1e-9).all()


def test_candidates_and_examples_may_be_any_iterables():
    choice = gr.choose(score, **options(candidates=iter(range(4)), examples=iter(range(300))))
    assert choice.best == 2


def test_data_frames_are_refused():
    class Frame(list):
        to_dict = None

    with pytest.raises(InvalidArgument, match="to_dict"):
        gr.choose(score, **options(examples=Frame()))


def test_units_do_not_matter():
    """By one worker: of several, those under way at the end say more, or less."""
    plain = gr.choose(score, **options(tolerance=0.05, workers=1))
    scaled = gr.choose(
        lambda candidate, example: 8.0 * SCORES[candidate, example] - 4.0,
        **options(score_range=(-4, 4), tolerance=0.4, workers=1),
    )
    assert scaled.out_at.tolist() == plain.out_at.tolist()
    assert scaled.within == pytest.approx(8.0 * plain.within)
    for row, other in zip(scaled.table, plain.table, strict=True):
        assert row.mean == pytest.approx(8.0 * other.mean - 4.0)
        assert (row.low, row.high) == pytest.approx((8.0 * other.low - 4.0, 8.0 * other.high - 4.0))
