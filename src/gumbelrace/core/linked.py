"""Code that is only ever linked into other code, and compiled there.

numba makes machine code of every function that it compiles, together with a copy of all that it calls: code
five calls deep is optimised and translated five times, and only the last of these is ever run. What only
compiled code calls is kept as it is, until it lies in the kernel that Python calls.
"""

from typing import Any

from llvmlite.binding import parse_assembly
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _Places:
    """Makes the place where a function's code finds its Python objects, for example to print.

    numba makes it with the machine code.
    """

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, environment: Any) -> None:
        """Load a place of that name alone, and fill it."""
        self._codegen._add_module(parse_assembly(f'@"{name}" = common global i64 0'))
        self._codegen.set_env(name, environment)


class _Linked(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function and of all that it calls, neither optimised nor loaded."""

    @property
    def codegen(self) -> _Places:
        """What numba asks for when it has compiled a function."""
        return _Places(self._codegen)

    def _optimize_final_module(self) -> None:
        """Leave it to the kernel."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


class ForLinking(Compiler):  # type: ignore[misc]
    """numba's compiler, for functions that only compiled code calls."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, _Linked(target.codegen(), "linked"), *rest)
