"""Gibbs sampling of clusters, against enumeration of all partitions and against itself.

Every test of a law has a fixed seed and a false-alarm rate of 1e-4.
"""

import threading

import numpy as np
import pytest
from scipy import stats
from tests.kernels.clusters.mentions import (
    canonical,
    chain,
    energy,
    pairs_of,
    partitions,
    planted,
    start,
    symmetric,
)
from tests.kernels.laws import tail

import gumbelrace as gr
from gumbelrace import errors
from gumbelrace.kernels.clusters.worker import Worker
from gumbelrace.methods.absorb import Absorb
from gumbelrace.verdict import clopper_pearson

ALARM = 1e-4
PAPER = gr.Race(variance=gr.methods.Marginal(shrink=0.0))
EXACT_WAYS = ["nothing", "pairs", "sums"]
# Races of clusters of three and more; at δ = 1e-3 they hardly move the law.
EARLY = gr.Race(delta=1e-3, first=2)
WAYS = [
    *((gr.Exact(), keep) for keep in EXACT_WAYS),
    (EARLY, "nothing"),
    (EARLY, "pairs"),
    (gr.Betting(1e-3), "pairs"),
    (Absorb(first=3), "pairs"),
]


def law_tail(method, keep, placed=True, sign=1.0, temperature=1.0, replicates=1500, sweeps=12):
    """Tail probability of where independent chains are after some sweeps, six mentions each."""
    table = symmetric(6, 0.25, 0.8, seed=1)
    all_of_them = partitions(6)
    p = np.exp([energy(table, labels) / temperature for labels in all_of_them])
    number = {labels: k for k, labels in enumerate(all_of_them)}
    factor = pairs_of(sign * table, (-4.0, 4.0))
    kernel = gr.ClusterGibbs(factor, method=method, keep=keep, annealing=gr.kernels.Constant(temperature))
    rng, found = np.random.default_rng(2), []
    for _ in range(replicates):
        state = kernel.start(rng=rng, placed=placed)
        for _ in range(sweeps):
            state, _ = kernel.step(rng, state)
        found.append(number[canonical(state.labels)])
    cells, expected = pooled(np.array(found), p / p.sum(), replicates)
    return tail(cells, expected, slack=6 * method.promise.delta)


def pooled(cells, p, count, least=8.0):
    """Count rare cells together."""
    rare = p * count < least
    new = np.where(rare, 0, np.cumsum(~rare))
    return new[cells], np.bincount(new, p)


@pytest.mark.parametrize(("method", "keep"), WAYS, ids=repr)
def test_partitions_have_the_right_law(method, keep):
    assert law_tail(method, keep) > ALARM


def test_mentions_that_enter_one_by_one_have_the_right_law():
    assert law_tail(gr.Exact(), "nothing", placed=False) > ALARM


def test_a_temperature_scales_all_factors():
    assert law_tail(gr.Exact(), "sums", temperature=2.0) > ALARM


@pytest.mark.parametrize("method", [gr.Exact(), EARLY], ids=repr)
def test_a_wrong_sign_is_noticed(method):
    assert law_tail(method, "nothing", sign=-1.0) < 1e-12


@pytest.mark.parametrize("keep", ["nothing", "pairs"])
def test_races_of_larger_clusters_keep_the_law(keep):
    """60 mentions, weak factors: energy and number of clusters of 30 raced and 30 exact chains (Welch)."""
    table = symmetric(60, 0.02, 0.25, seed=3)
    means = {}
    for method in (gr.Exact(), gr.Race(delta=0.01)):
        kernel = gr.ClusterGibbs(pairs_of(table), method=method, keep=keep)
        ends = [chain(kernel, start(kernel), 25, seed)[5:] for seed in range(30)]
        means[method] = np.array([mean_statistics(table, visited) for visited in ends])
    for exact, raced in zip(*(values.T for values in means.values()), strict=True):
        assert stats.ttest_ind(exact, raced, equal_var=False).pvalue > ALARM / 2
    assert sum(info.evaluations for _, info in ends[0]) < 0.9 * sum(info.rewards for _, info in ends[0])


