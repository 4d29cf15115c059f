"""Benchmarks take from the package only what it has: they run rarely, and would break unseen."""

import ast
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = sorted((Path(__file__).resolve().parents[1] / "benchmarks").rglob("*.py"))


def missing(source: str) -> list[str]:
    """Name what is imported from the package and is not there."""
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in imports if (node.module or "").partition(".")[0] == "gumbelrace"]
    return [
        f"{node.module}.{name.name}"
        for node in ours
        for name in node.names
        if not is_there(node.module, name.name)
    ]


def missing_attributes(source: str) -> list[str]:
    """Name what is written as gr.… and is not there, as far as modules go."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)]
    modules = {"gr": "gumbelrace", "gr.kernels": "gumbelrace.kernels", "gr.methods": "gumbelrace.methods"}
    return [
        ast.unparse(node)
        for node in found
        if (module := modules.get(ast.unparse(node.value))) and not is_there(module, node.attr)
    ]


def is_there(module: str, name: str) -> bool:
    """Whether a module has something of that name, which may be a module of its own."""
    found = importlib.import_module(module)
    if hasattr(found, name):
        return True
    return hasattr(found, "__path__") and importlib.util.find_spec(f"{module}.{name}") is not None


def test_there_are_benchmarks():
    assert BENCHMARKS


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.name)
def test_what_a_benchmark_imports_is_there(path):
    source = path.read_text(encoding="utf-8")
    assert missing(source) == []
    assert missing_attributes(source) == []


def test_memory_of_a_command_is_its_own(monkeypatch, tmp_path):
    """Not that of the process that measures it, which may have made a large file."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "benchmarks"))
    commands = importlib.import_module("commands")
    large = np.ones(50_000_000)  # 400 MB
    took = commands.took([sys.executable, "-c", "print('done')"], tmp_path, tmp_path / "cache")
    assert took.said == "done\n"
    assert 1.0 < took.memory < large.nbytes / 2e6
    with pytest.raises(RuntimeError, match="ended with 1: no"):
        commands.took([sys.executable, "-c", "raise SystemExit('no')"], tmp_path, tmp_path / "cache")


def test_what_is_gone_is_named():
    """Negative control."""
    assert missing("from gumbelrace.methods.exact import compared, totals") == [
        "gumbelrace.methods.exact.totals"
    ]
    assert missing_attributes("gr.methods.Serfling(), gr.methods.Penalty(), gr.kernels.Position") == [
        "gr.methods.Penalty"
    ]
