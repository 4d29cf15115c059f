"""Log marginal likelihoods of models, from how often a chain over models visits them.

With fixed log weights w, model k is visited with probability π_k ∝ exp(w_k + z_k), z_k its log marginal
likelihood. Chains whose weights have adapted, each to others, give the z that makes all their visits most
likely: Σ_c (n_ck - n_c π_ck) = 0 for every k.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray

from gumbelrace.chain.trace import Trace
from gumbelrace.errors import InvalidArgument, WeakEvidence
from gumbelrace.population.base import Floats, checked_count

# Batches of all chains together, and the fewest of one: long ones see what sticks for long.
BATCHES, FEWEST = 32, 4
# Errors of models to which the chains came less often mean little.
ENOUGH = 10
TOLERANCE, ITERATIONS = 1e-10, 10_000


class LogEvidence(NamedTuple):
    """Log marginal likelihoods relative to one model's, and how far they may be off.

    Attributes
    ----------
    values : ndarray of shape (K,)
        The estimates; NaN where a model was never visited.
    errors : ndarray of shape (K,)
        Their standard errors, infinite where nothing is known.
    visits, entries : ndarray of shape (K,)
        Draws of each model, and how often a chain came to it from another.
    """

    values: Floats
    errors: Floats
    visits: NDArray[np.int64]
    entries: NDArray[np.int64]


def log_evidence(trace: Trace[Any], reference: int = 0) -> LogEvidence:
    """Estimate log marginal likelihoods from a chain over models, with standard errors.

    Only draws made with the last weights count: those of the time in which weights adapt do not say how
    far an estimate from them is off. Errors come from batches of draws, so that they allow for chains that
    stay long in one model, and for chains that differ.

    Parameters
    ----------
    trace : Trace
        Of `CarlinChib`, or of any kernel whose states have a `model` and `log_weights`.
    reference : int
        The model whose value is 0.

    Warns
    -----
    WeakEvidence
        Chains came to a model less than ten times. Its weight is far off: adapt for longer, or start from
        weights that are about right.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> y = np.random.default_rng(0).normal(0.1, 1.0, 300)
    >>> def likelihood(points):
    ...     return gr.table(-0.5 * (y[:, None] - np.array(points)[:, 0]) ** 2)
    >>> def candidate(scale):
    ...     log_prior = lambda x: -0.5 * (x[0] / scale) ** 2 - np.log(scale * np.sqrt(2 * np.pi))
    ...     variance = 1 / (300 + scale**-2)
    ...     law = gr.kernels.NormalPseudoprior([variance * y.sum()], [[variance]])
    ...     kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1), log_prior=log_prior)
    ...     return gr.kernels.Candidate(kernel, law, log_prior)
    >>> kernel = gr.CarlinChib([candidate(0.1), candidate(10.0)], likelihood, adapt_for=200)
    >>> trace = gr.run(kernel, steps=1000, warmup=200, rng=1, progress=False)
    >>> found = gr.log_evidence(trace)
    >>> bool(-5.0 < found.values[1] < -3.0), bool(found.errors[1] < 0.5)  # -4.03 by quadrature
    (True, True)
    """
    models, weights = _settled(trace)
    count = weights.shape[1]
    if checked_count(reference, "reference", least=0) >= count:
        raise InvalidArgument(f"reference is {reference}; it must be from 0 to {count - 1}")
    visits = np.array([np.bincount(chain, minlength=count) for chain in models])
    total, entries = visits.sum(axis=0), _entries(models, count)
    _warn(total, entries)
    z = _most_likely(visits, weights)
    values = np.where(total * total[reference] > 0, z, np.nan) - z[reference]
    errors = _errors(_covariance(models, _shares(weights, z)), reference)
    return LogEvidence(values, np.where(entries * entries[reference] > 0, errors, np.inf), total, entries)


def _settled(trace: Trace[Any]) -> tuple[NDArray[np.int64], Floats]:
    """Give the models of the draws made with the last weights, and these weights, of each chain."""
    if not isinstance(trace, Trace):
        raise InvalidArgument(f"trace is a {type(trace).__name__}; give what run(...) returned")
    if not {"model", "log_weights"} <= set(trace.names):
        raise InvalidArgument("the states have no model and log_weights; give a trace of CarlinChib")
    weights, fewest = trace["log_weights"], max(FEWEST, BATCHES // trace.chains)
    changed = (weights != weights[:, -1:]).any(axis=(0, 2))
    first = int(np.flatnonzero(changed).max(initial=-1)) + 1
    if trace.draws - first < max(fewest, 2):
        raise InvalidArgument(
            f"{trace.draws - first} draws were made with the last weights, and {fewest} are needed: "
            "weights adapted until the end; run more steps than adapt_for, or go on from trace.last"
        )
    return trace["model"][:, first:], np.asarray(weights[:, -1], np.float64)


def _entries(models: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Count how often chains came to each model."""
    came = models[:, 1:][models[:, 1:] != models[:, :-1]]
    return np.bincount(came, minlength=count)


