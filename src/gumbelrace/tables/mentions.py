"""Mentions of authors from files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gumbelrace.errors import InvalidArgument, InvalidFile
from gumbelrace.models.coreference.mentions import COLUMNS, Mentions, mentions
from gumbelrace.tables.columns import RECOGNISED, cells_of, find_name, open_columns, texts
from gumbelrace.tables.delimited import Dialect
from gumbelrace.tables.numbers import listed
from gumbelrace.tables.source import about

ID = "mention_id"


class ReadMentions(NamedTuple):
    """A file's mentions, the identifier of each, and those of rows without an author, which are skipped."""

    ids: list[str]
    mentions: Mentions
    skipped: Sequence[str] = ()
    texts: Mapping[str, Sequence[str]] = {}  # the columns as they were written


def read_mentions(
    path: str | Path, columns: Mapping[str, str] | None = None, dialect: Dialect = RECOGNISED
) -> ReadMentions:
    r"""Read mentions of authors from a file with a header.

    Parameters
    ----------
    path : str or Path
        A file that ends in .csv, .tsv, .csv.gz or .parquet; CSV is UTF-8.
    columns : mapping from str to str, optional
        What to read from a column with another name, for example ``{"author": "inventor"}``. The keys are
        `mention_id` and the columns that `models.coreference.mentions` takes. Those that are not among them
        are read from the column of that name, in any case, if there is one; ``{"block": ""}`` reads none.
    dialect : Dialect, optional
        What lies between columns of CSV; recognised by default.

    Returns
    -------
    ReadMentions
        Identifiers are row numbers, counted from 0, if the file has none.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mentions.csv"
    ...     _ = path.write_text("mention_id,inventor,year\na,Wei Li,1999\nb,W. Li,2001\n")
    ...     found = read_mentions(path, {"author": "inventor"})
    >>> found.ids, found.mentions.block_names
    (['a', 'b'], ('li w',))
    """
    with open_columns(Path(path), dialect) as file:
        chosen = _chosen(file.names, columns or {}, file.name)
        read = dict(zip(chosen, map(texts, cells_of(file, list(chosen.values()))), strict=True))
    ids = read.pop(ID, None) or [str(row) for row in range(len(read["author"]))]
    named = [row for row, author in enumerate(read["author"]) if author]
    _check_ids({row: ids[row] for row in named}, file.name)
    if not named:
        raise InvalidFile(f"{file.name}: no row has an author; write them into column {chosen['author']!r}")
    skipped = [ids[row] or f"row {row}" for row, author in enumerate(read["author"]) if not author]
    kept = {name: [cells[row] for row in named] for name, cells in read.items()}
    with about(file.name):
        return ReadMentions([ids[row] for row in named], mentions(kept), skipped, kept)


def _chosen(found: list[str], given: Mapping[str, str], file: str) -> dict[str, str]:
    """Decide which column of the file each of ours is."""
    ours = (ID, *COLUMNS)
    for name in given:
        if name not in ours:
            raise InvalidArgument(
                f"there is nothing to read for {name!r}; the choices are {', '.join(ours)}"
            )
    present = {name.casefold() for name in found}
    own = {name: name for name in ours if name in present}
    chosen = {name: column for name, column in {**own, **given}.items() if column}
    if "author" not in chosen:
        raise InvalidArgument(
            f"{file} has no column 'author'; say which of {listed(found)} has the names: "
            "columns={'author': NAME}, or --column author=NAME"
        )
    return {
        name: find_name(column, found, file, f"--column {name}=NAME") for name, column in chosen.items()
    }


def _check_ids(ids: Mapping[int, str], file: str) -> None:
    seen: set[str] = set()
    for row, one in ids.items():
        if one in seen:
            raise InvalidArgument(
                f"{file}: row {row} (counted from 0) has the identifier {one!r} of an earlier row; "
                f"mend it, or name another column of identifiers by --column {ID}=NAME"
            )
        seen.add(one)