@pytest.mark.parametrize("reward_range", [None, (-0.2, 0.2)], ids=["no range", "range"])
def test_larger_clusters_that_are_absorbed_keep_the_law(reward_range):
    """Two persons, weak factors: energy and number of clusters of 25 chains of each kind (Welch)."""
    person, table = planted([80, 60], 0.07, 0.02, 13)
    means, first = [], person.astype(np.int32)
    for method in (gr.Exact(), Absorb()):
        kernel = gr.ClusterGibbs(pairs_of(table, reward_range), method=method, keep="nothing")
        ends = [chain(kernel, kernel.start(first), 15, seed)[5:] for seed in range(25)]
        means.append(np.array([mean_statistics(table, visited) for visited in ends]))
    for exact, absorbed in zip(means[0].T, means[1].T, strict=True):
        assert stats.ttest_ind(exact, absorbed, equal_var=False).pvalue > ALARM / 2
    share = sum(info.evaluations for _, info in ends[0]) / sum(info.rewards for _, info in ends[0])
    assert share < 0.8


def test_who_finds_no_winner_leaves_mergers_and_the_end_of_a_search_to_a_race():
    person, table = planted([60, 40, 20], 0.5, 0.5, 14)
    cooling = gr.kernels.Geometric(1.0, 0.7, zero_after=6)
    kernel = gr.ClusterGibbs(
        pairs_of(table), method=Absorb(), keep="nothing", annealing=cooling, merges=True
    )
    labels = chain(kernel, start(kernel), 9, seed=1)[-1][0].labels
    assert canonical(labels) == canonical(person)
    cold = gr.kernels.Labels(labels, 9)
    assert kernel.audit(np.random.default_rng(0), cold)[:2] == (0, len(labels))
    with pytest.raises(errors.InvalidArgument, match="keep='sums' knows all values"):
        gr.ClusterGibbs(pairs_of(table), method=Absorb(), keep="sums")


def test_choices_that_find_no_winner_are_compared_in_law(monkeypatch):
    """Level 0.999: a false alarm once in 1,000 seeds. Negative control: the exact law is a flatter one."""
    person, table = planted([200, 150], 0.03, 0.01, 13)
    kernel = gr.ClusterGibbs(pairs_of(table), method=Absorb(), keep="nothing")
    first = kernel.start(person.astype(np.int32))
    trace = gr.run(kernel, first, steps=40, rng=np.random.default_rng(1), progress=False)
    assert 0.0 < trace.law_error < 1e-3
    report = trace.audit(0.2, rng=np.random.default_rng(2), confidence=0.999)
    assert (report.law.of, report.law.states) == ("draws of a chain", 64)
    assert not report.broken

    again = Worker.visit_again
    monkeypatch.setattr(Worker, "visit_again", lambda *asked: 0.7 * again(*asked))
    assert trace.audit(0.2, rng=np.random.default_rng(2), confidence=0.999).broken


def mean_statistics(table, visited):
    return np.mean([(energy(table, s.labels), len(set(s.labels.tolist()))) for s, _ in visited], axis=0)


def forbidding(n, share, seed):
    table = symmetric(n, 0.1, 0.6, seed)
    forbidden = np.triu(np.random.default_rng(seed + 1).random((n, n)) < share, 1)
    table[forbidden | forbidden.T] = -np.inf
    return table


