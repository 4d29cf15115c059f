"""Named columns from files of every kind."""

import gzip

import pyarrow
import pytest
from pyarrow import parquet

from gumbelrace.errors import InvalidArgument
from gumbelrace.tables.columns import column_names, read_columns, texts

TEXT = 'author,title,year\n"Li, Wei", On races ,1999\n\nBo Ma,,\n'


def test_csv_gzip_and_parquet_give_the_same_texts(tmp_path):
    (tmp_path / "a.csv").write_text(TEXT, encoding="utf-8-sig")
    with gzip.open(tmp_path / "a.csv.gz", "wt", encoding="utf-8") as file:
        file.write(TEXT)
    columns = {"author": ["Li, Wei", "Bo Ma"], "title": ["On races", None], "year": [1999, None]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    for path in sorted(tmp_path.iterdir()):
        assert column_names(path) == ["author", "title", "year"]
        read = [texts(column) for column in read_columns(path, ["year", "author", "title"])]
        assert read == [["1999", ""], ["Li, Wei", "Bo Ma"], ["On races", ""]]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("author\n", "has no rows"),
        ("", "is empty; write it again"),
        ("\nauthor\na\n", "begins with an empty line"),
        ("name,year\na,1\n", "no column 'author'; it has 'name', 'year'"),
        ("author,year,author\na,1,b\n", "column 'author' is there twice"),
        ("author,year\na\n", r"row 0 \(counted from 0\) has 1 entries, but there are 2 columns"),
        ("author,year\na,1,2\n", r"row 0 \(counted from 0\) has 3 entries, but there are 2 columns"),
    ],
)
def test_bad_files_are_explained(tmp_path, text, complaint):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=complaint):
        read_columns(path, ["author"])


def test_a_file_that_is_not_there_is_named(tmp_path):
    for read in (column_names, lambda path: read_columns(path, [])):
        with pytest.raises(InvalidArgument, match=r"none\.csv does not exist"):
            read(tmp_path / "none.csv")
