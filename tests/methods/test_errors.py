"""What goes wrong is named, by every method, and leaves the population as good as before."""

import numba
import numpy as np
import pytest
from tests.common import EVERY_METHOD, METHODS, ONE_OF_EACH, seeded

import gumbelrace as gr
from gumbelrace.auditing import Audited
from gumbelrace.errors import (
    FactorFailed,
    GumbelraceError,
    InvalidArgument,
    InvalidGenerator,
    InvalidReward,
    NoPossibleArm,
    RewardOutOfRange,
    ShapeMismatch,
    UnknownRange,
)
from gumbelrace.methods.default import Default

REWARDS = np.random.default_rng(1).uniform(size=(200, 3))
TIED = np.tile(REWARDS[:, :1], 3)  # everything is read


def factors(rewards, reward_range=None):
    return gr.factors(
        lambda index, arms: rewards[np.ix_(index, arms)], *rewards.shape, reward_range=reward_range
    )


@numba.njit
def switched(n, arm, rewards, broken):
    if broken[0] and n == 5:
        raise ValueError
    return rewards[n, arm]


def test_every_error_is_a_gumbelrace_error():
    for error in (
        FactorFailed,
        InvalidArgument,
        InvalidGenerator,
        InvalidReward,
        NoPossibleArm,
        RewardOutOfRange,
        ShapeMismatch,
        UnknownRange,
    ):
        assert issubclass(error, GumbelraceError)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 1.5, np.nan, np.inf, "0.05"])
@pytest.mark.parametrize(
    "make",
    [
        gr.Betting,
        gr.LilUCB,
        gr.LilUCB.guaranteed,
        lambda delta: gr.Race(delta=delta),
        lambda delta: gr.Race(gr.methods.Serfling(), delta=delta),
        lambda delta: gr.best(gr.table(REWARDS), delta=delta, rng=seeded()),
        lambda delta: gr.best(factors(REWARDS), delta=delta, rng=seeded()),
    ],
    ids=["Betting", "LilUCB", "guaranteed", "Normal", "Serfling", "best", "best without range"],
)
def test_delta_must_be_a_probability(make, delta):
    with pytest.raises(InvalidArgument, match="delta"):
        make(delta)


@pytest.mark.parametrize("first", [0, 1, -5, 2.5, "50", True])
def test_first_look_must_be_a_count_of_at_least_two(first):
    with pytest.raises(InvalidArgument, match="first"):
        gr.Race(first=first)


@pytest.mark.parametrize(
    "method", [gr.Betting(), gr.Race(gr.methods.Serfling()), gr.LilUCB(), gr.LilUCB.guaranteed()], ids=repr
)
def test_method_that_needs_a_range_says_so(method):
    own = gr.independent(lambda index, arm: REWARDS[index, arm], [200] * 3)
    for population in [factors(REWARDS), own]:
        for run in [
            lambda p=population: method.best(p, None, seeded()),
            lambda p=population: gr.sample(p, size=2, method=method, rng=seeded()),
            lambda p=population: gr.audit(p, method, draws=2, rng=seeded()),
        ]:
            with pytest.raises(UnknownRange, match="reward_range"):
                run()


@pytest.mark.parametrize("rng", [0.5, -1, True, "0", np.random.RandomState(0), np.random])
def test_generator_is_asked_for(rng):
    population = gr.table(REWARDS)
    for run in [
        lambda: gr.sample(population, size=2, rng=rng),
        lambda: gr.sample(population, size=0, rng=rng),
        lambda: gr.best(population, rng=rng),
        lambda: gr.audit(population, gr.Exact(), draws=2, rng=rng),
        *(lambda s=s: s.best(population, None, rng) for s in METHODS),
    ]:
        with pytest.raises(InvalidGenerator, match="default_rng"):
            run()


