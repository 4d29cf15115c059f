"""Folders of results: each belongs to one run, which goes on there after it was stopped."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from gumbelrace.core.atomic import write_atomically
from gumbelrace.errors import CheckpointBusy, CheckpointDamaged, CheckpointMismatch, InvalidFile
from gumbelrace.tables.writing import make_folder

# What a run needs to go on lies in a folder of this name, and what it is in a file there.
WORK, RUN = ".gumbelrace", "run.json"
REMEDY = "choose another --out, or --restart to replace it"
GOES_ON = "the same command goes on where it was"

Folder = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Write the page and the data here; made if missing.")
]
Restart = Annotated[
    bool, typer.Option("--restart", help="Begin anew in a folder that holds another run, and replace it.")
]


Keep = Annotated[
    bool,
    typer.Option(
        "--keep",
        help="Keep what a finished run needs no more: checkpoints, and chains where there are any.",
    ),
]


class Run(NamedTuple):
    """What a folder of results is the result of."""

    command: str
    options: Mapping[str, Any]  # those on which the result depends, by their names on the command line
    data: str  # a digest of them


class Results(NamedTuple):
    """A folder of results, and the one in it from which a run goes on."""

    folder: Path
    work: Path


@contextmanager
def results(out: Path, run: Run, restart: bool, keep: bool = False) -> Iterator[Results]:
    """Lend a folder for the results of a run: a new one, or that of the same run, which then goes on.

    Once the run is finished, what it would have gone on from is deleted, unless it is to be kept.
    """
    place = Results(make_folder(out), out / WORK)
    if restart and place.work.is_dir():
        shutil.rmtree(place.work)
    _claim(place, run)
    try:
        yield place
        if not keep:
            _tidy(place)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(GOES_ON) from None
    except CheckpointBusy as error:
        raise CheckpointBusy(
            f"another command is writing to {out}; wait, or choose another --out"
        ) from error
    except CheckpointMismatch as error:
        raise InvalidFile(f"{out} holds a run of another version; {REMEDY}") from error
    except CheckpointDamaged as error:
        raise InvalidFile(f"what {out} holds of an earlier run is damaged; {REMEDY}") from error


def _tidy(place: Results) -> None:
    """Delete all that a finished run has in its folder for work, but not whose it is."""
    for path in place.work.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != RUN:
            path.unlink()


def kept(place: Results) -> str:
    """Say how much a run has left, for a last line."""
    size = sum(path.stat().st_size for path in place.folder.rglob("*") if path.is_file())
    return f"{place.folder} ({size / 1e6:.1f} MB)"


def _claim(place: Results, run: Run) -> None:
    """Refuse the folder of another run, and note whose it is."""
    path, ours = place.work / RUN, json.loads(json.dumps(run._asdict()))
    if not path.exists():
        place.work.mkdir(exist_ok=True)
        content = json.dumps(ours, indent=1).encode()
        write_atomically(path, lambda file: file.write(content))
        return
    try:
        before = Run(**json.loads(path.read_bytes()))
    except (ValueError, TypeError) as error:
        raise InvalidFile(f"{path} is damaged; {REMEDY}") from error
    if difference := _difference(before, Run(**ours)):
        raise InvalidFile(f"{place.folder} holds {difference}; {REMEDY}")


def _difference(before: Run, now: Run) -> str:
    if before.command != now.command:
        return f"a run of gumbelrace {before.command}"
    for name, value in now.options.items():
        if before.options.get(name) != value:
            return f"a run with {name} {before.options.get(name)}, not {value}"
    return "a run on other data" if before.data != now.data else ""
