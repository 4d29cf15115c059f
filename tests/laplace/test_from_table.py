"""A posterior given a table on disk has the law that it has in memory.

False-alarm rate of each statistical test: 1e-4 over seeds.
"""

import dataclasses
import gc
import tracemalloc
from concurrent.futures import Executor

import numpy as np
import pytest
from tests.laplace.cases import Dummy, log_prior, simulated
from tests.laplace.test_posterior import check_moments

import gumbelrace as gr
from gumbelrace.errors import CheckpointMismatch, InvalidArgument, InvalidFile, InvalidGenerator, NoMode
from gumbelrace.laplace import passes, row_pool, table_model
from gumbelrace.laplace.columns import Columns
from gumbelrace.laplace.from_table import identity_of
from gumbelrace.laplace.progress import Progress
from gumbelrace.models import logistic, student


def stored(folder, x, y, files=1):
    """Write a table of .npy files: the columns of x, and y."""
    folder.mkdir(exist_ok=True)
    for k, part in enumerate(np.array_split(np.column_stack([x, y]), files)):
        np.save(folder / f"rows-{k:02}.npy", part)
    return gr.open_table(folder), ([str(i) for i in range(x.shape[1])], str(x.shape[1]))


def fitted(table, columns, model=logistic, start=None, log_prior=log_prior, **options):
    point = np.zeros(len(columns[0])) if start is None else start
    return gr.posterior(
        model.log_factor,
        model.terms,
        columns,
        table=gr.Passes(table, **{"rng": 0, **options}),
        start=point,
        log_prior=log_prior,
        progress=False,
    )


def quadrature(log_posterior, fit, nodes=24):
    """Mean and standard deviation of two parameters, by Gauss and Hermite around Laplace's law."""
    z, weights = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1).reshape(-1, 2)
    points = fit.law.mean + grid @ np.linalg.cholesky(fit.law.covariance).T
    log_p = np.array([log_posterior(point) for point in points]) + 0.5 * np.sum(grid**2, axis=1)
    p = np.outer(weights, weights).ravel() * np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ points
    return mean, np.sqrt(p @ (points - mean) ** 2)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    x, y = simulated(50_000, 2)
    return x, y, *stored(tmp_path_factory.mktemp("plain"), x, y)


def test_a_logistic_regression_is_right(plain, monkeypatch):
    """Oracle: quadrature, and the chain in memory. Chunks do not divide the rows."""
    monkeypatch.setattr(passes, "CHUNK", 7_001)
    x, y, table, columns = plain
    fit = fitted(table, columns)

    def log_posterior(theta):
        s = x @ theta
        return y @ s - np.logaddexp(0.0, s).sum() + log_prior(theta)

    mean, sd = quadrature(log_posterior, fit)
    trace = fit.sample(5_000, rng=1, progress=False)
    check_moments(trace["position"], mean, sd)
    arrays = logistic.log_factor, logistic.terms, (x, y), len(x)
    whole = gr.posterior(
        *arrays, start=np.zeros(2), log_prior=log_prior, method=gr.Penalty(), progress=False
    )
    in_memory = whole.sample(5_000, rng=1, progress=False)
    check_moments(in_memory["position"], mean, sd)
    assert abs(trace.acceptance - in_memory.acceptance) < 0.02
    assert np.allclose(fit.mode, whole.mode, atol=1e-3 * sd.min())
    assert trace.fraction < 0.002


def test_what_was_read_is_reported(plain):
    *_, table, columns = plain
    fit = fitted(table, columns)
    assert 3 <= fit.passes <= 7
    assert fit.bytes_read == fit.passes * table.size * 3 * 8
    trace = fit.sample(100, rng=1, progress=False)
    for shown in (repr(fit), repr(trace)):
        assert f"{fit.passes} passes over 50,000 rows" in shown
        assert f"pool of {fit.pool_rows:,} rows" in shown


def test_student_regression_is_right(tmp_path):
    """Oracle: quadrature."""
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(20_000), rng.normal(size=20_000)])
    y = x @ [0.5, -1.0] + rng.standard_t(4.0, size=len(x))
    table, columns = stored(tmp_path, x, y)
    fit = fitted(table, (*columns, 4.0, 1.0), student)

    def log_posterior(theta):
        return -2.5 * np.log1p((y - x @ theta) ** 2 / 4.0).sum() + log_prior(theta)

    trace = fit.sample(5_000, rng=2, progress=False)
    check_moments(trace["position"], *quadrature(log_posterior, fit))


@pytest.fixture(scope="module")
def dummy(tmp_path_factory):
    case = Dummy()
    return case, *stored(tmp_path_factory.mktemp("dummy"), case.x, case.y)


