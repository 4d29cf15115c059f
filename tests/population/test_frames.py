"""Data frames and lists where arrays are wanted, and the names of columns as names of arms."""

import importlib
import re
from typing import get_type_hints

import numba
import numpy as np
import pytest
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, InvalidReward, RewardOutOfRange

NAMES = ["ant", "bee", "cat"]
REWARDS = np.random.default_rng(1).uniform([0.0, 0.5, 0.2], [1.0, 1.5, 1.2], (500, 3))


class Frame:
    """What all data frames have in common."""

    def __init__(self, columns):
        self._columns = dict(columns)

    @property
    def columns(self):
        return list(self._columns)

    def __getitem__(self, name):
        return self._columns[name]

    def __array__(self, dtype=None, copy=None):
        return np.stack(list(self._columns.values()), axis=1)


def made_by(name):
    return Frame if name == "stand-in" else pytest.importorskip(name).DataFrame


@pytest.fixture(params=["stand-in", "pandas", "polars"])
def frame(request):
    return made_by(request.param)(dict(zip(NAMES, REWARDS.T, strict=True)))


def test_columns_are_arms(frame):
    population = gr.table(frame)
    assert population.names == tuple(NAMES)
    outcome = gr.best(frame, rng=0)
    assert (outcome, outcome.name) == (gr.best(REWARDS, rng=0), "bee")
    assert repr(outcome).startswith("Outcome(arm=1 'bee', ")
    assert str(outcome).startswith("best is arm 1 (bee), ")
    assert "\nnext is arm 2 (cat), " in str(outcome)
    draws = gr.sample(frame, log_prior=-REWARDS.sum(axis=0), size=90, rng=0)
    assert draws.names == [NAMES[arm] for arm in draws.arms]
    assert all(f"{name}: {draws.names.count(name)}" in repr(draws) for name in NAMES)


def test_arms_without_names():
    assert gr.table(REWARDS).names is None
    assert gr.best(REWARDS, rng=0).name is None
    assert gr.sample(REWARDS, size=3, rng=0).names is None


def test_names_stay_with_a_population(frame):
    population = gr.table(frame)
    control = gr.control_variates.ControlVariate(
        numba.njit(lambda n, arm, near: near[n, arm]), (REWARDS.round(1),), REWARDS.round(1).sum(axis=0)
    )
    assert population.reshuffled(seeded()).names == population.minus(control).names == tuple(NAMES)


@pytest.mark.parametrize(
    "given", [dict, lambda offset: made_by("pandas")([offset]).iloc[0]], ids=["dict", "pandas"]
)
def test_offsets_by_name(given):
    """In whatever order."""
    table = gr.table(Frame(zip(NAMES, REWARDS.T, strict=True)))
    offset = given({"cat": 0.0, "bee": -500.0, "ant": 500.0})
    assert gr.best(table, offset=offset, rng=0).name == "ant"
    assert set(gr.sample(table, log_prior=offset, size=9, rng=0).names) == {"ant"}
    with pytest.raises(InvalidArgument, match="offset is given by name, and the arms have no names"):
        gr.best(REWARDS, offset=offset, rng=0)
    with pytest.raises(InvalidArgument, match=r"log_prior .* bee, cat missing; dog unknown"):
        gr.sample(table, log_prior=given({"dog": 0.0, "ant": 0.0}), rng=0)


