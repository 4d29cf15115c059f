"""Data frames and lists where arrays are wanted, and the names of columns as names of arms."""

import importlib

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
    with pytest.raises(
        InvalidArgument, match="offset is given for cat, bee, ant, and the arms have no names"
    ):
        gr.best(REWARDS, offset=offset, rng=0)
    with pytest.raises(InvalidArgument, match="log_prior is given for dog, and the arms are ant, bee, cat"):
        gr.sample(table, log_prior=given({"dog": 0.0}), rng=0)


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
