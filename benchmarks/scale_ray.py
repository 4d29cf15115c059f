"""Passes by workers of Ray: one and two of them on this machine, and a simulation of many. See scale.py.

ray: seconds of a pass that sums derivatives, and of one that draws a pool, by one worker and by two; the
second pass of each kind is timed, since the first one compiles. Then whole fits without workers and with
two, whose start and compiling count: when workers pay. It needs two idle processors.

simulate: hours from files to 10,000 effective draws of a logistic regression with 10 coefficients in
float32, by five passes (a subsample, three sums, a pool). Measured here, in processor seconds: what rows
take in each kind of pass, what the driver takes to send a task and to take its result, and what a chain
takes. Assumed: bandwidths (STORAGE, TOGETHER, NETWORK), and how uneven tasks are: their times are lognormal
with a deviation of UNEVEN, and one in a hundred takes SLOW times as long. Tasks go to the next free worker.
"""

import heapq
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from shared import show

import gumbelrace as gr
from gumbelrace.laplace.passes import Subsample, of_shard
from gumbelrace.models import logistic

COEFFICIENTS, FILES = 10, 4
ROW_BYTES = 4 * (COEFFICIENTS + 1)
STORAGE, TOGETHER, NETWORK = 200e6, 20e9, 1e9  # bytes a second: of a worker, of all, into the driver
UNEVEN, SLOW, SLOW_SHARE = 0.2, 4.0, 0.01
ROWS, WORKERS, EFFECTIVE = (10**9, 10**10, 10**11, 10**12), (1, 10, 100, 1000), 10_000
SHARD_ROWS, FEWEST_SHARDS = 10**7, 100
SUBSAMPLE_ROWS, POOL_ROWS, SUMS = 2**18, 2**22, 3
COLUMNS = [str(i) for i in range(COEFFICIENTS)], str(COEFFICIENTS)


def write(folder: Path, rows: int) -> None:
    slopes = np.linspace(-0.5, 0.5, COEFFICIENTS)
    for k in range(FILES):
        rng = np.random.default_rng([1, k])
        x = rng.standard_normal((rows // FILES, COEFFICIENTS), np.float32)
        y = rng.random(len(x)) < 1.0 / (1.0 + np.exp(-x @ slopes))
        np.save(folder / f"{k}.npy", np.column_stack([x, y]).astype(np.float32))


def fitted(folder: Path, workers=None):
    passes = gr.Passes(gr.open_table(folder), rng=0, workers=workers)
    given, start = (logistic.log_factor, logistic.terms), np.zeros(COEFFICIENTS)
    return gr.posterior(*given, COLUMNS, table=passes, start=start, progress=False)


def kinds(fit) -> dict:
    """Give a pass of each kind."""
    from gumbelrace.laplace.passes import Sums

    drawing = fit.kernel.pools.drawing
    scanner = drawing.scanner
    return {
        "subsample": Subsample(scanner, min(1.0, SUBSAMPLE_ROWS / scanner.size)),
        "sums": Sums(drawing.model, scanner.columns, np.array(fit.mode)),
        "pool": drawing,
    }


def one_and_two_workers(quick: bool) -> None:
    """Time passes by one worker and by two."""
    from gumbelrace.ray import Cluster

    rows, lines, seconds = 400_000 if quick else 8_000_000, [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, rows)
        for workers in (1, 2):
            with Cluster("local", num_cpus=workers, object_store_memory=200_000_000) as cluster:
                fit = fitted(folder, cluster)
                scanner = fit.kernel.pools.scanner
                for kind, work in kinds(fit).items():
                    started = time.perf_counter()
                    scanner._made(work)
                    seconds[kind, workers] = time.perf_counter() - started
    for kind in ("sums", "pool"):
        one, two = seconds[kind, 1], seconds[kind, 2]
        lines.append([kind, f"{one:.2f}", f"{two:.2f}", f"{rows / two:,.0f}", f"{one / two:.2f}"])
    show(f"ray: a pass over {rows:,} rows", "pass | s, 1 worker | s, 2 | rows a second | times", lines)
    break_even(quick)


def break_even(quick: bool) -> None:
    """Time whole fits by this process alone, and by two workers of a Ray that is started for them."""
    from gumbelrace.ray import Cluster

    lines = []
    for rows in (100_000, 400_000) if quick else (1_000_000, 4_000_000, 12_000_000):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder, 40_000)
            fitted(folder)  # compiles
            write(folder, rows)
            started = time.perf_counter()
            fitted(folder)
            alone, started = time.perf_counter() - started, time.perf_counter()
            with Cluster("local", num_cpus=2, object_store_memory=200_000_000) as cluster:
                fitted(folder, cluster)
            lines.append([f"{rows:,}", f"{alone:.1f}", f"{time.perf_counter() - started:.1f}"])
    show("ray: whole fits", "rows | s, no workers | s, 2 workers, their start included", lines)


def measured(quick: bool) -> dict[str, float]:
    """Measure processor seconds: a row of each kind of pass, a task, an effective draw."""
    rows = 200_000 if quick else 2_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, rows)
        fit = fitted(folder)
        scanner, found = fit.kernel.pools.scanner, {}
        shard = scanner.table.shards[0]
        for kind, work in kinds(fit).items():
            started = time.process_time()
            of_shard(work, scanner.columns, shard, 0)
            found[kind] = (time.process_time() - started) / shard.size
        fit.sample(100, rng=0, progress=False)
        started = time.process_time()
        fit.sample(2_500, rng=1, progress=False)
        found["draw"] = (time.process_time() - started) / (10_000 * fit.forecast.effective)
    return found | {"task": seconds_of_task(100 if quick else 1000)}


