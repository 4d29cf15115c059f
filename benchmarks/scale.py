"""Tables on disk that are larger than memory: what is read of them, and how long it takes to shuffle one.

    python benchmarks/scale.py [--quick] [--only files shuffle ray]
    python benchmarks/scale.py --simulate

files: a .npy file of 2 GB (160 MB with --quick), 10 columns of float64, its rows in random order; `best`
and `sample` in a process that may have 500 MB (40 MB) more than after it has done both on a small table.
The limit is set by RLIMIT_AS, on the address space, so that it cannot be passed; memory is the peak of the
resident set beyond that of the small table (the file is read, not mapped: what the system keeps of it in
its cache is not memory of the process). Stretches are parts of the file that were read from front to back,
each after a jump. The law of 400 draws is compared with the exact one, by chi-square; so is that of draws
from the first 5% of the rows, in memory. On 2026-11-18, on a machine with a load of 25: 2 MB more memory;
best read 8.8% in 269 stretches of 0.65 MB (processor 0.2 s); sample 4.1% a draw, 32.6 GB for 400 draws, in
49,901 stretches of 0.65 MB (processor 49 s, clock 420 s), p = 0.64, and 0.86 in memory.

shuffle: a .npy file of 50 million rows (2 million with --quick) of 8 columns of float64, in 1 GB (64 MB),
beside a plain copy of the same file, three times; both end with what was written on disk. Where rows come
from and where they go is compared in 100 x 100 cells by chi-square. On 2026-11-18, with nothing else
running: copy 2.0 to 2.6 s (processor 1.2 to 1.7), shuffle 6.7 to 7.8 s (8.1 to 9.2), 173 MB with what numba
takes, 0.27 to 0.33 of the speed of the copy, p = 0.18.

ray, --simulate: see scale_ray.py.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scale_ray import one_and_two_workers, simulate
from scipy.special import chdtrc
from shared import run_sections, show

SEED, COLUMNS, CHUNK = 1, 10, 250_000
WIDTH, CELLS, ROUNDS = 8, 100, 3

# What the next two begin with: memory, in bytes.
STATUS = """
def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))
"""

# Run by a process of its own, which limits itself.
FILES = """
import json, resource, sys, time
import numpy as np, gumbelrace as gr
small, large, limit, draws = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
spreads = list(map(float, sys.argv[5:]))

def asked(path, count, spread):
    found = []
    for question in (
        lambda table: gr.best(table, delta=0.01, rng=1),
        lambda table: gr.sample(table, size=count, method=gr.Absorb(), rng=2, check=False),
    ):
        with gr.open_table(path, shuffled=True, reward_range=(-spread, spread)) as table:
            before, started = time.process_time(), time.perf_counter()
            answer = question(table)
            seconds = time.perf_counter() - started, time.process_time() - before
            found.append((answer, table.reads.bytes, table.reads.stretches, seconds))
    return found

