"""Pairwise potentials and the Gaussian lattice."""

import numba
import numpy as np
import pytest

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument
from gumbelrace.models.potts import gaussian_lattice


@pytest.mark.parametrize("potential", [gr.models.Potts(), gr.models.Ising()])
def test_bounds_hold_and_are_reached(potential) -> None:
    weights = np.array([-2.0, -0.5, 0.0, 0.3, 1.7])
    low, high = potential.bounds(weights)
    values = np.array([[potential.log_factor(a, b, w) for w in weights] for a in (0, 1) for b in (0, 1)])
    assert np.array_equal(values.min(axis=0), low)
    assert np.array_equal(values.max(axis=0), high)


def test_pairwise_bounds() -> None:
    @numba.njit
    def zero(label, other, weight):
        return 0.0

    weights = np.array([-2.0, 1.0])
    low, high = gr.models.Pairwise(zero, 3.0).bounds(weights)
    assert np.array_equal(low, [-6.0, -3.0])
    assert np.array_equal(high, [6.0, 3.0])
    low, high = gr.models.Pairwise(zero, lambda w: (w - 1.0, w)).bounds(weights)
    assert np.array_equal(low, weights - 1.0)
    with pytest.raises(InvalidArgument, match="bound"):
        gr.models.Pairwise(zero, -1.0)


def test_lattice_is_what_its_formula_says() -> None:
    side, beta, gamma = 7, 4.6, 1.5
    x, y = np.divmod(np.arange(side**2), side)
    squared = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
    expected = beta * np.exp(-gamma * squared) * (squared > 0)
    assert np.allclose(gaussian_lattice(side, beta, gamma).toarray(), expected, rtol=1e-12, atol=0.0)


def test_lattice_leaves_out_what_is_small() -> None:
    weights = gaussian_lattice(10, 4.6, 1.5, least=0.5)
    assert weights.nnz == 2 * 2 * 10 * 9
    assert gaussian_lattice(1, 4.6, 1.5).nnz == 0
    assert gaussian_lattice(3, 1.0, 0.0).nnz == 72


def test_lattice_has_the_papers_total() -> None:
    """Poisson-Gibbs states L = 5.09 for its Potts model: a pair counts once, not in both orders."""
    assert gaussian_lattice(20, 4.6, 1.5).sum(axis=0).max() == pytest.approx(5.09, abs=0.005)


@pytest.mark.parametrize(("beta", "gamma"), [(-1.0, 1.0), (1.0, -1.0), (np.nan, 1.0), (1.0, np.inf)])
def test_lattice_refuses(beta: float, gamma: float) -> None:
    with pytest.raises(InvalidArgument, match="beta"):
        gaussian_lattice(3, beta, gamma)
    with pytest.raises(InvalidArgument, match="side"):
        gaussian_lattice(0, 1.0, 1.0)
