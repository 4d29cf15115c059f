"""A population minus a control variate: the same sums, the same winners, everything read counted.

Sums are compared with those of the rewards by `math.fsum`, which does not round on the way.
"""

import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtrc

import gumbelrace as gr
from gumbelrace.errors import (
    InvalidArgument,
    InvalidReward,
    NoPossibleArm,
    RewardOutOfRange,
    ShapeMismatch,
)
from gumbelrace.population.control import Always, residual_of, table_of
from gumbelrace.solvers.exact import totals

SOLVERS = [gr.Exact(), gr.Betting(), gr.Race(), gr.Race(gr.Serfling()), gr.LilUCB()]
# Of the largest sum; 1e-9 is asked for.
RELATIVE = 1e-11
FALSE_ALARM = 1e-4


def seeded(seed=0):
    return np.random.default_rng(seed)


@numba.njit
def entry(n, arm, rewards, count):
    count[n, arm] += 1
    return rewards[n, arm]


@numba.njit
def approximate(n, arm, approximation):
    return approximation[n, arm]


class Case:
    """Rewards and sums of order 1, an approximation that is off by `noise`, rows that are always read."""

    def __init__(self, size, arms, share=0.0, noise=0.01, seed=0):
        rng = seeded(seed)
        rewards = rng.normal(size=(size, arms))
        self.rewards = rewards - rewards.mean(axis=0) + rng.normal(size=arms) / size
        self.near = self.rewards + noise * rng.uniform(-1, 1, size=(size, arms))
        self.noise, self.count = noise, np.zeros(self.rewards.shape, np.int64)
        rows = np.sort(rng.choice(size, int(share * size), replace=False))
        self.always = Always(rows, size) if len(rows) else None
        self.raced = np.arange(size) if self.always is None else self.always.raced

    def control(self, **changes):
        given = {
            "function": approximate,
            "data": (self.near,),
            "sums": np.array([math.fsum(column) for column in self.near[self.raced].T]),
            "residual_range": (np.full(self.arms, -self.noise), np.full(self.arms, self.noise)),
            "always": self.always,
            "size": len(self.rewards),
        }
        return gr.ControlVariate(**(given | changes))

    @property
    def arms(self):
        return self.rewards.shape[1]

    @property
    def sums(self):
        return np.array([math.fsum(column) for column in self.rewards.T])

    def population(self, kind):
        size, arms = self.rewards.shape
        match kind:
            case "compiled":
                return gr.compiled(entry, (self.rewards, self.count), size, arms)
            case "factors":
                return gr.factors(self._read, size, arms)
            case "table":
                return gr.table(self.rewards)

    def _read(self, index, arms):
        self.count[np.ix_(index, arms)] += 1
        return self.rewards[np.ix_(index, arms)]


def difference(sums):
    """Totals are known up to a constant that all arms share."""
    return sums - sums[0]


def assert_same_sums(population, sums):
    error = np.abs(difference(totals(population)) - difference(sums)).max()
    assert error <= RELATIVE * max(1.0, np.abs(sums).max())


kinds = pytest.mark.parametrize("kind", ["compiled", "factors", "table"])
shares = pytest.mark.parametrize("share", [0.0, 0.1])
sizes = pytest.mark.parametrize("size", [2, 300, 20_001])


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
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_winners_are_those_of_the_rewards(kind, share, solver):
    """Sums differ by thousands of standard deviations of what the residuals sum to: no solver errs."""
    case = Case(1000, 5, share, noise=1e-6)
    population = case.population(kind).minus(case.control())
    for seed in range(5):
        offset = seeded(seed).normal(size=5)
        assert solver.best(population, offset, seeded(seed)).arm == np.argmax(case.sums + offset)


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
def test_a_table_counts_the_rows_that_are_always_read(kind):
    case = Case(1000, 3, 0.1)
    population = case.population(kind).minus(case.control())
    assert population.known.evaluations == 300
    assert population.rewards == 3000
    found = gr.Exact().best_each(population, np.zeros((2, 3)), seeded())
    assert found.evaluations.tolist() == [3000, 2700]  # those 300 are read once for all draws


