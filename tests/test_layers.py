"""The layers of the package: who may import whom, read from the source without importing it.

A module imports only from layers below its own (smaller numbers) and from its own folder. A new
file or folder of `src/gumbelrace` gets a line in `LAYERS`.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "gumbelrace"
ROOT = Path(__file__).resolve().parents[1] / "src" / PACKAGE

# The first component below the package, file or folder -> its layer.
LAYERS = {
    "errors": 0,
    "lazy": 0,
    "core": 0.5,
    "population": 1,
    "methods": 3,
    "control_variates": 3,
    "verdict": 3.5,
    "sampling": 4,
    "auditing": 4,
    "kernels": 5,
    "chain": 6,
    "laplace": 6.2,
    "models": 6.5,  # read by the layers above; itself reads only HIGHEST_FOR_MODELS and below
    "tables": 6.8,
    "integrations": 7,
    "pymc": 7,
    "jax": 7,
    "numpyro": 7,
    "ray": 7,
    "applications": 8,
    "report": 9,
    "choosing": 9.5,  # itself reads errors only, and hands what it found to its report
    "cli": 10,
    "__main__": 11,
    "paper": 12,  # nothing imports it: `cli/app.py` loads its commands by name
}
HIGHEST_FOR_MODELS = 1

# Within one layer: importer -> what it may import.
WITHIN_LAYER = {
    "auditing": {"sampling"},
    "numpyro": {"jax"},
}

# The commands, files of cli: none imports another, and the paper's commands import none of them.
COMMANDS = {"arch", "choose", "coreference", "demo", "shuffle", "tables"}

FIRST_OPTIONAL_LAYER = 7
CORE = {"numpy", "scipy", "numba", "llvmlite"} | sys.stdlib_module_names
UNSAFE_MODULES = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}

SOURCES = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}


def test_there_is_something_to_check() -> None:
    assert SOURCES


@pytest.mark.parametrize("name", SOURCES)
def test_source_keeps_the_rules(name: str) -> None:
    problems = violations(name, SOURCES[name].read_text(encoding="utf-8"))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("name", "source", "complaint"),
    [
        (
            "core/shuffle.py",
            "from gumbelrace.methods import Race",
            "core (layer 0.5) imports methods (layer 3)",
        ),
        ("core/jit.py", "import gumbelrace.methods.race", "imports methods"),
        ("core/jit.py", "def f():\n    from ..sampling import sample", "imports sampling"),
        ("methods/race.py", "from ..auditing import audit", "imports auditing"),
        ("methods/__init__.py", "from ..chain import run", "imports chain"),
        ("methods/race.py", "from gumbelrace import chain", "imports chain"),
        ("methods/race.py", "from .. import control_variates", "imports control_variates"),
        ("core/shuffle.py", "from gumbelrace.population import table", "imports population"),
        ("sampling.py", "from gumbelrace.auditing import audit", "imports auditing"),
        ("models/arch.py", "from gumbelrace.methods import Exact", "imports methods"),
        ("kernels/gibbs.py", "from gumbelrace.models import potts", "imports models"),
        ("sampling.py", "import gumbelrace as gr", "package root"),
        ("sampling.py", "from gumbelrace import Exact", "package root"),
        ("sampling.py", "from . import Exact", "package root"),
        ("sampling.py", "from . import Exact, Race, errors", "package root"),
        ("errors.py", "from gumbelrace.core.jit import kernel", "imports core"),
        ("report/arch.py", "from gumbelrace.paper import claims", "imports paper"),
        ("applications/arch.py", "from gumbelrace.report import page", "imports report"),
        ("cli/arch.py", "from gumbelrace.paper.claims import claims_table", "imports paper"),
        ("__main__.py", "from gumbelrace.paper import claims", "imports paper"),
        ("paper/commands.py", "from gumbelrace.cli.arch import arch", "another command"),
        ("cli/demo.py", "from gumbelrace.cli import tables", "another command"),
        ("cli/demo.py", "from .tables import sample", "another command"),
        ("sampling.py", "from .nowhere import x", "add nowhere to LAYERS"),
        ("new.py", "", "add new to LAYERS"),
        ("new/part.py", "", "add new to LAYERS"),
        ("chain.py", "import arviz", "arviz is not a core dependency"),
        ("chain.py", "try:\n    import rich.progress\nexcept ImportError:\n    pass", "rich"),
        ("__init__.py", "import matplotlib.pyplot as plt", "matplotlib"),
        ("chain.py", "import pickle", "pickle"),
        ("integrations/ray.py", "def f():\n    from cloudpickle import dumps", "cloudpickle"),
        ("chain.py", "x = eval('1')", "eval()"),
        ("cli.py", "exec('x = 1')", "exec()"),
        ("chain.py", "np.load(path, allow_pickle=True)", "allow_pickle"),
    ],
)
def test_checker_finds_a_violation(name: str, source: str, complaint: str) -> None:
    problems = violations(name, source)
    assert len(problems) == 1
    assert complaint in problems[0]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("__init__.py", "from gumbelrace.sampling import sample\nfrom .chain import run"),
        (
            "methods/race.py",
            "from gumbelrace.methods.bounds import Normal\nfrom .outcome import Outcome",
        ),
        ("methods/race.py", "from gumbelrace import core\nfrom .. import errors"),
        ("methods/__init__.py", "from .race import Race\nfrom ..population import Table"),
        ("population/table.py", "from gumbelrace.core.rows import blocks"),
        ("auditing.py", "from gumbelrace.sampling import sample"),
        ("models/arch.py", "from gumbelrace.population import compiled\nfrom .base import Model"),
        ("applications/toy.py", "from gumbelrace.models import potts"),
        ("paper/toy.py", "from gumbelrace.report import page\nfrom .claims import claims_table"),
        ("paper/commands.py", "from gumbelrace.cli import shared"),
        ("cli/app.py", "from gumbelrace.cli import demo, tables"),
        ("cli/demo.py", "from gumbelrace.cli import shared"),
        ("__main__.py", "from gumbelrace.cli.app import app"),
        ("core/jit.py", "import math\nimport numpy as np\nfrom scipy.special import ndtr"),
        ("chain.py", "def to_arviz():\n    import arviz_base"),
        ("chain.py", "if TYPE_CHECKING:\n    from xarray import DataTree"),
        ("report/page.py", "import matplotlib.pyplot as plt"),
        ("chain.py", "np.load(path, allow_pickle=False)\nmodel.eval()"),
    ],
)
def test_checker_lets_the_rest_pass(name: str, source: str) -> None:
    assert violations(name, source) == []


def test_imports_have_no_cycle() -> None:
    order_of_imports({name: path.read_text(encoding="utf-8") for name, path in SOURCES.items()})


def test_a_cycle_is_found() -> None:
    sources = {
        "methods/race.py": "from gumbelrace.methods import rules",
        "methods/rules.py": "from .state import RaceState",
        "methods/state.py": "def f():\n    from gumbelrace.methods.race import Race",
    }
    with pytest.raises(CycleError):
        order_of_imports(sources)
    assert order_of_imports(sources | {"methods/state.py": ""})[0] == "gumbelrace.methods.state"


def order_of_imports(sources: Mapping[str, str]) -> list[str]:
    """Order modules, given by their path and text, so that each comes after those that it imports."""
    modules = {name: ".".join([PACKAGE, *Path(name).with_suffix("").parts]) for name in sources}
    graph = {module: imported(name, sources[name]) for name, module in modules.items()}
    return [module for module in TopologicalSorter(graph).static_order() if module in graph]


def imported(name: str, source: str) -> set[str]:
    """Give what the imports of a file may stand for: `from a import b` is a, or the module a.b."""
    tree = ast.parse(source)
    found = {module for _, module in imports(name, tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{origin(name, node)}.{alias.name}" for alias in node.names}
    return found


def violations(name: str, source: str) -> list[str]:
    """Say what is wrong with a file, `name` being its path below the package."""
    unit = Path(name).parts[0].removesuffix(".py")
    if unit not in LAYERS and unit != "__init__":
        return [f"{name}: add {unit} to LAYERS in tests/test_layers.py"]
    tree = ast.parse(source)
    found = [*layer_violations(name, unit, tree), *command_violations(name, tree), *unsafe_calls(tree)]
    found += [(line, f"imports {m}") for line, m in imports(name, tree) if top(m) in UNSAFE_MODULES]
    if LAYERS.get(unit, 0) < FIRST_OPTIONAL_LAYER:
        found += optional_imports(name, tree)
    return [f"{name}:{line}: {complaint}" for line, complaint in sorted(found)]


def layer_violations(name: str, unit: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    for line, module in imports(name, tree):
        if top(module) != PACKAGE:
            continue
        target = module.split(".")[1] if "." in module else ""
        if target == "":
            yield (
                line,
                "imports from the package root: import from the module that defines the name",
            )
        elif target not in LAYERS:
            yield line, f"imports an unknown module: add {target} to LAYERS in tests/test_layers.py"
        elif not may_import(unit, target):
            yield line, f"{unit} (layer {LAYERS[unit]}) imports {target} (layer {LAYERS[target]})"


def command_violations(name: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Say where a command imports another."""
    folder, _, file = name.removesuffix(".py").rpartition("/")
    if folder not in ("cli", "paper") or (folder == "cli" and file not in COMMANDS):
        return
    others = {f"{PACKAGE}.cli.{other}" for other in COMMANDS - ({file} if folder == "cli" else set())}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for module in sorted(imported(name, ast.unparse(node)) & others):
                yield node.lineno, f"imports another command, {module}"


