"""What the kernels, control variates and chains cost, and what they save.

    python benchmarks/kernels.py [--quick] [--only NAME ...] [--environment FOLDER]

Sections: logistic, variance, chains, graph. Ratios are taken within one run; processor time, one thread.
`graph` is the first part of benchmarks/graph.py, which shows where the break-even lies. The rival MH-SS
(package PyMHSS) runs in an environment of its own, made on first use in FOLDER or in a temporary folder; it
needs 3 GB of disk. Without it those lines are left out.
"""

import math
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import graph as graphs
import numba
import numpy as np
from checkpoint import timed_writes
from logistic import (
    HEADER,
    OPTIMAL,
    PRIOR_SCALE,
    Posterior,
    Run,
    affordable,
    ess,
    full_metropolis,
    make_data,
    make_posterior,
    summary,
)
from mhss import mhss, own_environment
from shared import judged, options, show

import gumbelrace as gr
from gumbelrace.methods.exact import compared
from gumbelrace.models import logistic as model
from gumbelrace.population.control import table_of

SEED, DELTA = 1, 0.05
METHODS = {
    "Race(Normal)": gr.Race(gr.methods.Normal(), DELTA),
    "Race(Normal, first=8)": gr.Race(gr.methods.Normal(), DELTA, first=8),
    "Betting": gr.Betting(DELTA),
}


# ---- Logistic regression ----


@numba.njit
def log_prior(theta):  # type: ignore[no-untyped-def]
    return -0.5 * np.sum(theta * theta) / PRIOR_SCALE**2


def likelihood(posterior: Posterior) -> gr.population.Likelihood:
    return gr.likelihood(model.log_factor, (posterior.x, posterior.y), len(posterior.y))


def expansion(posterior: Posterior) -> gr.control_variates.ParameterTaylor:
    """Second order around the mode; the remainder is bounded in the posterior's own metric."""
    x, y, mode = posterior.x, posterior.y, posterior.mode
    metric = np.linalg.inv(np.linalg.cholesky(posterior.covariance))
    data = (x, model.at_centre(mode, x, y))
    bounds = model.remainder(x, metric)
    taylor = gr.parameter_taylor(model.stored_terms, data, len(y), mode, remainder=bounds, metric=metric)
    return taylor.with_residual(model.stored_residual)


def metropolis(posterior: Posterior, target: Any, method: gr.Method) -> gr.Metropolis:
    scale = OPTIMAL / math.sqrt(len(posterior.mode)) * np.linalg.cholesky(posterior.covariance)
    return gr.Metropolis(target, gr.kernels.RandomWalk(scale), log_prior=log_prior, method=method)


def chain(kernel: gr.Metropolis, posterior: Posterior, steps: int) -> tuple[gr.Trace, Run]:
    """Run one chain as a user would; its rows are data points read at either of two points."""
    start = gr.kernels.Position(posterior.mode)
    gr.run(kernel, start, steps=1, rng=np.random.default_rng(SEED), progress=False, check=1)  # compiles
    began = time.process_time()
    trace = gr.run(kernel, start, steps=steps, rng=np.random.default_rng(SEED), progress=False)
    seconds = time.process_time() - began
    rows = float(trace.info.evaluations.mean()) / 2
    return trace, Run(trace["position"][0], float(trace.acceptance), seconds, rows)


def logistic(quick: bool, folder: Path | None) -> None:
    """Metropolis with control variates, with all the data, and MH-SS."""
    for size in (31_622,) if quick else (31_622, 1_000_000):
        posterior = make_posterior(*make_data(size, 10, np.random.default_rng(SEED)))
        rows = [contender(*line, posterior) for line in ours(posterior, 20_000 if quick else 100_000)]
        full = full_metropolis(
            posterior, affordable(posterior, 5.0 if quick else 60.0), np.random.default_rng(SEED)
        )
        rows.append((summary("all the data, by numba", full), full, ""))
        if not quick and (python := own_environment(folder)):
            for order in (1, 2):
                if run := mhss(python, posterior, 50_000, order, OPTIMAL):
                    rows.append((summary(f"MH-SS-{order}", run), run, ""))
        table = [[*text, f"{rate(run) / rate(full):.2f}", errors] for text, run, errors in rows]
        header = f"{HEADER} | x all the data | wrong decisions"
        show(f"logistic: N={size:,}, d=10, second-order control variates at the mode", header, table)