@pytest.mark.parametrize(
    ("prior", "error"),
    [
        (np.full(3, -np.inf), NoPossibleArm),
        ([0.0, 0.0], ShapeMismatch),
        ([0.0] * 4, ShapeMismatch),
        (0.0, ShapeMismatch),
        (np.zeros((1, 3)), ShapeMismatch),
        ([0.0, np.nan, 0.0], InvalidArgument),
        ([0.0, np.inf, 0.0], InvalidArgument),
    ],
)
def test_prior_or_offset_is_checked(prior, error):
    population = gr.table(REWARDS)
    for run in [
        lambda: gr.sample(population, prior, size=2, rng=seeded()),
        lambda: gr.audit(population, gr.Exact(), draws=2, rng=seeded(), log_prior=prior),
        lambda: gr.best(population, rng=seeded(), offset=prior),
        *(lambda s=s: s.best(population, prior, seeded()) for s in METHODS),
    ]:
        with pytest.raises(error):
            run()


@pytest.mark.parametrize("size", [-1, 1.5, "3", True])
def test_number_of_draws_must_be_a_count(size):
    with pytest.raises(InvalidArgument, match="size"):
        gr.sample(gr.table(REWARDS), size=size, rng=seeded())


@pytest.mark.parametrize("every", [0, -1, 1.5, "3"])
def test_reshuffling_must_be_a_count(every):
    with pytest.raises(InvalidArgument, match="reshuffle_every"):
        gr.sample(gr.table(REWARDS), size=5, rng=seeded(), reshuffle_every=every)
    with pytest.raises(InvalidArgument, match="reshuffle_every"):
        gr.audit(gr.table(REWARDS), gr.Exact(), draws=5, rng=seeded(), reshuffle_every=every)


@EVERY_METHOD
def test_population_works_after_errors_in_its_function(method):
    trouble = []

    def log_factors(index, arms):
        if trouble:
            raise trouble[0]
        return REWARDS[np.ix_(index, arms)]

    population = gr.factors(log_factors, 200, 3, reward_range=(0.0, 1.0))
    expected = method.best(population, None, seeded(2))
    for error in [LookupError("mine"), KeyboardInterrupt(), SystemExit(3), MemoryError()]:
        trouble.append(error)
        with pytest.raises(type(error)) as raised:
            method.best(population, None, seeded(2))
        assert raised.value is error
        trouble.clear()
        assert method.best(population, None, seeded(2)) == expected


@EVERY_METHOD
def test_error_in_the_middle_of_a_draw_leaves_no_trace(method):
    calls = []

    def log_factors(index, arms):
        calls.append(len(index))
        if fails and len(calls) == 2:
            raise LookupError
        return TIED[np.ix_(index, arms)]

    fails = True
    population = gr.factors(log_factors, 200, 3, reward_range=(0.0, 1.0))
    if method != gr.Exact():
        with pytest.raises(LookupError):
            method.best(population, None, seeded(2))
    fails = False
    assert method.best(population, None, seeded(2)) == method.best(
        factors(TIED, (0.0, 1.0)), None, seeded(2)
    )


@EVERY_METHOD
@pytest.mark.parametrize("wrong", ["transposed", "flat", "a number", "one row short", "text"])
def test_wrong_shape_is_named(method, wrong):
    given = {
        "transposed": lambda index, arms: np.zeros((len(arms), len(index), 1)),
        "flat": lambda index, arms: np.zeros(len(index) * len(arms)),
        "a number": lambda index, arms: 0.0,
        "one row short": lambda index, arms: np.zeros((len(index) - 1, len(arms))),
        "text": lambda index, arms: "zero",
    }[wrong]
    population = gr.factors(given, 200, 3, reward_range=(0.0, 1.0))
    with pytest.raises(ValueError if wrong == "text" else ShapeMismatch):
        method.best(population, None, seeded())


