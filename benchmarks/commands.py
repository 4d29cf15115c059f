"""What each command takes, in a process of its own: time cold and warm, memory, and what it leaves.

    python benchmarks/commands.py [--quick] [--only NAME ...] [--data MENTIONS.csv.gz]

Cold is the first call with an empty cache of compiled code, warm the second; each writes to a new folder.
"Processor" and "clock" are seconds of the process and its children; memory is the largest
resident set; "leaves" is the size of what lies in the folder afterwards. Files are made in a temporary
folder (some 4 GB), which is gone at the end. Mentions are those of --data, else simulated.
With --quick files are a hundredth of the size.

The last section sets `gumbelrace arch` on 583,600 prices against fitting all orders alone, both with code
that is compiled: at most twice as long is wanted.
"""

import csv
import gzip
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from shared import options, show

from gumbelrace.models.arch import simulate

HEADER = "command|cold processor|clock|warm processor|clock|MB of memory|MB left"
FIT = """
import sys, time
from pathlib import Path
from gumbelrace.applications.arch import fit_orders
from gumbelrace.models.arch.data import returns_from_prices
from gumbelrace.tables.prices import read_prices
fit_orders(returns_from_prices(*read_prices(Path(sys.argv[1]))), rng=0)
"""
# Runs a command and writes what it took, as a small process: at exec a process is charged with the memory
# of the one that started it, which may have made a large file.
MEASURE = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[2:], stdout=2)
_, status, usage = os.wait4(process.pid, 0)
with open(sys.argv[1], "w") as file:
    json.dump([usage.ru_utime + usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status)], file)
