"""Reading mentions: which columns become what, and what is said of bad files."""

import pytest

from gumbelrace.errors import InvalidArgument
from gumbelrace.tables.mentions import read_mentions

TEXT = "mention_id,author,title,block,person\na,Wei Li,On races,x,1\nb,W. Li,More races,y,\n"


def written(folder, text=TEXT):
    path = folder / "mentions.csv"
    path.write_text(text)
    return path


def test_columns_are_found_by_their_names(tmp_path):
    ids, found, skipped, _ = read_mentions(written(tmp_path))
    assert not skipped
    assert ids == ["a", "b"]
    assert found.block_names == ("x", "y")
    assert found.sets[1].starts[-1] > 0
    assert found.label.tolist() == [-1, -1]


def test_columns_are_mapped_and_left_out(tmp_path):
    ids, found, _, _ = read_mentions(written(tmp_path), {"label": "person", "block": "", "mention_id": ""})
    assert ids == ["0", "1"]
    assert found.block_names == ("li w",)
    assert found.label.tolist() == [0, -1]


def test_rows_without_an_author_are_skipped_and_named(tmp_path):
    path = written(tmp_path, TEXT.replace("mention_id,author", "Mention_ID,AUTHOR") + "c,,,,\n,,,,\n,,,,\n")
    ids, found, skipped, _ = read_mentions(path)
    assert (ids, skipped) == (["a", "b"], ["c", "row 3", "row 4"])
    assert len(found.label) == 2


@pytest.mark.parametrize(
    ("text", "columns", "complaint"),
    [
        ("name\nWei Li\n", {}, r"no column 'author'; .*name.*--column author=NAME"),
        (TEXT, {"author": "inventor"}, "no column 'inventor'; name one of 'mention_id', 'author'"),
        (TEXT, {"journal": "title"}, "nothing to read for 'journal'; the choices are mention_id, author"),
        (
            TEXT.replace("\nb,", "\na,"),
            {},
            r"row 1 \(counted from 0\) has the identifier 'a' of an earlier",
        ),
        (TEXT.replace("W. Li", " ").replace("Wei Li", ""), {}, "no row has an author"),
        ("author,year\nWei Li,then\n", {}, r"mentions\.csv: 'then' is no year"),
        ("author\n", {}, "no rows"),
    ],
)
def test_bad_files_are_explained(tmp_path, text, columns, complaint):
    with pytest.raises(InvalidArgument, match=complaint):
        read_mentions(written(tmp_path, text), columns)
