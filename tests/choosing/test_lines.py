"""Files of JSON lines: what is wrong is said with the file and the line."""

import pytest

from gumbelrace.choosing.lines import read_candidates, read_examples
from gumbelrace.errors import InvalidFile


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "lines.jsonl"
        path.write_bytes(content)
        return path

    return write


def test_values_of_all_kinds(file):
    path = file(b'\xef\xbb\xbf"a"\r\n\r\n{"b": [1, null]}\r\n2.5')
    assert read_examples(path) == ["a", {"b": [1, None]}, 2.5]
    assert read_candidates(path) == ["a", {"b": [1, None]}, 2.5]


def test_objects_that_all_have_names_are_known_by_them(file):
    assert read_candidates(file(b'{"name": "x", "t": 0}\n{"name": "y"}')) == {
        "x": {"name": "x", "t": 0},
        "y": {"name": "y"},
    }
    assert read_candidates(file(b'{"name": "x"}\n{"t": 0}')) == [{"name": "x"}, {"t": 0}]
    assert read_candidates(file(b'{"name": 3}')) == [{"name": 3}]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'"a"\n\n{"b": }\n', "line 3: it is not JSON"),
        (b'"a"\n"\xff"\n', "line 2: it is not UTF-8"),
        (b'"\\ud800"\n', "line 1: it is not UTF-8"),
        (b"NaN\n", r"line 1: it is not JSON \(NaN is none of its values\)"),
        (b"[" * 100_000, "line 1: it is not JSON"),
        (b'{"name": "a"}\n{"name": "a"}', "line 2: the name 'a' was given before"),
        (b" \n\n", "is empty"),
    ],
)
def test_what_is_wrong_is_said(file, content, complaint):
    with pytest.raises(InvalidFile, match=complaint):
        read_candidates(file(content))
