"""Posteriors from few rows: Laplace proposals for logistic regression, each test in its turn.

    python benchmarks/tests_of_moves.py [--quick] [--seconds 10]

The data are those of `logistic.py`. Log factors are expanded to second order at the mode, and proposals
come from the Laplace law, wherever a chain is: what is left to test is the residual of the expansion.
Beside the methods of the package stand the same proposals tested with all rows, by matrix products of many
of them at once, and loops written by hand for this problem alone, which the package is to reach 0.7 of. One
thread, processor time; effective samples are those of the slowest coordinate.

Effective samples a second (rows a step), 2026-11-17, two cores with much other work; ratios to loops by
hand are good to a fifth, and were 0.72 to 1.1 for Thinning at d = 10 and more at higher ones:

    N, d                         31,622, 10      1,000,000, 10     100,000, 30      100,000, 50
    Race(delta=1e-5)           70,000 (250)       52,000 (280)   4,200 (1,200)    1,400 (2,200)
    Penalty, weighted rows     185,000 (48)       112,000 (48)     60,000 (48)      42,000 (51)
    Thinning                1,100,000 (2.0)    1,730,000 (0.4)     83,000 (28)     13,500 (126)
    penalty by hand            115,000 (32)        58,000 (32)     54,000 (32)      43,000 (32)
    thinning by hand          960,000 (1.9)    2,390,000 (0.4)     50,000 (28)      9,000 (122)
    all rows, batched                15,500                480              61              171
    by default                     Thinning           Thinning        Thinning          Penalty
"""

import argparse
import time
from typing import Any, NamedTuple

import numba
import numpy as np
from logistic import BLOCK, Floats, Posterior, Run, decays, ess, make_data, make_posterior
from shared import options, show

import gumbelrace as gr
from gumbelrace.core.random import alias_of
from gumbelrace.models import logistic as model

SIZES = (31_622, 10), (1_000_000, 10), (100_000, 30), (100_000, 50)
FEW = ((3_162, 5),)
STEPS, BATCH = 100_000, 64
# Steps of one call at most, whose results should fit into a cache, and seconds after which fewer will do.
LONGEST, MOMENT = 10_000, 0.1
# What loops by hand read at least, and until the variance of the log ratio is as small.
FIRST, MOST_VARIANCE = 32, 1.0
HEADER = "test | steps | rows/step | accepted | us/step | ESS/step | ESS/s | of the loop by hand"


@numba.njit
def log_prior(theta):
    total = 0.0
    for i in range(len(theta)):
        total += theta[i] * theta[i]
    return -0.5 * total / 100.0


class Problem(NamedTuple):
    """A posterior, its Laplace law, and bounds of the residuals in its metric."""

    posterior: Posterior
    law: Any
    at_mode: Floats  # of each row: what its residual needs
    bounds: Floats


def problem_of(size: int, dimension: int) -> Problem:
    """Simulate data, and find the mode."""
    posterior = make_posterior(*make_data(size, dimension, np.random.default_rng(1)))
    law = gr.kernels.NormalPseudoprior(posterior.mode, posterior.covariance)
    at_mode = model.at_centre(posterior.mode, posterior.x, posterior.y)
    return Problem(posterior, law, at_mode, model.remainder(posterior.x, np.linalg.inv(law.root)))


# ---- By the package ----


def likelihood_of(problem: Problem, outliers: float | None) -> Any:
    """Give the log factors less their expansion; with outliers of 0 no row has a weight of its own."""
    x, y, _, mode, _ = problem.posterior
    expansion = gr.parameter_taylor(
        model.stored_terms,
        (x, problem.at_mode),
        len(x),
        mode,
        remainder=problem.bounds,
        metric=np.linalg.inv(problem.law.root),
        outliers=outliers,
    )
    expansion = expansion.with_residual(model.stored_residual)
    return gr.likelihood(model.log_factor, (x, y), len(x)).minus(expansion)


def by_method(problem: Problem, likelihood: Any, method: Any, seconds: float) -> Run:
    """Run a chain for about so long."""
    proposal = gr.kernels.Autoregressive(problem.law, correlation=0.0)
    kernel = gr.Metropolis(likelihood, proposal, log_prior=log_prior, method=method)
    rng, state, infos = np.random.default_rng(2), kernel.start(problem.posterior.mode), []
    count = warmed_up(kernel, rng, state)
    chain, done, started = new_chain(problem), 0, time.thread_time()
    while done < STEPS and time.thread_time() - started < seconds:
        block = kernel.steps(rng, state, min(count, STEPS - done))
        until = done + len(block.states.position)
        chain[done:until], done = block.states.position, until
        state = gr.kernels.Position(chain[done - 1].copy())
        infos.append(block.info)
    took = time.thread_time() - started
    read, accepted = (
        sum(getattr(info, name).sum() for info in infos) for name in ("evaluations", "acceptance")
    )
    return Run(chain[:done], accepted / done, took, read / 2 / done)


