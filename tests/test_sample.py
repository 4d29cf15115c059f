"""Draws: their law, what they report, and how they are batched."""

import re
import sys

import numpy as np
import pytest
from scipy.special import chdtrc, log_softmax, softmax
from tests.common import ONE_OF_EACH, seeded

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument
from gumbelrace.population.table import Table

FALSE_ALARM = 1e-4
REWARDS = np.random.default_rng(1).uniform(size=(400, 4), high=0.3)


def factors(size=400, reward_range=None):
    rewards = np.resize(REWARDS, (size, 4))
    return gr.factors(lambda index, arms: rewards[np.ix_(index, arms)], size, 4, reward_range=reward_range)


def tabled(size):
    return gr.table(np.resize(REWARDS, (size, 4)))


@pytest.mark.parametrize("method", [None, *ONE_OF_EACH], ids=repr)
def test_a_single_draw_has_a_number(method):
    draw = gr.sample(gr.table(REWARDS), method=method, rng=seeded())
    assert [len(draw.arms), len(draw.evaluations), len(draw.looks), len(draw.exhausted)] == [1, 1, 1, 1]
    assert (draw.arm, type(draw.arm)) == (draw.arms[0], int)
    assert (draw.fraction, type(draw.fraction)) == (draw.evaluations[0] / 1600, float)
    with pytest.raises(InvalidArgument, match="7 draws"):
        gr.sample(gr.table(REWARDS), size=7, method=method, rng=0).arm  # noqa: B018


def test_draws_and_outcomes_say_the_same():
    """Their share, their promise, and a line that shows both."""
    population = gr.table(REWARDS)
    draws, outcome = gr.sample(population, size=500, rng=0), gr.best(population, rng=0)
    assert draws.promise == outcome.promise == gr.Promise(0.05)
    assert 0.0 < outcome.fraction == outcome.evaluations / 1600 <= 1.0
    assert f"fraction={outcome.fraction:.3g}, promise=0.05 proved" in repr(outcome)
    counts = np.bincount(draws.arms)
    assert repr(draws).startswith(f"Draws(500 of {{{counts.argmax()}: {counts.max()}, ")
    assert f"fraction={draws.fraction:.3g}, promise=0.05 proved" in repr(draws)
    assert "0.05 assumed" in repr(gr.best(population, method=gr.Race(), rng=0))
    assert repr(gr.sample(population, size=0)).startswith("Draws(0 of {}, fraction=0")
    shown = str(draws).splitlines()
    assert shown[0].startswith(f"500 draws: {counts.argmax()} {counts.max() / 500:.1%}, ")
    assert shown[1:3] == [f"{draws.fraction:.2%} of the rewards read by a draw", str(draws.tv_bound)]
    first, second = (f"{outcome.means[arm]:.4g}" for arm in (outcome.arm, outcome.runner_up))
    assert str(outcome).splitlines() == [
        f"best is arm {outcome.arm}, mean {first}",
        f"next is arm {outcome.runner_up}, mean {second}, {outcome.gap:.3g} less",
        f"{outcome.fraction:.2%} of the rewards read ({outcome.evaluations:,}), {outcome.looks} looks",
        "wrong with a probability of at most 0.05, proved",
    ]
    assert str(gr.best(population, method=gr.Exact())).splitlines()[-1] == "exact"
    assert str(gr.sample(population, size=0)).startswith("0 draws")
    for text in (shown, [str(outcome), str(gr.best(population, method=gr.Race(), rng=0))]):
        assert all(map(str.isascii, text))  # every terminal can show them


@pytest.mark.parametrize("method", ONE_OF_EACH, ids=repr)
def test_sizes_give_arrays(method):
    for size in (0, 1, 7, np.int64(3)):
        draws = gr.sample(gr.table(REWARDS), size=size, method=method, rng=seeded())
        for name, dtype in [("arms", "i8"), ("evaluations", "i8"), ("looks", "i8"), ("exhausted", "?")]:
            values = getattr(draws, name)
            assert (values.shape, values.dtype) == ((size,), np.dtype(dtype))
        if size:
            assert draws.fraction == pytest.approx(draws.evaluations.sum() / (size * 1600), rel=1e-12)
        else:
            assert draws.fraction == 0.0


def test_no_draws_leave_the_generator_alone():
    rng = seeded(5)
    gr.sample(gr.table(REWARDS), size=0, rng=rng)
    assert rng.random() == seeded(5).random()


@pytest.mark.parametrize("prior", [None, [0.0, 1.0, -1.0, 0.5]])
def test_draws_follow_the_law(prior):
    """Exact method, 40,000 draws: chi-square against the softmax of sums and prior, false alarms 1e-4."""
    rewards = REWARDS - REWARDS.mean(axis=0) + np.array([0.0, 1.0, 0.5, -1.0]) / 400
    law = softmax(rewards.sum(axis=0) + (0.0 if prior is None else np.array(prior)))
    draws = gr.sample(gr.table(rewards), prior, size=40_000, method=gr.Exact(), rng=seeded(2))
    counts = np.bincount(draws.arms, minlength=4)

    def p_value(p):
        return chdtrc(3, ((counts - 40_000 * p) ** 2 / (40_000 * p)).sum())

    assert p_value(law) > FALSE_ALARM
    assert p_value(softmax(1.1 * log_softmax(law))) < FALSE_ALARM  # a negative control


