"""Special functions by elementary ones; oracle: SciPy."""

import numpy as np
from scipy import special

from gumbelrace.pymc.special import trigamma


def test_trigamma():
    x = np.geomspace(1e-3, 1e6, 500)
    np.testing.assert_allclose(trigamma(x), special.polygamma(1, x), rtol=1e-13)
