"""A second process compiles nothing of ours, and importing the package stays light."""

import os
import subprocess
import sys

SCRIPT = """
import numpy as np
import gumbelrace as gr
from gumbelrace.population import table
from gumbelrace.solvers import engine, exact, separate

rng = np.random.default_rng(0)
rewards = rng.uniform(size=(300, 3))
population = gr.table(rewards)
for solver in [gr.Exact(), gr.Betting()]:
    gr.sample(population, size=2, solver=solver, rng=rng)
gr.audit(population, gr.Exact(), draws=2, rng=rng)
own = gr.independent(lambda index, arm: rewards[index, arm], [300, 200, 100])
gr.sample(own, size=2, solver=gr.Race(), rng=rng)
kernels = [engine.solve, separate.solve_separate, exact._totals_shared]
assert [len(kernel.signatures) for kernel in kernels] == [2, 1, 1]
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels),
      sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels),
      table._reader(population._packed.type).cache_hits)
"""

HEAVY = ["scipy.stats", "scipy.optimize", "matplotlib", "pandas", "arviz", "jax"]
# What a plain race does not need.
LATER = ("chain", "control_variates", "kernels", "models", "population.likelihood", "solvers.lilucb")


def python(script, **environment):
    result = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return result.stdout.split()


def test_kernels_are_compiled_once(tmp_path):
    """Misses and hits of the kernels, and hits of the table's reader: all compiled, then all found."""
    cache = str(tmp_path)
    assert python(SCRIPT, NUMBA_CACHE_DIR=cache) == ["4", "0", "0"]
    assert python(SCRIPT, NUMBA_CACHE_DIR=cache) == ["0", "4", "1"]


def test_import_is_light():
    loaded = python("import sys, gumbelrace; print(*sys.modules)")
    assert "gumbelrace" in loaded
    assert [module for module in HEAVY if module in loaded] == []


def ours_after(script):
    """Give the modules of ours that a script loads, without the package's name."""
    loaded = python(f"{script}\nimport sys\nprint(*sys.modules)")
    return [m.removeprefix("gumbelrace.") for m in loaded if m.startswith("gumbelrace.")]


def test_import_loads_no_more_than_a_race_needs():
    loaded = ours_after("import gumbelrace")
    assert "solvers.engine" in loaded
    assert [module for module in loaded if module.startswith(LATER)] == []


def test_a_name_loads_its_module():
    assert "kernels.metropolis" in ours_after("from gumbelrace import Metropolis")
    assert {"chain.run", "models.potts"} <= set(ours_after("from gumbelrace import *\nrun, Potts, table"))


def test_import_compiles_nothing():
    counts = "import gumbelrace; from gumbelrace.solvers import engine; print(len(engine.solve.signatures))"
    assert python(counts) == ["0"]
