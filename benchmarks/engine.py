"""What the engine costs, against the fastest compiled exact scan of the same rewards.

    python benchmarks/engine.py [--quick] [--only tables reads ...]

Contenders are timed in turn, again and again, and compared by the medians of their processor time:
all run in one thread, and other work on the machine meets all of them. The full run takes about
five minutes, 5 GB of memory and 4 GB of disk.

The problem is the paper's synthetic one: rewards of any shape, their columns shifted so that p(X)
is fixed (here a linear ramp, p ∝ 1..D) and scaled to a standard deviation σ. A draw's gap is of
order 1/N, so σN says how hard it is. δ = 0.05 throughout.
"""

import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Hashable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from shared import judged, run_sections, show

import gumbelrace as gr
from gumbelrace.applications.demo import normalised

Floats = NDArray[np.float64]

SEED, DELTA = 1, 0.05
REPEATS, BATCH_SECONDS = 11, 0.05
FEWEST_DRAWS, MOST_DRAWS = 3, 2**15
CHUNK = 2**20
METHODS = {"Race(Normal)": gr.Race(gr.methods.Normal(), DELTA), "Betting": gr.Betting(DELTA)}
SHAPES = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "uniform": lambda rng, shape: rng.uniform(size=shape),
    "lognormal": lambda rng, shape: rng.lognormal(0.0, 2.0, size=shape),
}


# ---- The exact scans ----


@numba.njit(fastmath=True)
def scan(rewards: Floats) -> Floats:
    """Sum each arm of rewards[arm, row]; signed indices would make it up to seven times slower."""
    sums = np.zeros(len(rewards))
    for arm in range(np.uint64(len(rewards))):
        total = 0.0
        for row in range(np.uint64(rewards.shape[1])):
            total += rewards[arm, row]
        sums[arm] = total
    return sums


@numba.njit(fastmath=True)
def scan_by_row(rewards: Floats) -> Floats:
    """Sum each of four arms of rewards[row, arm]."""
    a = b = c = d = 0.0
    for row in range(np.uint64(len(rewards))):
        a += rewards[row, 0]
        b += rewards[row, 1]
        c += rewards[row, 2]
        d += rewards[row, 3]
    return np.array([a, b, c, d])


@numba.njit
def student(n: int, arm: int, y: Floats, centers: Floats, nu: float, norm: float) -> float:
    """Log density of Student's t; its constant comes from outside."""
    z = y[n] - centers[arm]
    return norm - 0.5 * (nu + 1.0) * math.log1p(z * z / nu)


@numba.njit(fastmath=True)
def scan_student(y: Floats, centers: Floats, nu: float, norm: float) -> Floats:
    """Sum the log densities of each center."""
    sums = np.zeros(len(centers))
    for arm in range(len(centers)):
        total = 0.0
        for n in range(len(y)):
            total += student(n, arm, y, centers, nu, norm)
        sums[arm] = total
    return sums


# ---- Timing ----


class Contender(NamedTuple):
    """`find` takes offsets, gives the arms found and the rewards read; `sums` are exact."""

    find: Callable[[Floats], tuple[Any, Any]]
    sums: Floats


class Trial(NamedTuple):
    """A batch of draws: what it took, what it read, how many were wrong."""

    seconds: float
    draws: int
    read: int
    errors: int


class Cost:
    """What all batches of a contender say."""

    def __init__(self, trials: list[Trial]) -> None:
        seconds, draws, read, errors = zip(*trials, strict=True)
        self.draw = median(s / n for s, n in zip(seconds, draws, strict=True))
        self.reward = median(s / max(r, 1) for s, r in zip(seconds, read, strict=True))
        self.typical_read = median(r / n for r, n in zip(read, draws, strict=True))
        self.draws, self.errors = sum(draws), sum(errors)
        self.mean_draw, self.read = sum(seconds) / self.draws, sum(read) / self.draws


Costs = dict[Hashable, Cost]


