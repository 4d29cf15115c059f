"""Factors of -inf in rows that no race would meet: declared, checked, and said in the promise."""

import numba
import numpy as np
import pytest
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.core.rows import Rows
from gumbelrace.errors import InvalidArgument, NoPossibleArm, PromiseBroken, RewardOutOfRange

# Arm 1 is as good as arm 0, but for 5 of 100,000 rows that rule it out.
SIZE = 100_000
REWARDS = seeded(0).normal(0.0, 1e-4, (SIZE, 2))
REWARDS -= REWARDS.mean(axis=0)
HIDDEN = np.sort(seeded(1).choice(SIZE, 5, replace=False))
REWARDS[HIDDEN, 1] = -np.inf
RACE = gr.Race(delta=0.001)


@numba.njit
def log_factor(n, arm, rewards):
    return rewards[n, arm]


@numba.njit
def of_point(n, theta, rewards):
    return rewards[n, int(theta[0])]


def factors(**options):
    return gr.factors(lambda index, arms: REWARDS[np.ix_(index, arms)], SIZE, 2, **options)


def compiled(**options):
    return gr.compiled(log_factor, (REWARDS,), SIZE, 2, **options)


def likelihood(**options):
    return gr.likelihood(of_point, (REWARDS,), SIZE, **options)([[0.0], [1.0]])


MAKERS = pytest.mark.parametrize("make", [factors, compiled, likelihood])


# Races on these are so cheap that a thousand read less than ten scans.
CHEAP = gr.compiled(log_factor, (0.1 * REWARDS,), SIZE, 2)


def impossible_draws(population, method=RACE, count=500):
    draws = gr.sample(population, np.log([0.2, 0.8]), count, method=method, rng=seeded(2), check=False)
    return int(np.sum(draws.arms == 1))


@MAKERS
def test_declared_rows_rule_an_arm_out(make):
    """Negative control: undeclared, the impossible arm is drawn, by a race that promises 0.001."""
    assert impossible_draws(make()) > 50
    for method in (RACE, gr.Exact(), gr.LilUCB()):
        options = {} if not method.needs_range else {"reward_range": (-1.0, 1.0)}
        assert impossible_draws(make(impossible=HIDDEN[::-1], **options), method, 50) == 0


@MAKERS
def test_an_undeclared_row_is_named(make):
    """It is noticed when it is read, here by an exact scan."""
    for declared in ([], [int(np.delete(np.arange(20), HIDDEN[HIDDEN < 20])[0])]):
        with pytest.raises(RewardOutOfRange, match=rf"row {HIDDEN[0]}, arm 1 is -inf.*declare it"):
            impossible_draws(make(impossible=declared), gr.Exact(), 1)


@pytest.mark.parametrize(
    "method", [RACE, gr.Betting(), gr.Race(gr.methods.Serfling()), gr.LilUCB()], ids=repr
)
def test_a_range_down_to_minus_infinity_makes_every_row_count(method):
    assert impossible_draws(compiled(reward_range=(-np.inf, 1.0)), method, 20) == 0


def test_arms_with_rows_of_their_own_declare_by_their_range():
    """Negative control: without, the impossible arm is drawn, and the promise says what to do."""
    one_arm = [REWARDS[:, arm].copy() for arm in range(2)]

    def own(**options):
        return gr.independent(lambda index, arm: one_arm[arm][index], [SIZE, SIZE], **options)

    assert impossible_draws(own(), count=50) > 0
    assert impossible_draws(own(reward_range=([-1.0, -np.inf], 1.0)), count=50) == 0
    assert "a reward_range down to -inf" in RACE.promised(own()).assumption


def test_a_chain_in_a_place_that_a_missed_row_forbids_says_what_to_do():
    impossible = np.full((20, 2), -np.inf)
    populations = {
        "impossible=": gr.compiled(log_factor, (impossible,), 20, 2),
        "down to -inf": gr.independent(lambda index, arm: impossible[index, arm], [20, 20]),
    }
    for words, population in populations.items():
        with pytest.raises(NoPossibleArm, match=rf"if a chain went there.*{words}"):
            RACE.best(population, None, seeded())


def test_declared_rows_keep_the_sums():
    """Rows that can be -inf and are not: the answers are those without the declaration."""
    rewards = seeded(3).normal(0.0, 0.01, (2000, 3))
    plain = gr.compiled(log_factor, (rewards,), 2000, 3)
    declared = gr.compiled(log_factor, (rewards,), 2000, 3, impossible=[3, 17, 1999])
    draws = [gr.sample(p, size=50, method=gr.Exact(), rng=seeded(4)) for p in (plain, declared)]
    assert (draws[0].arms == draws[1].arms).all()
    assert plain.rewards == declared.rewards


def test_a_control_variate_of_declared_rows():
    """Read besides the expansion's own: the sums are those of the rewards."""
    rewards = seeded(3).normal(0.0, 0.01, (2000, 3))
    near = np.round(rewards, 3)
    control = gr.control_variates.ControlVariate(
        log_factor,
        (near,),
        near[5:].sum(axis=0),
        rows=Rows(2000, head=np.arange(5)),
        size=2000,
    )
    population = gr.compiled(log_factor, (rewards,), 2000, 3, impossible=[3, 17]).minus(control)
    assert population.known.finite
    assert population.known.evaluations == 6 * 3
    draws = [
        gr.sample(p, size=50, method=gr.Exact(), rng=seeded(4)).arms
        for p in (population, gr.table(rewards))
    ]
    assert (draws[0] == draws[1]).all()


