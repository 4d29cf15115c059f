"""What checkpoints cost: the share of the chains' time that is spent writing.

    python benchmarks/checkpoint.py [seconds]

The aim is 2%. Of a chain of a given state, about `seconds` are run with a checkpoint on the disk of the
temporary folder, and every write is timed where it happens. On 2 cores that others used too, with 25
seconds each: 0.8% and 0.5% for states of 1 and 100,000 numbers; 2.9% and 3.4% for states of 1,000, whose
draws come at 14 MB a second and chain: each is written once, and that is the cost.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import gumbelrace as gr
from gumbelrace.chain.checkpoint import ChainFiles
from gumbelrace.kernels.base import Info, Kernel

CHAINS = 2
SIZES = (1, 1000, 100_000)


class Point(NamedTuple):
    x: np.ndarray


class Autoregression(Kernel[Point]):
    def step(self, rng: np.random.Generator, state: Point) -> tuple[Point, Info]:
        return Point(0.5 * state.x + rng.normal(size=len(state.x))), Info(0, 0, 0, 1.0)


@contextmanager
def timed_writes() -> Iterator[list[float]]:
    costs: list[float] = []
    save = ChainFiles.save

    def timed(files: ChainFiles, chain: Any) -> None:
        started = time.perf_counter()
        save(files, chain)
        costs.append(time.perf_counter() - started)

    with mock.patch.object(ChainFiles, "save", timed):
        yield costs


def measure(size: int, seconds: float) -> str:
    kernel, start = Autoregression(), Point(np.zeros(size))
    thin = max(1, size // 100)
    steps = thin
    while True:
        with tempfile.TemporaryDirectory() as folder, timed_writes() as costs:
            started = time.perf_counter()
            rng = np.random.default_rng(0)
            gr.run(
                kernel,
                start,
                steps=steps,
                rng=rng,
                chains=CHAINS,
                progress=False,
                checkpoint=Path(folder) / "run",
                thin=thin,
            )
            took = time.perf_counter() - started
        if took > seconds / 2:
            break
        steps = int(steps * min(100.0, 0.9 * seconds / took)) // thin * thin + thin
    share = sum(costs) / (CHAINS * took)
    return (
        f"{size:7} numbers, one of {thin} states kept: {steps} steps in {took:.1f} s, {len(costs)} writes, "
        f"median {np.median(costs) * 1e3:.1f} ms, {share:.2%} of the time"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", nargs="?", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    for size in SIZES:
        print(measure(size, seconds), flush=True)


if __name__ == "__main__":
    main()
