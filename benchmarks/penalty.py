"""How far chains by `Penalty` are off, and from how many rows a step: the table behind its defaults.

"table" is a logistic regression of 20,000 rows on 4 common and 12 rare indicators (100 to 400 rows each),
read as residuals of the expansion at the mode, rows by weights from a pilot (root mean square of a row's
residual at 64 draws of the Laplace law, and a tenth of their mean). Its law is known by importance
sampling: rows with the same indicators count together. Shown: whitened means, rms and largest of how far
they are off in standard deviations, with their Monte Carlo noise; the largest error of a variance; rows
read a step; what the method said of the error of its law.

"slope" is a logistic regression of 1,000 rows on one covariate without any expansion, where a race has
E z² = 1.25 at δ = 0.05 (chain_errors.py); its law is known by quadrature.

    python benchmarks/penalty.py           # about ten minutes on one core
    python benchmarks/penalty.py --quick   # a tenth of the steps
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from shared import options

import gumbelrace as gr
from gumbelrace.chain.trace import autocorrelation_time
from gumbelrace.core.rows import Rows

Floats = NDArray[np.float64]
RARE = 100, 110, 120, 140, 160, 180, 200, 220, 250, 300, 350, 400
SIZE, COMMON, STEPS = 20_000, 4, 1_000_000
SETTINGS: tuple[dict[str, float], ...] = (
    {"first": 16, "error": math.inf},
    {"first": 16},
    {"first": 32, "error": math.inf},
    {"first": 32, "error": 0.01},
    {},
    {"error": 1e-4},
    {"error": math.inf, "most_variance": 0.1},
)


class Laplace(NamedTuple):
    """The mode of a posterior, and a root of the covariance there."""

    mode: Floats
    root: Floats


class Moments(NamedTuple):
    """Means and variances of whitened coefficients."""

    means: Floats
    variances: Floats


@numba.njit
def residual(n, theta, x, at_mode, mode):  # type: ignore[no-untyped-def]
    """Give the log factor of a row less its expansion at the mode; what is linear in y cancels."""
    u = 0.0
    for k in range(len(mode)):
        u += x[n, k] * (theta[k] - mode[k])
    a, b = at_mode[n], at_mode[n] + u
    p = 1.0 / (1.0 + np.exp(-a))
    new = -np.log1p(np.exp(-abs(b))) - max(-b, 0.0)
    old = -np.log1p(np.exp(-abs(a))) - max(-a, 0.0)
    return new - old - (1.0 - p) * u + 0.5 * p * (1.0 - p) * u * u


def indicators() -> tuple[Floats, Floats]:
    """Simulate the rows: a constant, common indicators, and rare ones that no two rows share."""
    rng = np.random.default_rng(4)
    x = np.zeros((SIZE, 1 + COMMON + len(RARE)))
    x[:, 0], x[:, 1 : 1 + COMMON] = 1.0, rng.random((SIZE, COMMON)) < 0.5
    rows = np.split(rng.permutation(SIZE), np.cumsum(RARE))
    for column, having in enumerate(rows[: len(RARE)]):
        x[having, 1 + COMMON + column] = 1.0
    beta = np.concatenate([[-1.0], rng.normal(0.0, 0.5, COMMON), rng.normal(0.0, 1.0, len(RARE))])
    return x, (rng.random(SIZE) < 1.0 / (1.0 + np.exp(-x @ beta))).astype(float)


def laplace_of(x: Floats, y: Floats) -> Laplace:
    """Find the mode under a wide normal prior by Newton's method."""
    mode = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-x @ mode))
        hessian = (x.T * (p * (1.0 - p))) @ x + 0.01 * np.eye(len(mode))
        mode = mode + np.linalg.solve(hessian, x.T @ (y - p) - 0.01 * mode)
    return Laplace(mode, np.linalg.cholesky(np.linalg.inv(hessian)))


