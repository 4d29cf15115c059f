"""MH-SS of the package PyMHSS on the same posterior as Metropolis with all the data.

    python benchmarks/mhss.py [--size 31622] [--seconds 10] [--environment FOLDER]

MH-SS (Prado, Nemeth & Sherlock, arXiv 2407.19602) is exact: it draws a Poisson number of rows, whose
rate bounds what Taylor expansions of order 1 or 2 at the mode leave of the log likelihood ratio, and
corrects for those rows alone. The package brings tensorflow and jax, so it lives in an environment of
its own (3 GB, some minutes), which is made where there is none and kept. Its chain runs in a process
of its own, after the others, in one thread, by its own clock set to processor time.

The package has no prior. Beside 30,000 rows N(0, 10² I) moves the mode by about 1e-4 standard
deviations, so chains may be compared.
"""

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from logistic import (
    HEADER,
    OPTIMAL,
    Posterior,
    Run,
    affordable,
    ess,
    full_metropolis,
    make_data,
    make_posterior,
    summary,
)
from shared import environment, last_line, show

SEED = 1
PACKAGES = ["PyMHSS==0.1.5", "jax", "statsmodels"]  # it imports the last two, but does not ask for them
AUTHORS = 1.5  # the scale in their experiments, times 1/√d
QUIET = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TQDM_DISABLE": "1",  # a progress bar at every step would count as sampling
}

# Rows are counted where they are read: its own count includes rows it drew and did not look at. A row
# is read at two points a step. Its clock starts after all that is done once.
WORKER = """
import sys, time, types
import numpy as np
from PyMHSS import algorithms
folder, order, scale, steps, seed = sys.argv[1:]
x, y, mode, covariance = (np.load(f"{folder}/{name}.npy") for name in ("x", "y", "mode", "covariance"))
algorithms.time = types.SimpleNamespace(time=time.process_time)
log_likelihoods, read = algorithms.logistic_log_target_i, 0

def counted(beta, y, x):
    global read
    read += len(y)
    return log_likelihoods(beta, y, x)

def run(steps):
    global read
    read = 0
    np.random.seed(int(seed))
    return algorithms.MH_SS(y, x, covariance, mode, nburn=0, npost=steps, model="logistic",
        implementation="vectorised", taylor_order=int(order), kappa=float(scale))

algorithms.logistic_log_target_i = counted
steps = int(steps)
run(1000)
result = run(steps)
np.savez(f"{folder}/run.npz", chain=result["parameters"], acceptance=result["acc_rate"],
    seconds=result["cpu_time"], rows=read / 2 / steps)
"""


def own_environment(folder: Path | None = None) -> Path | None:
    """Find or make the environment; return its interpreter, or None (and say so)."""
    folder = folder or Path(tempfile.gettempdir()) / "gumbelrace-mhss"
    try:
        return environment(folder, PACKAGES)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"MH-SS: skipped, no environment could be made in {folder}: {last_line(error)}")
        return None


def mhss(
    python: Path, posterior: Posterior, steps: int, order: int = 2, scale: float = AUTHORS
) -> Run | None:
    """Run its chain in its environment; None if that fails (which it says)."""
    steps += steps % 2  # its own ESS, which it always computes, takes autocovariances in pairs
    arguments = [str(value) for value in (order, scale, steps, SEED)]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("x", "y", "mode", "covariance"):
            np.save(Path(folder) / f"{name}.npy", getattr(posterior, name))
        try:
            call([python, "-I", "-c", WORKER, folder, *arguments])
        except subprocess.CalledProcessError as error:
            print(f"MH-SS: skipped, its process failed: {last_line(error)}")
            return None
        with np.load(Path(folder) / "run.npz") as saved:
            return Run(saved["chain"], *(float(saved[name]) for name in Run._fields[1:]))


def call(command: list[str | Path]) -> None:
    subprocess.run(command, env=os.environ | QUIET, capture_output=True, text=True, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=31_622)
    parser.add_argument("--dimension", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time with all the data")
    parser.add_argument("--steps", type=int, default=50_000, help="of MH-SS")
    parser.add_argument("--environment", type=Path, help="folder to find or make it in")
    arguments = parser.parse_args()
    rng = np.random.default_rng(SEED)
    posterior = make_posterior(*make_data(arguments.size, arguments.dimension, rng))
    runs = {"all the data": full_metropolis(posterior, affordable(posterior, arguments.seconds), rng)}
    if python := own_environment(arguments.environment):
        for order, scale in ((1, AUTHORS), (1, OPTIMAL), (2, AUTHORS), (2, OPTIMAL)):
            if run := mhss(python, posterior, arguments.steps, order, scale):
                runs[f"MH-SS-{order}, {scale}/√d"] = run
    title = f"N={arguments.size:,}, d={arguments.dimension}"
    show(
        title,
        f"{HEADER} | x all",
        [compared(name, run, runs["all the data"]) for name, run in runs.items()],
    )


def compared(name: str, run: Run, full: Run) -> list[str]:
    ratio = ess(run.chain)[0] / run.seconds * full.seconds / ess(full.chain)[0]
    return [*summary(name, run), f"{ratio:.2f}"]


if __name__ == "__main__":
    main()
