"""Parts are compiled with the kernel that calls them, and behave as any compiled function does."""

import numba
import pytest
from numba.core.codegen import JITCodeLibrary

from gumbelrace.core.jit import as_written, part, routine


def add_one(x):
    return x + 1.0


def calls(called):
    def function(x):
        return called(x) + 1.0

    return function


def four_calls_deep(decorate):
    function = decorate(add_one)
    for _ in range(3):
        function = decorate(calls(function))
    return numba.njit(calls(function))


@pytest.fixture
def loaded(monkeypatch):
    """Give what machine code was made of since."""
    made, load = [], JITCodeLibrary._finalize_final_module

    def recorded(library):
        # numba loads a library of its own the first time.
        if library.name.startswith(("add_one", "calls", "linked")):
            made.append(library.name)
        load(library)

    monkeypatch.setattr(JITCodeLibrary, "_finalize_final_module", recorded)
    return made


@pytest.mark.parametrize("decorate", [part, as_written, routine])
def test_machine_code_is_made_of_the_kernel_alone(decorate, loaded):
    assert four_calls_deep(decorate)(1.0) == 6.0
    assert len(loaded) == 1


def test_of_plain_functions_machine_code_is_made_at_every_depth(loaded):
    """Negative control of the above."""
    assert four_calls_deep(numba.njit)(1.0) == 6.0
    assert len(loaded) == 5


def test_parts_may_print_and_raise(capfd):
    """Both need Python objects, which code finds in a place that is otherwise made with machine code."""

    @part
    def shown(x):
        print("x is", x)
        if x < 0.0:
            raise ValueError("x is negative")
        return x

    function = numba.njit(calls(shown))
    assert function(2.0) == 3.0
    with pytest.raises(ValueError, match="x is negative"):
        function(-1.0)
    assert capfd.readouterr().out.split() == ["x", "is", "2.0", "x", "is", "-1.0"]
