"""A population minus a control variate: the same sums, the same winners, everything read counted.

Sums are compared with those of the rewards by `math.fsum`, which does not round on the way.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtrc
from tests.common import ONE_OF_EACH, seeded
from tests.population.residuals import Case, approximate, assert_same_sums, entry, kinds, shares, sizes

import gumbelrace as gr
from gumbelrace.population.control import difference, table_of

FALSE_ALARM = 1e-4


# ---- Sums, winners, evaluations ----


@kinds
@shares
@sizes
def test_sums_are_those_of_the_rewards(kind, share, size):
    case = Case(size, 4, share)
    population = case.population(kind).minus(case.control())
    assert_same_sums(population, case.sums)
    assert_same_sums(population.reshuffled(seeded(1)), case.sums)


def test_sums_of_another_control_variate_are_noticed():
    """The check above has teeth: known sums that are off by 1e-9 of their size fail it."""
    case = Case(20_001, 4)
    sums = case.control().sums * (1 + 1e-9 * np.arange(4))
    with pytest.raises(AssertionError):
        assert_same_sums(case.population("compiled").minus(case.control(sums=sums)), case.sums)


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(["compiled", "factors", "table"]),
    st.integers(1, 40),
    st.integers(1, 5),
    st.floats(0.0, 0.95),
    st.integers(0, 2**32 - 1),
)
def test_sums_of_small_populations(kind, size, arms, share, seed):
    case = Case(size, arms, share, seed=seed)
    assert_same_sums(case.population(kind).minus(case.control()), case.sums)


@kinds
@shares
@pytest.mark.parametrize("method", ONE_OF_EACH, ids=repr)
def test_winners_are_those_of_the_rewards(kind, share, method):
    """Sums differ by thousands of standard deviations of what the residuals sum to: no method errs."""
    case = Case(1000, 5, share, noise=1e-6)
    population = case.population(kind).minus(case.control())
    for seed in range(5):
        offset = seeded(seed).normal(size=5)
        assert method.best(population, offset, seeded(seed)).arm == np.argmax(case.sums + offset)


@pytest.mark.parametrize("kind", ["compiled", "factors"])
@shares
@sizes
def test_exact_reads_everything_once(kind, share, size):
    case = Case(size, 3, share)
    population = case.population(kind).minus(case.control())
    outcome = gr.Exact().best(population, None, seeded())
    assert outcome.arm == case.sums.argmax()
    assert (case.count == 1).all()
    assert outcome.evaluations == case.count.sum() == population.rewards == 3 * size


@kinds
def test_a_table_counts_the_rows_of_the_head(kind):
    case = Case(1000, 3, 0.1)
    population = case.population(kind).minus(case.control())
    assert population.known.evaluations == 300
    assert population.rewards == 3000
    assert gr.Exact().best(population, None, seeded()).evaluations == 3000
    found = gr.Exact().best_each(population, np.zeros((2, 3)), seeded())
    assert found.evaluations.tolist() == [2700, 2700]  # those 300 were read when it was made


@pytest.mark.parametrize("kind", ["compiled", "factors"])
def test_rows_of_the_head_are_counted_once_for_all_orders(kind):
    case = Case(1000, 3, 0.1, noise=0.1)
    population = case.population(kind).minus(case.control())
    draws = gr.sample(population, None, 40, method=gr.Race(), rng=seeded(), reshuffle_every=1, check=False)
    assert case.count[case.rows.head].max() == 1
    assert draws.evaluations.sum() == case.count.sum()
    assert draws.fraction == case.count.sum() / (40 * 3000)
    read = case.count.sum()
    report = gr.audit(population, gr.Race(), draws=40, rng=seeded(), reshuffle_every=1)
    scan = 3 * len(case.rows.tail)  # for the exact sums
    assert report.fraction * 40 * 3000 == pytest.approx(case.count.sum() - read - scan + 300)


@pytest.mark.parametrize("kind", ["compiled", "factors"])
@pytest.mark.parametrize("method", ONE_OF_EACH, ids=repr)
def test_evaluations_are_what_was_computed(kind, method):
    case = Case(2000, 4, 0.1, noise=0.1)
    population = case.population(kind).minus(case.control())
    outcome = method.best(population, None, seeded())
    assert outcome.evaluations == case.count.sum()
    assert case.count.max() == 1


@shares
def test_decisions_need_no_row_where_the_range_allows_it(share):
    case = Case(1000, 3, share, noise=1e-9)
    population = case.population("compiled").minus(case.control())
    assert gr.Betting().best(population, None, seeded()).evaluations == 3 * len(case.rows.head)


# ---- Promises ----


def improbable(errors, trials):
    """Whether so many errors, or more, have a probability below FALSE_ALARM at δ = 0.05."""
    return bdtrc(errors - 1, trials, 0.05) < FALSE_ALARM


def errors_of(method, population, sums, trials=1000):
    """Count Gumbel draws that are not what the sums of the rewards themselves say."""
    offsets = seeded(5).gumbel(size=(trials, len(sums)))
    found = method.best_each(population, offsets, seeded(6)).arms
    return int(np.sum(found != (sums + offsets).argmax(axis=1)))


@pytest.mark.parametrize("method", [gr.Betting(delta=0.05), gr.Race(delta=0.05)], ids=repr)
@shares
def test_methods_keep_their_promise_on_residuals(method, share):
    """Claim: errors ≤ δ = 0.05 in 1,000 draws with sums of order 1, residuals that vary by 1 in all.

    Oracle: the sums of the rewards; and `audit`. Seeds 5, 6. False alarm: 1e-4. Rows are read one by one,
    in a new order in each draw, so draws are independent.
    """
    case = Case(4000, 5, share, noise=np.sqrt(3.0 / 4000))
    population = case.population("compiled").minus(case.control())
    assert not improbable(errors_of(method, population, case.sums), 1000)
    report = gr.audit(population, method, rng=seeded(5))
    assert not improbable(report.errors, report.draws)
    assert 0.0 < report.fraction < 0.9


def test_a_control_variate_with_wrong_sums_breaks_the_promise():
    """Negative control of the above."""
    case = Case(4000, 5, noise=np.sqrt(3.0 / 4000))
    wrong = case.control(sums=case.control().sums + np.arange(5.0))
    population = case.population("compiled").minus(wrong)
    assert improbable(errors_of(gr.Betting(), population, case.sums), 1000)


# ---- Compilation ----


@shares
def test_another_control_variate_compiles_nothing(share):
    case, other = Case(300, 3, share), Case(300, 3, share, seed=1)
    residual = difference(entry, approximate, 2)
    functions = [residual, table_of(entry), table_of(approximate)]
    for one in (case, other):
        population = one.population("compiled").minus(one.control())
        gr.Race().best(population, None, seeded())
        counts = [len(function.signatures) for function in functions]
        if one is case:
            before = counts
    assert counts == before
    assert residual is difference(entry, approximate, 2)


# ---- Head, tail and weights ----


def weighted(kind, rewards, **options):
    size, arms = rewards.shape
    if kind == "factors":
        return gr.factors(lambda index, arms: rewards[np.ix_(index, arms)], size, arms, **options)
    return gr.compiled(entry, (rewards, np.zeros(rewards.shape, np.int64)), size, arms, **options)


@pytest.mark.parametrize("kind", ["compiled", "factors"])
def test_weights_stay_with_the_population(kind):
    """Beside declared rows, which are the head, and a control variate that has none of its own."""
    case, weights = Case(300, 3, 0.1), np.arange(1.0, 301.0)
    assert weighted(kind, case.rewards).rows.weights is None
    population = weighted(kind, case.rewards, weights=weights, impossible=[7])
    head = np.union1d(case.rows.head, [7])
    expected = weights.copy()
    expected[7] = 0.0
    np.testing.assert_array_equal(population.rows.weights, expected)
    both = population.minus(case.control())
    expected[head] = 0.0
    np.testing.assert_array_equal(both.rows.weights, expected)
    np.testing.assert_array_equal(both.rows.head, head)
    assert_same_sums(both, case.sums)


@pytest.mark.parametrize("kind", ["compiled", "factors"])
@pytest.mark.parametrize("weights", [np.ones(299), -np.ones(300), np.full(300, np.nan)])
def test_wrong_weights_are_refused(kind, weights):
    with pytest.raises(gr.errors.GumbelraceError, match="weights"):
        weighted(kind, np.zeros((300, 2)), weights=weights)


@pytest.mark.parametrize("method", ONE_OF_EACH, ids=repr)
def test_functions_get_the_user_s_row_numbers(method):
    """Whoever reads a tail reads rows of the tail, under their own numbers."""
    case, asked = Case(300, 2, 0.1), []

    def log_factors(index, arms):
        asked.append(index)
        return case.rewards[np.ix_(index, arms)]

    population = gr.factors(log_factors, 300, 2).minus(case.control())
    np.testing.assert_array_equal(asked.pop(), case.rows.head)
    method.best(population, None, seeded())
    assert len(asked) > 0 or method == gr.Betting()
    assert np.isin(np.concatenate([[case.rows.tail[0]], *asked]), case.rows.tail).all()