@EVERY_METHOD
def test_compiled_factor_fails_and_works_again(method, monkeypatch):
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: None)
    broken = np.zeros(1, np.bool_)
    population = gr.compiled(switched, (TIED, broken), 200, 3, reward_range=(0.0, 1.0))
    expected = method.best(population, None, seeded(2))
    broken[0] = True
    with pytest.raises(FactorFailed, match="row"):
        method.best(population, None, seeded(2))
    broken[0] = False
    assert method.best(population, None, seeded(2)) == expected


@EVERY_METHOD
@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (np.nan, InvalidReward),
        (np.inf, InvalidReward),
        (1e151, InvalidReward),
        (-1e151, InvalidReward),
        (1.5, RewardOutOfRange),
        (-np.inf, RewardOutOfRange),
    ],
)
def test_bad_reward_is_named_and_repaired(method, bad, error):
    rewards = TIED.copy()
    population = factors(rewards, (0.0, 1.0))
    expected = method.best(population, None, seeded(2))
    rewards[123, 1] = bad
    with pytest.raises(error, match="row 123, arm 1 "):
        method.best(population, None, seeded(2))
    rewards[123, 1] = TIED[123, 1]
    assert method.best(population, None, seeded(2)) == expected


@pytest.mark.parametrize("bad", [1e300, -1e300])
def test_rewards_whose_squares_overflow_are_refused(bad):
    rewards = TIED.copy()
    rewards[123, 1] = bad
    declared = [None, [5]]  # nothing is known of the range, or only that other rows are finite
    for population in [
        gr.factors(lambda i, a: rewards[np.ix_(i, a)], 200, 2, impossible=d) for d in declared
    ]:
        with pytest.raises(InvalidReward, match=r"row 123, arm 1 .* beyond 1e\+150; rescale"):
            gr.Exact().best(population, None, seeded())
    with pytest.raises(InvalidReward, match=r"row 123, arm 1 .*rescale"):
        gr.factors(lambda i, a: rewards[np.ix_(i, a)], 200, 2, impossible=[123])
    with pytest.raises(InvalidArgument, match="rescale"):
        factors(rewards, (min(bad, 0.0), max(bad, 1.0)))


@EVERY_METHOD
def test_the_largest_rewards_are_raced(method):
    rewards = 1e150 * np.tile([[0.9], [1.0], [0.8]], (100, 1)) * [[-1.0, 1.0]]
    assert method.best(gr.table(rewards), None, seeded()).arm == 1