@pytest.mark.parametrize("kind", ["compiled", "factors"])
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_evaluations_are_what_was_computed(kind, solver):
    case = Case(2000, 4, 0.1, noise=0.1)
    population = case.population(kind).minus(case.control())
    outcome = solver.best(population, None, seeded())
    assert outcome.evaluations == case.count.sum()
    assert case.count.max() == 1


@shares
def test_decisions_need_no_row_where_the_range_allows_it(share):
    case = Case(1000, 3, share, noise=1e-9)
    population = case.population("compiled").minus(case.control())
    always = 0 if case.always is None else len(case.always.rows)
    assert gr.Betting().best(population, None, seeded()).evaluations == 3 * always


# ---- Promises ----


def improbable(errors, trials):
    """Whether so many errors, or more, have a probability below FALSE_ALARM at δ = 0.05."""
    return bdtrc(errors - 1, trials, 0.05) < FALSE_ALARM


def errors_of(solver, population, sums, trials=1000):
    """Count Gumbel draws that are not what the sums of the rewards themselves say."""
    offsets = seeded(5).gumbel(size=(trials, len(sums)))
    found = solver.best_each(population, offsets, seeded(6)).arms
    return int(np.sum(found != (sums + offsets).argmax(axis=1)))


@pytest.mark.parametrize("solver", [gr.Betting(delta=0.05), gr.Race(delta=0.05)], ids=repr)
@shares
def test_solvers_keep_their_promise_on_residuals(solver, share):
    """Claim: errors ≤ δ = 0.05 in 1,000 draws with sums of order 1, residuals that vary by 1 in all.

    Oracle: the sums of the rewards; and `audit`. Seeds 5, 6. False alarm: 1e-4. Rows are read one by one,
    in a new order in each draw, so draws are independent.
    """
    case = Case(4000, 5, share, noise=np.sqrt(3.0 / 4000))
    population = case.population("compiled").minus(case.control())
    assert not improbable(errors_of(solver, population, case.sums), 1000)
    report = gr.audit(population, solver, rng=seeded(5))
    assert not improbable(report.errors, report.draws)
    assert 0.0 < report.fraction < 0.9


def test_a_control_variate_with_wrong_sums_breaks_the_promise():
    """Negative control of the above."""
    case = Case(4000, 5, noise=np.sqrt(3.0 / 4000))
    wrong = case.control(sums=case.control().sums + np.arange(5.0))
    population = case.population("compiled").minus(wrong)
    assert improbable(errors_of(gr.Betting(), population, case.sums), 1000)


# ---- Impossible arms and invalid rewards ----


@kinds
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_minus_infinity_in_a_row_always_read_eliminates_the_arm(kind, solver):
    case = Case(300, 3, 0.1)
    best = int(case.sums.argmax())
    case.rewards[case.always.rows[3], best] = -np.inf
    population = case.population(kind).minus(case.control())
    second = int(np.argmax(np.where(np.arange(3) == best, -np.inf, case.sums)))
    assert solver.best(population, None, seeded()).arm == second
    assert np.isneginf(totals(population)[best])


@kinds
def test_minus_infinity_for_all_arms_is_an_error(kind):
    case = Case(300, 3, 0.1)
    case.rewards[case.always.rows[:3], range(3)] = -np.inf
    population = case.population(kind).minus(case.control())
    with pytest.raises(NoPossibleArm):
        gr.Exact().best(population, None, seeded())


