"""What all commands share: the script, help that fits the screen, Ctrl-C, and a light import."""

import ast
import io
import os
import signal
import subprocess
import sys
import time
import tomllib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from gumbelrace import cli
from gumbelrace.cli import shared
from gumbelrace.cli.app import COMMANDS, loaded
from gumbelrace.paper import commands


def python(*words, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        encoding="utf-8",
    )


def test_version(run):
    assert run("--version").stdout == f"gumbelrace {version('gumbelrace')}\n"


@pytest.mark.parametrize("words", [[], ["--help"], ["best", "--help"], ["sample", "-h"]])
def test_help_fits_the_screen_and_teaches(run, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    result = run(*words)
    assert result.exit_code == 0
    assert all(len(line.rstrip()) <= 80 for line in result.stdout.splitlines())
    expected = ["--delta", "proved", "gumbelrace best "] if "best" in words else ["best", "sample"]
    assert all(word in result.stdout for word in expected)


def test_commands_without_words_show_their_help(run):
    result = run("reproduce")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "synthetic" in result.stdout


def test_help_of_a_group_shows_how_to_call_its_own_command(run):
    shown = run("coreference", "--help").stdout
    assert "coreference [OPTIONS] [FILE]" in shown
    assert "resolve" not in shown
    assert all(word in shown for word in ("coreference fit", "--simulate", "--sampler", "--column"))


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS), ["reproduce", "synthetic"]])
def test_flags_show_no_type(run, words):
    shown = run(*words, "--help").stdout
    assert "--help" in shown
    assert "bool" not in shown.lower()


