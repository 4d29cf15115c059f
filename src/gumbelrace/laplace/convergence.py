"""Warnings of chains of a posterior: that they cannot do well, or have not done well."""

import warnings
from collections.abc import Sequence

import numpy as np

from gumbelrace.errors import NotConverged, PoorFit
from gumbelrace.laplace.mode import listed
from gumbelrace.laplace.model import Floats
from gumbelrace.laplace.pilot import Forecast
from gumbelrace.methods.penalty import Penalty

# A chain that is to read more than that share of the rows a step, and more than any does, saves little; one
# that accepts fewer proposals than that hardly moves.
MUCH, HARDLY = 0.25, 0.1
MAY_KEEP = "chains that do not read these rows may keep draws that are impossible"
# Chains with so many times fewer effective draws than were foreseen go where the normal law is far from the
# posterior. That is told by means of so many batches of each chain, of so many draws or more.
FEWER, BATCHES, SHORTEST = 8.0, 20, 10
# Chains whose variances say that they differ by more than that have not met.
MOST_RHAT = 1.01


def warn_of_fit(forecast: Forecast) -> None:
    """Warn if chains will read too many rows, hardly move, go too far or not far enough."""
    if heavy := forecast.heavy:
        warnings.warn(
            f"few rows or none tell of {listed(heavy, range(len(heavy)))}, and they or the prior have "
            "heavier tails than the law that proposes: draws far out are too few, or too many at once, so "
            "that standard deviations and outer quantiles of it are not right; give a prior with lighter "
            "tails, or use a sampler such as NUTS",
            PoorFit,
            stacklevel=4,
        )
    every = forecast.rows >= forecast.size
    if forecast.ruled_out > 0.0:
        so = "all rows are read in each step" if every else MAY_KEEP
        warnings.warn(
            f"at {forecast.ruled_out:.0%} of the points of the normal law log factors are -inf or NaN: "
            f"{so}; transform the parameters so that all are possible, or use a sampler such as NUTS",
            PoorFit,
            stacklevel=4,
        )
    elif forecast.rows > max(MUCH * forecast.size, Penalty().first) or not forecast.acceptance > HARDLY:
        warnings.warn(
            f"the second-order expansion does not fit: {forecast}; a sampler that reads all rows, "
            "such as NUTS, may serve better",
            PoorFit,
            stacklevel=4,  # whoever called `sample`
        )


def warn_of_rhat(rhat: Floats, names: Sequence[str]) -> None:
    """Warn if chains have not met, and name the parameters."""
    apart = np.flatnonzero(~(rhat <= MOST_RHAT) & np.isfinite(rhat)).tolist()
    if apart:
        warnings.warn(
            f"r-hat is {np.nanmax(rhat):.3f}, above {MOST_RHAT}, for {listed(names, apart)}: the chains "
            "have not met; draw more, or use a sampler that reads all rows",
            NotConverged,
            stacklevel=4,
        )


def split_rhat(draws: Floats) -> Floats:
    """Give r-hat of halves of chains (Gelman et al. 2013), for draws of shape (chains, draws, d).

    NaN where nothing varies, or there are fewer than four draws.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> split_rhat(rng.normal(size=(4, 1000, 1)) + [[[0.0]], [[0.0]], [[0.0]], [[1.0]]]) > 1.1
    array([ True])
    """
    half = draws.shape[1] // 2
    if half < 2:
        return np.full(draws.shape[2], np.nan)
    halves = np.concatenate([draws[:, :half], draws[:, -half:]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rhat: Floats = np.sqrt((half - 1) / half + between / within)
    return rhat


def warn_of_shortfall(draws: Floats, forecast: Forecast, names: Sequence[str]) -> None:
    """Warn if chains, of shape (chains, draws, d), move much less than was foreseen."""
    shares = effective_shares(draws)
    slow = np.flatnonzero(shares < forecast.effective / FEWER).tolist()
    if slow:
        warnings.warn(
            f"{listed(names, slow)}: {np.nanmin(shares):.2g} effective draws a step at the least, where "
            f"{forecast.effective:.2g} were foreseen: the posterior is far from the normal law in places, "
            "and draws there may be too few; draw for much longer, or use a sampler such as NUTS",
            PoorFit,
            stacklevel=4,
        )


def effective_shares(draws: Floats) -> Floats:
    """Give effective draws for each that was made, by means of batches; NaN if too few were made.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> effective_shares(np.repeat(rng.normal(size=(4, 1000, 1)), 10, axis=1)).round(1)
    array([0.1])
    """
    chains, count, d = draws.shape
    length = count // BATCHES
    if length < SHORTEST:
        return np.full(d, np.nan)
    kept = draws[:, : length * BATCHES].reshape(chains * BATCHES, length, d)
    means = kept.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Floats = kept.var(axis=(0, 1)) / (length * means)
    return shares