LABELS = {
    "numbers": [5, 10, 20],
    "numbers from 0": [2, 0, 1],
    "as text": ["5", "10", "20"],
    "mixed": ["a", 1, "c"],
    "levels": [("a", 1), ("a", 2), ("b", 1)],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("given", ["dict", "Series"])
def test_labels_of_any_kind_are_names(labels, given):
    """The last arm in the frame's order is the only one that is possible, and is given first."""
    pandas = pytest.importorskip("pandas")
    columns = pandas.MultiIndex.from_tuples(labels) if isinstance(labels[0], tuple) else labels
    table = gr.table(pandas.DataFrame(REWARDS, columns=columns))
    numbers = [int(label) if str(label).isdigit() else label for label in labels]
    offset = dict(zip(numbers[::-1], [0.0, -np.inf, -np.inf], strict=True))
    offset = offset if given == "dict" else pandas.Series(offset)
    assert gr.best(table, offset=offset, rng=0).arm == 2
    assert gr.sample(table, offset, rng=0).arm == 2
    low, high = (dict.fromkeys(offset.keys(), bound) for bound in (0.0, 2.0))
    low[numbers[0]] = 0.5
    with pytest.raises(RewardOutOfRange, match=f"arm {re.escape(table.arm_name(0))} lies"):
        gr.table(pandas.DataFrame(REWARDS, columns=columns), reward_range=(low, high))


@pytest.mark.parametrize(
    ("call", "name"), [(gr.best, "offset"), (gr.sample, "log_prior"), (gr.table, "reward_range")]
)
def test_type_checkers_allow_names(call, name):
    assert "Mapping" in str(get_type_hints(call)[name])


def test_what_nobody_has_named_goes_by_position():
    pandas = pytest.importorskip("pandas")
    offset = pandas.Series([-np.inf, -np.inf, 0.0])
    assert gr.best(pandas.DataFrame(REWARDS, columns=NAMES), offset=offset, rng=0).arm == 2
    assert gr.best(pandas.DataFrame(REWARDS), offset=offset, rng=0).arm == 2
    with pytest.raises(InvalidArgument, match="the arms have no names: give an array"):
        gr.best(pandas.DataFrame(REWARDS), offset=offset[::-1], rng=0)
    with pytest.raises(InvalidArgument, match="the arms have no names: give an array"):
        gr.best(REWARDS, offset={0: 0.0, 1: 0.0, 2: 0.0}, rng=0)


@pytest.mark.parametrize("labels", [["a", "b", "a"], [1, "b", "1"]])
@pytest.mark.parametrize("kind", [float, object])
def test_columns_of_the_same_name(labels, kind):
    pandas = pytest.importorskip("pandas")
    twice = pandas.DataFrame(REWARDS.astype(kind), columns=labels)
    with pytest.raises(InvalidArgument, match=f"column names must differ; '{labels[0]}' occurs twice"):
        gr.best(twice, rng=0)
    repeated = pandas.Series([0.0, 1.0, 2.0], index=["ant", "ant", "cat"])
    with pytest.raises(InvalidArgument, match="the names in offset must differ; 'ant' occurs twice"):
        gr.best(pandas.DataFrame(REWARDS, columns=NAMES), offset=repeated, rng=0)


def test_objects_that_are_floats():
    pandas = pytest.importorskip("pandas")
    for given in (REWARDS.astype(object), pandas.DataFrame(REWARDS.astype(object), columns=NAMES)):
        with pytest.raises(InvalidArgument, match=r"of dtype object; write .astype\(float\)"):
            gr.table(given)
    with pytest.raises(InvalidArgument, match="give an array of real numbers"):
        gr.table(np.array([["a", {}]], object))


def test_a_range_by_position_is_no_option():
    with pytest.raises(TypeError):
        gr.table(REWARDS, (0.0, 2.0))
    with pytest.raises(InvalidArgument, match=r"shuffled is \(0.0, 2.0\); it must be True or False"):
        gr.table(REWARDS, shuffled=(0.0, 2.0))


def test_messages_name_the_arm():
    columns = dict(zip(NAMES, REWARDS.T.copy(), strict=True))
    with pytest.raises(RewardOutOfRange, match="arm 'ant' lies outside"):
        gr.table(Frame(columns), reward_range=([0.5, 0.0, 0.0], 2.0))
    columns["cat"][7] = np.nan
    with pytest.raises(InvalidReward, match="row 7, arm 'cat'"):
        gr.table(Frame(columns))


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_columns_of_different_kinds(package):
    frame = made_by(package)({"hit": [True, False, True], "score": [0.5, 1.0, 2.0], "count": [1, 2, 3]})
    assert gr.table(frame).reward_range[1].tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(InvalidArgument, match="rewards"):
        gr.table(made_by(package)({"a": [1.0, 2.0], "b": ["x", "y"]}))


def test_columns_that_are_numbered_are_no_names():
    pandas = pytest.importorskip("pandas")
    assert gr.table(pandas.DataFrame(REWARDS)).names is None
    assert gr.table(pandas.DataFrame(REWARDS, columns=NAMES).convert_dtypes()).names == tuple(NAMES)


@numba.njit
def squared(n, arm, y, centers):
    return -((y[n] - centers[arm]) ** 2)


@pytest.mark.parametrize("package", ["list", "pandas", "polars"])
def test_data_of_compiled_factors(package):
    series = list if package == "list" else pytest.importorskip(package).Series
    y, centers = REWARDS[:, 0], np.array([0.0, 0.5])
    found, wanted = (
        gr.best(gr.compiled(squared, data, size=500, arms=2), rng=0)
        for data in ((series(y), [0.0, 0.5]), (y, centers))
    )
    assert found == wanted
    with pytest.raises(InvalidArgument, match=r"data\[0\]"):
        gr.compiled(squared, (series(["a", "b"]), centers), size=2, arms=2)


def test_arrow_tables():
    pyarrow = importlib.import_module("pyarrow")
    assert gr.best(pyarrow.table(dict(zip(NAMES, REWARDS.T, strict=True))), rng=0).name == "bee"
