"""Models, and what is exact of their posteriors."""

import numpy as np
import pytest

pm = pytest.importorskip("pymc", reason='needs pip install "gumbelrace[pymc]"')


def moments(log_density, law, natural, rng, points=20_000):
    """Posterior means and sds by importance sampling from Student's t law (ν = 8), with their errors.

    `log_density` takes points, of shape (points, d), as the chain has them, and `natural` gives what is
    looked at, of shape (points, k). The errors are those of ratio estimates.
    """
    d, root = len(law.mean), np.linalg.cholesky(law.covariance)
    z = rng.standard_normal((points, d)) / np.sqrt(rng.chisquare(8.0, (points, 1)) / 8.0)
    at = law.mean + 1.1 * z @ root.T
    logs = log_density(at) + 0.5 * (8.0 + d) * np.log1p(np.sum(z * z, axis=1) / 8.0)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    values = natural(at)
    means = weights @ values
    centred = values - means
    variances = weights @ centred**2
    error = np.sqrt(np.sum((weights[:, None] * centred) ** 2, axis=0))
    assert 1.0 / np.sum(weights**2) > 1000.0  # effective points
    return means, np.sqrt(variances), error


def check_moments(found, exact, effective):
    """Means within 4 standard errors, sds within 5%; `found` of shape (draws, k).

    Of each mean false alarms have a chance of 6e-5; a sd from 3,000 effective draws is off by 1.3%.
    """
    means, sds, errors = exact
    off = np.abs(found.mean(axis=0) - means) / np.sqrt(sds**2 / effective + errors**2)
    assert (off < 4.0).all(), off
    np.testing.assert_allclose(found.std(axis=0), sds, rtol=0.05)
