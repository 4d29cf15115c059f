"""The command line as a user calls it, and tables to call it on."""

import csv
import gzip
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from gumbelrace.cli.app import app
from gumbelrace.core import progress as lines

NAMES = ["ant", "bee", "cat"]
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call gumbelrace in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def fails(run: Run) -> Callable[..., str]:
    """Call gumbelrace, which must end with status 2 and one line; give that line."""

    def call(*words: Any) -> str:
        result = run(*words)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("gumbelrace: ")
        assert result.stderr.count("\n") == 1
        assert result.stderr.endswith("\n")
        return result.stderr.removeprefix("gumbelrace: ").rstrip("\n")

    return call


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write no line of progress: how long a test takes must not show in what it sees."""
    monkeypatch.setattr(lines, "FIRST", 1e6)


@pytest.fixture
def killed(tmp_path: Path) -> Callable[..., None]:
    """Call gumbelrace in a process of its own, and kill it once there is something in such a file."""

    def call(*words: Any, once: str) -> None:
        command = [sys.executable, "-m", "gumbelrace", *map(str, words)]
        process = subprocess.Popen(command, cwd=tmp_path)
        while process.poll() is None and not any(path.stat().st_size for path in tmp_path.glob(once)):
            time.sleep(0.01)
        process.kill()
        assert process.wait() == -signal.SIGKILL

    return call


@pytest.fixture
def scores() -> np.ndarray:
    """Three columns, of which the second is the best by far and the last the worst."""
    return np.random.default_rng(0).normal([0.5, 0.8, 0.2], 0.1, size=(2000, 3))


@pytest.fixture(params=[".npy", ".csv", ".csv.gz", ".parquet"])
def table(request: pytest.FixtureRequest, tmp_path: Path, scores: np.ndarray) -> Path:
    """The scores in a file of each kind."""
    path = tmp_path / f"scores{request.param}"
    write(path, scores, NAMES)
    return path


@pytest.fixture
def write_table() -> Callable[[Path, np.ndarray, list[str]], None]:
    """Write a table in the kind of file that its path says."""
    return write


def write(path: Path, array: np.ndarray, names: list[str]) -> None:
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table(dict(zip(names, array.T, strict=True))), path)
    else:
        with (gzip.open if path.suffix == ".gz" else open)(path, "wt", newline="") as file:
            csv.writer(file).writerows([names, *array.tolist()])