@pytest.mark.parametrize("kind", ["compiled", "factors"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_always_read_are_named_by_the_user_s_numbers(kind, bad):
    case = Case(300, 3, 0.1)
    row = case.always.rows[-1]
    case.rewards[row, 2] = bad
    with pytest.raises(InvalidReward, match=f"row {row}, arm 2"):
        case.population(kind).minus(case.control())


@kinds
@shares
@pytest.mark.parametrize("size", [300, 20_001])
def test_raced_rows_are_named_by_the_user_s_numbers(kind, share, size):
    case = Case(size, 3, share)
    row = case.raced[-5]
    case.near[row, 1] = np.nan  # a table of rewards with a NaN is refused before that
    sums = np.zeros(3)
    with pytest.raises(InvalidReward, match=f"row {row}, arm 1"):
        gr.Exact().best(case.population(kind).minus(case.control(sums=sums)), None, seeded())


@pytest.mark.parametrize("kind", ["compiled", "factors"])
@shares
def test_a_range_that_is_too_small_is_noticed(kind, share):
    case = Case(300, 3, share)
    row = case.raced[-5]
    case.near[row, 1] += 1.0
    population = case.population(kind).minus(case.control())
    for one in (population, population.reshuffled(seeded())):
        with pytest.raises(RewardOutOfRange, match=f"row {row}, arm 1"):
            gr.Exact().best(one, None, seeded())


def test_a_table_of_residuals_knows_its_exact_range():
    case = Case(300, 3)
    left = case.rewards - case.near
    low, high = case.population("table").minus(case.control(residual_range=None)).reward_range
    np.testing.assert_array_equal(low, left.min(axis=0))
    np.testing.assert_array_equal(high, left.max(axis=0))


# ---- Arguments ----


@kinds
def test_a_second_control_variate_is_refused(kind):
    case = Case(300, 3)
    population = case.population(kind).minus(case.control())
    with pytest.raises(InvalidArgument, match="already"):
        population.minus(case.control())


@kinds
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"sums": np.zeros(2)}, ShapeMismatch, "3 arms"),
        ({"sums": np.zeros((3, 1))}, ShapeMismatch, "3 arms"),
        ({"sums": np.array([0.0, np.nan, 0.0])}, InvalidArgument, "not finite"),
        ({"size": 299}, ShapeMismatch, "299 rows; the population has 300"),
        ({"always": Always(np.array([3]), 299)}, ShapeMismatch, "299 rows; the population has 300"),
    ],
)
def test_a_control_variate_must_fit(kind, changes, error, message):
    case = Case(300, 3)
    with pytest.raises(error, match=message):
        case.population(kind).minus(case.control(**changes))


@pytest.mark.parametrize("kind", ["compiled", "factors"])
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ((np.zeros(2), np.ones(2)), ShapeMismatch),
        ((np.ones(3), np.zeros(3)), InvalidArgument),
        ((np.full(3, np.nan), np.ones(3)), InvalidArgument),
    ],
)
def test_the_range_must_fit(kind, wrong, error):
    case = Case(300, 3)
    with pytest.raises(error, match="reward_range"):
        case.population(kind).minus(case.control(residual_range=wrong))


def test_populations_without_control_variates_say_so(tmp_path):
    case = Case(300, 3)
    independent = gr.independent(lambda index, arm: case.rewards[index, arm], [300, 200, 100])
    mapped = np.memmap(tmp_path / "rewards", np.float64, "w+", shape=case.rewards.shape)
    for population in (independent, gr.table(mapped)):
        with pytest.raises(InvalidArgument, match="takes no control variate; use factors or compiled"):
            population.minus(case.control())


def test_rewards_of_the_wrong_shape_are_named():
    case = Case(300, 3, 0.1)
    population = gr.factors(lambda index, arms: np.zeros(len(index)), 300, 3)
    with pytest.raises(ShapeMismatch, match=r"shape \(30,\) for 30 rows and 3 arms"):
        population.minus(case.control())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least one"),
        ([3, 2], "increasing"),
        ([2, 2], "increasing"),
        ([-1, 2], r"0\.\.4"),
        ([2, 5], r"0\.\.4"),
        ([0, 1, 2, 3, 4], "nothing is left"),
    ],
)
def test_rows_always_read_are_checked(rows, message):
    with pytest.raises(InvalidArgument, match=message):
        Always(np.array(rows, np.int64), 5)


# ---- Compilation ----


@shares
def test_another_control_variate_compiles_nothing(share):
    case, other = Case(300, 3, share), Case(300, 3, share, seed=1)
    residual = residual_of(entry, approximate, 2, case.always is not None)
    functions = [residual, table_of(entry), table_of(approximate)]
    for one in (case, other):
        population = one.population("compiled").minus(one.control())
        gr.Race().best(population, None, seeded())
        counts = [len(function.signatures) for function in functions]
        if one is case:
            before = counts
    assert counts == before
    assert residual is residual_of(entry, approximate, 2, case.always is not None)