def test_a_coefficient_of_few_rows_is_right(dummy):
    """Oracle: quadrature. Few rows carry all that is left of the expansion; heavier tails are chosen."""
    case, table, columns = dummy
    fit = fitted(table, columns)
    assert fit.kernel.proposal.freedom < np.inf
    trace = fit.sample(25_000, rng=1, progress=False)
    mean, sd = case.moments()
    check_moments(trace["position"][:, :, 1:], mean, sd)


def test_weights_that_are_ignored_are_noticed(dummy, monkeypatch):
    """Negative control: rows that were drawn by weights count as if all had the same chance."""
    case, table, columns = dummy
    drawn = row_pool.pool_of

    def without_weights(*given):
        trial, pool = drawn(*given)
        return trial, pool._replace(inverse=np.full(len(pool.inverse), float(case.size)))

    monkeypatch.setattr(row_pool, "pool_of", without_weights)
    trace = fitted(table, columns).sample(25_000, rng=1, progress=False)
    mean, sd = case.moments()
    with pytest.raises(AssertionError):
        check_moments(trace["position"][:, :, 1:], mean, sd)


def test_rows_are_drawn_in_proportion_to_their_weights(dummy):
    """Oracle: the multinomial law of the draws of each of a hundred groups of rows, by a chi-square."""
    case, table, columns = dummy
    fit = fitted(table, columns, pool_rows=200_000)
    pool = fit.kernel.pools.pool(0)
    weighing = fit.kernel.pools.drawing.weighing
    _, weights = weighing.tried(fit.kernel.pools.drawing.model.of_data((case.x, case.y), case.size))
    kinds = case.x[:, 1] + 2.0 * case.y  # all rows of a kind are alike
    expected = np.array([weights[kinds == kind].sum() for kind in range(4)]) / weights.sum()
    found = pool.rows[0][:, 1] + 2.0 * pool.rows[1]
    counts = np.array([(found == kind).sum() for kind in range(4)])
    chi_square = np.sum((counts - len(found) * expected) ** 2 / (len(found) * expected))
    assert chi_square < 21.1  # of 3 degrees of freedom, 1e-4
    inverse = weights.sum() / weights
    assert all(np.allclose(pool.inverse[found == kind], inverse[kinds == kind][0]) for kind in range(4))
    halves = [np.mean(half == 1.0) for half in np.array_split(found, 2)]
    assert abs(halves[0] - halves[1]) < 4.5 * np.sqrt(4.0 * expected[1] / len(found))


def test_a_pool_that_grows_too_long_is_thinned(dummy, monkeypatch):
    """Oracle: the shares of kinds of rows are those of the weights, as before; the pool is shorter."""
    _, table, columns = dummy
    monkeypatch.setattr(passes, "CHUNK", 1_000)
    fit = fitted(table, columns, pool_rows=100_000)
    drawing = fit.kernel.pools.drawing
    long = dataclasses.replace(drawing, rate=8.0 * drawing.rate)
    result = fit.kernel.pools.scanner._made(long)
    weights, rows = result[2], result[3]
    assert len(weights) <= drawing.most
    assert float(result[1]) < long.rate
    share = np.mean(rows[:, 1] == 1.0)
    before = np.mean(fit.kernel.pools.pool(0).rows[0][:, 1] == 1.0)
    assert abs(share - before) < 4.5 * np.sqrt(before * (1 / len(weights) + 1e-5))


def test_rows_of_huge_weight_do_not_fill_the_memory(dummy):
    """A chunk that would be drawn from a million times too often is drawn from at a lower rate, at once."""
    case, table, columns = dummy
    drawing = fitted(table, columns, pool_rows=100_000).kernel.pools.drawing
    often = dataclasses.replace(drawing, rate=1e6 * drawing.rate)
    _, rate, weights, rows, _ = often.of_chunk(passes.Chunk(0, 0, (case.x, case.y)))
    assert 0.4 * often.most < len(weights) < 1.01 * often.most
    expected = float(rate) * drawing.weighing.tried(drawing.model.of_data((case.x, case.y), case.size))[1]
    assert abs(len(weights) - expected.sum()) < 4.5 * np.sqrt(expected.sum())
    kind = case.x[:, 1] == 1.0
    assert abs((rows[:, 1] == 1.0).sum() - expected[kind].sum()) < 4.5 * np.sqrt(expected[kind].sum())


