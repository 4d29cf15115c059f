"""What tests of several folders share."""

import sys
from collections.abc import Callable

import pytest


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give a function after which a package, and what is loaded of it, cannot be imported."""

    def blocked(package: str) -> None:
        loaded = [name for name in sys.modules if name.startswith(f"{package}.")]
        for name in [package, *loaded]:
            monkeypatch.setitem(sys.modules, name, None)

    return blocked