asked(small, 2, spreads[0])
before = status("VmHWM")
resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + limit,) * 2)
(best, *read), (drawn, *sampled) = asked(large, draws, spreads[1])
counts = np.bincount(drawn.arms, minlength=len(drawn.arm_names)).tolist()
print(json.dumps({
    "best": [int(best.arm), *read], "sample": [counts, *sampled], "peak": status("VmHWM") - before
}))
"""

SHUFFLE = """
import json, sys, time
import gumbelrace as gr
from gumbelrace.tables.shuffle import shuffle
source, target, memory = sys.argv[1], sys.argv[2], float(sys.argv[3])
table = gr.open_table(source, [str(i) for i in range(8)])
before = status("VmHWM")
started, busy = time.perf_counter(), time.process_time()
shuffle(table, target, seed=1, memory=memory)
seconds = time.perf_counter() - started, time.process_time() - busy
print(json.dumps([*seconds, status("VmHWM") - before]))
"""


def files(quick: bool) -> None:
    """Races on a file that is four times as large as the memory allowed."""
    rows, limit, draws = (2_000_000, 40_000_000, 100) if quick else (25_000_000, 500_000_000, 400)
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.npy", Path(folder) / "large.npy"
        write_scores(small, 20_000)
        sums, first = write_scores(large, rows)
        found = asked(FILES, small, large, limit, draws, spread(20_000), spread(rows))
        in_memory = drawn_in_memory(large, rows // 20, draws)
    size, lines = 8 * COLUMNS * rows, []
    arm, *read = found["best"]
    lines.append(["best", f"column {arm} of {int(sums.argmax())}", *reading(read, size, 1)])
    counts, *read = found["sample"]
    lines.append(["sample", f"p = {fit(counts, sums):.2f}", *reading(read, size, draws)])
    lines.append(["in memory", f"p = {fit(in_memory, first):.2f}", *[""] * 5])
    header = "question | answer | read | MB | stretches | MB each | s (processor)"
    title = f"files: {size / 1e9:g} GB, limit {limit / 1e6:g} MB more, {found['peak'] / 1e6:.0f} MB used"
    show(title, header, lines)


def reading(read: list, size: int, times: int) -> list[str]:
    count, stretches, (seconds, busy) = read
    share = f"{count / (size * times):.2%}" + (" a draw" if times > 1 else "")
    each = f"{count / 1e6 / stretches:.2f}"
    return [share, f"{count / 1e6:.0f}", f"{stretches:,}", each, f"{seconds:.1f} ({busy:.1f})"]


def write_scores(path: Path, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Write scores whose sums differ by a few units; give these, of all rows and of the first 5%."""
    rng, sums, first = np.random.default_rng(SEED), np.zeros(COLUMNS), np.zeros(COLUMNS)
    with open(path, "wb") as file:
        head = {"descr": "<f8", "fortran_order": False, "shape": (rows, COLUMNS)}
        np.lib.format.write_array_header_1_0(file, head)
        means = np.append(np.linspace(0.0, 1.5, COLUMNS - 1), 3.0) / rows
        for start in range(0, rows, CHUNK):
            count = min(CHUNK, rows - start)
            block = rng.normal(means, spread(rows) / 6, (count, COLUMNS)).clip(-spread(rows), spread(rows))
            file.write(block.tobytes())
            sums += block.sum(axis=0)
            first += block[: max(0, rows // 20 - start)].sum(axis=0)
    return sums, first


def spread(rows: int) -> float:
    """Give six deviations of a score: the sums of all rows have one of a tenth."""
    return 0.6 / np.sqrt(rows)


def drawn_in_memory(path: Path, rows: int, draws: int) -> list[int]:
    """Draw from the first rows, in memory."""
    import gumbelrace as gr

    table = gr.table(np.array(np.load(path, mmap_mode="r")[:rows]), shuffled=True)
    drawn = gr.sample(table, size=draws, method=gr.Absorb(), rng=2, check=False)
    return np.bincount(drawn.arms, minlength=COLUMNS).tolist()


def fit(counts: list[int], sums: np.ndarray) -> float:
    """Give the p-value of counts under the law of the sums."""
    chances = np.exp(sums - sums.max())
    expected = sum(counts) * chances / chances.sum()
    return float(chdtrc(COLUMNS - 1, ((np.array(counts) - expected) ** 2 / expected).sum()))


def shuffle(quick: bool) -> None:
    """Rows in random order, beside a plain copy."""
    rows, memory = (2_000_000, 64e6) if quick else (50_000_000, 1e9)
    with tempfile.TemporaryDirectory() as folder:
        source, copy, target = (Path(folder) / f"{name}.npy" for name in ("source", "copy", "target"))
        write_numbered(source, rows)
        size, lines = source.stat().st_size, []
        for _ in range(ROUNDS):
            seconds_of_copy(source, copy)  # brings the source into memory, for both
            copied = seconds_of_copy(source, copy)
            copy.unlink()
            os.sync()  # what is not on disk yet would hold up the next
            seconds, busy, peak = asked(SHUFFLE, source, target, memory)
            p_value = positions(target, rows)
            target.unlink()
            os.sync()
            times = [f"{value:.1f}" for value in (*copied, seconds, busy)]
            lines.append([*times, f"{peak / 1e6:.0f}", f"{copied[0] / seconds:.2f}"])
    header = "copy s | processor s | shuffle s | processor s | MB | of the speed of a copy"
    show(f"shuffle: {rows:,} rows, {size / 1e9:.2g} GB, uniform with p = {p_value:.2f}", header, lines)


def write_numbered(path: Path, rows: int) -> None:
    """Write rows whose first number is that of the row."""
    rng = np.random.default_rng(SEED)
    with open(path, "wb") as file:
        head = {"descr": "<f8", "fortran_order": False, "shape": (rows, WIDTH)}
        np.lib.format.write_array_header_1_0(file, head)
        for first in range(0, rows, CHUNK):
            block = rng.random((min(CHUNK, rows - first), WIDTH))
            block[:, 0] = np.arange(first, first + len(block))
            file.write(block.tobytes())
        file.flush()
        os.fsync(file.fileno())


def seconds_of_copy(source: Path, copy: Path) -> tuple[float, float]:
    started, busy = time.perf_counter(), time.process_time()
    shutil.copyfile(source, copy)
    with open(copy, "rb+") as file:
        os.fsync(file.fileno())
    return time.perf_counter() - started, time.process_time() - busy


def positions(path: Path, rows: int) -> float:
    """Give the p-value of chi-square of where rows come from against where they are."""
    counts, table = np.zeros(CELLS**2), np.load(path, mmap_mode="r")
    for first in range(0, rows, CHUNK):
        place = np.arange(first, min(first + CHUNK, rows)) * CELLS // rows
        origin = (table[first : first + CHUNK, 0] * CELLS // rows).astype(np.int64)
        counts += np.bincount(place * CELLS + origin, minlength=CELLS**2)
    expected = rows / CELLS**2
    return float(chdtrc((CELLS - 1) ** 2, ((counts - expected) ** 2).sum() / expected))


def asked(code: str, *arguments: object) -> dict | list:
    """Run code in a new process; give what it prints."""
    command = [sys.executable, "-c", STATUS + code, *map(str, arguments)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


if __name__ == "__main__":
    if "--simulate" in sys.argv:
        simulate("--quick" in sys.argv)
    else:
        run_sections(__doc__, {"files": files, "shuffle": shuffle, "ray": one_and_two_workers})
