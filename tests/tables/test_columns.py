"""Named columns from files of every kind."""

import gzip

import pytest

from gumbelrace.errors import InvalidArgument
from gumbelrace.experiments.columns import column_names, read_columns, texts

TEXT = 'author,title,year\n"Li, Wei", On races ,1999\n\nBo Ma,,\n'


def test_csv_gzip_and_parquet_give_the_same_texts(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

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
        ("author\n", "a header and no rows"),
        ("", "no column 'author'; its columns are none"),
        ("name,year\na,1\n", "no column 'author'; its columns are name, year"),
        ("author,year,author\na,1,b\n", "2 columns 'author'; rename all but one"),
        ("author,year\na\n", "line 2: 1 cells; there are 2 columns"),
        ("author,year\na,1,2\n", "line 2: 3 cells; there are 2 columns"),
    ],
)
def test_bad_files_are_explained(tmp_path, text, complaint):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=complaint):
        read_columns(path, ["author"])


def test_a_file_that_is_not_there_is_named(tmp_path):
    for read in (column_names, lambda path: read_columns(path, [])):
        with pytest.raises(InvalidArgument, match=r"there is no file .*none\.csv"):
            read(tmp_path / "none.csv")