def test_metropolis_never_goes_where_a_declared_row_forbids():
    data = np.linspace(0.0, 1.0, 5000)

    @numba.njit
    def support(n, theta, data):
        return -1e-4 * theta[0] if data[n] <= theta[0] else -np.inf  # uniform on [0, θ], as good as

    kernel = gr.Metropolis(
        gr.likelihood(support, (data,), 5000, impossible=[4999]), gr.kernels.RandomWalk(0.1)
    )
    trace = gr.run(kernel, gr.kernels.Position(np.array([1.2])), steps=300, rng=seeded(5), progress=False)
    assert trace["position"].min() >= 1.0


def test_the_bounds_of_a_graph_declare():
    """One pair of 400 neighbours forbids equal labels: with bounds that say so it is always read."""

    @numba.njit
    def forbidding(label, other, weight):
        return -np.inf if weight < 1e-3 and label == other else weight * label * other

    def bounds(weights):
        return np.where(weights < 1e-3, -np.inf, 0.0), weights

    n = 400
    weights = 1e-3 * (1.0 - np.eye(n))
    weights[0, 1] = weights[1, 0] = 5e-4
    start = gr.kernels.Labels(np.arange(n, dtype=np.int32) % 2)
    same = {}
    for name, potential in (("declared", gr.models.Pairwise(forbidding, bounds)), ("bare", forbidding)):
        kernel = gr.GraphGibbs(weights, 2, potential, method=gr.Race(delta=0.001))
        labels = gr.run(kernel, start, steps=200, rng=seeded(6), progress=False, check=0)["labels"]
        same[name] = int(np.sum(labels[..., 0] == labels[..., 1]))
    assert same["declared"] == 0 < same["bare"]


def test_gibbs_draws_nothing_that_a_declared_row_forbids():
    """Negative control: undeclared, it does."""
    seen = {}
    for name, options in (("declared", {"impossible": HIDDEN}), ("undeclared", {})):
        population = compiled(**options)
        kernel = gr.Gibbs(lambda labels, i, p=population: (p, np.log([0.2, 0.8])), 1, method=RACE)
        trace = gr.run(
            kernel, gr.kernels.Labels(np.zeros(1, int)), steps=200, rng=seeded(7), progress=False, check=0
        )
        seen[name] = int(trace["labels"].sum())
    assert seen["declared"] == 0 < seen["undeclared"]


def test_the_promise_says_what_it_rests_on():
    assert "-inf are declared" in RACE.promise.assumption
    assert "normally distributed and that rows" in gr.sample(compiled(), rng=seeded()).tv_bound.assumption
    assert gr.Race(gr.methods.Serfling()).promise.proved
    assert gr.Promise(0.1).under(None).proved
    assert gr.Promise(0.1).under("a").under("b") == gr.Promise(0.1, "a and that b")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"impossible": [SIZE]}, "outside"),
        ({"impossible": [-1]}, "outside"),
        ({"impossible": [0.5]}, "row numbers"),
        ({"impossible": 3}, "row numbers"),
        ({"impossible": [3], "reward_range": (-np.inf, 1.0)}, "other rows"),
    ],
)
@MAKERS
def test_rows_must_be_rows(make, options, words):
    with pytest.raises(InvalidArgument, match=words):
        make(**options)


# ---- Checks by default ----


def test_a_sample_shows_that_something_impossible_was_drawn():
    with pytest.warns(PromiseBroken, match="draws of probability zero"):
        draws = gr.sample(compiled(), np.log([0.2, 0.8]), 2000, method=RACE, rng=seeded(2))
    assert draws.checked.impossible == np.sum(draws.arms == 1) > 100
    assert draws.checked.broken


def test_draws_that_read_as_much_as_a_scan_are_checked():
    """Negative control: fewer draws, which have read less, are not."""
    with pytest.warns(PromiseBroken, match="draws of probability zero"):
        draws = gr.sample(CHEAP, np.log([0.2, 0.8]), 1000, method=RACE, rng=seeded(2))
    assert 1.0 < 1000 * draws.fraction < 10.0
    assert draws.checked.impossible > 0
    fewer = gr.sample(CHEAP, np.log([0.2, 0.8]), 20, method=RACE, rng=seeded(2))
    assert 20 * fewer.fraction < 1.0
    assert fewer.checked is None


def test_a_check_changes_no_draw_and_can_be_left_out():
    population = gr.table(seeded(3).normal(0.0, 0.01, (2000, 3)))
    drawn = [
        (rng := seeded(4), gr.sample(population, size=200, rng=rng, check=check), rng.random())
        for check in (None, True, False)
    ]
    for _, draws, after in drawn[1:]:
        assert (draws.arms == drawn[0][1].arms).all()
        assert after == drawn[0][2]
    assert drawn[2][1].checked is None
    assert drawn[0][1].checked == drawn[1][1].checked
    assert drawn[1][1].checked.draws == 200


def test_a_single_draw_is_not_checked_unless_asked():
    population = gr.table(seeded(3).normal(0.0, 0.01, (2000, 3)))
    assert gr.sample(population, rng=seeded()).checked is None
    assert gr.sample(population, rng=seeded(), check=True).checked.draws == 1
    assert gr.sample(population, size=300, method=gr.Exact(), rng=seeded()).checked is None