def moments(x: Floats, y: Floats, laplace: Laplace, draws: int) -> Moments:
    """Find moments by importance sampling from a Student-t law around the mode."""
    patterns, which = np.unique(x, axis=0, return_inverse=True)
    many, ones = np.bincount(which.ravel()), np.bincount(which.ravel(), weights=y)
    rng, d, freedom, scale, part = np.random.default_rng(7), len(laplace.mode), 8.0, 1.1, 50_000
    total, first, second, highest = 0.0, np.zeros(d), np.zeros(d), None
    for _ in range(draws // part):
        z = scale * rng.normal(size=(part, d)) / np.sqrt(rng.chisquare(freedom, (part, 1)) / freedom)
        theta = laplace.mode + z @ laplace.root.T
        logits = theta @ patterns.T
        log_w = logits @ ones - np.logaddexp(0.0, logits) @ many - 0.005 * (theta**2).sum(axis=1)
        log_w += 0.5 * (freedom + d) * np.log1p((z**2).sum(axis=1) / (freedom * scale**2))
        highest = log_w.max() if highest is None else highest
        weights = np.exp(log_w - highest)
        total, first, second = total + weights.sum(), first + weights @ z, second + weights @ z**2
    means = first / total
    return Moments(means, second / total - means**2)


def regression(x: Floats, y: Floats, laplace: Laplace) -> tuple[Any, Any]:
    """Make the likelihood of the residuals, and what is known without reading as a prior."""
    mode, precision = laplace.mode, np.linalg.inv(laplace.root @ laplace.root.T)

    @numba.njit
    def expansion(theta):  # type: ignore[no-untyped-def]
        total = 0.0
        for i in range(len(mode)):
            for j in range(len(mode)):
                total -= 0.5 * (theta[i] - mode[i]) * precision[i, j] * (theta[j] - mode[j])
        return total

    likelihood = gr.likelihood(residual, (x, x @ mode, mode), SIZE)
    points = mode + np.random.default_rng(5).normal(size=(64, len(mode))) @ laplace.root.T
    sizes = np.sqrt(np.mean(likelihood(points).rewards_at(np.arange(SIZE)) ** 2, axis=1))
    return replace(likelihood, rows=Rows(SIZE, weights=sizes + 0.1 * sizes.mean())), expansion


def noise_of(z: Floats) -> float:
    """Give the standard error of the mean of a chain."""
    return float(z.std() * math.sqrt(autocorrelation_time(z[None]) / len(z)))


def report_table(share: float) -> None:
    """Print a line for each setting."""
    x, y = indicators()
    laplace = laplace_of(x, y)
    right = moments(x, y, laplace, int(3_000_000 * share))
    likelihood, expansion = regression(x, y, laplace)
    law = gr.kernels.NormalPseudoprior(laplace.mode, 1.25 * laplace.root @ laplace.root.T)
    for setting in SETTINGS:
        kernel = gr.Metropolis(
            likelihood,
            gr.kernels.Autoregressive(law, 0.5),
            log_prior=expansion,
            method=gr.Penalty(**setting),  # type: ignore[arg-type]
        )
        start = gr.kernels.Position(laplace.mode)
        states, info = kernel.steps(np.random.default_rng(1), start, int(STEPS * share))  # type: ignore[misc]
        z = np.linalg.solve(laplace.root, (states.position - laplace.mode).T)
        off = (z.mean(axis=1) - right.means) / np.sqrt(right.variances)
        noise = math.sqrt(np.mean([noise_of(one) ** 2 for one in z]))
        variance = np.abs(z.var(axis=1) / right.variances - 1.0).max()
        print(
            f"table {setting!s:45} rms {np.sqrt(np.mean(off**2)):.4f} (noise {noise:.4f}) "
            f"largest {np.abs(off).max():.4f} variance {variance:.3f} "
            f"rows {np.mean(info.evaluations) / 2:6.1f} law error seen {np.mean(info.law_error):.1e}",
            flush=True,
        )


@numba.njit
def logistic(n, theta, x, y):  # type: ignore[no-untyped-def]
    """Give the log factor of a logistic regression on one covariate."""
    return y[n] * x[n] * theta[0] - np.log1p(np.exp(x[n] * theta[0]))


def report_slope(share: float) -> None:
    """Print how far a chain without expansion is off."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    y = (rng.random(1000) < 1.0 / (1.0 + np.exp(-x))).astype(float)
    grid = np.linspace(0.0, 2.0, 4001)
    log_p = np.array([y @ x * t - np.logaddexp(0.0, x * t).sum() for t in grid])
    p = np.exp(log_p - log_p.max()) / np.exp(log_p - log_p.max()).sum()
    mean = p @ grid
    sd = math.sqrt(p @ (grid - mean) ** 2)
    kernel = gr.Metropolis(
        gr.likelihood(logistic, (x, y), 1000), gr.kernels.RandomWalk(2.4 * sd), method=gr.Penalty()
    )
    start = gr.kernels.Position(np.array([mean]))
    states, info = kernel.steps(np.random.default_rng(1), start, int(STEPS * share))  # type: ignore[misc]
    z = (states.position[:, 0] - mean) / sd
    print(
        f"slope mean off by {z.mean():+.4f} ± {noise_of(z):.4f} sd, E z² {np.mean(z**2):.4f} ± "
        f"{noise_of(z**2):.4f}, {np.sum(info.evaluations) / np.sum(info.rewards):.1%} of the rows read"
    )


def main() -> None:
    """Print the tables."""
    share = 0.1 if options(__doc__, "a tenth of the steps").parse_args().quick else 1.0
    report_slope(share)
    report_table(share)


if __name__ == "__main__":
    main()
