"""What a user waits for while numba compiles, in processor seconds.

    python benchmarks/compile.py [--only draw kernels ...]

Every line is a process of its own. "cold": nothing was compiled before; "further": after the first draws
from a table; "again": the same process once more, which finds in the cache whatever can be kept there.
"""

import os
import subprocess
import sys
import tempfile
from typing import NamedTuple

from shared import judged, run_sections, show

START = """
import time, numba, numpy as np, gumbelrace as gr
rng = np.random.default_rng(0)
began = time.process_time()
{code}
print(time.process_time() - began)
"""
DRAW = "gr.sample(gr.table(np.eye(20_000, 3)), size=2, method=gr.{}, rng=rng)"
FACTOR = """
@numba.njit
def log_factor(n, arm, y):
    return -(y[n] - arm) ** 2
gr.sample(gr.compiled(log_factor, (rng.normal(size=20_000),), 20_000, 3), size=2, rng=rng)
"""
LIKELIHOOD = """
@numba.njit
def log_factor(n, theta, y):
    return -0.5 * (y[n] - theta[0]) ** 2
likelihood = gr.likelihood(log_factor, (rng.normal(size=2000),), 2000)
"""
KERNELS = {
    "Metropolis": LIKELIHOOD
    + "gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1)).step(rng, gr.kernels.Position(np.zeros(1)))",
    "Slice": LIKELIHOOD + "gr.Slice(likelihood, 0.1).step(rng, gr.kernels.Position(np.zeros(1)))",
    "GraphGibbs": "kernel = gr.GraphGibbs(0.1 * (1 - np.eye(300)), 3, gr.models.Potts())\n"
    "kernel.step(rng, kernel.start(rng=rng))",
    "ClusterGibbs": """
@numba.njit
def log_factor(i, j, x):
    return 1.0 - abs(x[i] - x[j])
pairs = gr.pairs(log_factor, (rng.normal(size=40),), 40, reward_range=(-10.0, 1.0))
kernel = gr.ClusterGibbs(pairs, method=gr.Race())
kernel.step(rng, kernel.start(rng=rng))
""",
}
CHAIN = """
from gumbelrace.models import logistic
x = rng.normal(size=(20_000, 3))
y = (rng.random(20_000) < 0.5).astype(float)
mode, hessian = logistic.mode(x, y)
law = gr.kernels.NormalPseudoprior(mode, np.linalg.inv(-hessian))
taylor = gr.parameter_taylor(logistic.terms, (x, y), size=len(y), centre=mode)
likelihood = gr.likelihood(logistic.log_factor, (x, y), size=len(y)).minus(taylor)
kernel = gr.Metropolis(likelihood, gr.kernels.Autoregressive(law, correlation=0.0))
gr.run(kernel, steps=10, rng=rng, progress=False)
"""


class Cache:
    """A folder in which processes keep what they have compiled."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()

    def seconds(self, code: str) -> float:
        """Run code in a process; return what it took beyond the imports."""
        environment = os.environ | {"NUMBA_CACHE_DIR": self._folder.name}
        command = [sys.executable, "-c", START.format(code=code)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return float(done.stdout.split()[-1])


class Line(NamedTuple):
    what: str
    seconds: float
    target: float
    again: float


def shown(title: str, lines: list[Line]) -> None:
    rows = [[one.what, *judged(one.seconds, one.target), f"{one.again:.2f}"] for one in lines]
    show(title, "what | s | target | | again", rows)


def draw(quick: bool) -> None:
    """The first draw of all."""
    lines = []
    for method in ("Betting()", "Race()"):
        cache, code = Cache(), DRAW.format(method)
        lines.append(Line(f"sample(table), {method}", cache.seconds(code), 12.0, cache.seconds(code)))
    shown("draw: cold", lines)


def kernels(quick: bool) -> None:
    """A step of each kernel, after the race was compiled for a table."""
    lines = []
    for name, code in KERNELS.items():
        cache = Cache()
        cache.seconds(DRAW.format("Race()"))
        cache.seconds(DRAW.format("Betting()"))
        lines.append(Line(name, cache.seconds(code), 10.0, cache.seconds(code)))
    shown("kernels: further", lines)


def factor(quick: bool) -> None:
    """A user's own factor, of which nothing can be kept."""
    second("factor: a compiled factor of the user's", "compiled(log_factor)", FACTOR)


def chain(quick: bool) -> None:
    """A posterior by Laplace proposals, as in the README."""
    second("chain: an expansion, Laplace proposals", "run(Metropolis)", CHAIN)


def second(title: str, what: str, code: str) -> None:
    """Judge a second process; the last column is the first one."""
    cache = Cache()
    first = cache.seconds(code)
    shown(f"{title}; target: of a second process", [Line(what, cache.seconds(code), 2.0, first)])


if __name__ == "__main__":
    run_sections(__doc__, {"draw": draw, "kernels": kernels, "factor": factor, "chain": chain})
