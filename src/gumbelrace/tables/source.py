"""Opening what is to be read: a file by its ending, a pipe or standard input by its first bytes."""

import errno
import glob
import io
import platform
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from gumbelrace.errors import InvalidArgument, InvalidFile

STANDARD_INPUT = Path("-")
COLUMNS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq")
ARRAYS = (".npy", ".npz")
# What pipes begin with that hold no plain CSV.
BEGINNINGS = {b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz", b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz"}


class Stamp(NamedTuple):
    """What tells a file from the same file after a change."""

    bytes: int
    written: int  # when, by its machine
    machine: str  # others may have copies, written at other times

    def fits(self, other: "Stamp") -> bool:
        """Whether another one may be of the same file, as far as it is of the same machine."""
        return self.bytes == other.bytes and (
            self.written == other.written or self.machine != other.machine
        )


class Source(NamedTuple):
    """An open file that can be read in any order."""

    file: Any  # bytes
    name: str  # in messages
    kind: str  # the ending that says what it is
    path: Path | None = None  # where it can be opened again, if it can

    @property
    def size(self) -> int:
        place = self.file.tell()
        size: int = self.file.seek(0, io.SEEK_END)
        self.file.seek(place)
        return size


def files_of(given: Path | Sequence[Path]) -> list[Path]:
    """Give the files that are meant: one, several, all tables of a folder, or those that fit a pattern.

    Those of a folder, also of folders within it, and of a pattern are in the order of their names. Files
    and folders within it whose names begin with a dot or an underscore are left out, as other programs do.
    """
    if not isinstance(given, Path):
        return [file for one in given for file in files_of(Path(one))]
    if given.is_dir():
        return _tables_within(given)
    if given == STANDARD_INPUT or given.exists() or not set("*?[") & set(str(given)):
        return [given]
    found = sorted(Path(name) for name in glob.glob(str(given), recursive=True))
    files = [file for file in found if file.is_file()]
    if not files:
        raise InvalidFile(f"no file fits {given}; give a {_kinds((*ARRAYS, *COLUMNS))} file")
    return files


def _tables_within(folder: Path) -> list[Path]:
    within = (path for path in sorted(folder.rglob("*")) if path.is_file())
    visible = [path for path in within if not _is_hidden(path.relative_to(folder))]
    tables = [path for path in visible if path.name.lower().endswith((*ARRAYS, *COLUMNS))]
    if not tables:
        raise InvalidFile(f"{folder} is a folder without tables; give {_kinds((*ARRAYS, *COLUMNS))} files")
    kinds = {_ending(path, (*ARRAYS, *COLUMNS)): path for path in tables}
    if len(kinds) > 1:
        first, second = sorted(kinds.values())[:2]
        raise InvalidFile(
            f"{folder} has tables of different kinds ({first.name}, {second.name}); name those that are "
            f"meant by a pattern, such as {folder}/*{next(iter(kinds))}"
        )
    return tables


def _is_hidden(path: Path) -> bool:
    """Whether a file, or a folder that it is in, is left out: copies of editors, parts of failed jobs."""
    return any(part.startswith((".", "_")) for part in path.parts)


def stamp_of(path: Path) -> Stamp | None:
    """Give the stamp of a file; None of pipes and what is not there."""
    if not path.is_file():
        return None
    found = path.stat()
    return Stamp(found.st_size, found.st_mtime_ns, platform.node())


def check_stamp(path: Path, before: Stamp | None) -> None:
    """Refuse a file that has changed since; one that is gone is for others to refuse."""
    if before is not None and (now := stamp_of(path)) is not None and not now.fits(before):
        raise InvalidFile(f"{path} was changed after it was opened; open it again, and begin anew")


@contextmanager
def open_source(path: Path, *more: str) -> Iterator[Source]:
    """Open a file of columns, or of one of `more` kinds.

    Pipes and standard input (-) are copied to a temporary file first, as is the array of a .npz file, which
    then is a .npy file.
    """
    allowed = (*more, *COLUMNS)
    with _opened(path, allowed) as source:
        if source.size == 0:
            raise InvalidFile(f"{source.name} is empty; write it again")
        if source.kind != ".npz":
            yield source
            return
        with tempfile.TemporaryFile() as copy:
            _unpack(source, copy)
            yield Source(copy, source.name, ".npy")


@contextmanager
def room_for(name: str) -> Iterator[None]:
    """Say what to do if there is no room for a temporary file with the numbers of a file."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise InvalidFile(no_room(name)) from error


def no_room(name: str) -> str:
    return f"{tempfile.gettempdir()} has no room for the numbers of {name}; set TMPDIR to a larger folder"


@contextmanager
def about(name: str) -> Iterator[None]:
    """Name the file in errors about what is in it."""
    try:
        yield
    except InvalidArgument as error:
        raise InvalidArgument(f"{name}: {error}") from error


@contextmanager
def _opened(path: Path, allowed: tuple[str, ...]) -> Iterator[Source]:
    if path != STANDARD_INPUT and (path.is_file() or path.is_dir() or not path.exists()):
        kind = _ending(path, allowed)
        with open(path, "rb", buffering=0 if kind == ".npy" else -1) as file:
            yield Source(file, str(path), kind, path)
        return
    with tempfile.TemporaryFile() as copy:
        name = _copy_pipe(path, copy)
        kind = _beginning(copy)
        if kind not in allowed:
            raise InvalidFile(f"{name} holds a {kind} file; give {_kinds(allowed)}")
        yield Source(copy, name, kind)


def _ending(path: Path, allowed: tuple[str, ...]) -> str:
    """Give the ending of a file that can be opened."""
    if path.is_dir():
        raise InvalidFile(f"{path} is a folder; give a {_kinds(allowed)} file")
    if not path.exists():
        raise InvalidFile(f"{path} does not exist; give a {_kinds(allowed)} file")
    name = path.name.lower()
    found = max((end for end in allowed if name.endswith(end)), key=len, default=None)
    if found is None:
        raise InvalidFile(f"{path} is of a kind that cannot be read; convert it to {_kinds(allowed)}")
    return found


def _kinds(allowed: tuple[str, ...]) -> str:
    *first, last = (kind for kind in allowed if kind != ".pq")
    return f"{', '.join(first)} or {last}"


def _copy_pipe(path: Path, copy: Any) -> str:
    """Copy all that comes through a pipe; return its name."""
    if path != STANDARD_INPUT:
        with open(path, "rb") as pipe, room_for(str(path)):
            shutil.copyfileobj(pipe, copy)
        return str(path)
    name = "standard input"
    if sys.stdin is None or sys.stdin.isatty():
        what = "closed" if sys.stdin is None else "the keyboard"
        raise InvalidFile(f"{name} is {what}; send a file, as in: cat scores.csv | gumbelrace best -")
    with room_for(name):
        shutil.copyfileobj(sys.stdin.buffer, copy)
    return name


def _beginning(file: Any) -> str:
    file.seek(0)
    start = file.read(max(map(len, BEGINNINGS)))
    file.seek(0)
    return next((kind for mark, kind in BEGINNINGS.items() if start.startswith(mark)), ".csv")


def _unpack(source: Source, copy: Any) -> None:
    """Copy the only array of a .npz file."""
    try:
        with zipfile.ZipFile(source.file) as archive:
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            if len(names) != 1:
                raise InvalidFile(
                    f"{source.name} holds {len(names)} arrays; save the one that is meant by np.save"
                )
            with archive.open(names[0]) as array, room_for(source.name):
                shutil.copyfileobj(array, copy)
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise InvalidFile(f"{source.name} is not a .npz file, or is damaged; save it again") from error
    copy.seek(0)