def ours(posterior: Posterior, steps: int) -> list[tuple[str, gr.Metropolis, int]]:
    raw, target = likelihood(posterior), likelihood(posterior).minus(expansion(posterior))
    raced = [(name, metropolis(posterior, target, method), steps) for name, method in METHODS.items()]
    exact = max(20, min(steps, 200_000_000 // len(posterior.y)))
    return [*raced, ("Exact, all the data", metropolis(posterior, raw, gr.Exact()), exact)]


def contender(
    name: str, kernel: gr.Metropolis, steps: int, posterior: Posterior
) -> tuple[list[str], Run, str]:
    trace, run = chain(kernel, posterior, steps)
    if isinstance(kernel.method, gr.Exact):
        return summary(name, run), run, ""
    report = trace.audit(min(1.0, 200 / steps), rng=np.random.default_rng(SEED))
    return summary(name, run), run, f"{report.errors}/{report.draws}"


def rate(run: Run) -> float:
    """Effective samples of the slowest coordinate a second."""
    return ess(run.chain)[0] / run.seconds


# ---- Control variates ----


@numba.njit
def student_factor(n, theta, x, y, nu):  # type: ignore[no-untyped-def]
    z = y[n]
    for i in range(len(theta)):
        z -= x[n, i] * theta[i]
    return -0.5 * (nu + 1.0) * np.log1p(z * z / nu)


@numba.njit
def student_terms(n, centre, direction, x, y, nu):  # type: ignore[no-untyped-def]
    z, t = y[n], 0.0
    for i in range(len(centre)):
        z -= x[n, i] * centre[i]
        t += x[n, i] * direction[i]
    s = nu + z * z
    slope = (nu + 1.0) * z / s * t
    return -0.5 * (nu + 1.0) * np.log1p(z * z / nu), slope, (nu + 1.0) * (z * z - nu) / (s * s) * t * t


def variance(quick: bool, folder: Path | None) -> None:
    """How much smaller the residuals are, two posterior standard deviations from the mode."""
    rows = []
    for size in (31_622,) if quick else (31_622, 1_000_000):
        rng = np.random.default_rng(SEED)
        posterior = make_posterior(*make_data(size, 10, rng))
        x, y, mode = posterior.x, posterior.y, posterior.mode
        covariance = posterior.covariance
        for order in (1, 2):
            taylor = gr.parameter_taylor(model.terms, (x, y), size, mode, order)
            target = likelihood(posterior)
            rows.append(
                [f"logistic, order {order}", f"{size:,}", *reduction(target, taylor, mode, covariance)]
            )
        response = x @ mode + rng.standard_t(4.0, size)
        data = (x, response, 4.0)
        target, centre = gr.likelihood(student_factor, data, size), student_mode(x, response)
        information = 5.0 / 7.0 * x.T @ x
        for order in (1, 2):
            taylor = gr.parameter_taylor(student_terms, data, size, centre, order)
            cells = reduction(target, taylor, centre, np.linalg.inv(information))
            rows.append([f"Student-t, order {order}", f"{size:,}", *cells])
    header = "likelihood | N | variance ratio | target | | error of sums | target | "
    show("variance: of l(x') - l(x), raw over residual; relative error of the sums", header, rows)


def student_mode(x: np.ndarray, y: np.ndarray, nu: float = 4.0) -> np.ndarray:
    """Iteratively reweighted least squares."""
    theta = np.linalg.lstsq(x, y)[0]
    for _ in range(100):
        w = (nu + 1.0) / (nu + (y - x @ theta) ** 2)
        theta = np.linalg.solve((x.T * w) @ x, x.T @ (w * y))
    return theta


def reduction(
    target: gr.population.Likelihood,
    taylor: gr.control_variates.ParameterTaylor,
    mode: np.ndarray,
    covariance: np.ndarray,
) -> list[str]:
    rng = np.random.default_rng(SEED)
    points = mode + rng.normal(size=(2, len(mode))) @ np.linalg.cholesky(covariance).T
    raw, residual = target(points), target.minus(taylor)(points)
    arms, every = np.arange(2), np.arange(target.size)
    before, control = raw.rewards_at(every), taylor.at(points)
    after = before - table_of(control.function)(every, arms, control.data)
    ratio = np.var(before[:, 1] - before[:, 0]) / np.var(after[:, 1] - after[:, 0])
    gap = np.diff(compared(raw).sums)[0]
    error = abs(np.diff(compared(residual).sums)[0] - gap) / np.abs(before.sum(axis=0)).max()
    kept = ["within" if ratio >= 100 else "over", "within" if error <= 1e-9 else "over"]
    return [f"{ratio:,.0f}", "100", kept[0], f"{error:.0e}", "1e-9", kept[1]]


# ---- Chains ----


def chains(quick: bool, folder: Path | None) -> None:
    """Checkpoints and memory, of the logistic chain."""
    posterior = make_posterior(*make_data(31_622, 10, np.random.default_rng(SEED)))
    target = likelihood(posterior).minus(expansion(posterior))
    kernel, start = (
        metropolis(posterior, target, METHODS["Race(Normal)"]),
        gr.kernels.Position(posterior.mode),
    )
    steps = 100_000 if quick else 1_500_000
    with tempfile.TemporaryDirectory() as place, timed_writes() as costs:
        began = time.perf_counter()
        rng = np.random.default_rng(SEED)
        gr.run(
            kernel, start, steps=steps, rng=rng, chains=2, progress=False, checkpoint=Path(place) / "run"
        )
        share = 100 * sum(costs) / (2 * (time.perf_counter() - began))
    rows = [["checkpoint, % of the time", *judged(share, 2.0)]]
    peaks = [peak(kernel, start, 1000 * thin, thin) for thin in (10, 100)]
    rows.append(["peak memory, 10 x the steps, as many kept", *judged(peaks[1] / peaks[0], 1.2)])
    show("chains", "measure | value | target | ", rows)


def peak(kernel: gr.Metropolis, start: gr.kernels.Position, steps: int, thin: int) -> int:
    """Peak of what is allocated in a run."""
    gr.run(kernel, start, steps=10 * thin, rng=np.random.default_rng(SEED), progress=False, thin=thin)
    tracemalloc.start()
    gr.run(kernel, start, steps=steps, rng=np.random.default_rng(SEED), progress=False, thin=thin)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


# ---- Graphs ----


def graph(quick: bool, folder: Path | None) -> None:
    """Dense Potts models: the law, and what a sweep reads and takes."""
    graphs.law(quick)
    graphs.lattice(quick)


SECTIONS = {"logistic": logistic, "variance": variance, "chains": chains, "graph": graph}


def main() -> None:
    parser = options(__doc__, "smaller problems, a minute in all")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--environment", type=Path, help="where PyMHSS is, or shall be, installed")
    arguments = parser.parse_args()
    for name in arguments.only:
        SECTIONS[name](arguments.quick, arguments.environment)


if __name__ == "__main__":
    main()