def _warn(visits: NDArray[np.int64], entries: NDArray[np.int64]) -> None:
    for k, (visited, came) in enumerate(zip(visits, entries, strict=True)):
        if came < ENOUGH:
            warnings.warn(
                f"model {k} has {visited} draws, and was entered {came} times: its log evidence means "
                "little. Adapt longer, start from log_weights that are about right, or make a longer run",
                WeakEvidence,
                stacklevel=3,
            )


def _shares(weights: Floats, z: Floats) -> Floats:
    """Give π_ck, how often each chain is expected to be in each model."""
    shares: Floats = scipy.special.softmax(weights + z, axis=1)
    return shares


def _most_likely(visits: NDArray[np.int64], weights: Floats) -> Floats:
    """Find the z that makes the visits most likely; -inf for models without any."""
    lengths, total = visits.sum(axis=1), visits.sum(axis=0)
    seen = total > 0
    weights, total = weights[:, seen] - weights[:, seen].max(axis=1, keepdims=True), total[seen]
    z = np.log(total) - scipy.special.logsumexp(weights, axis=0, b=lengths[:, None])
    for _ in range(ITERATIONS):
        before = z
        # The likelihood never falls: each step maximises a lower bound of it.
        log_sizes = scipy.special.logsumexp(weights + z, axis=1, keepdims=True)
        z = np.log(total) - np.log(lengths @ np.exp(weights - log_sizes))
        z -= z[0]
        if np.abs(z - before).max() < TOLERANCE:
            break
    found: Floats = np.full(len(seen), -np.inf)
    found[seen] = z
    return found


def _errors(covariance: Floats, reference: int) -> Floats:
    """Give the standard errors of differences from one of the variables."""
    variances = np.diag(covariance)
    errors: Floats = np.sqrt(
        np.maximum(variances + variances[reference] - 2.0 * covariance[reference], 0.0)
    )
    return errors


def _covariance(models: NDArray[np.int64], shares: Floats) -> Floats:
    """Give the covariance of z: that of Σ_t (1[model = k] - π_ck), from batches, through the curvature."""
    chains, draws = models.shape
    count, each = shares.shape[1], max(FEWEST, BATCHES // chains)
    length = draws // each
    used = models[:, -each * length :].reshape(chains, each, length)
    visits = (used[..., None] == np.arange(count)).sum(axis=2)
    scores = (visits - length * shares[:, None]).reshape(chains * each, count)
    # Solving for z has made the sum of all scores zero: one batch is not free.
    spread = scores.T @ scores * len(scores) / (len(scores) - 1)
    curvature = each * length * (np.diag(shares.sum(axis=0)) - shares.T @ shares)
    inverse = np.linalg.pinv(curvature, hermitian=True)
    covariance: Floats = inverse @ spread @ inverse
    return covariance
