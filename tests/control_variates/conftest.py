"""What several tests look at."""

import numpy as np
import pytest
from tests.control_variates.cases import RARE, SIZE

from gumbelrace.models import logistic


@pytest.fixture(scope="package")
def rare():
    """Give a regression on an intercept and a column that 20 rows have, its mode and its Hessian."""
    rng = np.random.default_rng(2)
    x = np.column_stack([np.ones(SIZE), np.zeros(SIZE)])
    x[rng.choice(SIZE, RARE, replace=False), 1] = 1.0
    y = (rng.random(SIZE) < 1.0 / (1.0 + np.exp(-x @ [-1.0, 2.5]))).astype(float)
    return x, y, *logistic.mode(x, y)
