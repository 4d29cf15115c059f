"""Run a kernel: chains in threads of their own, the same for the same seed, stopped and resumed at will.

A person sees a line for each, in a terminal or a notebook.
"""

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import reduce
from typing import Any

import numpy as np

from gumbelrace.chain.checkpoint import ChainFiles, opened, stream_fingerprint
from gumbelrace.chain.kernel_data import Search
from gumbelrace.chain.trace import Trace, checked, name_of
from gumbelrace.chain.worker import NOTHING, Chain, Draw, Layout, Plan, added, flat
from gumbelrace.core.progress import WANTED, Lines
from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import InvalidArgument, InvalidGenerator, ShapeMismatch
from gumbelrace.kernels.base import Kernel, State
from gumbelrace.population.base import checked_count
from gumbelrace.population.table import of_one_run

MOST_LINES = 8  # more chains than this share one line


@contextmanager
def show_progress(
    chains: Sequence[Chain], wanted: bool = True, console: Any = None
) -> Iterator[Callable[[], None]]:
    """Show how far chains are; call what is lent to bring it up to date.

    Where nobody looks (the output is not a terminal), or without the package rich, nothing is shown; but
    commands want a plain line now and then.
    """
    console = (console or _console()) if wanted else None
    if console is None or not (console.is_terminal or console.is_jupyter):
        yield _plain(chains) if wanted and WANTED.get() else lambda: None
        return
    lines = [[chain] for chain in chains] if len(chains) <= MOST_LINES else [list(chains)]
    with _display(console) as display:
        tasks = [display.add_task(**_line(line, number)) for number, line in enumerate(lines)]

        def refresh() -> None:
            for number, (task, line) in enumerate(zip(tasks, lines, strict=True)):
                display.update(task, **_line(line, number))
            display.refresh()

        yield refresh


def _plain(chains: Sequence[Chain]) -> Callable[[], None]:
    several = "s" * (len(chains) > 1)
    lines = Lines(f"steps of {len(chains)} chain{several}", sum(chain.plan.total for chain in chains))
    return lambda: lines(sum(chain.done for chain in chains))


def _console() -> Any:
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)


def _display(console: Any) -> Any:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    # With 80 columns a line fits whole.
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:3.0f}%"),
        TextColumn("{task.fields[took]}", style="dim"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        auto_refresh=False,
    )


def _line(chains: list[Chain], number: int) -> dict[str, Any]:
    name = f"chain {number}" if len(chains) == 1 else f"{len(chains)} chains"
    warming = any(chain.done < chain.plan.warmup for chain in chains)
    return {
        "description": f"{name} {'warm-up' if warming else '':7}",
        "completed": sum(chain.done for chain in chains),
        "total": sum(chain.plan.total for chain in chains),
        "took": _took(chains),
    }


def _took(chains: list[Chain]) -> str:
    steps = sum(chain.done - chain.begun for chain in chains)
    if steps == 0:
        return ""
    total = reduce(added, (chain.tally for chain in chains))
    read = f"{total.evaluations / total.rewards:.1%} read, " if total.rewards else ""
    return f"{read}{total.acceptance / steps:.2f} accepted"


REFRESH = 0.1  # seconds between looks at the chains


