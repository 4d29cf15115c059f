"""The package root: every public name is there, whether it is loaded at once or when it is used."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import gumbelrace as gr

SOURCE = Path(gr.__file__)
LATER = [name for names in gr._LATER.values() for name in names]


@pytest.mark.parametrize("name", gr.__all__)
def test_public_name_is_there(name):
    found = getattr(gr, name)
    assert found is getattr(import_module(found.__module__), name)
    assert name in dir(gr)


def imports(statements):
    """Give `from module import names` as module -> names."""
    found = [s for s in statements if isinstance(s, ast.ImportFrom) and s.module.startswith("gumbelrace.")]
    return {s.module: tuple(alias.name for alias in s.names) for s in found}


def test_type_checkers_and_the_table_of_later_names_agree():
    body = ast.parse(SOURCE.read_text(encoding="utf-8")).body
    (shown,) = (s for s in body if isinstance(s, ast.If) and s.test.id == "TYPE_CHECKING")
    assert imports(shown.body) == gr._LATER
    now = [name for names in imports(body).values() for name in names]
    assert sorted([*now, *LATER]) == sorted(gr.__all__)


def test_later_names_are_not_those_of_modules():
    """Importing a module puts it under its name into the package, in place of the function."""
    assert not {path.stem for path in SOURCE.parent.iterdir()} & set(LATER)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"gumbelrace.*Metropolix"):
        gr.Metropolix  # noqa: B018
