"""Public names, at the root and in the packages that group them: all are there, and explained."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import gumbelrace as gr

SOURCE = Path(gr.__file__).parent
PACKAGES = {
    package: import_module(package)
    for package in ("gumbelrace", *(f"gumbelrace.{name}" for name in gr._MODULES if name != "errors"))
}
NAMES = [
    (package, name)
    for package, module in PACKAGES.items()
    for names in module._NAMES.values()
    for name in names
]


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_public_name_is_there(package, name):
    found = getattr(PACKAGES[package], name)
    assert found is getattr(import_module(found.__module__), name)
    assert name in dir(PACKAGES[package])


def imports(statements):
    """Give `from module import names` as module -> names."""
    found = [s for s in statements if isinstance(s, ast.ImportFrom)]
    return {s.module: tuple(alias.name for alias in s.names) for s in found}


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_the_same_names(package):
    module = PACKAGES[package]
    body = ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
    (shown,) = (s for s in body if isinstance(s, ast.If) and s.test.id == "TYPE_CHECKING")
    seen = imports(shown.body)
    assert seen.pop(package, ()) == getattr(module, "_MODULES", ())
    assert seen == module._NAMES


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_not_those_of_modules(package):
    """Importing a module puts it under its name into the package, in place of the function."""
    modules = {path.stem for path in Path(PACKAGES[package].__file__).parent.iterdir()}
    assert not modules & {name for owner, name in NAMES if owner == package}


def test_no_name_is_public_twice():
    names = [name for _, name in NAMES]
    assert len(set(names)) == len(names)
    assert len(PACKAGES["gumbelrace"].__all__) - len(gr._MODULES) <= 45


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_public_name_is_explained(package, name):
    found = getattr(PACKAGES[package], name)
    assert inspect.getdoc(found)
    for member in vars(found) if inspect.isclass(found) else ():
        value = inspect.getattr_static(found, member)
        if not member.startswith("_") and (inspect.isroutine(value) or isinstance(value, property)):
            told = [vars(kind)[member].__doc__ for kind in found.__mro__ if member in vars(kind)]
            assert any(told), f"{name}.{member}"


def test_errors_are_explained():
    found = [kind for _, kind in inspect.getmembers(gr.errors, inspect.isclass)]
    kinds = [kind for kind in found if kind.__module__ == "gumbelrace.errors"]
    assert all(kind.__doc__ and issubclass(kind, gr.GumbelraceError | UserWarning) for kind in kinds)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"gumbelrace.*Metropolix"):
        gr.Metropolix  # noqa: B018


@pytest.mark.parametrize(
    ("package", "name", "place"),
    [
        ("gumbelrace", "Normal", "gumbelrace.methods.Normal"),
        ("gumbelrace", "RandomWalk", "gumbelrace.kernels.RandomWalk"),
        ("gumbelrace", "InvalidArgument", "gumbelrace.errors.InvalidArgument"),
        ("gumbelrace", "logistic", "gumbelrace.models.logistic"),
        ("gumbelrace.methods", "Race", "gumbelrace.Race"),
        ("gumbelrace.kernels", "Metropolis", "gumbelrace.Metropolis"),
        ("gumbelrace.models", "table", "gumbelrace.table"),
    ],
)
def test_a_name_that_is_elsewhere_is_shown_there(package, name, place):
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; it is {place}$"):
        getattr(PACKAGES[package], name)


def test_names_that_are_nowhere_have_no_place():
    for name in ("Metropolix", "Any", "_NOTHING", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
            getattr(gr, name)


@pytest.mark.parametrize("package", PACKAGES)
def test_only_public_names_are_listed(package):
    listed = {name for name in dir(PACKAGES[package]) if not name.startswith("__")}
    assert listed == set(PACKAGES[package].__all__)


def test_looking_for_names_loads_nothing():
    code = """
import sys, gumbelrace as gr
dir(gr), hasattr(gr, "Normal"), hasattr(gr, "nothing"), hasattr(gr.methods, "Race")
assert not {"numba", "numpy"} & set(sys.modules), "loaded"
gr.models.logistic.mode, gr.models.potts.gaussian_lattice
"""
    subprocess.run([sys.executable, "-c", code], check=True)
