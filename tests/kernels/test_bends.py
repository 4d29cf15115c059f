"""Laws of coordinates with heavier tails than normal ones. Oracles: quadrature; NumPy for compiled code."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from gumbelrace.kernels import bends

BENDS = st.floats(0.0, bends.MOST)


@given(st.floats(-8.0, 8.0), BENDS, BENDS)
def test_what_is_bent_is_unbent(u, left, right):
    sides = np.array([[left, right]])
    z = bends.bent(np.array([u]), sides)
    np.testing.assert_allclose(bends.unbent(z, sides), u, rtol=1e-9, atol=1e-12)
    assert z * u >= 0.0
    assert abs(z[0]) >= abs(u) * (1.0 - 1e-9)


@pytest.mark.parametrize("sides", [(0.0, 0.0), (0.3, 0.0), (0.0, 1.5), (1.0, 0.7)])
def test_densities_are_those_of_the_law(sides):
    """They integrate to that of a normal law, whatever the bends, and so do both halves."""
    for side in (-1.0, 1.0):

        def density(z, side=side):
            return float(np.exp(bends.log_densities(np.array([side * z]), np.array([sides]))[0]))

        mass = integrate.quad(density, 0.0, 50.0)[0] + integrate.quad(density, 50.0, np.inf)[0]
        np.testing.assert_allclose(mass, np.sqrt(0.5 * np.pi), rtol=1e-6)


@given(st.floats(-7.99, -3.2))
def test_bends_reach_the_heights_asked_for(height):
    bend = float(bends.bends_to([height])[0])
    found = bends.log_densities(np.array([bends.FAR_OUT]), np.array([[0.0, bend]]))
    np.testing.assert_allclose(found, height, atol=1e-3)


def test_heights_that_are_none_or_low_bend_nothing():
    np.testing.assert_array_equal(bends.bends_to([np.nan, -np.inf, -20.0, np.inf]), [0, 0, 0, bends.MOST])


@numba.njit
def compiled(u, sides):
    z = bends.bent_one(u, sides, 0)
    return z, bends.unbent_one(z, sides, 0), bends.log_slope_one(z, sides, 0)


@settings(deadline=None)  # the first call compiles
@given(st.floats(-8.0, 8.0), BENDS, BENDS)
def test_compiled_code_does_the_same(u, left, right):
    sides = np.array([[left, right]])
    z, back, log_slope = compiled(u, sides)
    np.testing.assert_allclose(z, bends.bent(np.array([u]), sides)[0], rtol=1e-12)
    np.testing.assert_allclose(back, u, rtol=1e-9, atol=1e-12)
    right_height = bends.log_densities(np.array([z]), sides)[0]
    np.testing.assert_allclose(-0.5 * u * u - log_slope, right_height, rtol=1e-9, atol=1e-9)
