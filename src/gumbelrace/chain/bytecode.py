"""What functions do, as far as their compiled code tells: a fingerprint, and the names that they set."""

import dis
import functools
import hashlib
import types
from collections.abc import Iterator
from typing import Any

SETS_VARIABLE, SETS_ATTRIBUTE = {"STORE_DEREF", "STORE_GLOBAL"}, {"STORE_ATTR"}
MAKERS = {"__init__", "__new__", "__post_init__", "__setstate__"}


def code_print(function: types.FunctionType) -> str:
    """Give a fingerprint of what a function does, wherever it stands and whatever its docstring says.

    Another version of Python compiles the same source to other code.

    Examples
    --------
    >>> code_print(lambda x: x + 1) == code_print(lambda x: x + 1) != code_print(lambda x: x + 2)
    True
    """
    code = function.__code__
    if code.co_consts and code.co_consts[0] == function.__doc__:
        code = code.replace(co_consts=(None, *code.co_consts[1:]))
    return hashlib.sha256(_written(code).encode()).hexdigest()


def _written(constant: Any) -> str:
    """Write a constant of a function, or its code, as a text that is the same in every process."""
    if isinstance(constant, types.CodeType):
        return f"{constant.co_code.hex()} {constant.co_names} {_written(constant.co_consts)}"
    if isinstance(constant, tuple):
        return f"({', '.join(map(_written, constant))})"
    if isinstance(constant, frozenset):  # its order differs between processes
        return f"{{{', '.join(sorted(map(_written, constant)))}}}"
    return repr(constant)


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield code, and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def set_by(code: types.CodeType, how: set[str]) -> set[str]:
    """Give the names that code sets, not counting its own variables."""
    steps = (step for part in codes(code) for step in dis.get_instructions(part))
    return {step.argval for step in steps if step.opname in how}


@functools.lru_cache(maxsize=256)
def set_by_methods(kind: type) -> set[str]:
    """Give the attributes that methods of a class set after an object was made."""
    functions = ((name, made) for base in kind.__mro__ for name, made in vars(base).items())
    methods = (
        made for name, made in functions if isinstance(made, types.FunctionType) and name not in MAKERS
    )
    return set().union(*(set_by(method.__code__, SETS_ATTRIBUTE) for method in methods))
