"""A second process compiles nothing of ours, and importing the package stays light."""

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from gumbelrace.core import jit
from gumbelrace.errors import NoCache

SCRIPT = """
import numpy as np
import gumbelrace as gr
from numba.core import event

rng = np.random.default_rng(0)
rewards = rng.uniform(size=(300, 3))
population = gr.table(rewards)
own = gr.independent(lambda index, arm: rewards[index, arm], [300, 200, 100])
with event.install_recorder("numba:compile") as recorder:
    for method in [gr.Exact(), gr.Betting()]:
        gr.sample(population, size=2, method=method, rng=rng)
    gr.audit(population, gr.Exact(), draws=2, rng=rng)
    gr.sample(own, size=2, method=gr.Race(), rng=rng)
print(sum(e.is_start for _, e in recorder.buffer))
"""

HEAVY = ["scipy.stats", "scipy.optimize", "matplotlib", "pandas", "arviz", "jax"]
# What a plain race does not need.
LATER = ("chain", "control_variates", "kernels", "models", "population.likelihood", "methods.lilucb")


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
    """The first process compiles many functions, the second none."""
    (first,), (second,) = (python(SCRIPT, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert int(first) > 50
    assert int(second) == 0


def test_a_full_disk_is_no_place_for_compiled_code(monkeypatch):
    """It is said, and the run goes on without; numba would raise in the midst of it."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=jit.ROOM - 1))
    with pytest.warns(NoCache, match="has room"):
        assert not jit.can_cache.__wrapped__()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=jit.ROOM))
    assert jit.can_cache.__wrapped__()


def test_import_is_light():
    loaded = python("import sys, gumbelrace; print(*sys.modules)")
    assert "gumbelrace" in loaded
    assert [module for module in HEAVY if module in loaded] == []


def ours_after(script):
    """Give the modules of ours that a script loads, without the package's name."""
    loaded = python(f"{script}\nimport sys\nprint(*sys.modules)")
    return [m.removeprefix("gumbelrace.") for m in loaded if m.startswith("gumbelrace.")]


def test_import_loads_nothing_and_a_race_no_more_than_it_needs():
    assert ours_after("import gumbelrace") == ["lazy"]
    loaded = ours_after("from gumbelrace import Race, sample, table")
    assert "methods.race" in loaded
    assert [module for module in loaded if module.startswith(LATER)] == []


def test_a_name_loads_its_module():
    assert "kernels.metropolis" in ours_after("from gumbelrace import Metropolis")
    assert "chain.run" in ours_after("from gumbelrace import *\nrun, table")
    assert "models.potts" in ours_after("import gumbelrace\ngumbelrace.models.Potts")


def test_import_compiles_nothing():
    counts = (
        "from numba.core import event\n"
        "with event.install_recorder('numba:compile') as recorder: import gumbelrace\n"
        "print(len(recorder.buffer))"
    )
    assert python(counts) == ["0"]
