"""Symmetric factors of pairs: what is rounded, what is refused, what is kept."""

import numba
import numpy as np
import pytest
from tests.kernels.clusters.mentions import looked_up, pairs_of, symmetric

import gumbelrace as gr
from gumbelrace import errors
from gumbelrace.population.pairs import FINEST


def test_values_are_symmetric_and_rounded():
    table = symmetric(30, 0.0, 3.0, 1)
    i, j = np.triu_indices(30, 1)
    values = pairs_of(table).values(i, j)
    assert np.array_equal(values, pairs_of(table).values(j, i))
    assert np.all(values / FINEST == np.rint(values / FINEST))
    assert np.array_equal(values, values.astype(np.float32))
    np.testing.assert_allclose(values, table[i, j], rtol=1e-7, atol=FINEST)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_sums_do_not_depend_on_their_order(scale):
    rng = np.random.default_rng(2)
    values = pairs_of(symmetric(400, 0.3 * scale, scale, 3)).values(*np.triu_indices(400, 1))
    assert len({in_order(rng.permutation(values)) for _ in range(5)}) == 1
    raw = symmetric(400, 0.3 * scale, scale, 3)[np.triu_indices(400, 1)]
    assert len({in_order(rng.permutation(raw)) for _ in range(5)}) > 1


def in_order(values):
    """Add one after the other; `sum` compensates for rounding since Python 3.12."""
    return float(np.add.accumulate(values)[-1])


def test_what_is_very_low_is_impossible():
    table = np.array([[0.0, -1e30], [-1e30, 0.0]])
    assert pairs_of(table).values(0, 1) == -np.inf
    assert pairs_of(-table / 1e25).values(0, 1) == 1e5


def test_a_range_allows_its_ends():
    low, high = pairs_of(np.full((3, 3), 0.7), (0.7, 0.7)).limits
    assert low <= pairs_of(np.full((3, 3), 0.7)).values(0, 1) <= high
    assert high - low < 1e-5


def test_stores_have_a_place_for_each_pair():
    members = np.arange(5, dtype=np.int32)
    stores = [pairs_of(np.zeros((5, 5))).readers(members, keeps).store for keeps in (False, True)]
    assert list(map(len, stores)) == [0, 10]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((lambda i, j: 0.0, (), 3), errors.InvalidArgument, "njit"),
        ((looked_up, np.zeros((3, 3)), 3), errors.InvalidArgument, "tuple"),
        ((looked_up, ("table",), 3), errors.InvalidArgument, r"data\[0\]"),
        ((looked_up, (np.zeros((3, 3)),), 0), errors.InvalidArgument, "size"),
        ((looked_up, (np.zeros((3, 3)),), 2**31), errors.InvalidArgument, "at most"),
    ],
)
def test_what_is_wrong_is_said(arguments, error, words):
    with pytest.raises(error, match=words):
        gr.pairs(*arguments)


@pytest.mark.parametrize(
    ("bounds", "error"), [((1.0, 0.0), errors.InvalidArgument), ((1.0,), errors.ShapeMismatch)]
)
def test_ranges_that_are_none(bounds, error):
    with pytest.raises(error, match="reward_range"):
        gr.pairs(looked_up, (np.zeros((3, 3)),), 3, reward_range=bounds)


@pytest.mark.parametrize(("i", "j"), [(0, 0), (0, 3), (-1, 1)])
def test_pairs_that_are_none(i, j):
    with pytest.raises(errors.ShapeMismatch):
        pairs_of(np.zeros((3, 3))).values(i, j)


def test_what_numba_cannot_compile_is_said():
    @numba.njit
    def wants_more(i, j, table, other):
        return table[i, j]

    with pytest.raises(errors.InvalidArgument, match="with 1 items of data"):
        gr.pairs(wants_more, (np.zeros((3, 3)),), 3)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_failing_factor_is_an_error(capfd):
    @numba.njit
    def fails(i, j):
        if i == 1:
            raise ValueError("no")
        return 0.0

    kernel = gr.ClusterGibbs(gr.pairs(fails, (), 3), method=gr.Exact())
    with pytest.raises(errors.FactorFailed, match="log_factor"):
        kernel.step(np.random.default_rng(1), gr.kernels.Labels(np.arange(3)))
    capfd.readouterr()


def test_a_value_too_large_to_add_up_is_named():
    kernel = gr.ClusterGibbs(pairs_of(np.full((3, 3), 1e12)), method=gr.Exact())
    with pytest.raises(errors.RewardOutOfRange, match=r"log_factor\(0, 1\) exceeds"):
        kernel.step(np.random.default_rng(1), gr.kernels.Labels(np.arange(3)))