TABLES = {
    "noise": symmetric(50, 0.0, 1.0, 4),
    "planted": planted([30, 15, 4, 1], 0.5, 1.0, 5)[1],
    "forbidding": forbidding(50, 0.05, 6),
    "ties": np.sign(symmetric(50, 0.1, 1.0, 7)),
    "equal": np.full((50, 50), -1.0),
}


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_all_exact_ways_make_the_same_draws(table, placed, merges):
    cooling = gr.kernels.Geometric(2.0, 0.7, zero_after=8)
    kernels = [
        gr.ClusterGibbs(
            pairs_of(table),
            method=gr.Exact(),
            keep=keep,
            scan=gr.kernels.Shuffled(),
            annealing=cooling,
            merges=merges,
        )
        for keep in EXACT_WAYS
    ]
    first, *others = (chain(kernel, start(kernel, placed), 12, seed=8) for kernel in kernels)
    for other in others:
        for (state, info), (twin, same) in zip(first, other, strict=True):
            assert np.array_equal(state.labels, twin.labels)
            assert state.sweep == twin.sweep
            assert info == same
            assert 0.0 <= info.acceptance <= 1.0
    assert kernels[0].computed == sum(info.evaluations for _, info in first)
    assert all(kernel.computed == 50 * 49 // 2 for kernel in kernels[2:])


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize("method", [gr.Race(), gr.Betting(), PAPER], ids=repr)
@pytest.mark.parametrize("table", [TABLES["planted"], TABLES["ties"]], ids=["planted", "ties"])
def test_a_race_that_keeps_pairs_is_the_race_that_does_not(table, method, merges):
    factor = pairs_of(table, (-8.0, 8.0))
    plain, keeping = (
        gr.ClusterGibbs(factor, method=method, keep=keep, merges=merges) for keep in ("nothing", "pairs")
    )
    visited = chain(plain, start(plain), 10, 9)
    for (state, info), (twin, kept) in zip(visited, chain(keeping, start(keeping), 10, 9), strict=True):
        assert np.array_equal(state.labels, twin.labels)
        assert info == kept
    assert plain.computed == sum(info.evaluations for _, info in visited)
    assert keeping.computed <= 50 * 49 // 2


class OnlyTheFirst:
    def order(self, rng, variables):
        return np.zeros(1, np.int64)


def homogeneity_tail(seed_of):
    """Tail probability of how often a mention stays, which is the same in 30 data sets: permutations.

    It should go, because of three members of its own cluster, which a race with the paper's variance
    overlooks as the order of reading has it. 40 steps from the same state in each.
    """
    labels, values = np.repeat([0, 1], [101, 100]).astype(np.int32), np.repeat([1.0, -50.0], [97, 3])
    stays = np.zeros((30, 2))
    for data_set in range(30):
        table = np.zeros((201, 201))
        table[0, 1:101] = table[1:101, 0] = np.random.default_rng(data_set).permutation(values)
        kernel = gr.ClusterGibbs(
            pairs_of(table),
            method=gr.Race(first=20, variance=gr.methods.Marginal(shrink=0.0)),
            keep="pairs",
            scan=OnlyTheFirst(),
            annealing=gr.kernels.Constant(0.0),
        )
        for step in range(40):
            rng = np.random.default_rng(seed_of(data_set, step))
            stays[data_set, kernel.step(rng, gr.kernels.Labels(labels))[0].labels[0]] += 1
    return stats.chi2_contingency(stays).pvalue


def test_every_choice_has_an_order_of_its_own():
    """Oracle: exchangeability, by which all data sets are alike; chi-square, false alarms 1e-4.

    Negative control: an order that is drawn once for each data set.
    """
    assert homogeneity_tail(lambda data_set, step: [data_set, step]) > ALARM
    assert homogeneity_tail(lambda data_set, step: [data_set, 0]) < 1e-12


def test_a_hard_constraint_is_never_broken():
    table = forbidding(40, 0.3, 10)
    for keep in EXACT_WAYS:
        kernel = gr.ClusterGibbs(pairs_of(table), method=gr.Exact(), keep=keep, merges=True)
        for state, _ in chain(kernel, start(kernel), 6, 11):
            assert energy(table, state.labels) > -np.inf


SKEWED = np.exp(symmetric(400, 0.0, 1.0, 12))
AUDITED = {
    "planted": planted([200, 120, 50, 20, 9, 1], 0.4, 1.0, 13)[1],
    "ties": np.sign(planted([250, 100, 50], 0.6, 1.0, 14)[1]),
    "skewed": planted([250, 100, 50], 0.6, 0.0, 15)[1] + 0.2 * (SKEWED - SKEWED.mean()),
}


@pytest.mark.parametrize("method", [gr.Race(), gr.Betting()], ids=repr)
@pytest.mark.parametrize("name", AUDITED)
def test_audit_keeps_the_promise(name, method):
    """P(error) <= δ: fails only if the errors' Clopper-Pearson interval (1 - 2e-4) lies above δ."""
    table = AUDITED[name]
    span = np.triu(table, 1).min() - 0.01, np.triu(table, 1).max() + 0.01
    kernel = gr.ClusterGibbs(pairs_of(table, span), method=method)
    state, info = chain(kernel, start(kernel, placed=False), 4, 16)[-1]
    wrong, made = np.sum([kernel.audit(np.random.default_rng(k), state)[:2] for k in range(3)], axis=0)
    assert made == 3 * len(table)
    assert clopper_pearson(int(wrong), int(made), 1 - 2 * ALARM)[0] <= 0.05
    assert info.evaluations < 0.8 * info.rewards


def one_person_and_many(value):
    """A large cluster that belongs together, and small ones of one to three; nothing else does."""
    sizes = [60, *([1] * 20), *([2] * 15), *([3] * 10)]
    labels = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    table = np.where(labels[:, None] == labels, 0.9, value)
    return table, gr.kernels.Labels(labels)


@pytest.mark.parametrize("method", [gr.Race(), gr.Betting()], ids=repr)
def test_clusters_that_cannot_win_are_not_read(method):
    table, state = one_person_and_many(-0.9)
    kernel = gr.ClusterGibbs(
        pairs_of(table, (-1.0, 1.0)), method=method, annealing=gr.kernels.Constant(0.0)
    )
    after, info = kernel.step(np.random.default_rng(42), state)
    assert np.array_equal(after.labels, state.labels)
    # Mentions of the large cluster read no other one; those of small ones may read everything.
    assert info.evaluations <= 60 * 59 + 80 * 140
    assert kernel.audit(np.random.default_rng(43), state)[:2] == (0, 140)
    wide = gr.ClusterGibbs(
        pairs_of(table, (-100.0, 100.0)), method=method, annealing=gr.kernels.Constant(0.0)
    )
    assert wide.step(np.random.default_rng(42), state)[1].evaluations > info.evaluations


def test_a_small_cluster_that_is_impossible_rules_out_itself_alone():
    table, state = one_person_and_many(-np.inf)
    kernel = gr.ClusterGibbs(pairs_of(table), method=gr.Race(), annealing=gr.kernels.Constant(0.0))
    assert np.array_equal(kernel.step(np.random.default_rng(44), state)[0].labels, state.labels)


def test_audit_counts_errors():
    """Many sums of equal size, and a race that promises next to nothing: it errs, and the audit says so."""
    kernel = gr.ClusterGibbs(pairs_of(symmetric(300, 0.0, 1.0, 17)), method=gr.Race(delta=0.9))
    labels = np.repeat(np.arange(3, dtype=np.int32), 100)
    assert kernel.audit(np.random.default_rng(18), gr.kernels.Labels(labels))[0] > 10


@pytest.mark.parametrize("keep", EXACT_WAYS)
def test_audit_of_exact_finds_nothing(keep):
    kernel = gr.ClusterGibbs(pairs_of(TABLES["planted"]), method=gr.Exact(), keep=keep)
    assert kernel.audit(np.random.default_rng(19), start(kernel))[:2] == (0, 50)


def test_audit_does_not_change_the_draws():
    kernel = gr.ClusterGibbs(pairs_of(AUDITED["planted"]), method=gr.Race())
    state = start(kernel, placed=False)
    plain, *_ = kernel._sweep(np.random.default_rng(20), state)
    audited, *_ = kernel._sweep(np.random.default_rng(20), state, audited=True)
    assert np.array_equal(plain, audited)


def test_shrinkage_makes_the_first_look_safer():
    """Most rewards are about equal and a few decide, which the paper's σ̂ of three rewards overlooks."""
    rng = np.random.default_rng(21)
    table = np.where(rng.random((600, 600)) < 0.04, -20.0, 1.0) + 0.01 * symmetric(600, 0.0, 1.0, 22)
    table = np.triu(table, 1) + np.triu(table, 1).T
    state = gr.kernels.Labels((np.arange(600) % 6).astype(np.int32))
    wrong = [
        gr.ClusterGibbs(pairs_of(table), method=method).audit(np.random.default_rng(23), state)[0]
        for method in (gr.Race(), PAPER)
    ]
    assert wrong[0] < wrong[1]


def test_equal_first_rewards_convince_the_paper_only():
    """Three equal rewards have variance 0, after which the printed race reads no more of an arm."""
    clusters, size = 5, 20
    state = gr.kernels.Labels(np.repeat(np.arange(clusters, dtype=np.int32), size))
    table = np.where(state.labels[:, None] == state.labels, 1.0, -1.0)
    pairs, rng, n = pairs_of(table).without_range(), np.random.default_rng(24), clusters * size
    (paper_state, paper), (_, ours) = (
        gr.ClusterGibbs(pairs, method=method, annealing=gr.kernels.Constant(0.0)).step(rng, state)
        for method in (PAPER, gr.Race())
    )
    assert canonical(paper_state.labels) == canonical(state.labels)
    assert paper.evaluations == n * 3 * clusters
    assert ours.evaluations == n * (n - 1)


def test_evaluations_are_counted():
    n, table = 50, TABLES["planted"]
    for keep in EXACT_WAYS:
        kernel = gr.ClusterGibbs(pairs_of(table), method=gr.Exact(), keep=keep)
        for placed in (True, False):
            visited = chain(kernel.with_method(gr.Exact()), start(kernel, placed), 3, 24)
            infos = [info for _, info in visited]
            first = n * (n - 1) if placed else n * (n - 1) // 2
            assert [info.rewards for info in infos] == [first, n * (n - 1), n * (n - 1)]
            assert [info.evaluations for info in infos] == [info.rewards for info in infos]


def test_kept_pairs_are_those_evaluated():
    kernel = gr.ClusterGibbs(pairs_of(AUDITED["planted"]), method=gr.Race(), keep="pairs")
    chain(kernel, start(kernel, placed=False), 2, 25)
    store = worker(kernel).readers.store
    assert len(store) == 400 * 399 // 2
    assert np.isfinite(store).sum() == kernel.computed
    assert np.isfinite(store).mean() < 0.95


def worker(kernel):
    (idle,) = kernel._local.workers._idle
    return idle


def test_sums_have_room_for_clusters_of_two_and_more():
    """From clusters of one each, sums need no n² doubles; and more clusters make more room."""
    person, table = planted([2] * 150, 4.0, 0.5, 26)
    kernel = gr.ClusterGibbs(pairs_of(table), keep="sums", annealing=gr.kernels.Constant(0.0))
    state, _ = chain(kernel, start(kernel), 3, 27)[-1]
    assert canonical(state.labels) == canonical(person)
    work = worker(kernel).work
    assert work.sums.table.shape == (256, 300)
    labels = work.partition.labels
    column = work.sums.column[labels]
    same = np.where(labels[:, None] == labels, table - np.diag(np.diag(table)), 0.0).sum(axis=1)
    found = work.sums.table[column, np.arange(300)]
    np.testing.assert_allclose(found, same, atol=1e-5)


def test_sums_follow_a_state_from_elsewhere():
    kernel = gr.ClusterGibbs(pairs_of(TABLES["planted"]), keep="sums")
    exact = gr.ClusterGibbs(pairs_of(TABLES["planted"]), method=gr.Exact())
    for seed in range(4):
        labels = np.random.default_rng(seed).integers(-1, 5, 50).astype(np.int64)
        one, other = (
            k.step(np.random.default_rng(seed), gr.kernels.Labels(labels))[0] for k in (kernel, exact)
        )
        assert np.array_equal(one.labels, other.labels)
        assert one.labels.dtype == np.int64


@pytest.mark.parametrize("keep", EXACT_WAYS)
def test_log_weight_is_the_sum_of_all_pairs_in_clusters(keep):
    table, labels = TABLES["planted"], np.random.default_rng(45).integers(-1, 6, 50).astype(np.int32)
    kernel = gr.ClusterGibbs(pairs_of(table), method=gr.Exact(), keep=keep)
    weight, evaluations = kernel.log_weight(gr.kernels.Labels(labels))
    placed = labels >= 0
    assert weight == pytest.approx(energy(table[np.ix_(placed, placed)], labels[placed]), abs=1e-3)
    counts = np.bincount(labels[placed])
    within = np.sum(counts * (counts - 1) // 2)
    assert evaluations == within if keep in ("nothing", "pairs") else within < evaluations <= 50 * 49 // 2
    assert kernel.log_weight(gr.kernels.Labels(np.full(50, -1, np.int32)))[0] == 0.0


def test_merging_two_halves_of_a_person():
    """Single mentions do not leave their half, for the other one is no larger."""
    table = planted([80], 0.5, 0.3, 28)[1]
    halves = gr.kernels.Labels((np.arange(80) % 2).astype(np.int32))
    apart = np.where(halves.labels[:, None] == halves.labels, 1.0, -1.0) * abs(table)
    for keep, method in (("nothing", gr.Race()), ("pairs", gr.Race()), ("sums", None)):
        for values, clusters in ((table, 1), (apart, 2)):
            options = {"annealing": gr.kernels.Constant(0.0), "merges": True}
            kernel = gr.ClusterGibbs(pairs_of(values), method=method, keep=keep, **options)
            state, _ = kernel.step(np.random.default_rng(29), halves)
            assert len(set(state.labels.tolist())) == clusters


def test_annealing_finds_persons():
    person, table = planted([60, 30, 20], 0.6, 0.5, 30)
    cooling = gr.kernels.Geometric(2.0, 0.7, zero_after=12)
    for method, keep in ((gr.Race(), "nothing"), (gr.Race(), "pairs"), (None, "sums")):
        kernel = gr.ClusterGibbs(pairs_of(table), method=method, keep=keep, annealing=cooling)
        state, info = chain(kernel, start(kernel, placed=False), 15, 31)[-1]
        assert canonical(state.labels) == canonical(person)
        assert info.acceptance == 0.0


@pytest.mark.parametrize(
    ("method", "keep"), [(gr.Race(), "pairs"), (gr.Betting(), "nothing"), (None, "sums")]
)
def test_a_run_goes_on_from_a_checkpoint(tmp_path, method, keep):
    factor = pairs_of(AUDITED["planted"], (-8.0, 8.0))

    def run(steps, **options):
        kernel = gr.ClusterGibbs(factor, method=method, keep=keep, scan=gr.kernels.Shuffled(), merges=True)
        rng = np.random.default_rng(32)
        return gr.run(kernel, start(kernel, placed=False), steps=steps, rng=rng, progress=False, **options)

    run(2, checkpoint=tmp_path / "run")
    resumed = run(4, checkpoint=tmp_path / "run")
    straight = run(4)
    assert np.array_equal(resumed["labels"], straight["labels"])
    for resumed_counts, counts in zip(resumed.info, straight.info, strict=True):
        assert np.array_equal(resumed_counts, counts)


def test_threads_share_a_kernel():
    kernel = gr.ClusterGibbs(pairs_of(TABLES["planted"]), method=gr.Race(), keep="pairs")
    found = {}

    def run(seed):
        found[seed] = chain(kernel, start(kernel), 20, seed)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, visited in found.items():
        alone = chain(kernel.with_method(gr.Race()), start(kernel), 20, seed)
        for (state, info), (twin, counted) in zip(visited, alone, strict=True):
            assert np.array_equal(state.labels, twin.labels)
            assert info == counted


def test_a_step_changes_no_state():
    kernel = gr.ClusterGibbs(pairs_of(TABLES["planted"]))
    state = start(kernel)
    after, info = kernel.step(np.random.default_rng(33), state)
    assert np.array_equal(state.labels, np.arange(50))
    assert info.acceptance > 0.0
    assert (state.sweep, after.sweep) == (0, 1)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("keep", EXACT_WAYS)
def test_few_mentions(n, keep):
    kernel = gr.ClusterGibbs(pairs_of(np.ones((n, n))), method=gr.Exact(), keep=keep, merges=True)
    for placed in (True, False):
        state, info = chain(kernel, start(kernel, placed), 3, 34)[-1]
        assert state.labels.shape == (n,)
        assert info.rewards == n * (n - 1)


@pytest.mark.parametrize(
    ("labels", "error", "words"),
    [
        (np.zeros(3, np.int32), errors.ShapeMismatch, "shape"),
        (np.zeros(4), errors.InvalidArgument, "integers"),
        (np.zeros(4, np.uint8), errors.InvalidArgument, "signed"),
        (np.array([0, 1, 2, 4]), errors.InvalidArgument, "0...3"),
        (np.array([0, 1, 2, -2]), errors.InvalidArgument, "not placed"),
    ],
)
def test_wrong_states(labels, error, words):
    kernel = gr.ClusterGibbs(pairs_of(np.zeros((4, 4))))
    with pytest.raises(error, match=words):
        kernel.step(np.random.default_rng(0), gr.kernels.Labels(labels))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"pairs": np.zeros((4, 4))}, errors.InvalidArgument, "gumbelrace.pairs"),
        ({"keep": "matrix"}, errors.InvalidArgument, "'nothing', 'pairs', 'sums'"),
        ({"keep": "sums", "method": gr.Race()}, errors.InvalidArgument, "Exact"),
        ({"method": gr.LilUCB()}, errors.InvalidArgument, "method"),
        ({"method": gr.Betting()}, errors.UnknownRange, "reward_range"),
        ({"method": gr.Race(gr.methods.Serfling())}, errors.UnknownRange, "reward_range"),
    ],
)
def test_what_is_wrong_is_said(options, error, words):
    with pytest.raises(error, match=words):
        gr.ClusterGibbs(**{"pairs": pairs_of(np.zeros((4, 4))), **options})