def test_prior_shifts_by_a_constant_change_nothing():
    population, prior = gr.table(REWARDS), np.array([0.0, 1.0, -np.inf, 0.5])
    draws = [gr.sample(population, prior + c, size=50, rng=seeded(3)).arms for c in (0.0, 64.0)]
    np.testing.assert_array_equal(*draws)
    assert 2 not in draws[0]


def test_prior_is_not_changed():
    prior = np.array([0.0, 1.0, -1.0, 0.5])
    gr.sample(gr.table(REWARDS), prior, size=5, rng=seeded())
    assert prior.tolist() == [0.0, 1.0, -1.0, 0.5]


@pytest.mark.parametrize(
    ("method", "bound", "words"),
    [
        (gr.Exact(), 0.0, "proved"),
        (gr.Betting(0.02), 0.02, "proved"),
        (gr.Race(gr.methods.Serfling(), 0.03), 0.03, "proved"),
        (gr.LilUCB.guaranteed(0.1), 0.1, "proved"),
        (gr.Race(delta=0.04), 0.04, "assuming that means .* normally distributed"),
        (gr.LilUCB(0.1), 0.1, "assuming that .* heuristic"),
    ],
    ids=repr,
)
def test_total_variation_says_what_it_rests_on(method, bound, words):
    tv = gr.sample(gr.table(REWARDS), size=1, method=method, rng=seeded()).tv_bound
    assert float(tv) == tv.bound == bound
    assert tv.proved == (words == "proved") == (tv.assumption is None)
    assert re.search(words, str(tv))
    assert f"{bound:g}" in str(tv)


def test_default_method_is_proved_where_it_can_be():
    assert gr.sample(gr.table(REWARDS), rng=seeded()).tv_bound.proved
    assert gr.sample(factors(reward_range=(0.0, 0.3)), rng=seeded()).tv_bound.proved
    assert "normally" in gr.sample(factors(), rng=seeded()).tv_bound.assumption


def test_the_same_seed_gives_the_same_draws():
    first, again, other = (
        gr.sample(gr.table(REWARDS), size=50, method=gr.Race(), rng=seeded(s)) for s in (4, 4, 5)
    )
    np.testing.assert_array_equal(first.arms, again.arms)
    np.testing.assert_array_equal(first.evaluations, again.evaluations)
    assert (first.arms != other.arms).any()


@pytest.mark.parametrize(("every", "orders"), [(1, 10), (3, 4), (5, 2), (9, 2), (10, 1), (99, 1)])
def test_rows_are_reshuffled_before_the_first_and_after_so_many_draws(monkeypatch, every, orders):
    made, original = [], Table.reshuffled

    def counted(self, rng):
        made.append(original(self, rng))
        return made[-1]

    monkeypatch.setattr(Table, "reshuffled", counted)
    population = gr.table(np.arange(20_000.0)[:, None])
    draws = gr.sample(population, size=10, method=gr.Race(), rng=seeded(6), reshuffle_every=every)
    assert len(draws.arms) == 10
    assert len({tuple(table._rewards[0, :9]) for table in made}) == len(made) == orders


def test_reshuffled_draws_are_seeded():
    draws = [
        gr.sample(make(20_000), size=6, method=gr.Race(), rng=seeded(7), reshuffle_every=every)
        for make, every in [(tabled, 2), (tabled, 2), (factors, 2), (factors, None)]
    ]
    np.testing.assert_array_equal(draws[0].evaluations, draws[1].evaluations)
    # Draws that do not share an order have nothing to reshuffle.
    np.testing.assert_array_equal(draws[2].evaluations, draws[3].evaluations)


@pytest.mark.parametrize("held", [1, 8, 24])
def test_few_gumbel_variables_are_held_at_a_time(monkeypatch, held):
    """However many are held, exact draws are the same if only Gumbel variables use the generator."""
    expected = gr.sample(gr.table(REWARDS), size=25, method=gr.Exact(), rng=seeded(8))
    monkeypatch.setattr(sys.modules["gumbelrace.sampling"], "HELD", held)
    draws = gr.sample(gr.table(REWARDS), size=25, method=gr.Exact(), rng=seeded(8))
    np.testing.assert_array_equal(draws.arms, expected.arms)


def test_a_check_compares_draws_with_their_own_noise():
    """Batches that do not fit in what is held, then a smaller one that would: `Exact` has no errors."""
    rewards = np.zeros((16_384, 512))
    rewards[:, 1] = 1e-6
    options = {"rng": seeded(1), "reshuffle_every": 1200, "check": True}
    draws = gr.sample(gr.table(rewards), size=2600, method=gr.Exact(), **options)
    assert (draws.checked.errors, draws.checked.draws) == (0, 1200)


def test_draws_can_be_compared():
    draws = gr.sample(np.zeros((5, 2)), size=3, rng=0)
    assert draws == draws
    assert draws != gr.sample(np.zeros((5, 2)), size=3, rng=0)
