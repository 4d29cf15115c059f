"""Run one contender on one posterior, in this process; print what is measured as a line of JSON.

python benchmarks/posteriors/worker.py logistic_small numba --folder FOLDER [--size N] [--seconds 10]
"""

import argparse
import json
import resource
import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
from measuring import Law, Seconds, Task, report
from problems import MAKERS, problem_of

sys.path.append(str(Path(__file__).resolve().parents[1]))  # what other benchmarks have

# By the name of a contender: the module and the function that runs it, and whether it needs Laplace's law.
CONTENDERS = {
    "numba": ("ours", "by_numba", False),
    "pymc": ("ours", "by_pymc", False),
    "jax": ("ours", "by_jax", False),
    "all rows": ("all_rows", "by_batches", True),
    "NUTS, PyMC": ("nuts_pymc", "by_pymc", True),
    "NUTS, nutpie": ("nuts_pymc", "by_nutpie", True),
    "NUTS, NumPyro": ("nuts_numpyro", "as_it_is", True),
    "NUTS, our law": ("nuts_numpyro", "with_law", True),
    "HMCECS": ("nuts_numpyro", "hmcecs", True),
    "MH-SS": ("mh_ss", "by_pymhss", True),
    "ADVI": ("variational", "by_pymc", False),
    "SGLD": ("sgld", "by_blackjax", True),
}


def law_at(file: Path, problem) -> Law:
    """Read Laplace's law, or find and write it."""
    if not file.exists():
        np.savez(file, **import_module("ours").law_of(problem)._asdict())
    with np.load(file) as saved:
        return Law(saved["mode"], saved["covariance"], Seconds(*saved["seconds"].tolist()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem", choices=MAKERS)
    parser.add_argument("contender", choices=["law", *CONTENDERS])
    parser.add_argument("--size", type=int)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--limit", type=int, default=120)
    parser.add_argument("--folder", type=Path, required=True, help="of Laplace's laws")
    parser.add_argument("--environments", type=Path, help="folder of environments")
    arguments = parser.parse_args()
    # By the processor: other work on the machine ends nobody's run.
    resource.setrlimit(resource.RLIMIT_CPU, (arguments.limit, arguments.limit))
    warnings.simplefilter("ignore")
    problem = problem_of(arguments.problem, arguments.size)
    module, function, needs_law = CONTENDERS.get(arguments.contender, ("", "", True))
    file = arguments.folder / f"{arguments.problem}_{problem.size}.npz"
    law = law_at(file, problem) if needs_law else None
    if module:
        run = getattr(import_module(module), function)
        print(json.dumps(report(run(Task(problem, law, arguments.seconds, arguments.environments)))))


if __name__ == "__main__":
    main()
