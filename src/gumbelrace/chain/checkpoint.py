"""Checkpoints: a folder from which a run that was stopped or killed goes on as if nothing had happened.

``run.json`` says whose it is. Each chain has two files: ``chain-0.draws``, to which draws are appended,
and ``chain-0.npz``, which says where the chain is and how much of the other file counts. The second is
replaced, by one rename, when the first is safely on disk: a run killed at any moment leaves the state
before or after, and the cost of a checkpoint does not grow with the length of the chain.
"""

import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.chain.kernel_data import CODE, differing
from gumbelrace.chain.worker import Chain, Layout, flat, form, named_leaves, reform
from gumbelrace.core.atomic import UNFINISHED, alone, named, write_atomically
from gumbelrace.errors import (
    CheckpointBusy,
    CheckpointDamaged,
    CheckpointMismatch,
    GumbelraceError,
    InvalidGenerator,
)
from gumbelrace.kernels.base import Info

FORMAT = {"format": "gumbelrace checkpoint", "version": 4}
RUN, LOCK = "run.json", "lock"
STATE = "state."  # begins the names of the leaves of a state

# Writing takes less than 1 / PATIENCE of the time, and is done at least every LONGEST seconds. Only draws
# that come by the ten megabytes a second cost more: each is written once, however long the waits.
PATIENCE, SHORTEST, LONGEST = 100.0, 2.0, 300.0
PIECE = 2**19  # bytes of draws that are converted at a time: they stay in the processor's cache


@contextmanager
def opened(path: str | os.PathLike[str], identity: dict[str, Any]) -> Iterator[Path]:
    """Lend the folder of a checkpoint: a new one, or that of a run with the same identity."""
    folder = Path(path)
    _refuse_foreign(folder)
    folder.mkdir(parents=True, exist_ok=True)
    busy = CheckpointBusy(f"another run is writing to {folder}; name another path")
    with alone(folder / LOCK, busy):
        if (folder / RUN).exists():
            _compare(folder, identity)
        else:
            content = json.dumps({**FORMAT, **identity}, indent=1).encode()
            write_atomically(folder / RUN, lambda file: file.write(content))
        yield folder


