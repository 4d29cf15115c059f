"""The study: the same records whether or not it was stopped, and numbers that an oracle agrees with."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.common import totals

from gumbelrace.applications.store import Store
from gumbelrace.auditing import audit
from gumbelrace.paper import synthetic_study as study
from gumbelrace.paper.synthetic_study import Point, Problem, Settings, run

SMALL = Settings(draws=30, seed=3, size=2000, arms=(2,))


class Interrupted(Exception):
    pass


def interrupting(count):
    """Stop at the `count`-th point."""
    left = iter(range(count - 1))

    def finished(point):
        if next(left, None) is None:
            raise Interrupted

    return finished


def ran(settings, store, jobs, *finished):
    with ThreadPoolExecutor(jobs) as workers:
        return run(settings, store, workers, *finished)


def without_times(records):
    return [record._replace(seconds=0.0, scan_seconds=0.0) for record in records]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return ran(SMALL, Store(tmp_path_factory.mktemp("study") / "rows"), 2)


def test_every_point_has_a_record(whole):
    assert len(whole) == 3 * 3 * 6 * 5
    assert [(r.problem, r.method, r.delta) for r in whole] == [tuple(point) for point in SMALL.points]
    for record in whole:
        assert record.draws == SMALL.draws
        assert 0 <= record.errors <= record.draws
        assert 0.0 <= record.read <= 1.0
        assert record.read > 0.0 or record.method == "Betting"  # the range alone may decide
        assert record.seconds > 0.0
        assert record.scan_seconds > 0.0


def test_a_study_that_was_stopped_ends_like_one_that_was_not(whole, tmp_path):
    for count in (1, 40, 100):
        with pytest.raises(Interrupted):
            ran(SMALL, Store(tmp_path / "rows"), 2, interrupting(count))
    begun = len(Store(tmp_path / "rows").rows)
    assert 0 < begun < len(whole)
    told = []
    records = ran(SMALL, Store(tmp_path / "rows"), 1, told.append)
    assert without_times(records) == without_times(whole)
    assert len(told) == len(whole)


def test_nothing_is_run_twice(whole, tmp_path, monkeypatch):
    store = Store(tmp_path / "rows")
    ran(SMALL, store, 2)
    monkeypatch.setattr(study, "measured", lambda *words: pytest.fail("run again"))
    assert without_times(ran(SMALL, store, 2)) == without_times(whole)


def test_another_seed_gives_other_draws(whole, tmp_path):
    other = ran(Settings(30, 4, 2000, (2,)), Store(tmp_path / "rows"), 2)
    assert without_times(other) != without_times(whole)


def test_errors_and_shares_agree_with_an_audit():
    """Oracle: `audit`. 2,000 draws each; shares within 5% and errors within 5 standard errors."""
    settings = Settings(2000, 1, 5000)
    point = Point(Problem(10, "normal", 0.1), "Racing-Normal", 0.1)
    problems = study.Problems(settings.seed, settings.size)
    record = study.measured(problems, settings, point, threading.Event())
    method = study.METHODS[point.method](point.delta)
    report = audit(problems(point.problem).population, method=method, draws=2000, rng=5)
    assert record.draws == 2000
    assert record.errors > 10
    assert abs(record.errors - report.errors) < 5 * np.sqrt(record.errors + report.errors)
    assert record.read == pytest.approx(report.fraction, rel=0.05)


def test_draws_that_read_everything_are_not_repeated(monkeypatch):
    monkeypatch.setattr(study, "ENOUGH_SCANS", 100)
    settings = Settings(1000, 0, 2000)
    point = Point(Problem(10, "lognormal", 0.1), "Racing-EBS", 0.001)
    record = study.measured(study.Problems(0, 2000), settings, point, threading.Event())
    assert (record.draws, record.read, record.errors) == (100, 1.0, 0)


def test_lil_ucb_ends_when_it_has_read_enough(monkeypatch):
    monkeypatch.setattr(study, "PULLS_A_DRAW", 50)
    settings, problems = Settings(1000, 0, 2000), study.Problems(0, 2000)
    slow, other = (
        study.measured(
            problems, settings, Point(Problem(10, "normal", 1e-4), method, 0.1), threading.Event()
        )
        for method in ("lil'UCB", "Racing-Normal")
    )
    assert (slow.draws - study.SLOW_BATCH) * slow.read * 20_000 < 50_000 <= slow.draws * slow.read * 20_000
    assert other.draws == 1000


def test_rewards_have_the_sums_and_the_scale():
    for shape in study.SHAPES:
        for scale in study.SCALES:
            prepared = study.Problems(0, 3000)(Problem(10, shape, scale))
            drawn = study.rewards(Problem(10, shape, scale), 0, 3000)
            np.testing.assert_allclose(np.exp(drawn.sum(axis=0)), study.probabilities(10), rtol=1e-9)
            np.testing.assert_allclose(drawn.std(axis=0), scale, rtol=1e-9)
            differences = np.diff(totals(prepared.population) - drawn.sum(axis=0))
            np.testing.assert_allclose(differences, 0.0, atol=1e-9)


def test_a_race_on_the_table_goes_on_to_its_end():
    """A race on a library's table turns to a scan where this one reads on, and so looks less often."""
    drawn = study.rewards(Problem(10, "normal", 0.1), 0, 20_000)
    printed = study.PaperTable(drawn)
    method = study.METHODS["Racing-Normal"](0.01)
    rng = np.random.default_rng(0)
    offsets = rng.gumbel(size=(20, 10))
    reshuffled = printed.reshuffled(rng)
    assert isinstance(reshuffled, study.PaperTable)
    looks = method.best_each(reshuffled, offsets, rng).looks
    scanned = method.best_each(study.Table(drawn), offsets, rng).looks
    assert looks.mean() > scanned.mean() + 1