def warmed_up(kernel: Any, rng: np.random.Generator, state: Any) -> int:
    """Compile, and make steps until memory and caches are as they will be; give how many take a moment."""
    count, took = 5, 0.0
    while took < MOMENT and count < LONGEST:
        count = min(2 * count, LONGEST)
        kernel.steps(rng, state, count)
        started = time.thread_time()
        kernel.steps(rng, state, count)
        took = time.thread_time() - started
    return count


def new_chain(problem: Problem) -> Floats:
    """Make room for a chain; memory that was written to before is not waited for."""
    return np.full((STEPS, len(problem.law.mean)), np.nan)


# ---- All rows ----


def with_all_rows(problem: Problem, seconds: float) -> Run:
    """Test proposals by their exact densities, found for many of them at once."""
    x, y, scale, mode, _ = problem.posterior
    signed, d, rng = x * (2.0 * y[:, None] - 1.0), len(mode), np.random.default_rng(3)
    chain, accepted, current = [mode], 0, excess(signed, scale, mode[None], np.zeros((1, d)))[0]
    started = time.thread_time()
    while len(chain) <= STEPS and time.thread_time() - started < seconds:
        z = rng.standard_normal((BATCH, d))
        points = mode + z @ problem.law.root.T
        for value, point in zip(excess(signed, scale, points, z), points, strict=True):
            moves = value - current > -rng.standard_exponential()
            current, accepted = (value, accepted + 1) if moves else (current, accepted)
            chain.append(point if moves else chain[-1])
    took = time.thread_time() - started
    return Run(np.array(chain[1:]), accepted / (len(chain) - 1), took, len(x))


def excess(signed: Floats, scale: float, points: Floats, z: Floats) -> Floats:
    """Give the log posterior less the log density of the Laplace law, up to a constant."""
    prior, law = -0.5 * (points**2).sum(axis=1) / scale**2, -0.5 * (z**2).sum(axis=1)
    total: Floats = log_likelihoods(signed, points) + prior - law
    return total


@numba.njit(fastmath=True)
def log_likelihoods(signed, points):
    """Sum over all rows, of many points: products of matrices, a few rows at a time."""
    totals, bits = np.zeros(len(points)), np.empty(BLOCK, np.int64)
    powers = bits.view(np.float64)
    for start in range(0, len(signed), BLOCK):
        part = np.dot(points, signed[start : start + BLOCK].T)
        count = part.shape[1]
        for k in range(len(points)):
            for i in range(count):
                totals[k] += min(part[k, i], 0.0)
            totals[k] -= decays(part[k], bits[:count], powers[:count])
    return totals


# ---- By hand ----


class Rows(NamedTuple):
    """Rows in proportion to weights, and what loops need of them."""

    x: Floats
    least: Floats  # p where it is below a half, else p - 1
    keep: Floats
    other: Any
    chance: Floats
    total: float  # of the bounds


def rows_of(problem: Problem, weights: Floats) -> Rows:
    """Lay out the rows."""
    least, table = problem.at_mode[:, 3].copy(), alias_of(weights)
    return Rows(problem.posterior.x, least, table.keep, table.other, table.chance, problem.bounds.sum())


@numba.njit
def picked(rng, rows):
    n = int(rng.random() * len(rows.keep))
    return n if rng.random() < rows.keep[n] else rows.other[n]


@numba.njit
def difference(rows, n, step, proposed):
    """Residual of row n at a proposed step from the mode, less that at the current one."""
    s, t = 0.0, 0.0
    for i in range(len(step)):
        s += rows.x[n, i] * step[i]
        t += rows.x[n, i] * proposed[i]
    p = rows.least[n]
    sign = -1.0 if p < 0.0 else 1.0
    return model.beyond(sign * t, abs(p)) - model.beyond(sign * s, abs(p))


@numba.njit
def rings(rng, rows, step, proposed, cubes):
    """Test by thinning; give whether it is accepted, and the rows read."""
    count = rng.poisson(rows.total * cubes)
    for k in range(count):
        n = picked(rng, rows)
        bound = rows.chance[n] * rows.total / len(rows.chance) * cubes
        if rng.random() * bound < -difference(rows, n, step, proposed):
            return False, k + 1
    return True, count