def _refuse_foreign(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir() or {item.name for item in folder.iterdir()} - {LOCK, RUN + UNFINISHED}:
        with damage(folder / RUN):
            found = json.loads((folder / RUN).read_bytes())
            if {key: found[key] for key in FORMAT} != FORMAT:
                raise ValueError(f"{RUN} is of another format")


def _compare(folder: Path, identity: dict[str, Any]) -> None:
    found = json.loads((folder / RUN).read_bytes())
    for key, value in identity.items():
        if found.get(key) != value:
            raise CheckpointMismatch(_difference(folder, key, found.get(key), value))


def _difference(folder: Path, key: str, before: Any, now: Any) -> str:
    if key == "data":
        name = differing(before, now)
        if all(data.get(name, "").startswith(CODE) for data in (before, now)):
            return (
                f"the function {name} of the kernel differs from that of the run in {folder}, or this is "
                "another version of Python. Make the kernel with the same function, or name another path"
            )
        return (
            f"the data of the kernel ({name}) are not those of the run in {folder}. "
            "Make the kernel from the same data, or name another path"
        )
    return (
        f"{folder} holds a run with other arguments: {key} was {before!r}, now it is {now!r}. Call run as "
        "before (with rng made anew from its seed), or name another path"
    )


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Say that a file is damaged, whatever its reader stumbles over."""
    try:
        yield
    except (GumbelraceError, PermissionError):
        raise
    except Exception as error:
        raise CheckpointDamaged(
            f"{path} is not a checkpoint of gumbelrace, or is damaged ({error}). Nothing was changed; "
            "name another path, or delete it to start again"
        ) from error


class ChainFiles:
    """The files of one chain, and when to write them next."""

    def __init__(self, folder: Path, number: int, layout: Layout) -> None:
        self.position = folder / f"chain-{number}.npz"
        self.draws = folder / f"chain-{number}.draws"
        self.layout = layout  # of a draw: a state and what it took
        self._saved, self._kept, self._crc = -1, 0, 0  # steps and draws on disk, their checksum
        self._next = time.monotonic() + SHORTEST

    def due(self) -> bool:
        return time.monotonic() >= self._next

    def save(self, chain: Chain) -> None:
        """Append the new draws, then say where the chain is."""
        if chain.done == self._saved:
            return
        started = time.monotonic()
        crc = self._append(chain.columns, self._kept, chain.kept)
        position = np.frombuffer(json.dumps({**_position(chain), "crc": crc}).encode(), np.uint8)
        leaves = {STATE + name: value for name, value in named_leaves(chain.state)}
        write_atomically(self.position, lambda file: np.savez(file, position=position, **leaves))
        self._saved, self._kept, self._crc = chain.done, chain.kept, crc
        cost = time.monotonic() - started
        self._next = started + cost + min(max(SHORTEST, PATIENCE * cost), LONGEST)

    def restore(self, chain: Chain) -> None:
        """Bring a chain to where it was saved, if it was."""
        if not self.position.exists():
            return
        with damage(self.position):
            # NumPy would leave a damaged file open.
            with open(self.position, "rb") as file, np.load(file, allow_pickle=False) as stored:
                position = json.loads(stored["position"].tobytes())
                leaves = [stored[STATE + name] for name, _ in named_leaves(chain.state)]
            kept = chain.plan.kept(position["done"])
            self._refuse_shorter(chain, position["done"])
            _move(chain, position, leaves)
        with damage(self.draws):
            self._crc = self._load(chain.columns, kept)
            if self._crc != position["crc"]:
                raise ValueError("wrong checksum")
        self._saved, self._kept = chain.done, kept

    def _refuse_shorter(self, chain: Chain, done: int) -> None:
        if done > chain.plan.total:
            raise CheckpointMismatch(
                f"{self.position} has made {done - chain.plan.warmup} steps; "
                f"steps={chain.plan.steps} is fewer. Ask for as many or more, or name another path"
            )

    def _append(self, columns: list[NDArray[Any]], first: int, last: int) -> int:
        crc, record = self._crc, self.layout.record
        # Not "append": what a write that failed has left after the draws that count is written over.
        with named(self.draws), open(self.draws, "r+b" if first else "wb") as file:
            file.seek(first * record.itemsize)
            for start, stop in self._pieces(first, last):
                records = np.zeros(stop - start, record)
                for name, column in zip(record.names or (), columns, strict=True):
                    records[name] = column[start:stop]
                data = records.view(np.uint8).data
                crc = zlib.crc32(data, crc)
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return crc

    def _load(self, columns: list[NDArray[Any]], count: int) -> int:
        crc, record = 0, self.layout.record
        with open(self.draws, "rb") as file:
            for start, stop in self._pieces(0, count):
                data = file.read((stop - start) * record.itemsize)
                crc = zlib.crc32(data, crc)
                records = np.frombuffer(data, record)
                for name, column in zip(record.names or (), columns, strict=True):
                    column[start:stop] = records[name]
        return crc

    def _pieces(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        length = max(1, PIECE // self.layout.record.itemsize)
        for start in range(first, last, length):
            yield start, min(start + length, last)


def _position(chain: Chain) -> dict[str, Any]:
    """Say where a chain is, but for its state, in a form that JSON can hold."""
    return {
        "done": chain.done,
        "pending": chain.pending,
        "forms": [form(value) for value in flat(chain.state)],
        "rng": stream_state(chain.rng),
    }


def _move(chain: Chain, position: dict[str, Any], leaves: list[NDArray[Any]]) -> None:
    """Bring a chain to a position."""
    chain.state = Layout(chain.state).build([*map(reform, leaves, position["forms"])])
    chain.done = chain.begun = position["done"]
    chain.pending = Info(*position["pending"])
    set_stream_state(chain.rng, position["rng"])


def stream_state(rng: np.random.Generator) -> dict[str, Any]:
    """Give all that the future of a generator depends on, in a form that JSON can hold.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> state = json.loads(json.dumps(stream_state(rng)))
    >>> expected = rng.normal(size=3)
    >>> again = np.random.default_rng(0)
    >>> set_stream_state(again, state)
    >>> (again.normal(size=3) == expected).all()
    np.True_
    """
    spawned = getattr(rng.bit_generator.seed_seq, "n_children_spawned", 0)
    return {"bits": _encoded(rng.bit_generator.state), "spawned": spawned}


def set_stream_state(rng: np.random.Generator, state: dict[str, Any]) -> None:
    """Put a generator, new from its seed, where `stream_state` was taken."""
    rng.bit_generator.state = _decoded(state["bits"])
    if state["spawned"]:
        rng.spawn(state["spawned"])  # later children differ from those that the chain had


def stream_fingerprint(rngs: Sequence[np.random.Generator]) -> str:
    """Give a short text that differs for generators in different states."""
    text = json.dumps([stream_state(rng) for rng in rngs], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _encoded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _encoded(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, (int, str)):
        return value
    raise InvalidGenerator(
        f"the bit generator has a {type(value).__name__} in its state, which a checkpoint cannot hold; "
        "use one of NumPy's, for example rng=numpy.random.default_rng(0)"
    )


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"], np.dtype(value["dtype"]))
    return {key: _decoded(part) for key, part in value.items()}
