"""Mentions of authors from files."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gumbelrace.errors import InvalidArgument
from gumbelrace.models.coreference.mentions import COLUMNS, Mentions, mentions
from gumbelrace.tables.columns import column_names, read_columns, texts

ID = "mention_id"


class ReadMentions(NamedTuple):
    """A file's mentions, and the identifier of each."""

    ids: list[str]
    mentions: Mentions


def read_mentions(path: str | Path, columns: Mapping[str, str] | None = None) -> ReadMentions:
    r"""Read mentions of authors from a file with a header.

    Parameters
    ----------
    path : str or Path
        A file that ends in .csv, .csv.gz or .parquet; CSV is UTF-8 with commas.
    columns : mapping from str to str, optional
        What to read from a column with another name, for example ``{"author": "inventor"}``. The keys are
        `mention_id` and the columns that `models.coreference.mentions` takes. Those that are not among them
        are read from the column of that name, if there is one; ``{"block": ""}`` reads none.

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
    chosen = _chosen(column_names(path), columns or {}, path)
    read = dict(zip(chosen, map(texts, read_columns(path, list(chosen.values()))), strict=True))
    ids = read.pop(ID, None)
    if ids is None:
        ids = [str(row) for row in range(len(read["author"]))]
    _check_ids(ids, path)
    _check_authors(read["author"], path)
    return ReadMentions(ids, mentions(read))


def _chosen(found: list[str], given: Mapping[str, str], path: str | Path) -> dict[str, str]:
    """Decide which column of the file each of ours is."""
    ours = (ID, *COLUMNS)
    for name in given:
        if name not in ours:
            raise InvalidArgument(
                f"there is nothing to read for {name!r}; the choices are {', '.join(ours)}"
            )
    own = {name: name for name in ours if name in found}
    chosen = {name: column for name, column in {**own, **given}.items() if column}
    if "author" not in chosen:
        raise InvalidArgument(
            f"{path} has no column 'author'; say which of {', '.join(found) or 'none'} has the names: "
            "columns={'author': NAME}, or --column author=NAME"
        )
    return chosen


def _check_ids(ids: list[str], path: str | Path) -> None:
    seen: set[str] = set()
    for row, one in enumerate(ids):
        if one in seen:
            raise InvalidArgument(
                f"{path}: row {row} (counted from 0) has the identifier {one!r} of an earlier row; "
                "mend it, or name another column of identifiers"
            )
        seen.add(one)


def _check_authors(authors: list[str], path: str | Path) -> None:
    if "" in authors:
        raise InvalidArgument(f"{path}: row {authors.index('')} (counted from 0) has no author; mend it")
