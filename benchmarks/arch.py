"""What racing saves in the choice of the order of an ARCH model, against a compiled exact sampler.

    python benchmarks/arch.py [--quick] [--data PRICES.csv [--segment COLUMN]]

Both samplers make the same moves with the same weights; they differ in what decides. The exact one is
compiled and keeps the likelihoods of where it is, so that a step evaluates the proposed parameter and those
of the other K - 1 orders: K N likelihoods. Times are processor times, taken in turns. Effective draws are
those of the order q. Without --data, returns are simulated (order 10).
"""

from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

import numba
import numpy as np
from shared import options

import gumbelrace as gr
from gumbelrace.applications.arch import Estimates, Fitted, by_importance, fit_orders, posterior
from gumbelrace.models.arch import rows, simulate
from gumbelrace.models.arch.data import returns_from_prices, standardised
from gumbelrace.paper.arch import audits
from gumbelrace.tables.prices import read_prices

TURNS, CHAINS = 7, 5
RACES = {
    "raced, first look at 8 rows": gr.Race(first=8),
    "raced, first look at 50 rows": gr.Race(),
}


@numba.njit
def evaluate(points, squares, where, steps):
    """Evaluate what an exact step with kept likelihoods must: a proposal and the other K - 1 orders."""
    total = 0.0
    for _ in range(steps):
        for a in range(len(points)):
            for n in range(len(where)):
                total += rows.log_factor(n, points[a], squares, where)
    return total


def read(path: Path | None, segment: str | None) -> Any:
    if path is None:
        return standardised(simulate(13_000, np.random.default_rng(10)))
    return returns_from_prices(*read_prices(path, segment=segment))


def seconds_of_exact(fitted: Fitted, steps: int) -> float:
    points = rows.points_of([fit.mean for fit in fitted.fits], fitted.fits[0].model.tau, fitted.data.lags)
    started = thread_time()
    evaluate(points, *fitted.data.arrays, steps)
    return (thread_time() - started) / steps


def seconds_of(kernel: gr.CarlinChib, state: gr.kernels.ModelChoice, steps: int, seed: int) -> float:
    started = thread_time()
    kernel.steps(np.random.default_rng(seed), state, steps)
    return (thread_time() - started) / steps


def effective(trace: gr.Trace) -> float:
    return float(np.asarray(trace.ess(var_names=["model"])["model"])) / (trace.chains * trace.draws)


def timed(
    fitted: Fitted, kernels: dict[str, gr.CarlinChib], state: gr.kernels.ModelChoice
) -> dict[str, float]:
    """Seconds a step, the samplers taking turns; the first turn compiles and is left out."""
    turns = []
    for turn in range(TURNS + 1):
        times = {"exact": seconds_of_exact(fitted, 5)}
        times |= {name: seconds_of(kernel, state, 200, turn) for name, kernel in kernels.items()}
        turns.append(times)
    return {name: median(times[name] for times in turns[1:]) for name in turns[0]}


def show(fitted: Fitted, chains: dict[str, gr.Trace], seconds: dict[str, float]) -> None:
    print(f"N = {fitted.data.size:,}, orders {fitted.orders}, weights by Laplace")
    print(f"{'sampler':<30}{'read':>8}{'µs a step':>11}{'ESS a step':>12}{'ESS/read':>10}{'ESS/s':>8}")
    needed = len(fitted.fits) * fitted.data.size
    exact = effective(chains["exact"])
    for name, trace in chains.items():
        share = 1.0 if name == "exact" else float(np.mean(trace.info.evaluations)) / needed
        ess, speed = effective(trace), seconds["exact"] / seconds[name]
        gains = f"{ess / exact / share:>9.1f}x{ess / exact * speed:>7.1f}x"
        print(f"{name:<30}{share:>8.4f}{1e6 * seconds[name]:>11.0f}{ess:>12.4f}{gains}")


def compare(fitted: Fitted, chains: dict[str, gr.Trace], weights: Any) -> None:
    """Print how far the estimates of log p(q | r) lie from two others, in standard errors."""
    found = {name: posterior(np.asarray(trace["model"]), weights, fitted) for name, trace in chains.items()}
    estimates = {
        name: Estimates(*np.array([(one.log_probability, one.error) for one in orders]).T)
        for name, orders in found.items()
    }
    exact, importance = estimates.pop("exact"), by_importance(fitted, np.random.default_rng(3))
    print("log p(q | r), importance sampling:", np.round(importance.log_probability, 2))
    for name, raced in estimates.items():
        print(f"{name}, log p(q | r):", np.round(raced.log_probability, 2), "±", np.round(raced.error, 2))
        for other, of_other in (("the exact chain's", exact), ("importance sampling's", importance)):
            apart = raced.log_probability - of_other.log_probability
            apart = np.round(apart / np.hypot(raced.error, of_other.error), 1)
            print(f"  less {other}, in standard errors: {apart}")


def show_audits(name: str, trace: gr.Trace, steps: int) -> None:
    for kind, found in audits(trace, steps, np.random.default_rng(2))._asdict().items():
        low, high = found.interval
        print(f"{name}, {kind}: {found.errors} of {found.decisions:,} wrong (95% {low:.4f} to {high:.4f})")


def main() -> None:
    parser = options(__doc__, "shorter chains")
    parser.add_argument("--data", type=Path, help="prices, with columns datetime and close")
    parser.add_argument("--segment", help="column that returns do not cross")
    chosen = parser.parse_args()
    steps, exact_steps, audited = (2000, 400, 200) if chosen.quick else (20_000, 4000, 2000)
    rng = np.random.default_rng(0)
    fitted = fit_orders(read(chosen.data, chosen.segment), rng=rng)
    kernels = {name: fitted.kernel(method) for name, method in RACES.items()}
    twin = fitted.kernel(gr.Exact())
    state = fitted.start(twin, rng)
    seconds = timed(fitted, kernels, state)
    chains = {"exact": gr.run(twin, state, steps=exact_steps, rng=np.random.default_rng(1), chains=CHAINS)}
    chains |= {
        name: gr.run(k, state, steps=steps, rng=np.random.default_rng(1), chains=CHAINS)
        for name, k in kernels.items()
    }
    show(fitted, chains, seconds)
    for name in RACES:
        show_audits(name, chains[name], audited)
    compare(fitted, chains, state.log_weights)


if __name__ == "__main__":
    main()