def by_method(population: gr.Population, method: gr.Method, sums: Floats) -> Contender:
    rng = np.random.default_rng(SEED)
    return Contender(lambda offsets: method.best_each(population, offsets, rng)[:2], sums)


def by_scan(sum_up: Callable[[], Floats], rewards: int) -> Contender:
    def find(offsets: Floats) -> tuple[Any, Any]:
        arms = [int(np.argmax(sum_up() + offset)) for offset in offsets]
        return np.array(arms), np.full(len(arms), rewards)

    return Contender(find, sum_up())


def field(population: gr.Population, sum_up: Callable[[], Floats]) -> dict[Hashable, Contender]:
    """The scan of this file, the library's own, and the methods."""
    scanner = by_scan(sum_up, population.rewards)
    methods = {"gr.Exact": gr.Exact(), **METHODS}
    racing = {name: by_method(population, s, scanner.sums) for name, s in methods.items()}
    return {"scan": scanner, **racing}


def alternate(
    tasks: dict[Hashable, Callable[[], Any]], repeats: int = REPEATS
) -> dict[Hashable, list[Any]]:
    """Run every task once, then every task again, and so on."""
    results: dict[Hashable, list[Any]] = {key: [] for key in tasks}
    for _ in range(repeats):
        for key, task in tasks.items():
            results[key].append(task())
    return results


def measure(
    contenders: dict[Hashable, Contender], copies: int | None = None, repeats: int = REPEATS
) -> Costs:
    """Time all contenders in turn: batches that take about as long, or copies of single draws."""
    tasks = {key: trials(contender, copies) for key, contender in contenders.items()}
    return {key: Cost(results) for key, results in alternate(tasks, repeats).items()}


def trials(contender: Contender, copies: int | None) -> Callable[[], Trial]:
    rng, fitting = np.random.default_rng(SEED), batch_size(contender)
    if copies is None:
        return lambda: trial(contender, fitting, rng)
    return lambda: trial(contender, 1, rng, copies)


def batch_size(contender: Contender) -> int:
    """Choose how many draws to time at once; what must be compiled is compiled here."""
    rng, draws, seconds = np.random.default_rng(SEED), 1, 0.0
    trial(contender, draws, rng)
    while seconds < BATCH_SECONDS / 4 and draws < MOST_DRAWS:
        draws *= 4
        seconds = trial(contender, draws, rng).seconds
    return min(MOST_DRAWS, max(FEWEST_DRAWS, round(draws * BATCH_SECONDS / seconds)))


def trial(contender: Contender, draws: int, rng: np.random.Generator, copies: int = 1) -> Trial:
    """Time a batch of draws; copies share their Gumbel variables, but not the rows they read."""
    offsets = np.repeat(rng.gumbel(size=(draws, len(contender.sums))), copies, axis=0)
    started = time.thread_time()
    arms, evaluations = contender.find(offsets)
    seconds = time.thread_time() - started
    exact = np.argmax(contender.sums + offsets, axis=1)
    return Trial(seconds, draws * copies, int(np.sum(evaluations)), int(np.sum(arms != exact)))


# ---- Printing ----


def timings(label: str, costs: Costs, rewards: int, target: float | None) -> list[list[str]]:
    """Rows of costs a reward and a draw, as they are and in units of the scan's."""
    unit = costs["scan"]
    rows = []
    for name, c in costs.items():
        ratio = c.reward / unit.reward
        kept = [f"{ratio:.2f}", "", ""]
        if target is not None and name in METHODS:
            kept = judged(ratio, target)
        rows.append([label, str(name), f"{1e9 * c.reward:.2f}", *kept, f"{1e6 * c.draw:.1f}"])
        rows[-1] += [f"{c.draw / unit.draw:.3f}", f"{c.read / rewards:.4f}"]
        rows[-1] += [f"{c.errors}/{c.draws}"]
    return rows


TIMINGS = "problem | method | ns/reward | x scan | target | | us/draw | draw/scan | read | errors"


# ---- Problems ----


