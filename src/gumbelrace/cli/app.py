"""The commands, and what all of them share: errors of one line, Ctrl-C, the version."""

import sys
import warnings
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from gumbelrace.cli.text import one_line, with_address
from gumbelrace.core.interrupts import INTERRUPTS
from gumbelrace.core.progress import WANTED
from gumbelrace.errors import GumbelraceError

FAILED, INTERRUPTED = 2, 130
# How the system, threads and LLVM put it.
OUT_OF_MEMORY = (
    "Cannot allocate memory",
    "can't start new thread",
    "failed to map segment",
    "out of memory",
)

# The line that `gumbelrace --help` has of each command. What a command needs is loaded when it is called.
COMMANDS = {
    "best": "Find the column with the highest mean, reading as few rows as needed.",
    "sample": "Draw columns with probability proportional to exp(sum of the column).",
    "shuffle": "Write the rows of a table in random order.",
    "choose": "Choose the best of a few prompts, models or settings, with few evaluations by a program.",
    "demo": "Show what the methods do on a built-in problem, in ten seconds.",
    "arch": "Find how many lags an ARCH model of a series of prices needs.",
    "coreference": "Put mentions of authors into clusters, one for each person.",
    "reproduce": "Run the paper's experiments again.",
}

# Commands that do not stand in a file of cli that has their name.
MODULES = {"best": "cli.tables", "sample": "cli.tables", "reproduce": "paper.commands"}

# What typer raises for a wrong command line; where it lies differs from release to release.
UsageProblem: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


class Commands(TyperGroup):
    """Commands that end in one line on standard error when something is wrong."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that is called, in place of the line about it."""
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = loaded(args[0])
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Give the options, as they are shown."""
        return without_types_of_flags(super().get_params(ctx))

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the command line; Ctrl-C meanwhile would end without a word."""
        try:
            return super().make_context(*args, **extra)
        except KeyboardInterrupt:
            INTERRUPTS.heard()
            stop("interrupted", INTERRUPTED)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; say in one line what stopped it."""
        before = WANTED.set(True)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            INTERRUPTS.heard()
            stop("; ".join(["interrupted", *map(str, error.args)]), INTERRUPTED)
        except BrokenPipeError:
            raise  # whoever reads our output has had enough: nothing to say
        except (GumbelraceError, OSError, MemoryError) as error:
            stop(described(error), FAILED)
        except (ImportError, RuntimeError) as error:
            if out_of_memory(error) is None:
                raise
            stop(described(error), FAILED)
        finally:
            WANTED.reset(before)

    def main(self, args: Any = None, *, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        """Run the command line; say in one line what is wrong with it."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # not every terminal knows δ
        given = sys.argv[1:] if args is None else list(args)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_: complain(f"note: {message}")
                result = super().main(with_address(given), standalone_mode=False, **extra)
        except UsageProblem as error:
            complain(usage(error))
            result = FAILED
        if standalone_mode:
            sys.exit(result if isinstance(result, int) else 0)
        return result


def stop(message: str, status: int) -> NoReturn:
    """Say why, and leave."""
    complain(message)
    raise typer.Exit(status)


def complain(message: str) -> None:
    """Print one line on standard error."""
    print("gumbelrace:", one_line(message), file=sys.stderr, flush=True)


def described(error: Exception) -> str:
    """Put an error into words."""
    if short := out_of_memory(error):
        return f"there is not enough memory ({str(short) or 'to go on'}); close other programs"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def out_of_memory(error: BaseException | None) -> BaseException | None:
    """Give the error, or the one that led to it, which says that memory is short, whatever its name."""
    while error is not None:
        if isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY):
            return error
        error = error.__cause__ or error.__context__
    return None


def usage(error: Any) -> str:
    """Say what is wrong with the command line, and where to read more."""
    command = error.ctx.command_path if getattr(error, "ctx", None) else "gumbelrace"
    return f"{error.format_message().rstrip('.')}; see {command} --help"


def print_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        print("gumbelrace", version("gumbelrace"))
        raise typer.Exit


app = typer.Typer(
    cls=Commands,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def gumbelrace(
    ctx: typer.Context,
    _: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Find the best of many candidates, or draw from a posterior, reading few of the rows of the data."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


def nothing() -> None:
    """Stand for a command until it is loaded."""


for name, line in COMMANDS.items():
    app.command(name, help=line)(nothing)


def loaded(name: str) -> Any:
    """Load the module of a command; give the command, or the group of them."""
    module = import_module(f"gumbelrace.{MODULES.get(name, f'cli.{name}')}")
    group = typer.Typer(rich_markup_mode="markdown")
    if hasattr(module, "app"):
        group.add_typer(module.app, name=name)
    else:
        group.command(name)(getattr(module, name))
    return with_plain_flags(typer.main.get_group(group).commands[name])


def with_plain_flags(command: Any) -> Any:
    """Have the help of a command, and of those within it, show no type beside flags."""
    shown = command.get_params
    command.get_params = lambda ctx: without_types_of_flags(shown(ctx))
    for within in getattr(command, "commands", {}).values():
        with_plain_flags(within)
    return command


def without_types_of_flags(options: list[Any]) -> list[Any]:
    """Have no type shown beside flags, which take no value."""
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options