def run(
    kernel: Kernel[State],
    state: State | list[State] | None = None,
    *,
    steps: int,
    warmup: int = 0,
    thin: int = 1,
    chains: int = 1,
    rng: Rng = None,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    tag: str | None = None,
    check: int | None = None,
) -> Trace[State]:
    """Run chains of a kernel, each in a thread of its own.

    The same seed gives the same trace on any machine, whatever the number of cores. Ctrl-C ends all
    chains after the step that they are at, and gives what there is.

    Parameters
    ----------
    kernel : Kernel
        Makes the steps.
    state : state, or list of states, optional
        Where to start: a state for all chains, or a list of one for each. Default: ``kernel.start()`` of
        each chain; kernels on continuous parameters need a place, ``kernel.start(position)``, unless the
        likelihood has an expansion.
    steps : int
        Steps that each chain makes, `warmup` not counted.
    warmup : int
        Steps made before, of which nothing is kept.
    thin : int
        Every so many steps one is kept: a trace has ``steps // thin`` draws of each chain.
    chains : int
        How many.
    rng : numpy.random.Generator, int, or None
        Gives every chain a generator of its own, by ``rng.spawn(chains)``: a generator, a seed, or None for
        no seed.
    progress : bool
        Show how far the chains are, in a terminal or a notebook, if the package rich is there.
    checkpoint : path, optional
        Folder in which the run is kept, written as often as costs 2% of the time at most (more
        only if draws come by the ten megabytes a second: each is written once), and at least
        every five minutes. If it exists, the run goes on from there: called with the same
        arguments (`rng` a seed, or made anew from it), a run that was killed gives bit for bit what it
        would have given (but for tables of 16,384 rows and more that were drawn from before the run
        and not before its resumption, or the other way round: they keep the order of their first use). A
        larger `steps` makes a run longer. What a kernel owns must be that
        of the run before: data and functions are compared where they can be seen (in fields, and
        among the variables that functions use), large arrays and lists in 65,536 of their entries,
        functions by their compiled code: another version of Python is refused if there are any of
        your own. Methods of your own classes are not compared, nor numbers that these set.
        What is there and cannot be compared is named in a warning.
    tag : str, optional
        A name for what cannot be compared, such as the version of a file that a likelihood reads: a
        checkpoint with another tag is refused, and nothing is warned of.
    check : int, optional
        After the last step, from so many of the states kept a step is made again whose decisions are
        checked exactly; ``trace.checked`` has what came out. 0: none. Default: as many as read 2% of what
        the run has read, at most 100; one if it reads at most a tenth; none after Ctrl-C. It changes no
        draw.

    Returns
    -------
    Trace
        The draws, what they took, and where the chains stand.

    Raises
    ------
    CheckpointMismatch, CheckpointDamaged, CheckpointBusy
        The checkpoint does not fit the arguments, cannot be read, or is in use. It is left as it is.

    Warns
    -----
    PromiseBroken
        The check has found more wrong decisions than were promised, or one for something impossible.
    UnseenData
        The checkpoint cannot compare all that the kernel owns, and there is no tag.

    Notes
    -----
    An error in one chain stops all; it is raised as it was, with a note that names the chain. With a
    checkpoint, the other chains are saved.

    For a stopping rule of your own, go on from ``trace.last`` with a further run, or step by step with
    ``kernel.chain``.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> import numpy as np, gumbelrace as gr
    >>> from gumbelrace.kernels.base import Info, Kernel
    >>> class Point(NamedTuple):
    ...     x: float
    >>> class Autoregression(Kernel):
    ...     def step(self, rng, state):
    ...         return Point(0.5 * state.x + rng.normal()), Info(0, 0, 0, 1.0)
    >>> rng = np.random.default_rng(0)
    >>> trace = gr.run(Autoregression(), Point(0.0), steps=1000, rng=rng, chains=4, thin=2)
    >>> trace["x"].shape
    (4, 500)
    """
    if not isinstance(kernel, Kernel):
        raise InvalidArgument(f"kernel is {kernel!r}; give a kernel, such as gumbelrace.Metropolis(...)")
    plan = Plan(
        checked_count(steps, "steps", least=0),
        checked_count(warmup, "warmup", least=0),
        checked_count(thin, "thin"),
    )
    if checkpoint is not None and rng is None:
        raise InvalidGenerator("a run that can be resumed needs a seed; give one, for example rng=0")
    rng = as_generator(rng)
    streams = _spawned(rng, checked_count(chains, "chains"))
    states = _starts(kernel, state, streams)
    layout = Layout(Draw(states[0], NOTHING))
    columns = layout.columns(chains, plan.kept(plan.total))
    team = [
        Chain(kernel, start, stream, plan, (layout, [column[n] for column in columns]))
        for n, (start, stream) in enumerate(zip(states, streams, strict=True))
    ]
    identity = _identity(team, checked_tag(tag)) if checkpoint is not None else {}
    stop = threading.Event()
    with _interrupts(stop), of_one_run(rng):
        with _savers(checkpoint, team, identity) as savers:
            _advance(team, savers, stop, progress)
        stop.clear()  # by now all chains have heard it
        trace = _trace(kernel, team, layout, columns)
        return checked(trace, check, team[0].rng, stop)