def test_shells_complete_options_of_commands():
    """As bash asks: the words so far, and the number of the one to complete."""
    words = {"COMP_WORDS": "gumbelrace best --de", "COMP_CWORD": "2"}
    found = python("-m", "gumbelrace", _GUMBELRACE_COMPLETE="complete_bash", **words)
    assert found.stdout.split() == ["--delta", "--decimal"]


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_results_wrap_to_the_terminal(run, tmp_path, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    np.save(tmp_path / "scores.npy", np.random.default_rng(0).random((500, 2)))
    longest = max(map(len, run("best", "scores.npy", "--exact").stdout.splitlines()))
    assert longest <= min(columns, 100)


def test_the_extra_of_the_command_line_has_what_all_commands_need():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    assert "gumbelrace[arviz,coreference]" in extras["cli"]
    assert {"arviz", "coreference"} <= set(extras)


def test_nothing_takes_more_than_eight_arguments():
    """Commands with many options take them as one dataclass."""
    for path in (*Path(cli.__file__).parent.glob("*.py"), Path(commands.__file__)):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                assert len(node.args.args + node.args.kwonlyargs) <= 8, (path.name, node.name)


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_missing_packages_are_named(missing):
    code = (
        f"import sys; sys.modules['{missing}'] = None; from gumbelrace.__main__ import main; exit(main())"
    )
    result = python("-c", code)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        f'gumbelrace: the command line needs the package {missing}; pip install "gumbelrace[cli]"\n'
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_of_each_command_what_it_says_itself(name):
    assert loaded(name).help.splitlines()[0] == COMMANDS[name]


def test_help_loads_no_compiler():
    code = (
        "import sys; sys.argv = ['gumbelrace', '--help']\n"
        "from gumbelrace.__main__ import main\n"
        "try: main()\n"
        "finally: print(*sys.modules)"
    )
    shown = python("-c", code).stdout
    assert "best" in shown
    assert {module.split(".")[0] for module in shown.split()} & {"numba", "scipy", "numpy"} == set()


def test_the_library_does_not_load_the_command_line():
    loaded = python("-c", "import sys; from gumbelrace import best; print(*sys.modules)").stdout.split()
    assert "gumbelrace.sampling" in loaded
    assert [m for m in loaded if m.split(".")[0] in ("typer", "rich", "click", "pyarrow")] == []
    assert [m for m in loaded if m.startswith("gumbelrace.cli")] == []


def test_a_process_of_its_own(tmp_path):
    np.save(tmp_path / "scores.npy", np.random.default_rng(0).random((500, 2)) < [0.2, 0.8])
    found = python("-m", "gumbelrace", "best", str(tmp_path / "scores.npy"))
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("best column  1\n")
    failed = python("-m", "gumbelrace", "best", str(tmp_path / "nothing.npy"))
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.count("\n") == 1


def test_output_that_cannot_be_encoded(tmp_path):
    (tmp_path / "scores.csv").write_text("a,δ\n" + "1,2\n" * 9, encoding="utf-8")
    found = python("-m", "gumbelrace", "best", str(tmp_path / "scores.csv"), PYTHONIOENCODING="ascii")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("best column  ?\n")


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize("command", ["best", "sample"])
def test_ctrl_c_is_one_line(tmp_path, command):
    """The disk is so slow that the command is interrupted in the middle of a race."""
    table, out = tmp_path / "scores.npy", tmp_path / "draws.csv"
    out.write_text("old")
    np.save(table, np.array([[0.0, 1.0], [1.0, 0.0]] * 10))
    more = ["--out", str(out)] if command == "sample" else []
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, command, str(table), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (130, "", "gumbelrace: interrupted\n")
    assert out.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["draws.csv", "scores.npy"]


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize("lost", ["except KeyboardInterrupt: pass", "finally: return"])
def test_ctrl_c_that_was_lost_comes_again(tmp_path, lost):
    """Once, in code called by compiled code, which swallows it: the command ends all the same."""
    np.save(tmp_path / "scores.npy", np.array([[0.0, 1.0], [1.0, 0.0]] * 10))
    process = subprocess.Popen(
        [sys.executable, "-c", DEAF.format(lost=lost), "best", str(tmp_path / "scores.npy")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    time.sleep(0.5)  # it sleeps, where Ctrl-C is lost
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (130, "", "gumbelrace: interrupted\n")


DEAF = """
import time
from gumbelrace.tables.rowfile import RowFile
from gumbelrace.__main__ import main

def deaf():
    try:
        time.sleep(600)
    {lost}

def slowly(*_):
    print("reading", flush=True)
    deaf()
    time.sleep(600)

RowFile.read_chunks = slowly
exit(main())
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize("module", ["typer", "numba", "pyarrow"])
def test_ctrl_c_during_imports_is_one_line(tmp_path, module):
    """A stand-in for a module says that it is being loaded, and takes long."""
    (tmp_path / "scores.csv").write_text("a,b\n" + "0,1\n1,0\n" * 10)
    (tmp_path / f"{module}.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(600)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "gumbelrace", "best", str(tmp_path / "scores.csv")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "loading\n"
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (130, "", "gumbelrace: interrupted\n")


def test_an_unwritable_cache_is_said_once_and_harmless():
    """All kernels are loaded, none is compiled, and the command comes to what is wrong with the file."""
    note, complaint = python("-c", NO_CACHE, "best", "nothing.csv").stderr.splitlines()
    assert note.startswith("gumbelrace: note: there is no folder for compiled code")
    assert complaint.startswith("gumbelrace: nothing.csv does not exist")


NO_CACHE = """
from numba.core import caching
from gumbelrace.__main__ import main

caching.CacheImpl._locator_classes = []
exit(main())
"""


@pytest.mark.parametrize(
    "error",
    [
        "MemoryError('Unable to allocate 3 GiB')",
        "pyarrow.ArrowMemoryError('malloc of size 64 failed')",
        'RuntimeError("can\'t start new thread")',
        "OSError(12, 'Cannot allocate memory')",
    ],
)
def test_low_memory_is_one_line(fails, tmp_path, monkeypatch, error):
    import pyarrow

    def refused(*_):
        raise eval(error, {"pyarrow": pyarrow})

    (tmp_path / "scores.csv").write_text("a,b\n" + "0,1\n" * 10)
    monkeypatch.setattr("gumbelrace.tables.totals.totals_of", refused)
    assert fails("best", "scores.csv").startswith("there is not enough memory (")


def test_low_memory_under_another_name(fails, tmp_path, monkeypatch):
    """As where a library cannot be loaded, and says something else."""

    def refused(*_):
        try:
            raise OSError("libx.so: failed to map segment from shared object")
        except OSError as error:
            raise OSError("libx.so could not be found") from error

    (tmp_path / "scores.csv").write_text("a,b\n" + "0,1\n" * 10)
    monkeypatch.setattr("gumbelrace.tables.totals.totals_of", refused)
    assert fails("best", "scores.csv").startswith("there is not enough memory (libx.so: failed to map")


SLOW = """
import time
from gumbelrace.tables.rowfile import RowFile
from gumbelrace.__main__ import main

def slowly(*_):
    print("reading", flush=True)
    time.sleep(600)

RowFile.read_chunks = slowly
main()
"""


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_shown_in_a_terminal_only(monkeypatch, terminal):
    screen = io.StringIO()
    monkeypatch.setattr(shared, "Console", lambda stderr: Console(file=screen, force_terminal=terminal))
    with shared.progress("reading scores.csv", 10) as advance:
        for done in range(11):
            advance(done)
            time.sleep(0.02)
    with shared.waiting("racing"):
        time.sleep(0.1)
    assert ("reading scores.csv" in screen.getvalue()) == terminal
    assert ("racing" in screen.getvalue()) == terminal
    assert ("100%" in screen.getvalue()) == terminal
