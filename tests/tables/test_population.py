"""Tables in files as populations: sums of runs of rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.cases import in_files

from gumbelrace.core.shuffle import Rows
from gumbelrace.tables.numbers import allowed
from gumbelrace.tables.population import (
    FEWEST_RUNS,
    MOST_RUNS,
    RUN_BYTES,
    Runs,
    Scores,
    open_scores,
    run_length,
)


@given(in_files(), st.integers(1, 7), st.booleans())
def test_sums_of_runs_add_up_to_those_of_the_columns(pair, length, lowest):
    array, file = pair
    bounded = np.nan_to_num(array.astype(float), posinf=1e3, neginf=-1e3).clip(-1e3, 1e3)
    if not (bounded == array).all():
        return  # sums of very different sizes are another matter
    length = min(length, len(array))
    columns = np.arange(array.shape[1])
    scores = Scores(file, columns, tuple(columns.tolist()), allowed(None, lowest), None, lowest=lowest)
    runs = Runs(scores, length, Rows(len(array) // length))
    expected = (-1.0 if lowest else 1.0) * bounded.sum(axis=0)
    np.testing.assert_allclose(runs.totals(), expected, atol=1e-9)
    by_engine = runs.rest + runs._sums(np.arange(runs.size), columns).sum(axis=0)
    np.testing.assert_allclose(by_engine, expected, atol=1e-9)
    assert runs.scores_read == 2 * array.size - (len(array) - runs.size * length) * len(columns)


@given(st.integers(1, 2**40), st.integers(1, 10**6))
def test_runs_are_neither_few_nor_many_nor_long(rows, row_bytes):
    length = run_length(rows, row_bytes)
    runs = rows // length
    assert 1 <= runs <= MOST_RUNS
    assert length == 1 or runs >= FEWEST_RUNS
    assert length * row_bytes <= RUN_BYTES or length in (1, -(-rows // MOST_RUNS))


def test_a_constant_column_stays_within_its_range(tmp_path):
    """Sums of equal numbers, rounded, must not leave the range that is the number itself."""
    table = np.full((FEWEST_RUNS * 7, 2), 0.1)
    table[:, 1] = 0.3
    np.save(tmp_path / "constant.npy", table)
    with open_scores(tmp_path / "constant.npy", limits=(0.1, 0.3)) as scores:
        runs = scores.population()
        assert runs.length == 7
        sums = runs._sums(np.arange(100), np.array([1, 0]))
        assert ((sums >= 7 * 0.1) & (sums <= 7 * 0.3)).all()
