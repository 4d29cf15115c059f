"""Bayesian logistic regression by Metropolis with all the data: what a subsampling chain must beat.

    python benchmarks/logistic.py [--size 31622] [--dimension 10] [--seconds 10]

The data are those of Prado, Nemeth & Sherlock, "Metropolis-Hastings with scalable subsampling"
(arXiv 2407.19602): an intercept and standard normal covariates, coefficients N(0, 1/d). The prior is
N(0, 10² I). Everything runs in one thread and is timed by processor time.

With s = 2y - 1 and t = s xᵀβ, a row's log likelihood is -log(1 + e⁻ᵗ) = min(t, 0) - log(1 + e^-|t|).
"""

import argparse
import math
import time
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from shared import show

Floats = NDArray[np.float64]

PRIOR_SCALE = 10.0
OPTIMAL = 2.38  # times 1/√d: the best scale of a random walk on a normal target
BLOCK = 512  # rows; a product of as many factors in [1, 2] cannot overflow


class Posterior(NamedTuple):
    """Data, prior, and where and how sharply the log posterior peaks."""

    x: Floats
    y: Floats
    prior_scale: float
    mode: Floats
    hessian: Floats  # of the log posterior at the mode: negative definite

    @property
    def covariance(self) -> Floats:
        return np.linalg.inv(-self.hessian)


class Run(NamedTuple):
    """A chain[step, coordinate], and what it took: processor time, and data points read a step."""

    chain: Floats
    acceptance: float
    seconds: float
    rows: float


# ---- The problem ----