def test_default_methods():
    few, ranged = pairs_of(np.zeros((4, 4))), pairs_of(np.zeros((4, 4)), (0.0, 1.0))
    assert isinstance(gr.ClusterGibbs(few, keep="nothing").method, gr.Race)
    assert isinstance(gr.ClusterGibbs(ranged, keep=gr.kernels.Keep.PAIRS).method, gr.Betting)
    assert isinstance(gr.ClusterGibbs(few, keep="sums").method, gr.Exact)
    assert isinstance(gr.ClusterGibbs(few).method, gr.Exact)


def test_what_is_kept_by_default():
    """Sums, or pairs where the method races; of very many mentions nothing, and choices race."""
    few, many = pairs_of(np.zeros((4, 4))), gr.population.Pairs(None, (), 20_001)
    kept = [gr.ClusterGibbs(few, method=method).keep for method in (None, gr.Exact(), gr.Race())]
    assert kept == [gr.kernels.Keep.SUMS, gr.kernels.Keep.SUMS, gr.kernels.Keep.PAIRS]
    assert gr.ClusterGibbs(few).with_method(gr.Race()).keep == gr.kernels.Keep.PAIRS
    assert gr.ClusterGibbs(few, keep="nothing").with_method(gr.Exact()).keep == gr.kernels.Keep.NOTHING
    assert gr.ClusterGibbs(many).keep == gr.kernels.Keep.NOTHING
    assert isinstance(gr.ClusterGibbs(many).method, gr.Race)