def log_p(arms: int) -> Floats:
    ramp = np.arange(1.0, arms + 1.0)
    return np.log(ramp / ramp.sum())


def synthetic(size: int, arms: int, scale: float, shape: str = "normal") -> Floats:
    rewards = SHAPES[shape](np.random.default_rng(SEED), (size, arms))
    return normalised(rewards, log_p(arms), scale)


def table_field(size: int, arms: int, scale: float) -> dict[Hashable, Contender]:
    rewards = synthetic(size, arms, scale)
    by_arm = np.ascontiguousarray(rewards.T)
    return field(gr.table(rewards), lambda: scan(by_arm))


def power(size: int) -> str:
    return f"N=1e{round(math.log10(size))}"


# ---- Sections ----


def tables(quick: bool) -> None:
    """Rewards that lie in memory."""
    rows = []
    problems = [(10**5, 1e-4), (10**5, 1e-5), (10**7, 1e-4), (10**7, 1e-6)]
    for size, scale in problems[: 2 if quick else 4]:
        costs = measure(table_field(size, 10, scale))
        target = None if scale == 1e-5 else 6.0
        rows += timings(f"{power(size)} σ={scale:g}", costs, size * 10, target)
    show("tables: D=10, normal rewards; target: cost of a reward read, in scans", TIMINGS, rows)
    rows = []
    for scale in (1e-6, 1e-7):
        costs = measure(table_field(10**5, 10, scale))
        rows += [
            [f"σ={scale:g}", name, f"{costs[name].read:.0f}", *judged(1e6 * costs[name].draw, 3.0)]
            for name in METHODS
        ]
    header = "problem | method | rewards/draw | us/draw | target | "
    show("tables: fixed cost of a draw in a batch, N=1e5, D=10", header, rows)


def student_t(quick: bool) -> None:
    """Factors of a numba function."""
    rows = []
    for size in (10**5,) if quick else (10**5, 10**6):
        costs = measure(student_field(size))
        rows += timings(power(size), costs, size * 10, 1.3)
    show("student: compiled Student-t factors, D=10; target: cost of a reward read", TIMINGS, rows)


def student_field(size: int) -> dict[Hashable, Contender]:
    nu = 4.0
    norm = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi)
    y = np.random.default_rng(SEED).standard_t(nu, size)
    centers = np.linspace(-0.3, 0.31, 10)
    farthest = np.maximum(np.abs(y.min() - centers), np.abs(y.max() - centers))
    low = norm - 0.5 * (nu + 1) * np.log1p(farthest**2 / nu) - 1e-9
    data = (y, centers, nu, norm)
    population = gr.compiled(student, data, size, 10, reward_range=(low, norm))
    return field(population, lambda: scan_student(*data))


def reads(quick: bool) -> None:
    """Rewards read, whatever they cost."""
    rows = []
    for arms in (10,) if quick else (10, 100):
        for shape in SHAPES:
            for scale in (1e-4, 1e-5):
                population = gr.table(synthetic(10**5, arms, scale, shape))
                for speed in (population.scan_speed, 1.0):
                    population.scan_speed = speed
                    rows.append([f"D={arms}", shape, f"σ={scale:g}", f"{speed:g}"])
                    rows[-1] += compare_reads(population, 2.0 if shape == "lognormal" else 1.0)
    header = "arms | rewards | scale | scan_speed | Race | Betting | ratio | target | "
    header += "| Race errors | Betting errors | draws"
    show("reads: share of rewards read, N=1e5; Betting / Race(Normal, Paired)", header, rows)


def compare_reads(population: gr.Population, target: float, draws: int = 2000) -> list[str]:
    race, betting = (
        gr.audit(population, method, draws=draws, rng=np.random.default_rng(SEED))
        for method in (METHODS["Race(Normal)"], METHODS["Betting"])
    )
    shares = [f"{race.fraction:.4f}", f"{betting.fraction:.4f}"]
    kept = judged(betting.fraction / race.fraction, target)
    return [*shares, *kept, str(race.errors), str(betting.errors), str(draws)]


