"""The packages that reports need, imported when first used."""

from importlib import import_module
from typing import Any

from gumbelrace.errors import MissingPackage


def needed(name: str) -> Any:
    """Import a module of a package of the extra `cli`, or say how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackage(
            f'{error.name or name} is not installed; install it with: pip install "gumbelrace[cli]"'
        ) from error