def test_a_row_of_high_leverage_that_the_subsample_lacks(tmp_path, monkeypatch):
    """Oracle: quadrature."""
    monkeypatch.setattr(table_model, "SUBSAMPLE_BYTES", 1)
    x, y = simulated(60_000, 2)
    x[-1], y[-1] = [300.0, 300.0], 1.0
    table, columns = stored(tmp_path, x, y)
    fit = fitted(table, columns, start=np.zeros(2))
    share = table_model.FEWEST / len(x)
    subsample = passes.Subsample(fit.kernel.pools.scanner, share)
    assert not (fit.kernel.pools.scanner._made(subsample)[0] == 300.0).any()

    def log_posterior(theta):
        s = x @ theta
        return y @ s - np.logaddexp(0.0, s).sum() + log_prior(theta)

    trace = fit.sample(5_000, rng=1, progress=False)
    check_moments(trace["position"], *quadrature(log_posterior, fit, nodes=80))


@pytest.mark.parametrize("change", ["other rows", "one number", "fewer rows"])
def test_a_file_that_changes_between_passes_is_refused(tmp_path, monkeypatch, change):
    """Also by a checkpoint, whose passes were made with the file as it was."""
    x, y = simulated(20_000, 2)
    table, columns = stored(tmp_path / "rows", x, y)
    path, made, kept = table.paths[0], passes.Scanner._made, tmp_path / "kept"

    def changed(self, work):
        if isinstance(work, passes.Sums):
            rows = np.load(path)
            if change == "other rows":
                rows = 2.0 * rows
            elif change == "one number":
                rows[15_000, 1] += 1.0
            np.save(path, rows[:15_000] if change == "fewer rows" else rows)
        return made(self, work)

    monkeypatch.setattr(passes.Scanner, "_made", changed)
    with pytest.raises(InvalidFile, match="was changed after it was opened"):
        fitted(table, columns, checkpoint=kept)
    with pytest.raises(CheckpointMismatch):
        fitted(gr.open_table(table.paths), columns, checkpoint=kept)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_missing_number_is_named(tmp_path, value):
    x, y = simulated(30_000, 2)
    x[25_000, 1] = value
    table, columns = stored(tmp_path, x, y, files=3)
    with pytest.raises(NoMode, match=r"rows-02\.npy has no finite number in row 5000 .* of column '1'"):
        fitted(table, columns)


def test_a_pool_that_is_used_up_is_drawn_again(plain, capsys):
    """Draws do not depend on how the steps were cut, and the second pool has other rows."""
    *_, table, columns = plain
    fit = fitted(table, columns, pool_rows=20_000)
    trace = fit.sample(300, chains=2, rng=1, progress=False)
    assert trace["pool"].max() >= 1
    kernel = dataclasses.replace(fit.kernel, readers=2)
    state, rng = kernel.start(fit.mode, reader=1), np.random.default_rng(5)
    one_by_one = []
    for _ in range(300):
        state, _ = kernel.step(rng, state)
        one_by_one.append(state)
    block = kernel.steps(np.random.default_rng(5), kernel.start(fit.mode, reader=1), 300)
    assert np.array_equal(block.states.position, [one.position for one in one_by_one])
    assert np.array_equal(block.states.place, [one.place for one in one_by_one])
    first, second = (fit.kernel.pools.pool(number) for number in (0, 1))
    assert not np.array_equal(first.rows[0][:100], second.rows[0][:100])