def test_serfling_races():
    kernel = gr.ClusterGibbs(
        pairs_of(AUDITED["planted"], (-8.0, 8.0)), method=gr.Race(gr.methods.Serfling())
    )
    state = start(kernel, placed=False)
    assert kernel.audit(np.random.default_rng(35), state)[:2] == (0, 400)


@pytest.mark.parametrize("value", [np.nan, np.inf, 9.0])
@pytest.mark.parametrize("keep", EXACT_WAYS)
def test_bad_values_are_named_by_pair(value, keep):
    table = np.zeros((6, 6))
    table[2, 4] = table[4, 2] = value
    kernel = gr.ClusterGibbs(pairs_of(table, (-8.0, 8.0)), method=gr.Exact(), keep=keep)
    error = errors.RewardOutOfRange if value == 9.0 else errors.InvalidReward
    for _ in range(2):
        with pytest.raises(error, match=r"log_factor\(2, 4\)"):
            kernel.step(np.random.default_rng(36), start(kernel))


@pytest.mark.parametrize("keep", ["nothing", "pairs"])
def test_an_error_leaves_nothing_behind(keep):
    """A factor that is not a number once: the next sweep is that of a new kernel."""
    table = np.array(AUDITED["planted"])
    kernel, state = (
        gr.ClusterGibbs(pairs_of(table), method=gr.Race(), keep=keep),
        gr.kernels.Labels(np.arange(400) // 100),
    )
    table[150, 350] = table[350, 150] = np.nan
    with pytest.raises(errors.InvalidReward):
        chain(kernel, state, 20, seed=46)
    table[150, 350] = table[350, 150] = 0.0
    new = gr.ClusterGibbs(pairs_of(table), method=gr.Race(), keep=keep)
    (after, info), (expected, same) = (k.step(np.random.default_rng(47), state) for k in (kernel, new))
    assert np.array_equal(after.labels, expected.labels)
    assert info == same


def test_wrong_temperatures_and_generators():
    kernel = gr.ClusterGibbs(pairs_of(np.zeros((4, 4))), annealing=lambda sweep: -1.0)
    with pytest.raises(errors.InvalidArgument, match="temperature is -1"):
        kernel.step(np.random.default_rng(0), start(kernel))
    with pytest.raises(errors.InvalidGenerator):
        gr.ClusterGibbs(pairs_of(np.zeros((4, 4)))).step(0, start(kernel))


def test_a_bad_value_between_clusters_that_may_merge_is_named():
    table = np.where(np.arange(60)[:, None] % 2 == np.arange(60) % 2, 1.0, 0.1)
    table[4, 31] = table[31, 4] = np.nan
    halves = gr.kernels.Labels((np.arange(60) % 2).astype(np.int32))
    kernel = gr.ClusterGibbs(
        pairs_of(table), method=gr.Race(first=2), annealing=gr.kernels.Constant(0.0), merges=True
    )
    with pytest.raises(errors.InvalidReward, match=r"log_factor\(4, 31\)"):
        chain(kernel, halves, 50, 37)
