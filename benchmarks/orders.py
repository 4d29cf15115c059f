"""What a random order of the rows costs: stored, shuffled as far as it is read, or worked out from a key.

    python benchmarks/orders.py [--quick] [--only rows reshuffling]

`rows`: nanoseconds to find the next row of an order, for draws that read 1,024 rows each and leave
everything as it was. A stored order is the cheapest, but draws that share it share its luck. A Fisher-Yates
shuffle needs two arrays of N numbers, which are out of the cache where N is large; a key needs nothing.

`reshuffling`: what it costs to give each draw from a table an order of its own.
"""

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from shared import run_sections, show

import gumbelrace as gr
from gumbelrace.core import orders as keyed
from gumbelrace.core.random import Bits, below, bits_of

READ, REPEATS = 1024, 7


@numba.njit
def read_stored(order: NDArray[np.int32], rows: NDArray[np.int64], draws: int) -> None:
    for draw in range(draws):
        first = (draw * 7919) % (len(order) - len(rows))
        for i in range(len(rows)):
            rows[i] = order[first + i]


@numba.njit
def read_shuffled(bits: Bits, numbers: Any, swaps: Any, rows: NDArray[np.int64], draws: int) -> None:
    for _ in range(draws):
        for k in range(len(rows)):
            other = k + below(bits, len(numbers) - k)
            numbers[k], numbers[other] = numbers[other], numbers[k]
            swaps[k], rows[k] = other, numbers[k]
        for k in range(len(rows) - 1, -1, -1):
            numbers[k], numbers[swaps[k]] = numbers[swaps[k]], numbers[k]


@numba.njit
def read_keyed(bits: Bits, size: int, width: int, rows: NDArray[np.int64], draws: int) -> None:
    keys = np.empty((1, keyed.ROUNDS), np.uint64)
    for _ in range(draws):
        keyed.draw_key(bits, keys, 0)
        keyed.take_permuted(keyed.words_of(keys, 0), width, 0, size, rows, len(rows))


def least_seconds(call: Callable[[], Any]) -> float:
    """Give the least time of several calls, after one that compiles."""
    call()
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def rows(quick: bool) -> None:
    """Nanoseconds a row."""
    rng, lines, draws = np.random.default_rng(0), [], 20 if quick else 200
    bits, found = bits_of(rng), np.empty(READ, np.int64)
    for size in (16_384, 20_000, 10**5, 10**6, 10**7):
        order, numbers = rng.permutation(size).astype(np.int32), np.arange(size, dtype=np.int32)
        swaps, width = np.empty(size, np.int32), keyed.width_of(size)
        seconds = [
            least_seconds(lambda order=order: read_stored(order, found, draws)),
            least_seconds(lambda n=numbers, s=swaps: read_shuffled(bits, n, s, found, draws)),
            least_seconds(lambda size=size, width=width: read_keyed(bits, size, width, found, draws)),
        ]
        lines.append([f"{size:,}", *(f"{1e9 * s / draws / READ:.2f}" for s in seconds)])
    show("rows: ns a row", "N | stored | Fisher-Yates | key", lines)


def reshuffling(quick: bool) -> None:
    """A draw with an order of its own over one that shares it."""
    lines = []
    for size in (16_384, 10**5, 10**6)[: 2 if quick else 3]:
        table = gr.table(np.random.default_rng(1).normal(size=(size, 10)) / np.sqrt(size))
        shared, own = (
            least_seconds(
                lambda t=table, e=every: gr.sample(t, size=20, rng=seeded(), reshuffle_every=e, check=False)
            )
            for every in (None, 1)
        )
        exact = least_seconds(lambda t=table: gr.sample(t, size=20, method=gr.Exact(), rng=seeded()))
        lines.append([f"{size:,}", f"{shared / exact:.2f}", f"{own / exact:.1f}"])
    show("reshuffling: time of a draw in exact scans, D=10", "N | shared order | own order", lines)


def seeded() -> np.random.Generator:
    return np.random.default_rng(2)


if __name__ == "__main__":
    run_sections(__doc__, {"rows": rows, "reshuffling": reshuffling})
