"""What a user asks of `choose`: refused in one line if it makes no sense, and understood if it does."""

import numpy as np
import pytest

from gumbelrace.choosing.contents import named
from gumbelrace.choosing.settings import Settings
from gumbelrace.errors import InvalidArgument


@pytest.mark.parametrize(
    "given",
    [
        {"score_range": "01"},
        {"score_range": 1},
        {"score_range": (0, 1, 2)},
        {"score_range": (-1e308, 1e308)},
        {"delta": "0.05"},
        {"tolerance": None},
        {"budget": "5"},
        {"workers": 1.5},
        {"retries": "3"},
        {"store": ":memory:"},
        {"store": 7},
    ],
)
def test_what_is_no_number_or_file_is_refused_by_its_name(given):
    with pytest.raises(InvalidArgument, match=f"^{next(iter(given))} must be "):
        Settings(**{"score_range": (0, 1), **given})


@pytest.mark.parametrize(
    "cost", ["x", "5", ["1", "2"], [1.0, None], [[1.0], [1.0, 2.0]], {"a": "x", "b": 1}]
)
def test_costs_are_numbers(cost):
    with pytest.raises(InvalidArgument, match=r"^cost must be "):
        Settings((0, 1), cost=cost).costs(["a", "b"], ("a", "b"))


def test_numbers_of_numpy_are_numbers():
    settings = Settings(
        np.array([0, 1]), np.float32(0.1), np.int64(0), budget=np.int32(5), workers=np.int64(4)
    )
    assert settings.workers == 4


@pytest.mark.parametrize(
    ("candidates", "cost"),
    [
        (["x" * 50 + "1", "x" * 50 + "2"], {"x" * 50 + "1": 1.0, "x" * 50 + "2": 2.0}),
        ({0: "a model", 1: "another"}, {1: 2.0, 0: 1.0}),
        ([["no"], ["keys"]], {"0": 1.0, "1": 2.0}),
    ],
)
def test_costs_are_found_by_the_candidate_itself_or_its_name(candidates, cost):
    assert Settings((0, 1), cost=cost).costs(candidates, named(candidates)).tolist() == [1.0, 2.0]
