"""Names of a package that load what they need when they are first used: importing it costs nothing."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

Shown = tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]


def later(package: str, names: Mapping[str, Sequence[str]], modules: Sequence[str] = ()) -> Shown:
    """Give the `__all__`, `__getattr__` and `__dir__` of a package whose names load when they are used.

    Type checkers read no table: the package imports the same names under ``TYPE_CHECKING``.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    names : mapping of str to sequence of str
        For each module the public names that it defines.
    modules : sequence of str
        Submodules of the package that are public as well.

    Examples
    --------
    >>> public, load, _ = later("gumbelrace", {"gumbelrace.errors": ("InvalidFile",)}, ["errors"])
    >>> public
    ['InvalidFile', 'errors']
    >>> load("errors").InvalidFile is load("InvalidFile")
    True
    """
    module_of = {name: module for module, group in names.items() for name in group}
    public = sorted([*module_of, *modules])

    def load(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")  # which puts it into the package
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}{_elsewhere(package, name)}")
        found = getattr(import_module(module_of[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    def shown() -> list[str]:
        return sorted({name for name in vars(sys.modules[package]) if name.startswith("__")} | set(public))

    return public, load, shown


def _elsewhere(package: str, name: str) -> str:
    """Say where a name is if another public package has it; nothing is loaded for that."""
    if name.startswith("_") or find_spec(f"{package}.{name}"):
        return ""  # a module asked for by `from package import module`: Python loads it after this
    root = package.partition(".")[0]
    for place in (root, *(f"{root}.{module}" for module in sys.modules[root]._MODULES)):
        module = import_module(place)
        found = vars(module).get(name)
        if name in getattr(module, "__all__", ()) or getattr(found, "__module__", None) == place:
            return f"; it is {place}.{name}"
    return ""
