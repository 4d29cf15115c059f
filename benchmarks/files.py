"""What `gumbelrace best` reads of a large file, in which memory and time, beside a full pass by NumPy.

    python benchmarks/files.py [--quick]

A table of scores in [0, 1], D = 10 float64, as a .npy file of 2 GB in the temporary folder (100 MB with
--quick). The rows are ordered: scores grow from the first row to the last. The gap is that of the best
two columns; --columns leaves better ones out to make it smaller. δ = 0.01.

Memory is the peak of a process that runs the command, less that of the same command on a table of 1,000
rows: an interpreter, the library and its kernels. Seconds are those of the command in a process that has
run it on the small table before, the best of three: "warm" while the system still has the file in
memory, "cold" after it was asked to forget it.

Two shared cores, 2026-11-16; a full pass by NumPy over the mapped file takes 0.99 s (cold 1.86 s), 1.8 GB:

    gap 0.015, proved    0.10% of the rows     3 MB   0.04 s   cold 0.10 s
    gap 0.005, proved    0.26%                 4 MB   0.05 s   cold 0.24 s
    gap 0.001, proved    1.6%                  8 MB   0.14 s   cold 1.07 s
    every row            100%                 10 MB   1.24 s   cold 2.14 s
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from shared import run_sections, show

SEED, COLUMNS, CHUNK = 1, 10, 250_000
AHEAD = [0.0] * 7 + [0.001, 0.005, 0.02]  # of the other columns
GAPS = {"0.015": range(10), "0.005": [*range(7), 8], "0.001": range(8)}
WAYS = {"assumed": [], "proved": ["--reward-range", "0", "1"], "every row": ["--exact"]}

BEST = """
from gumbelrace.cli.app import app
def run(file, options):
    app(["best", file, "--delta", "0.01", "--json", *options], standalone_mode=False)
"""
NUMPY = """
import json, numpy as np
def run(file, options):
    total, file = 0.0, np.load(file, mmap_mode="r")
    for first in range(0, len(file), 100_000):
        total = total + file[first : first + 100_000].sum(axis=0)
    found = {"column": int(total.argmax()), "rows_read": len(file), "share_of_rows": 1.0}
    print(json.dumps(found))
"""
ONCE = """
import sys
run(sys.argv[1], sys.argv[2:])
"""
TIMED = """
import contextlib, os, sys, time
def forget(file):
    with open(file, "rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
def seconds(before):
    before(large)
    started = time.perf_counter()
    run(large, options)
    return time.perf_counter() - started
small, large, *options = sys.argv[1:]
with contextlib.redirect_stdout(None):
    run(small, options)
    run(large, ["--exact", *options])
    warm = min(seconds(lambda file: None) for _ in range(3))
    cold = min(seconds(forget) for _ in range(3))
print(warm, cold)
"""


def best(quick: bool) -> None:
    """The best column of a large file."""
    rows = 1_250_000 if quick else 25_000_000
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.npy", Path(folder) / "large.npy"
        write(small, 1000)
        write(large, rows)
        lines = [["", "NumPy", *measured(NUMPY, small, large, [])]]
        for gap, columns in GAPS.items():
            chosen = ["--columns", ",".join(map(str, columns))]
            for way, options in WAYS.items():
                lines.append([gap, way, *measured(BEST, small, large, chosen + options)])
    header = "gap | answer | column | rows read | share | MB | warm s | cold s"
    show(f"best: {80 * rows / 1e9:g} GB, D={COLUMNS}, δ=0.01", header, lines)


def write(path: Path, rows: int) -> None:
    """Write scores that grow, a chunk after the other: this process stays small."""
    rng = np.random.default_rng(SEED)
    with open(path, "wb") as file:
        head = {"descr": "<f8", "fortran_order": False, "shape": (rows, COLUMNS)}
        np.lib.format.write_array_header_1_0(file, head)
        for first in range(0, rows, CHUNK):
            growth = np.arange(first, min(first + CHUNK, rows))[:, None] / rows
            file.write((0.4 * growth + 0.5 * rng.random((len(growth), COLUMNS)) + AHEAD).tobytes())
        file.flush()
        os.fsync(file.fileno())


def measured(code: str, small: Path, large: Path, options: list[str]) -> list[str]:
    """Give what a command finds in the large table, the memory that this takes, and the seconds."""
    seconds, _ = ran(code + TIMED, [small, large, *options])
    before, (said, peak) = ran(code + ONCE, [small, *options])[1], ran(code + ONCE, [large, *options])
    answer = json.loads(said)
    found = [str(answer["column"]), f"{answer['rows_read']:,}", f"{answer['share_of_rows']:.3%}"]
    return [*found, f"{peak - before:.0f}", *(f"{float(value):.2f}" for value in seconds.split())]


def ran(code: str, arguments: list[object]) -> tuple[str, float]:
    """Run code in a new process; give what it prints, and its peak of memory in megabytes."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return said, usage.ru_maxrss / 1024


if __name__ == "__main__":
    run_sections(__doc__, {"best": best})