def may_import(unit: str, target: str) -> bool:
    if unit in ("__init__", target):
        return True
    if unit == "models":
        return LAYERS[target] <= HIGHEST_FOR_MODELS
    return LAYERS[target] < LAYERS[unit] or target in WITHIN_LAYER.get(unit, ())


def optional_imports(name: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    for line, module in imports(name, tree, when_imported=True):
        if top(module) not in CORE | {PACKAGE}:
            yield (
                line,
                f"{top(module)} is not a core dependency: import it in the function that uses it",
            )


def unsafe_calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="eval" | "exec" as function)):
                yield node.lineno, f"calls {function}()"
            case ast.keyword(arg="allow_pickle", value=value):
                if not (isinstance(value, ast.Constant) and value.value is False):
                    yield node.lineno, "sets allow_pickle"


def imports(name: str, tree: ast.Module, when_imported: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the line and absolute module of each import; `when_imported` skips those in functions.

    `from gumbelrace import x` is `gumbelrace.x` if x is a module, `gumbelrace` if x is a name.
    """
    for node in statements(tree) if when_imported else ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            module = origin(name, node)
            submodules = [a.name for a in node.names if module == PACKAGE and a.name in LAYERS]
            if len(submodules) < len(node.names):
                yield node.lineno, module
            for submodule in submodules:
                yield node.lineno, f"{module}.{submodule}"


def origin(name: str, node: ast.ImportFrom) -> str:
    """Give the absolute module that `from ... import` names."""
    parents = [PACKAGE, *Path(name).parts[:-1]]
    start = parents[: len(parents) + 1 - node.level] if node.level else []
    return ".".join([*start, *filter(None, [node.module])])


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Walk what runs when the module is imported: not functions, not `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from statements(child)


def top(module: str) -> str:
    return module.split(".")[0]