@numba.njit
def penalised(rng, rows, step, proposed):
    """Test by an estimate and its variance; give whether it is accepted, and the rows read."""
    count, wanted, mean, squares, size = 0, FIRST, 0.0, 0.0, len(rows.chance)
    while True:
        while count < wanted:
            n = picked(rng, rows)
            value = size * difference(rows, n, step, proposed) / rows.chance[n]
            count += 1
            apart = value - mean
            mean += apart / count
            squares += apart * (value - mean)
        variance = squares / (count - 1) / count
        if variance <= MOST_VARIANCE:
            penalty = 0.5 * variance + variance**2 / (4.0 * (count + 1))
            return -rng.standard_exponential() < mean - penalty, count
        wanted = max(2 * count, int(1.1 * count * variance / MOST_VARIANCE))


@numba.njit
def loop(rng, rows, root, thins, chain):
    """Fill a chain of steps from the mode; give how many moved, and the rows read."""
    d, accepted, read, cube = len(root), 0, 0, 0.0
    step, proposed, z = np.zeros(d), np.zeros(d), np.zeros(d)
    for t in range(len(chain)):
        squared = 0.0
        for i in range(d):
            z[i], proposed[i] = rng.standard_normal(), 0.0
            squared += z[i] * z[i]
            for j in range(i + 1):
                proposed[i] += root[i, j] * z[j]
        if thins:
            moves, count = rings(rng, rows, step, proposed, cube + squared**1.5)
        else:
            moves, count = penalised(rng, rows, step, proposed)
        read += count
        if moves:
            step, proposed, cube, accepted = proposed, step, squared**1.5, accepted + 1
        chain[t] = step
    return accepted, read


def by_hand(problem: Problem, thins: bool) -> Run:
    """Run a loop that knows nothing but this problem."""
    curved = np.abs(problem.at_mode[:, 2] * (1.0 - 2.0 * np.abs(problem.at_mode[:, 3])))
    weights = problem.bounds if thins else problem.bounds * (curved + 0.02)
    rows, rng, chain = rows_of(problem, weights), np.random.default_rng(4), new_chain(problem)
    loop(rng, rows, problem.law.root, thins, chain[:LONGEST])  # compiles, and warms up
    started = time.thread_time()
    accepted, read = loop(rng, rows, problem.law.root, thins, chain)
    return Run(chain, accepted / STEPS, time.thread_time() - started, read / STEPS)


# ---- The table ----


def rate(run: Run) -> float:
    """Effective samples a second of the slowest coordinate."""
    return ess(run.chain)[0] / run.seconds


def line(name: str, run: Run, bar: float | None = None) -> list[str]:
    """A row of a table under HEADER."""
    found, steps = rate(run), len(run.chain)
    costs = [f"{run.rows:,.1f}", f"{run.acceptance:.3f}", f"{1e6 * run.seconds / steps:.2f}"]
    share = "" if bar is None else f"{found / bar:.2f}"
    return [name, f"{steps:,}", *costs, f"{found * run.seconds / steps:.3f}", f"{found:,.0f}", share]


def compare(size: int, dimension: int, seconds: float) -> None:
    """Show the table of one posterior."""
    problem = problem_of(size, dimension)
    even, uneven = likelihood_of(problem, 0.0), likelihood_of(problem, None)
    tests = [
        ("Race", uneven, gr.Race(delta=1e-5), None),
        ("Betting", uneven, gr.Betting(delta=1e-3), None),
        ("Penalty, equal rows", even, gr.Penalty(), "penalty by hand"),
        ("Penalty, weighted rows", uneven, gr.Penalty(), "penalty by hand"),
        ("Thinning", uneven, gr.Thinning(), "thinning by hand"),
    ]
    hands, lines = dict[str, Run](), []
    for name, likelihood, method, bar in tests:
        if bar is not None:  # close to what it is compared with: the machine may have other work
            hands[bar] = by_hand(problem, bar.startswith("thinning"))
        run = by_method(problem, likelihood, method, seconds)
        lines.append(line(name, run, None if bar is None else rate(hands[bar])))
    lines.append(line("all rows, batched", with_all_rows(problem, seconds)))
    lines += [line(name, run) for name, run in hands.items()]
    kernel = gr.Metropolis(uneven, gr.kernels.Autoregressive(problem.law, correlation=0.0))
    show(f"N = {size:,}, d = {dimension}: {kernel.method.name}", HEADER, lines)


def main() -> None:
    parser: argparse.ArgumentParser = options(__doc__ or "")
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time of a chain, at most")
    arguments = parser.parse_args()
    for size, dimension in FEW if arguments.quick else SIZES:
        compare(size, dimension, arguments.seconds)


if __name__ == "__main__":
    main()
