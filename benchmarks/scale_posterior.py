"""A posterior given a table that is larger than memory: passes, bytes, seconds, and the speed of chains.

Logistic regression with 10 coefficients on rows in a .npy file, float64: 100 million of them, 8.8 GB
(`--quick`: 1 million). Chains of the table and of arrays in memory are compared on the first million rows:
effective draws a second of processor time, and means and standard deviations. Every fit runs in a process
of its own, whose peak of resident memory is shown; those of tables may have 2 GB at most (RLIMIT_DATA).

2026-11-18, two cores with other work: 5 passes over 100 million rows, 44 GB read in 416 s (446 s of the
processor), 0.7 GB resident, 115,000 effective draws a second; on the first million rows 75,000 from the
table and 79,000 in memory, means within 0.02 standard deviations of each other and these within 2%.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from shared import judged, show

import gumbelrace as gr
from gumbelrace.models import logistic

ROWS, QUICK_ROWS, FIRST = 100_000_000, 1_000_000, 1_000_000
COEFFICIENTS, PIECE = 10, 500_000
# Of the chains: draws of each of four, and batches of each whose means tell how many are effective.
DRAWS, BATCHES = 5_000, 50
SLOWER, MEMORY = 1.5, 2.0  # targets: how many times as slow chains may be, and gigabytes


def write(path: Path, rows: int) -> None:
    """Write rows of a logistic regression, piece by piece."""
    header = {"descr": "<f8", "fortran_order": False, "shape": (rows, COEFFICIENTS + 1)}
    slopes = np.linspace(-0.5, 0.5, COEFFICIENTS)
    with open(path, "wb") as file:
        npy.write_array_header_1_0(file, header)
        for k, first in enumerate(range(0, rows, PIECE)):
            rng, count = np.random.default_rng([0, k]), min(PIECE, rows - first)
            x = rng.standard_normal((count, COEFFICIENTS))
            y = rng.random(count) < 1.0 / (1.0 + np.exp(-x @ slopes))
            file.write(np.column_stack([x, y]).tobytes())


def fitted(path: Path, in_memory: bool, rows: int) -> gr.Posterior:
    given, start = (logistic.log_factor, logistic.terms), np.zeros(COEFFICIENTS)
    if in_memory:
        part = np.load(path, mmap_mode="r")[:rows]
        data = np.array(part[:, :COEFFICIENTS]), np.array(part[:, COEFFICIENTS])
        return gr.posterior(*given, data, rows, start=start, method=gr.Penalty())
    names = [str(i) for i in range(COEFFICIENTS)], str(COEFFICIENTS)
    return gr.posterior(*given, names, table=gr.Passes(gr.open_table(path), rng=0), start=start)


def effective(draws: np.ndarray) -> float:
    """Estimate the number of effective draws from the means of batches."""
    batches = draws.reshape(draws.shape[0] * BATCHES, -1, draws.shape[2])
    length, spread = batches.shape[1], batches.mean(axis=1).var(axis=0, ddof=1)
    share = draws.reshape(-1, draws.shape[2]).var(axis=0) / (length * spread)
    return float(min(np.mean(share), 1.0)) * draws.shape[0] * draws.shape[1]


def child(path: Path, in_memory: bool, rows: int) -> None:
    """Fit, draw, and write what came out as JSON."""
    if not in_memory:
        resource.setrlimit(resource.RLIMIT_DATA, (int(MEMORY * 1e9),) * 2)
    begun, used = time.perf_counter(), time.process_time()
    fit = fitted(path, in_memory, rows)
    made, busy = time.perf_counter() - begun, time.process_time() - used
    fit.sample(100, rng=1, progress=False)  # compiles
    used = time.process_time()
    trace = fit.sample(DRAWS, rng=2, progress=False, check=0)
    seconds = time.process_time() - used
    draws = trace["position"]
    found = {
        "seconds": made,
        "processor": busy,
        "passes": getattr(fit, "passes", 0),
        "gigabytes": getattr(fit, "bytes_read", 0) / 1e9,
        "pool": getattr(fit, "pool_rows", 0),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "speed": effective(draws) / seconds,
        "effective": effective(draws),
        "mean": draws.mean(axis=(0, 1)).tolist(),
        "sd": draws.std(axis=(0, 1)).tolist(),
    }
    print(json.dumps(found))


def measured(path: Path, in_memory: bool, rows: int) -> dict:
    """Fit and draw in a process of its own."""
    options = ["--child", str(path), "--rows", str(rows), *["--in-memory"] * in_memory]
    done = subprocess.run([sys.executable, __file__, *options], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def line(name: str, found: dict) -> list[str]:
    numbers = [found["seconds"], found["processor"], found["memory"]]
    speed = [f"{found['effective']:,.0f}", f"{found['speed']:,.0f}"]
    read = [f"{found['passes']}", f"{found['gigabytes']:.2f}", f"{found['pool']:,}"]
    return [name, *read, *(f"{number:.1f}" for number in numbers), *speed]


def posterior(quick: bool, rows: int | None = None) -> None:
    """Measure fits of a large table, of its first rows, and of those in memory."""
    rows = rows or (QUICK_ROWS if quick else ROWS)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        large, small = Path(folder, "rows.npy"), Path(folder, "first.npy")
        write(small, min(FIRST, rows))
        first, memory = (measured(small, kept, min(FIRST, rows)) for kept in (False, True))
        lines = [line(f"first {FIRST:,}, table", first), line(f"first {FIRST:,}, in memory", memory)]
        whole = first
        if rows > FIRST:
            write(large, rows)
            whole = measured(large, False, rows)
            lines.insert(0, line(f"{rows:,}, table", whole))
    header = "rows | passes | GB read | pool | seconds | processor | GB resident | effective | a second"
    show("Posterior given a table on disk", header, lines)
    apart = np.subtract(first["mean"], memory["mean"]) / memory["sd"]
    ratios = np.array(first["sd"]) / memory["sd"]
    checks = [
        ["in memory / table, effective draws a second", *judged(memory["speed"] / whole["speed"], SLOWER)],
        ["GB resident", *judged(whole["memory"], MEMORY)],
        ["passes", *judged(whole["passes"], 7)],
        ["largest difference of means, standard deviations", *judged(float(np.abs(apart).max()), 0.05)],
        ["largest ratio of standard deviations - 1", *judged(float(np.abs(ratios - 1).max()), 0.05)],
    ]
    show("Targets", "what | found | target | ", checks)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--in-memory", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.in_memory, given.rows)
    else:
        posterior(given.quick, given.rows)
