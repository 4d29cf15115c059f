"""How far errors of single decisions shift the law in which a chain settles.

Let P be the kernel without errors, π its target, P' the kernel with errors and π' the law that it settles
in. For a function f of the state, let g solve Poisson's equation g - P g = f - π(f). Then, exactly,

    π'(f) - π(f) = E[(P' g)(x) - (P g)(x)],    x ~ π'.

Audited steps start from states of the chain, x ~ π', and go to x' with errors and to x'' without, by the
same random numbers: g(x') - g(x'') estimates the right side without bias. g is not known; the multiple of
f that is closest to it is c f with c = Σ_{k ≥ 0} ρ_k = (τ + 1) / 2, where ρ_k are the autocorrelations of f
along the chain and τ = 1 + 2 Σ_{k ≥ 1} ρ_k. The first-order estimate is the mean of c (f(x') - f(x'')).
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbelrace.chain.layout import named_leaves
from gumbelrace.kernels.base import Checked, Kernel, method_of
from gumbelrace.population.base import Floats
from gumbelrace.verdict import Shift

# Entries of a field that are watched, evenly spread; draws of a chain that tell its autocorrelation.
MOST_ENTRIES, MOST_DRAWS = 32, 2**16


class Watched(NamedTuple):
    """One entry of the state: along the chains, and after audited steps with and without errors."""

    name: str
    along: NDArray[Any]  # (chains, draws)
    raced: NDArray[Any]
    exact: NDArray[Any]
    weights: Floats


def shifts(kernel: Kernel[Any], states: Any, checks: Sequence[Checked[Any]], thin: int) -> list[Shift]:
    """Estimate the shifts of means and variances of real fields, and of probabilities of others' values.

    Each field of `states` is an array of shape (chains, draws, ...), `checks` are audited steps from some
    of them, and `thin` steps lead from one of the states to the next.
    """
    found: list[Shift] = []
    if any(np.isnan(check.weight) for check in checks):
        return found
    can_err = any(_may_be_wrong(kernel, check) for check in checks)
    for entry in entries(kernel, states, checks):
        of_entry = _moments if entry.along.dtype.kind == "f" else _probabilities
        found += of_entry(entry, thin, can_err)
    return found


def _may_be_wrong(kernel: Kernel[Any], check: Checked[Any]) -> bool:
    """Whether errors that a check can miss are promised to be rare, and no more."""
    return check.law is None and (check.promise or method_of(kernel).promise).delta > 0.0


def entries(kernel: Kernel[Any], states: Any, checks: Sequence[Checked[Any]]) -> Iterator[Watched]:
    ends = [
        [dict(named_leaves(kernel.watched(s))) for s in side]
        for side in zip(*((c.raced, c.exact) for c in checks), strict=True)
    ]
    weights = np.array([check.weight for check in checks])
    for name, values in named_leaves(kernel.watched(states)):
        if name in kernel.tuning:
            continue
        along = values.reshape(*values.shape[:2], -1)
        raced, exact = (np.array([end[name] for end in side]).reshape(len(side), -1) for side in ends)
        for k in np.unique(np.linspace(0, along.shape[2] - 1, MOST_ENTRIES).astype(int)).tolist():
            index = ", ".join(map(str, np.unravel_index(k, values.shape[2:])))
            label = name if values.ndim == 2 else f"{name}[{index}]"
            yield Watched(label, along[:, :, k], raced[:, k], exact[:, k], weights)


def _moments(entry: Watched, thin: int, can_err: bool) -> list[Shift]:
    middle, spread = float(entry.along.mean()), float(entry.along.std())
    if not spread > 0.0:
        return []
    along, raced, exact = ((values - middle) / spread for values in entry[1:4])
    mean, error = _shift(along, entry.weights * (raced - exact), thin, can_err)
    # The chain's variance is too large by this share of itself; reported is the share of the right one.
    share, its_error = _shift(along**2, entry.weights * (raced**2 - exact**2), thin, can_err)
    right = 1.0 - share
    variance = (share / right, its_error / right**2) if right > 0.0 else (np.inf, np.inf)
    return [Shift(entry.name, "mean", mean, error), Shift(entry.name, "variance", *variance)]


def _probabilities(entry: Watched, thin: int, can_err: bool) -> list[Shift]:
    found = []
    for value in np.unique(np.concatenate([entry.along.ravel(), entry.raced, entry.exact])):
        along, raced, exact = (np.where(values == value, 1.0, 0.0) for values in entry[1:4])
        shift = _shift(along, entry.weights * (raced - exact), thin, can_err)
        found.append(Shift(f"{entry.name} = {value}", "probability", *shift))
    return found


def _shift(along: Floats, differences: Floats, thin: int, can_err: bool) -> tuple[float, float]:
    """Estimate the shift of the mean of f from its values along the chains and f(x') - f(x'')."""
    factor = 0.5 * (thin * autocorrelation_time(along[:, -MOST_DRAWS:]) + 1.0)
    # One error more than was seen, by a typical move: none seen does not prove that there are none.
    unseen = float(np.mean(np.diff(along, axis=1) ** 2)) if can_err and along.shape[1] > 1 else 0.0
    error = np.sqrt(np.sum(differences**2) + unseen) / len(differences)
    return factor * float(differences.mean()), float(factor * error)


def autocorrelation_time(values: Floats) -> float:
    """Give 1 + 2 Σ ρ_k of chains, by Geyer's initial monotone sequence.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.zeros((4, 20_000))
    >>> for t in range(1, 20_000):
    ...     x[:, t] = 0.5 * x[:, t - 1] + rng.normal(size=4)
    >>> bool(abs(autocorrelation_time(x) - 3.0) < 0.2)
    True
    """
    draws = values.shape[1]
    centred = values - values.mean()
    waves = np.fft.rfft(centred, 2 * draws, axis=1)
    products = np.fft.irfft((waves * waves.conj()).mean(axis=0))[:draws]
    covariances = products / draws
    if draws < 4 or not covariances[0] > 0.0:
        return 1.0
    pairs = (covariances / covariances[0])[: draws - draws % 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0.0)
    positive = pairs[: ends[0] if len(ends) else len(pairs)]
    return float(max(2.0 * np.minimum.accumulate(positive).sum() - 1.0, 1.0))