def make_data(size: int, dimension: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Simulate x[row, coordinate], which starts with an intercept, and y[row] in {0, 1}."""
    beta = rng.normal(size=dimension) / math.sqrt(dimension)
    x = rng.normal(size=(size, dimension))
    x[:, 0] = 1.0
    return x, (rng.uniform(size=size) < expit(x @ beta)).astype(np.float64)


def make_posterior(x: Floats, y: Floats, prior_scale: float = PRIOR_SCALE) -> Posterior:
    """Climb to the mode by Newton's method."""
    mode = np.zeros(x.shape[1])
    for _ in range(50):
        gradient, hessian = slopes(x, y, mode, prior_scale)
        step = np.linalg.solve(hessian, gradient)
        mode = mode - step
        if -step @ hessian @ step < 1e-20:  # squared, in posterior standard deviations
            return Posterior(x, y, prior_scale, mode, slopes(x, y, mode, prior_scale)[1])
    raise RuntimeError("Newton's method did not settle: are the classes separable?")


def slopes(x: Floats, y: Floats, beta: Floats, prior_scale: float) -> tuple[Floats, Floats]:
    """Gradient and Hessian of the log posterior."""
    p, precision = expit(x @ beta), prior_scale**-2
    gradient = (y - p) @ x - precision * beta
    hessian = -(x.T * (p * (1 - p))) @ x - precision * np.eye(len(beta))
    return gradient, hessian


# ---- Metropolis with all the data ----


@numba.njit(fastmath=True)
def decays(t: Floats, bits: NDArray[np.int64], powers: Floats) -> float:
    """Sum log(1 + e^-|t|) over a block; `powers` are the `bits` as floats.

    e^-u = 2^-k e^r with |r| ≤ log(2)/2: the power is written bit by bit and e^r is a polynomial, off by
    less than 1e-14 of itself, so that all of it runs in vector registers (the library's exp does not).
    One logarithm of the product serves the block.
    """
    for i in range(len(t)):
        u = min(abs(t[i]), 700.0)
        k = np.int32(u * 1.4426950408889634 + 0.5)
        bits[i] = np.int64(1023 - k) << 52
        t[i] = k * 0.6931471805599453 - u
    product = 1.0
    for i in range(len(t)):
        r = t[i]
        e = 1.0 / 39916800.0
        e = e * r + 1.0 / 3628800.0
        e = e * r + 1.0 / 362880.0
        e = e * r + 1.0 / 40320.0
        e = e * r + 1.0 / 5040.0
        e = e * r + 1.0 / 720.0
        e = e * r + 1.0 / 120.0
        e = e * r + 1.0 / 24.0
        e = e * r + 1.0 / 6.0
        e = e * r + 0.5
        e = e * r + 1.0
        e = e * r + 1.0
        product *= 1.0 + e * powers[i]
    return math.log(product)


@numba.njit(fastmath=True)
def log_likelihood(columns: Floats, beta: Floats) -> float:
    """Sum over all rows; columns[coordinate, row] are s x, which vector registers like best."""
    size, total = columns.shape[1], 0.0
    t, bits = np.empty(BLOCK), np.empty(BLOCK, np.int64)
    powers = bits.view(np.float64)
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        part = t[: stop - start]
        part[:] = 0.0
        for j in range(len(beta)):
            column = columns[j, start:stop]
            for i in range(len(part)):
                part[i] += beta[j] * column[i]
        for i in range(len(part)):
            total += min(part[i], 0.0)
        total -= decays(part, bits, powers)
    return total


@numba.njit(fastmath=True)
def walk(columns: Floats, precision: float, factor: Floats, chain: Floats, rng: np.random.Generator) -> int:
    """Fill the chain after its first point; return how many steps moved."""
    beta, accepted = chain[0], 0
    height = log_likelihood(columns, beta) - 0.5 * precision * np.sum(beta * beta)
    for step in range(1, len(chain)):
        proposal = beta + factor @ rng.standard_normal(len(beta))
        proposed = log_likelihood(columns, proposal) - 0.5 * precision * np.sum(proposal * proposal)
        if proposed - height > -rng.standard_exponential():
            beta, height, accepted = proposal, proposed, accepted + 1
        chain[step] = beta
    return accepted


def full_metropolis(
    posterior: Posterior, steps: int, rng: np.random.Generator, scale: float = OPTIMAL
) -> Run:
    """Random-walk Metropolis with proposals N(β, scale²/d times the inverse Hessian)."""
    x, y, prior_scale, mode, _ = posterior
    columns, precision = np.ascontiguousarray(x.T * (2 * y - 1)), prior_scale**-2
    factor, chain = np.linalg.cholesky(posterior.covariance), np.empty((steps + 1, len(mode)))
    chain[0] = mode + factor @ rng.normal(size=len(mode))
    factor *= scale / math.sqrt(len(mode))
    walk(columns[:, :1].copy(), precision, factor, chain[:1], rng)  # compiles
    started = time.thread_time()
    accepted = walk(columns, precision, factor, chain, rng)
    return Run(chain[1:], accepted / steps, time.thread_time() - started, len(x))


def affordable(posterior: Posterior, seconds: float, pilot: int = 30) -> int:
    """How many steps with all the data take about so many seconds."""
    run = full_metropolis(posterior, pilot, np.random.default_rng(0))
    return max(pilot, round(pilot * seconds / run.seconds))


# ---- Effective samples ----


def ess(chain: Floats) -> tuple[float, float]:
    """Minimum and median over the coordinates of the bulk effective sample size."""
    from arviz_stats.base import array_stats

    sizes = array_stats.ess(chain[np.newaxis], chain_axis=0, draw_axis=1, method="bulk")
    return float(np.min(sizes)), float(np.median(sizes))


HEADER = "chain | steps | accepted | us/step | rows/step | min ESS | min ESS/s | median ESS/s"


def summary(name: str, run: Run) -> list[str]:
    """A row of a table under HEADER."""
    least, middle = ess(run.chain)
    steps = len(run.chain)
    costs = [f"{1e6 * run.seconds / steps:.1f}", f"{run.rows:,.1f}", f"{least:.0f}"]
    rates = [f"{least / run.seconds:.2f}", f"{middle / run.seconds:.2f}"]
    return [name, f"{steps:,}", f"{run.acceptance:.3f}", *costs, *rates]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=31_622)
    parser.add_argument("--dimension", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time of the chain")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    posterior = make_posterior(*make_data(arguments.size, arguments.dimension, rng))
    run = full_metropolis(posterior, affordable(posterior, arguments.seconds), rng)
    show(f"N={arguments.size:,}, d={arguments.dimension}", HEADER, [summary("all the data", run)])


if __name__ == "__main__":
    main()
