"""Run one contender on one job, in this process; print what is measured as a line of JSON.

python benchmarks/peers/worker.py states ours [--size N] [--seconds 5] [--data FILE]
"""

import argparse
import json
import resource
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
# After the packages: benchmarks have a module of the name of the package `arch`.
sys.path += [str(HERE.parent), str(HERE.parent / "posteriors")]


class Ask(NamedTuple):
    """What a contender is asked: how much of its job, for about how long, and on which data."""

    size: int
    seconds: float
    data: Path | None


JOBS = ("states", "graphs", "candidates", "persons", "lags")  # modules, whose WAYS are the contenders


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("contender")
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--limit", type=int, default=300, help="seconds of the processor")
    parser.add_argument("--data", type=Path)
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CPU, (chosen.limit, chosen.limit))
    warnings.simplefilter("ignore")
    way: Any = import_module(chosen.job).WAYS[chosen.contender]
    print(json.dumps(way(Ask(chosen.size, chosen.seconds, chosen.data))))


if __name__ == "__main__":
    main()
