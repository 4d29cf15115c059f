"""What a rule of the race does, and what a workspace does; the loop that calls them is `loop.race`.

Each method has a rule of its own, a named tuple; numba picks the functions of its class when it compiles:

- ``run(rule, workspace)``: answer a question; who finds winners adds the noise first (`add_noise`). A rule
  of a race leaves all that to `loop.race`, which needs

- ``begin(rule, workspace)``: start a race, flagging arms that need no reading;
- ``next_look(rule, workspace, arm)``: how many rows to read now (of an independent arm, or at most
  `reading.HELD` of all that share them), 0 to read all that are left;
- ``judge(rule, workspace)``: flag in `state.out` the arms to drop. Of shared rows, also count the look, and
  put into `state.need` the row at which each other arm is expected to be dropped.

``rule.working_memory(arms)`` makes room for what a rule knows of the arms; `keeps` says whether it looks
again at rows of earlier looks (where rewards have to be copied, the first `reading.KEPT` rows are kept),
`patient` whether independent arms that can reach little may wait.

There are two workspaces, one for arms that share their rows (`shared`) and one for arms that do not
(`independent`). They know how to read:

- ``enter(workspace)``: let all possible arms into the race, nothing read yet;
- ``look(workspace)``: read what the rule asks for and let it judge; GOES_ON, ENDS or FAILS;
- ``finish(workspace)``: read the rest if several arms are left, and name the winner.
"""

from collections.abc import Callable
from typing import Any

from numba.extending import overload

from gumbelrace.core.jit import PART, Function

# What a look tells the loop.
GOES_ON, ENDS, FAILS = range(3)


def run(rule: Any, workspace: Any) -> None:
    """Answer the question in the workspace: by a race, unless the rule says how."""
    raise NotImplementedError


runs_itself: set[type] = set()


def begin(rule: Any, workspace: Any) -> None:
    """Start a race."""
    raise NotImplementedError


def next_look(rule: Any, workspace: Any, arm: int) -> int:
    """Give the number of rows to read now; 0 reads the rest."""
    raise NotImplementedError


def judge(rule: Any, workspace: Any) -> None:
    """Flag the arms to drop."""
    raise NotImplementedError


def enter(workspace: Any) -> None:
    """Let the arms into the race."""
    raise NotImplementedError


def look(workspace: Any) -> int:
    """Read more, and judge."""
    raise NotImplementedError


def finish(workspace: Any) -> None:
    """Name the winner."""
    raise NotImplementedError


def implements(generic: Callable[..., Any], kind: type) -> Callable[[Function], Function]:
    """Make the decorated function what `generic` does for a first argument of class `kind`."""

    def register(function: Function) -> Function:
        if generic is run:
            runs_itself.add(kind)

        @overload(generic, jit_options=PART, strict=False)
        def choose(of: Any, *rest: Any) -> Callable[..., Any] | None:
            return function if getattr(of, "instance_class", None) is kind else None

        return function

    return register
