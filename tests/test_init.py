"""Public names, at the root and in the packages that group them: all are there, and explained."""

import ast
import inspect
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
    assert len(PACKAGES["gumbelrace"].__all__) - len(gr._MODULES) <= 40


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