def _trace(kernel: Kernel[State], team: list[Chain], layout: Layout, columns: list[Any]) -> Trace[State]:
    plan = team[0].plan
    draws = layout.build([column[:, : min(chain.kept for chain in team)] for column in columns])
    interrupted = any(chain.done < plan.total for chain in team)
    return Trace(kernel, draws.state, draws.info, [chain.state for chain in team], interrupted, plan.thin)


def _starts(kernel: Kernel[Any], state: Any, streams: list[np.random.Generator]) -> list[Any]:
    states = state if isinstance(state, list) else [state] * len(streams)
    if state is None:
        states = [kernel.start(rng=stream) for stream in streams]
    if len(states) != len(streams):
        raise ShapeMismatch(
            f"{len(states)} initial states for chains={len(streams)}; give one for each chain"
        )
    for start in states:
        if not isinstance(start, tuple):
            raise InvalidArgument(
                f"the state is a {type(start).__name__}; give kernel.start(...), a named tuple, or a list "
                "of them"
            )
    starts = [kernel.as_state(start) for start in states]
    for start in starts:
        Layout(starts[0]).values(start)
    return starts


def checked_tag(tag: Any) -> str | None:
    """Return a tag if it is a text, or none."""
    if tag is not None and not isinstance(tag, str):
        raise InvalidArgument(f"tag is {tag!r}; give a text, for example tag='prices of May'")
    return tag


def _spawned(rng: np.random.Generator, chains: int) -> list[np.random.Generator]:
    try:
        return rng.spawn(chains)
    except TypeError as error:
        raise InvalidGenerator(
            "rng was made without a seed sequence and cannot give every chain a stream of its own; "
            "use rng=numpy.random.default_rng(seed)"
        ) from error


@contextmanager
def _interrupts(stop: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C set `stop`; a second one is as always.

    As a handler, not by catching KeyboardInterrupt, which may come at any point of the work to be done
    after it. Python runs handlers in the main thread only.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def handle(number: int, frame: Any) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _savers(
    checkpoint: str | os.PathLike[str] | None, team: list[Chain], identity: dict[str, Any]
) -> Iterator[Sequence[ChainFiles | None]]:
    """Bring the chains to where the checkpoint has them; lend what saves them."""
    if checkpoint is None:
        yield [None] * len(team)
        return
    with opened(checkpoint, identity) as folder:
        savers = [ChainFiles(folder, number, chain.layout) for number, chain in enumerate(team)]
        for saver, chain in zip(savers, team, strict=True):
            saver.restore(chain)
        yield savers


def _identity(team: list[Chain], tag: str | None) -> dict[str, Any]:
    """Give the arguments that a run must have in common with the one that it goes on from."""
    owned = Search(team[0].kernel)
    if tag is None:
        owned.warn()
    kernel, plan, layout = team[0].kernel, team[0].plan, team[0].layout
    method = getattr(kernel, "method", None)
    starts = b"".join(np.asarray(value).tobytes() for chain in team for value in flat(chain.state))
    return {
        "kernel": type(kernel).__qualname__,
        "method": method and f"{name_of(method)}, delta {method.promise.delta}",
        "data": owned.found,
        "chains": len(team),
        "warmup": plan.warmup,
        "thin": plan.thin,
        "fields": [[name, dtype.str, list(shape)] for name, dtype, shape in layout.leaves],
        "initial state": hashlib.sha256(starts).hexdigest(),
        "rng": stream_fingerprint([chain.rng for chain in team]),
        "tag": tag,
    }


def _advance(
    team: list[Chain], savers: Sequence[ChainFiles | None], stop: threading.Event, progress: bool
) -> None:
    with ThreadPoolExecutor(len(team)) as pool, show_progress(team, progress) as refresh:
        # A copy of the context each: settings such as numpy.errstate hold in the threads too.
        futures = [
            pool.submit(copy_context().run, chain.run, stop, saver)
            for chain, saver in zip(team, savers, strict=True)
        ]
        try:
            while wait(futures, timeout=REFRESH).not_done:
                refresh()
            refresh()
        finally:
            stop.set()
    for number, future in enumerate(futures):
        if (error := future.exception()) is not None:
            error.add_note(f"In chain {number} of {len(team)}, after {team[number].done} steps.")
            raise error
