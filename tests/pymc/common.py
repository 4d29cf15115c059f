"""What is exact of posteriors, and how far draws may be from it."""

import numpy as np


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


def monte_carlo_error(values, batches=10):
    """Standard error of the mean of chains, of shape (chains, draws, ...), by means of batches of draws."""
    means = np.concatenate([part.mean(axis=1) for part in np.array_split(values, batches, axis=1)])
    return means.std(axis=0, ddof=1) / np.sqrt(len(means))


def check_moments(found, exact):
    """Means and variances are within 4 standard errors, and sds within 5%; `found` is (chains, draws, k).

    By Student's t with 39 degrees of freedom, each of them fails with a chance of 3e-4.
    """
    means, sds, errors = exact
    off = np.abs(found.mean(axis=(0, 1)) - means) / np.hypot(monte_carlo_error(found), errors)
    assert (off < 4.0).all(), off
    squares = (found - means) ** 2
    off = np.abs(squares.mean(axis=(0, 1)) - sds**2) / np.hypot(
        monte_carlo_error(squares), 2 * sds * errors
    )
    assert (off < 4.0).all(), off
    np.testing.assert_allclose(found.std(axis=(0, 1)), sds, rtol=0.05)