"""
ROWS_AT_ONCE = 2**16


class Took(NamedTuple):
    """What a process took."""

    processor: float
    clock: float
    memory: float  # MB
    said: str


def took(words: Sequence[str], folder: Path, cache: Path) -> Took:
    """Run a process in a folder, and measure it."""
    environment, numbers = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}, folder / "took.json"
    measured = [sys.executable, "-S", "-c", MEASURE, str(numbers), *words]
    started = time.perf_counter()
    with open(folder / "said.txt", "w+", encoding="utf-8") as said:
        subprocess.run(measured, cwd=folder, env=environment, stderr=said, check=True)
        clock = time.perf_counter() - started
        said.seek(0)
        text = said.read()
    processor, memory, code = json.loads(numbers.read_text(encoding="utf-8"))
    if code != 0:
        raise RuntimeError(f"{' '.join(words)} ended with {code}: {text[-500:]}")
    return Took(processor, clock, memory / (1e6 if sys.platform == "darwin" else 1e3), text)


def row(name: str, words: str, folder: Path, cache: Path) -> tuple[list[str], Took]:
    """Run a command cold and warm; OUT in it stands for what it writes."""
    shutil.rmtree(cache, ignore_errors=True)
    given = words.replace("OUT", "out").split()
    out, both = folder / next((word for word in given if word.startswith("out")), "out"), []
    for _ in range(2):
        clear(out)
        both.append(took([sys.executable, "-m", "gumbelrace", *given], folder, cache))
    cold, warm = both
    numbers = [cold.processor, cold.clock, warm.processor, warm.clock, max(cold.memory, warm.memory)]
    left = sum(path.stat().st_size for path in [out, *out.rglob("*")] if path.is_file()) / 1e6
    clear(out)
    return [name, *(f"{x:,.1f}" for x in numbers[:4]), f"{numbers[4]:,.0f}", f"{left:,.2f}"], warm


def clear(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def write_array(path: Path, rows: int, columns: int) -> None:
    """Write scores, float32, of which the last column is the best by 0.02."""
    rng, means = np.random.default_rng(0), np.linspace(0.0, 0.02 * (columns - 1), columns)
    table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, columns))
    for first in range(0, rows, ROWS_AT_ONCE):
        part = table[first : first + ROWS_AT_ONCE]
        part[:] = rng.normal(size=part.shape) + means
    table.flush()


def write_parquet(path: Path, rows: int, columns: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rng, names = np.random.default_rng(0), [f"c{i}" for i in range(columns)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(0, rows, ROWS_AT_ONCE):
            block = rng.normal(size=(columns, ROWS_AT_ONCE))
            writer.write_table(pa.table(dict(zip(names, block, strict=True)), schema=schema))


def write_factors(path: Path, rows: int, columns: int) -> None:
    noise = np.random.default_rng(0).normal(scale=1e-4, size=(rows, columns))
    np.save(path, noise - noise.mean(axis=0) + np.linspace(0.0, 1.0, columns) / rows)


def write_prices(path: Path, rows: int) -> None:
    """Write a simulated ARCH series of order 10 as prices, one a minute without a hole."""
    prices = 100.0 * np.exp(np.cumsum(1e-4 * simulate(rows, np.random.default_rng([0, 10]))))
    times = np.datetime64("2020-01-01T00:00", "m") + np.arange(rows)
    lines = (f"{time},{price!r}" for time, price in zip(times, prices.tolist(), strict=True))
    path.write_text("\n".join(["datetime,close", *lines]), encoding="utf-8")


def write_mentions(path: Path, source: Path, rows: int) -> None:
    """Copy the first mentions of a file."""
    with gzip.open(source, "rt", newline="", encoding="utf-8") as file, open(path, "w", newline="") as out:
        csv.writer(out).writerows(itertools.islice(csv.reader(file), rows + 1))


def commands(
    folder: Path, mentions: Path | None, small: int
) -> Iterator[tuple[str, str, Callable[[], None]]]:
    """Give each command, its words, and what makes its file."""
    yield "demo", "demo --out OUT.html", lambda: None
    rows = 25_000_000 // small
    yield "best, 2 GB .npy", "best a.npy", lambda: write_array(folder / "a.npy", rows, 20)
    rows_of_parquet = 12_500_000 // small
    yield (
        "best, 1 GB Parquet",
        "best a.parquet",
        lambda: write_parquet(folder / "a.parquet", rows_of_parquet, 10),
    )
    factors = 500_000 // small
    yield (
        "sample, 80 MB .npy",
        "sample f.npy --out OUT.csv",
        lambda: write_factors(folder / "f.npy", factors, 20),
    )
    for count in (13_000, 583_600 // small):
        words = f"arch p{count}.csv --out OUT"
        yield f"arch, {count:,} prices", words, lambda n=count: write_prices(folder / f"p{n}.csv", n)
    for count in (6000, 133_541 // small):
        words, name = f"coreference m{count}.csv --out OUT", f"coreference, {count:,} mentions"
        if mentions is None:
            yield name, f"coreference --simulate {count} --out OUT", lambda: None
        else:
            yield name, words, lambda n=count: write_mentions(folder / f"m{n}.csv", mentions, n)
    for study in ("synthetic", "arch", "coreference"):
        yield f"reproduce {study} --quick", f"reproduce {study} --quick --out OUT", lambda: None


def arch_against_fits(folder: Path, rows: int) -> None:
    """Print how long `arch` takes, over the time of fitting all orders, both warm."""
    cache = folder / "cache of arch"
    write_prices(folder / "prices.csv", rows)
    write_prices(folder / "few.csv", 13_000)  # what is compiled does not depend on their number
    fits = [sys.executable, "-c", FIT]
    command = [sys.executable, "-m", "gumbelrace", "arch", "--restart"]
    both = []
    for words in (fits, command):
        took([*words, "few.csv"], folder, cache)
        both.append(took([*words, "prices.csv"], folder, cache))
    fit, answer = both
    print(f"\narch on {rows:,} prices against fitting all orders alone (warm)\n")
    for name in ("processor", "clock"):
        ours, theirs = getattr(answer, name), getattr(fit, name)
        print(f"  {name} {ours:.1f} / {theirs:.1f} s = {ours / theirs:.2f}")
    print("\n".join(f"  {line}" for line in answer.said.splitlines()), flush=True)


def main() -> None:
    parser = options(__doc__, "files of a hundredth of the size")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="commands that begin with one of these")
    parser.add_argument("--data", type=Path, help="mentions of authors, .csv.gz")
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    small, begins = (100 if chosen.quick else 1), tuple(chosen.only or [""])
    mentions = chosen.data and chosen.data.resolve()
    with tempfile.TemporaryDirectory() as place:
        folder, found = Path(place), []
        for name, words, make in commands(folder, mentions, small):
            if name.startswith(begins):
                make()
                found.append(row(name, words, folder, folder / "cache")[0])
                print("  ".join(found[-1]), flush=True)
                for path in [*folder.glob("*.npy"), *folder.glob("*.parquet"), *folder.glob("*.csv")]:
                    path.unlink()
        show("commands", HEADER, found)
        if "arch against fits".startswith(begins):
            arch_against_fits(folder, 583_600 // small)


if __name__ == "__main__":
    main()
