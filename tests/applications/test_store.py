"""A store keeps what was added, whatever happens to the process that adds."""

import json

import pytest

from gumbelrace.applications.store import ROWS, Store, stored
from gumbelrace.errors import CheckpointBusy, CheckpointMismatch


def test_rows_are_there_when_it_is_opened_again(tmp_path):
    with stored(tmp_path / "study", {"seed": 0}) as store:
        store.add("a", [1, 0.5, "x"])
        store.add("b", [2])
    with stored(tmp_path / "study", {"seed": 0}) as store:
        assert store.rows == {"a": [1, 0.5, "x"], "b": [2]}
        store.add("c", [3])
    assert list(Store(tmp_path / "study" / ROWS).rows) == ["a", "b", "c"]


@pytest.mark.parametrize("cut", [1, 5, 9])
def test_an_unfinished_line_does_not_count(tmp_path, cut):
    path = tmp_path / ROWS
    store = Store(path)
    store.add("a", [1])
    store.add("b", [2])
    path.write_bytes(path.read_bytes()[:-cut])
    again = Store(path)
    assert again.rows == {"a": [1]}
    again.add("b", [3])
    assert Store(path).rows == {"a": [1], "b": [3]}


def test_numbers_come_back_as_they_were(tmp_path):
    Store(tmp_path / ROWS).add("a", [0.1 + 0.2, 1e-300])
    assert Store(tmp_path / ROWS).rows["a"] == [0.1 + 0.2, 1e-300]
    assert json.loads((tmp_path / ROWS).read_text())[0] == "a"


def test_other_settings_are_refused(tmp_path):
    with stored(tmp_path / "study", {"draws": 10}):
        pass
    with (
        pytest.raises(CheckpointMismatch, match="draws was 10, now it is 20"),
        stored(tmp_path / "study", {"draws": 20}),
    ):
        pass


def test_two_at_once_are_refused(tmp_path):
    pytest.importorskip("fcntl")
    with stored(tmp_path / "study", {}), pytest.raises(CheckpointBusy), stored(tmp_path / "study", {}):
        pass
