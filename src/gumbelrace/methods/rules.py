"""What a rule of the race does; each method has a rule of its own.

A rule is a named tuple that a method passes in; numba picks the functions of its class when it compiles:

- ``run(rule, workspace)``: answer a question; a rule of a race leaves that to `engine.race`, which needs

- ``begin(rule, work, source, field, size)``: start a draw, flagging arms that need no reading;
- ``next_look(rule, taken, size)``: how many rows to read now (`reading.HELD` at most), 0 to scan the rest;
- ``judge(rule, work, source, field, sample, taken, size)``: count the look, flag in `field.out` the arms to
  drop, and put into `field.need` the row at which each other arm is expected to be dropped.

``rule.working_memory(arms)`` makes room for what a rule knows of the arms; `keeps` says whether it looks
again at rows of earlier looks. Where rewards have to be copied, the first `reading.KEPT` rows are kept.
"""

from collections.abc import Callable
from typing import Any

from numba.extending import overload

from gumbelrace.core.jit import OPTIONS, PART, Function
from gumbelrace.methods.field import Field
from gumbelrace.methods.reading import Sample
from gumbelrace.population.base import Source


def run(rule: Any, workspace: Any) -> None:
    """Answer the question in the workspace: by a race, unless the rule says how."""
    raise NotImplementedError


runs_itself: set[type] = set()


def begin(rule: Any, work: Any, source: Source, field: Field, size: int) -> None:
    """Start a draw."""
    raise NotImplementedError


def next_look(rule: Any, taken: int, size: int) -> int:
    """Give the number of rows to read now; 0 scans the rest."""
    raise NotImplementedError


def judge(
    rule: Any, work: Any, source: Source, field: Field, sample: Sample, taken: int, size: int
) -> None:
    """Flag the arms to drop."""
    raise NotImplementedError


def implements(
    generic: Callable[..., Any], rule: type, makes: bool = False
) -> Callable[[Function], Function]:
    """Make the decorated function what `generic` does for class `rule`; if it `makes` arrays, say so."""

    def register(function: Function) -> Function:
        if generic is run:
            runs_itself.add(rule)
        options = OPTIONS if makes else PART

        @overload(generic, jit_options=options, strict=False)
        def choose(of: Any, *rest: Any) -> Callable[..., Any] | None:
            return function if getattr(of, "instance_class", None) is rule else None

        return function

    return register