def test_generator_is_free_after_an_error():
    rng = seeded()
    with pytest.raises(ZeroDivisionError):
        gr.Race().best(gr.factors(lambda index, arms: 1 / 0, 200, 3), None, rng)
    assert rng.bit_generator.lock.acquire(timeout=1)
    rng.bit_generator.lock.release()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gr.Race(0.05), r"Race\(delta=0.05\)"),
        (lambda: gr.Race(gr.Betting()), "method by itself"),
        (lambda: gr.Race(gr.methods.Normal), r"Normal\(\)"),
        (lambda: gr.Race(variance=gr.methods.Paired), r"Paired\(\)"),
    ],
)
def test_parts_of_a_race_are_checked(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()


@pytest.mark.parametrize("delta", [np.float32(0.1), np.float64(0.1)])
def test_delta_may_be_a_numpy_number(delta):
    for method in (gr.Betting(delta), gr.Race(delta=delta), gr.LilUCB(delta)):
        assert type(method.delta) is float
    assert gr.best(REWARDS, delta=delta, rng=seeded()) == gr.best(REWARDS, delta=float(delta), rng=seeded())


@pytest.mark.parametrize(
    ("method", "message"),
    [("race", "gumbelrace.Race"), (gr.Race, r"write Race\(\)"), (0.05, "gumbelrace.Race")],
)
def test_method_must_be_one(method, message):
    for run in [
        lambda: gr.sample(REWARDS, method=method, rng=seeded()),
        lambda: gr.audit(REWARDS, method, rng=seeded()),
    ]:
        with pytest.raises(InvalidArgument, match=message):
            run()


def test_array_is_taken_as_a_table():
    for given in (REWARDS, REWARDS.tolist()):
        assert gr.best(given, rng=seeded()) == gr.best(gr.table(REWARDS), rng=seeded())
        for method in (gr.Exact(), Default(), Audited(gr.Exact())):
            assert method.best(given, None, seeded()).arm == REWARDS.sum(axis=0).argmax()
            assert method.best_each(given, np.zeros((2, 3)), seeded()).arms.shape == (2,)
        assert gr.sample(given, size=3, rng=seeded()).arms.shape == (3,)
        assert gr.audit(given, gr.Exact(), draws=3, rng=seeded()).errors == 0


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("text", InvalidArgument, "is a str"),
        (None, InvalidArgument, "NoneType"),
        ([["a", "b"]], InvalidArgument, "real numbers"),
        ([[1.0, 2.0], [3.0]], ShapeMismatch, "ragged"),
        (REWARDS[:, 0], ShapeMismatch, "rows, arms"),
        (1j * REWARDS, InvalidArgument, "complex"),
        (np.ma.masked_greater(REWARDS, 0.5), InvalidArgument, "masked"),
        (lambda index, arms: 0.0, InvalidArgument, "gumbelrace.factors"),
        (gr.Race(), InvalidArgument, "is a Race"),
    ],
)
def test_what_is_no_population_is_named(given, error, message):
    for run in [
        lambda: gr.best(given, rng=seeded()),
        lambda: gr.sample(given, rng=seeded()),
        lambda: gr.audit(given, gr.Exact(), rng=seeded()),
        lambda: gr.Exact().best(given, None, seeded()),
    ]:
        with pytest.raises(error, match=message):
            run()


@pytest.mark.parametrize("given", ["text", np.ma.masked_equal([0.0, 1.0, 2.0], 1.0), [1j, 0, 0]])
def test_prior_or_offset_must_hold_real_numbers(given):
    for run in [
        lambda: gr.sample(REWARDS, given, rng=seeded()),
        lambda: gr.best(REWARDS, offset=given, rng=seeded()),
    ]:
        with pytest.raises(InvalidArgument, match=r"log_prior|offset"):
            run()


@EVERY_METHOD
def test_ties_are_seen_when_all_is_read(method):
    # REWARDS in another order have the same sum up to rounding; a little more of one reward breaks the tie.
    turned = np.stack([REWARDS[:, 0], REWARDS[::-1, 0]], axis=1)
    broken = turned + 1e-9 * (np.arange(400).reshape(200, 2) == 7)
    for rewards, tied in [(TIED, True), (turned, True), (broken, False)]:
        outcome = method.best(gr.table(rewards), None, seeded(3))
        assert outcome.exhausted
        assert outcome.tied == tied


def test_ties_of_constant_columns_and_of_arms_with_rows_of_their_own():
    for method in ONE_OF_EACH:
        for columns, tied in [
            ([0.3, 0.3, 0.1], True),
            ([0.0, 0.0, 0.0], True),
            ([0.3, 0.3 + 1e-9, 0.1], False),
        ]:
            found = method.best(gr.table(np.tile(columns, (500, 1))), None, seeded())
            assert (found.tied, columns[found.arm]) == (tied, max(columns))
    for sizes, tied in [([40, 20], True), ([40, 21], False)]:
        own = gr.independent(lambda index, arm: np.full(len(index), 1.0 + arm), sizes)
        assert gr.Exact().best(own, None, seeded()).tied == tied


def test_a_tie_is_shown_where_there_is_one():
    assert repr(gr.Outcome(1, 4, 0, True)) == "Outcome(arm=1, evaluations=4, looks=0, exhausted=True)"
    tied = gr.Exact().best(np.zeros((2, 2)), None, np.random.default_rng(0))
    assert repr(tied).startswith("Outcome(arm=0, evaluations=4, looks=0, exhausted=True, tied=True, ")
