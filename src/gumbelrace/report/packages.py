"""The packages that reports need, imported when first used."""

from typing import Any

from gumbelrace.optional import optional


def needed(name: str) -> Any:
    """Import a module of a package of the extra `cli`, or say how to install it."""
    return optional(name, "cli")