def seconds_of_task(count: int) -> float:
    """Measure what the driver takes to send a task and to take its result, in processor seconds."""
    from gumbelrace.ray import Cluster

    with Cluster("local", num_cpus=1, object_store_memory=100_000_000) as cluster:
        list(cluster.map(abs, range(20)))
        started = time.process_time()
        list(cluster.map(abs, range(count)))
        return (time.process_time() - started) / count


def simulate(quick: bool) -> None:
    """Simulate clusters of many sizes."""
    found, lines = measured(quick), []
    speeds = [f"{1 / found[kind]:,.0f}" for kind in ("subsample", "sums", "pool")]
    costs = [f"{1e3 * found['task']:.2f}", f"{1e3 * found['draw']:.3f}"]
    header = "rows a second: subsample | sums | pool | ms a task | ms an effective draw"
    show("measured, on one processor", header, [[*speeds, *costs]])
    for rows in ROWS:
        hours = [hours_of(rows, workers, found) for workers in WORKERS]
        lines.append(
            [f"{rows:.0e}", f"{rows * ROW_BYTES / 1e9:,.0f}", *(f"{value:,.3g}" for value in hours)]
        )
    names = " | ".join(f"{workers:,} worker{'s' * (workers > 1)}" for workers in WORKERS)
    show("simulated: hours from files to 10,000 effective draws", f"rows | GB | {names}", lines)


def hours_of(rows: int, workers: int, found: dict[str, float]) -> float:
    """Simulate five passes and the chain."""
    shards = max(rows // SHARD_ROWS, FEWEST_SHARDS)
    rng = np.random.default_rng(0)
    one = partial(seconds_of_pass, rows // shards, shards, workers, found["task"], rng)
    row = ROW_BYTES + 8
    seconds = one(found["subsample"], SUBSAMPLE_ROWS * row / shards)
    seconds += sum(one(found["sums"], 8 * (COEFFICIENTS + 1) ** 2) for _ in range(SUMS))
    seconds += one(found["pool"], POOL_ROWS * row / shards)
    return (seconds + EFFECTIVE * found["draw"]) / 3600


def seconds_of_pass(rows, shards, workers, task, rng, row, result_bytes) -> float:
    """Give when the last result of a pass has come: the driver sends and takes them one at a time."""
    reading = rows * ROW_BYTES / min(STORAGE, TOGETHER / min(workers, shards))
    times = max(reading, rows * row) * rng.lognormal(-(UNEVEN**2) / 2, UNEVEN, shards)
    times *= np.where(rng.random(shards) < SLOW_SHARE, SLOW, 1.0)
    free, ends = [0.0] * min(workers, shards), []
    for number, length in enumerate(times.tolist()):
        begin = max(heapq.heappop(free), number * task / 2)
        ends.append(begin + length)
        heapq.heappush(free, begin + length)
    taken = 0.0
    for end in sorted(ends):
        taken = max(taken, end) + task / 2 + result_bytes / NETWORK
    return taken
