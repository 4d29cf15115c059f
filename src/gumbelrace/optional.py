"""Packages that only some users need, imported when first used."""

from importlib import import_module
from typing import Any

from gumbelrace.errors import MissingPackage


def optional(name: str, extra: str) -> Any:
    """Import a module of a package of an extra, or say how to install it.

    Examples
    --------
    >>> optional("no_such_package", "cli")
    Traceback (most recent call last):
    ...
    gumbelrace.errors.MissingPackage: no_such_package is not installed; pip install "gumbelrace[cli]"
    """
    try:
        return import_module(name)
    except ImportError as error:
        missing = error.name or name
        raise MissingPackage(f'{missing} is not installed; pip install "gumbelrace[{extra}]"') from error