def test_no_row_of_a_pool_is_read_twice(plain):
    """Places of a chain grow by what each step has read, and chains have parts of their own."""
    *_, table, columns = plain
    fit = fitted(table, columns)
    trace = fit.sample(500, chains=3, warmup=0, rng=1, progress=False)
    read = np.asarray(trace.info.evaluations) // 2
    assert np.array_equal(np.diff(trace["place"], axis=1), read[:, 1:])
    assert (trace["place"][:, -1] < fit.pool_rows // 3).all()
    assert trace["reader"][:, 0].tolist() == [0, 1, 2]


def test_the_result_does_not_depend_on_who_computes_it(tmp_path):
    """Files one after another, or in any order by others: the same draws, bit for bit."""
    x, y = simulated(30_000, 2)
    table, columns = stored(tmp_path, x, y, files=3)
    fit = fitted(table, columns, pool_rows=40_000)
    scanner = fit.kernel.pools.scanner

    class Backwards(Executor):
        def map(self, function, *items):
            found = [function(*of_one) for of_one in reversed(list(zip(*items, strict=True)))]
            return reversed(found)

    other = dataclasses.replace(scanner, workers=Backwards())
    drawing = dataclasses.replace(fit.kernel.pools.drawing, scanner=other)
    for one, same in zip(scanner._made(drawing), other._made(drawing), strict=True):
        assert np.array_equal(one, same)
    again = fitted(table, columns, pool_rows=40_000)
    draws = [one.sample(200, rng=1, progress=False)["position"] for one in (fit, again)]
    assert np.array_equal(*draws)


def test_passes_that_were_made_are_not_made_again(plain, tmp_path, monkeypatch):
    """A run that is ended in a pass goes on from there; another table or seed is refused."""
    x, y, table, columns = plain
    whole, kept = fitted(table, columns), tmp_path / "kept"
    counted = []
    made = passes.Scanner._made

    def ended(self, work):
        counted.append(type(work).__name__)
        if len(counted) == 3:
            raise KeyboardInterrupt
        return made(self, work)

    monkeypatch.setattr(passes.Scanner, "_made", ended)
    with pytest.raises(KeyboardInterrupt):
        fitted(table, columns, checkpoint=kept)
    resumed = fitted(table, columns, checkpoint=kept)
    assert counted == ["Subsample", "Sums", "Drawing", "Drawing"]
    assert resumed.passes == whole.passes
    draws = [one.sample(200, rng=1, progress=False)["position"] for one in (whole, resumed)]
    assert np.array_equal(*draws)
    other, _ = stored(tmp_path / "other", x[::-1], y[::-1])
    with pytest.raises(CheckpointMismatch):
        fitted(other, columns, checkpoint=kept)
    with pytest.raises(CheckpointMismatch):
        fitted(table, columns, checkpoint=kept, rng=1)


def test_chains_can_be_resumed(plain, tmp_path):
    """A chain that goes on from its checkpoint gives what it would have given, its pools too."""
    *_, table, columns = plain
    fit = fitted(table, columns, pool_rows=20_000)
    options = {"chains": 2, "rng": 1, "progress": False, "tag": "rows"}
    whole = fit.sample(200, **options)
    fit.sample(120, checkpoint=tmp_path / "chains", **options)
    longer = fitted(table, columns, pool_rows=20_000).sample(200, checkpoint=tmp_path / "chains", **options)
    assert np.array_equal(whole["position"], longer["position"])
    assert np.array_equal(whole["place"], longer["place"])


def test_memory_does_not_grow_with_the_table(tmp_path, monkeypatch):
    """Eight times the rows, about the same peak of memory: nothing as long as the table is kept."""
    monkeypatch.setattr(passes, "CHUNK", 8_192)
    monkeypatch.setattr(table_model, "MOST", 16_384)
    peaks = []
    for size in (50_000, 400_000):
        x, y = simulated(size, 1)
        table, columns = stored(tmp_path / str(size), x, y)
        del x, y
        gc.collect()
        tracemalloc.start()
        fitted(table, columns, pool_rows=20_000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]
    assert peaks[1] < 8 * 400_000 * 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": (["0", "9"], "2")}, "no column '9'"),
        ({"columns": (2.0,)}, "names of its columns"),
        ({"columns": ["0", "1"]}, "tuple of names"),
        ({"table": np.zeros(3)}, "open_table"),
        ({"method": gr.Exact()}, "Penalty"),
        ({"size": 3}, "leave them out"),
        ({"pool_rows": 10}, "pool_rows"),
    ],
)
def test_what_is_wrong_is_said(plain, change, message):
    *_, table, columns = plain
    data, rows = change.pop("columns", columns), change.pop("pool_rows", None)
    given = gr.Passes(change.pop("table", table), rng=0, pool_rows=rows)
    with pytest.raises(InvalidArgument, match=message):
        gr.posterior(
            logistic.log_factor,
            logistic.terms,
            data,
            table=given,
            start=[0.0, 0.0],
            progress=False,
            **change,
        )


def test_a_checkpoint_needs_a_seed(plain, tmp_path):
    *_, table, columns = plain
    with pytest.raises(InvalidGenerator, match="seed"):
        fitted(table, columns, rng=None, checkpoint=tmp_path)


def test_chains_are_not_checked_silently(plain):
    *_, table, columns = plain
    with pytest.raises(InvalidArgument, match="check"):
        fitted(table, columns).sample(10, check=5, rng=0)


def test_more_chains_than_a_pool_has_rows_for(plain):
    *_, table, columns = plain
    with pytest.raises(InvalidArgument, match="pool_rows"):
        fitted(table, columns, pool_rows=20_000).sample(10, chains=50, rng=0, progress=False)


def test_a_checkpoint_knows_what_all_rows_share(plain, tmp_path):
    """Also the middle of a long array, which its text leaves out."""
    *_, table, columns = plain
    shared = np.zeros(5_000)
    given = identity_of_passes(table, (*columns, shared))
    assert given == identity_of_passes(table, (*columns, shared.copy()))
    shared[2_500] = 1.0
    assert given != identity_of_passes(table, (*columns, shared))


def identity_of_passes(table, columns):
    scanner = passes.Scanner(table, Columns(columns), (0,), Progress(False))
    return identity_of(None, scanner)["columns"]
