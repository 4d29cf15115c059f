"""What the benchmarks share: options, tables on the terminal, environments of other packages."""

import argparse
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path


def options(doc: str, quick: str = "small sizes, about a minute") -> argparse.ArgumentParser:
    """Give a parser with the option --quick, whose help is the text of a script."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=form)
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def run_sections(doc: str, sections: dict[str, Callable[[bool], None]]) -> None:
    """Run the sections that the command line asks for."""
    parser = options(doc)
    parser.add_argument("--only", nargs="+", choices=sections, default=list(sections))
    arguments = parser.parse_args()
    started = time.perf_counter()
    for name in arguments.only:
        sections[name](arguments.quick)
    print(f"\n{time.perf_counter() - started:.0f} s in all")


def judged(value: float, target: float) -> list[str]:
    """Give a value, its target, and a word on whether it is kept."""
    return [f"{value:.2f}", f"{target:g}", "within" if value <= target else "over"]


def show(title: str, header: str, rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the columns of `header` are separated by bars."""
    cells = [[name.strip() for name in header.split("|")], *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    print(f"\n{title}\n")
    for row in cells:
        print("  " + "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)))
    sys.stdout.flush()


def environment(folder: Path, packages: Sequence[str]) -> Path:
    """Find or make an environment that has the packages, and give its interpreter."""
    python, ready = folder / ("Scripts" if os.name == "nt" else "bin") / "python", folder / "ready"
    if not ready.exists():
        venv.create(folder, with_pip=True)
        install = [python, "-I", "-m", "pip", "install", "--quiet", *packages]
        subprocess.run(install, capture_output=True, text=True, check=True)
        ready.touch()
    return python


def last_line(error: Exception) -> str:
    """Give what a process that failed said last."""
    text = getattr(error, "stderr", None) or str(error)
    return (text.strip().splitlines() or [""])[-1]