def hopeless(quick: bool) -> None:
    """Nothing can be saved: how much is lost?"""
    rows = []
    for size in (10**5,) if quick else (10**5, 10**7):
        costs = measure(table_field(size, 10, 0.1))
        for name in (*METHODS, "gr.Exact"):
            ratio = costs[name].draw / costs["scan"].draw
            share = costs[name].read / (10 * size)
            rows.append([power(size), name, f"{1e6 * costs[name].draw:.0f}"])
            rows[-1] += [*judged(ratio, 1.25), f"{share:.3f}"]
    header = "size | method | us/draw | x scan | target | | read"
    show("hopeless: σ=0.1, D=10; time of a draw in scans", header, rows)


def growth(quick: bool) -> None:
    """Draws from a file, the larger the file the smaller the rewards."""
    sizes = (10**5, 10**6) if quick else (10**5, 10**6, 10**7, 10**8)
    with tempfile.TemporaryDirectory() as folder:
        if shutil.disk_usage(folder).free < 2 * 32 * sum(sizes):
            print(f"\ngrowth: skipped, {folder} has less than {64 * sum(sizes) / 1e9:.1f} GB free")
            return
        growth_of({size: mapped(Path(folder) / f"{size}.npy", size) for size in sizes})


def growth_of(populations: dict[int, tuple[gr.Population, Floats]]) -> None:
    """The mean draw grows as √N, as the rows that near ties need do; the median need not."""
    contenders: dict[Hashable, Contender] = {
        (size, name): by_method(population, method, sums)
        for size, (population, sums) in populations.items()
        for name, method in METHODS.items()
    }
    base = max(min(populations), max(populations) // 100)
    costs = measure(contenders, copies=32, repeats=41)
    rows = []
    for (size, name), c in costs.items():
        rows.append([power(size), name, f"{1e6 * c.draw:.0f}"])
        rows[-1] += judged(c.draw / costs[base, name].draw, 2.0)
        rows[-1] += [f"{c.typical_read:.0f}", f"{1e6 * c.mean_draw:.0f}", f"{c.read:.0f}"]
        rows[-1] += [f"{1e9 * c.reward:.2f}", f"{c.errors}/{c.draws}"]
        rows[-1] += [extra_memory(populations[size][0], METHODS[name])]
    header = f"size | method | us/draw | over {power(base)} | target | | rewards/draw | mean us"
    header += " | mean rewards | ns/reward | errors | bytes"
    show("growth: memory-mapped file, D=4, σ=10/N; medians; peak bytes of a call", header, rows)


def mapped(path: Path, size: int) -> tuple[gr.Population, Floats]:
    """Write a file of normal rewards, and map it; its pages are touched once on the way."""
    rng, wanted = np.random.default_rng(SEED), log_p(4) / size
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(size, 4))
    chunks = [slice(first, min(first + CHUNK, size)) for first in range(0, size, CHUNK)]
    total = np.zeros(4)
    for chunk in chunks:
        file[chunk] = rng.normal(scale=10.0 / size, size=file[chunk].shape)
        total += file[chunk].sum(axis=0)
    low, high = np.full(4, np.inf), np.full(4, -np.inf)
    for chunk in chunks:
        file[chunk] += wanted - total / size
        low = np.minimum(low, file[chunk].min(axis=0))
        high = np.maximum(high, file[chunk].max(axis=0))
    del file
    rewards = np.load(path, mmap_mode="r")
    return gr.table(rewards, shuffled=True, reward_range=(low, high)), scan_by_row(rewards)


