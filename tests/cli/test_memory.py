"""A large file is never in memory, and little of it is read."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

ROWS, COLUMNS = 1_300_000, 10  # 104 MB

# The peak of the process itself: what the library needs (kernels loaded), then what the command adds.
SCRIPT = """
import sys
from pathlib import Path
from typer.testing import CliRunner
from gumbelrace.cli.app import app

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

small, large, *more = sys.argv[1:]
assert CliRunner().invoke(app, ["best", small, *more]).exit_code == 0
before = peak()
result = CliRunner().invoke(app, ["best", large, "--json", *more])
assert result.exit_code == 0, result.output
print(peak() - before, result.stdout)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peak memory is read from /proc")
@pytest.mark.parametrize("more", [[], ["--reward-range", "0", "1"], ["--shuffled"], ["--exact"]])
def test_share_and_memory(tmp_path_factory, more):
    """At δ = 0.01, 5% of the rows suffice, and 24 MB in any case: the file is four times as large."""
    small, large = files(tmp_path_factory.getbasetemp())
    command = [sys.executable, "-c", SCRIPT, small, large, "--delta", "0.01", *more]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    kilobytes, answer = found.stdout.split(maxsplit=1)
    assert json.loads(answer)["column"] == COLUMNS - 1
    assert json.loads(answer)["share_of_rows"] < 0.05 or more == ["--exact"]
    assert int(kilobytes) < 24_000


def files(folder):
    small, large = folder / "small.npy", folder / "large.npy"
    if not large.exists():
        rng = np.random.default_rng(0)
        scores = 0.8 * rng.random((ROWS, COLUMNS)) + 0.02 * np.arange(COLUMNS)
        np.save(small, scores[:1000])
        np.save(large, scores)
    return str(small), str(large)
