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
    ids, found = read_mentions(written(tmp_path))
    assert ids == ["a", "b"]
    assert found.block_names == ("x", "y")
    assert found.sets[1].starts[-1] > 0
    assert found.label.tolist() == [-1, -1]


def test_columns_are_mapped_and_left_out(tmp_path):
    ids, found = read_mentions(written(tmp_path), {"label": "person", "block": "", "mention_id": ""})
    assert ids == ["0", "1"]
    assert found.block_names == ("li w",)
    assert found.label.tolist() == [0, -1]


@pytest.mark.parametrize(
    ("text", "columns", "complaint"),
    [
        ("name\nWei Li\n", {}, r"no column 'author'; .* name .*--column author=NAME"),
        (TEXT, {"author": "inventor"}, "no column 'inventor'; it has 'mention_id', 'author'"),
        (TEXT, {"journal": "title"}, "nothing to read for 'journal'; the choices are mention_id, author"),
        (
            TEXT.replace("\nb,", "\na,"),
            {},
            r"row 1 \(counted from 0\) has the identifier 'a' of an earlier",
        ),
        (TEXT.replace("W. Li", " "), {}, r"row 1 \(counted from 0\) has no author"),
        ("author,year\nWei Li,then\n", {}, "'then' is no year"),
        ("author\n", {}, "no rows"),
    ],
)
def test_bad_files_are_explained(tmp_path, text, columns, complaint):
    with pytest.raises(InvalidArgument, match=complaint):
        read_mentions(written(tmp_path, text), columns)