def extra_memory(population: gr.Population, method: gr.Method) -> str:
    """Peak of what one warm call allocates, in bytes; kernels allocate where Python does."""
    rng = np.random.default_rng(SEED)
    method.best(population, None, rng)
    tracemalloc.start()
    method.best(population, None, rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"{peak:,}"


def python_path(quick: bool) -> None:
    """Factors of a NumPy function: an easy draw, by itself and in a batch."""
    rewards = synthetic(10**5, 10, 1e-6)
    bounds = rewards.min(axis=0), rewards.max(axis=0)
    population = gr.factors(
        lambda index, arms: rewards[np.ix_(index, arms)], 10**5, 10, reward_range=bounds
    )
    sums, rng = rewards.sum(axis=0), np.random.default_rng(SEED)
    contenders: dict[Hashable, Contender] = {}
    for name, method in METHODS.items():
        contenders["batch", name] = by_method(population, method, sums)
        contenders["alone", name] = Contender(one_by_one(population, method, rng), sums)
    rows = [
        [how, name, f"{c.read:.0f}", *judged(1e6 * c.draw, 300.0)]
        for (how, name), c in sorted(measure(contenders).items())
    ]
    header = "draw | method | rewards/draw | us/draw | target | "
    show("python_path: NumPy factors, N=1e5, D=10, σ=1e-6; fixed cost of a draw", header, rows)


def one_by_one(
    population: gr.Population, method: gr.Method, rng: np.random.Generator
) -> Callable[[Floats], tuple[Any, Any]]:
    def find(offsets: Floats) -> tuple[Any, Any]:
        found = [method.best(population, offset, rng) for offset in offsets]
        return np.array([f.arm for f in found]), np.array([f.evaluations for f in found])

    return find


def imports(quick: bool) -> None:
    """What a fresh process waits for."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    tasks: dict[Hashable, Callable[[], float]] = {
        name: lambda name=name: float(fresh(code.format(name))) for name in ("numba", "gumbelrace")
    }
    seconds = {name: median(times) for name, times in alternate(tasks, 3 if quick else 15).items()}
    both = [f"{1000 * seconds[name]:.0f}" for name in ("numba", "gumbelrace")]
    rows = [[*both, *judged(seconds["gumbelrace"] / seconds["numba"], 1.5)]]
    show("imports: ms in a fresh process", "numba | gumbelrace | ratio | target | ", rows)
    with tempfile.TemporaryDirectory() as cache:
        methods = "gr.Betting()," if quick else ALL_METHODS
        rows = [[name, *first_use(cache, methods)] for name in ("first", "second")]
    rows[0][-2:] = ["", ""]
    header = "process | s | cached | new in cache | compiled | target | "
    show("imports: what a process compiles", header, rows)


ALL_METHODS = "gr.Exact(), gr.Betting(), gr.Race(), gr.Race(gr.methods.Serfling()), gr.LilUCB()"
FIRST_USE = """
import numpy as np, gumbelrace as gr
from numba.core import event
population, rng = gr.table(np.eye(20_000, 3)), np.random.default_rng(0)
with event.install_recorder("numba:compile") as recorder:
    for method in METHODS:
        gr.sample(population, size=2, method=method, rng=rng)
print(sum(e.is_start for _, e in recorder.buffer))
"""


def first_use(cache: str, methods: str) -> list[str]:
    """Use the methods in a new process: seconds, kernels in the cache before, new, compiled."""
    before, started = len(list(Path(cache).rglob("*.nbc"))), time.perf_counter()
    compiled = int(fresh(FIRST_USE.replace("METHODS", methods), NUMBA_CACHE_DIR=cache))
    seconds = time.perf_counter() - started
    new = len(list(Path(cache).rglob("*.nbc"))) - before
    kept = "within" if compiled + new == 0 else "over"
    return [f"{seconds:.1f}", str(before), str(new), str(compiled), "0", kept]


def fresh(code: str, **environment: str) -> str:
    """Run code in a new process; return what it prints."""
    command, env = [sys.executable, "-c", code], os.environ | environment
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


SECTIONS = {
    "tables": tables,
    "student": student_t,
    "reads": reads,
    "hopeless": hopeless,
    "growth": growth,
    "python_path": python_path,
    "imports": imports,
}


if __name__ == "__main__":
    run_sections(__doc__, SECTIONS)
