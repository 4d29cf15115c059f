"""Runs: the same for the same seed, whatever the threads do; warm-up, thinning, errors, Ctrl-C."""

import _thread
import threading
import time
import tracemalloc
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chain.kernels import MIXED, Autoregression, Choice, Point, Raced, Walk, assert_same
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.errors import InvalidArgument, InvalidGenerator, ShapeMismatch
from gumbelrace.kernels.base import Block, Info, Kernel


def by_hand(kernel, state, steps, rng):
    states, infos = [], []
    for _ in range(steps):
        state, info = kernel.step(rng, state)
        states.append(state)
        infos.append(info)
    return states, infos


def test_a_run_is_the_steps_of_each_chain():
    trace = gr.run(Walk(), MIXED, steps=20, rng=seeded(), chains=3)
    for chain, rng in enumerate(seeded().spawn(3)):
        states, infos = by_hand(Walk(), MIXED, 20, rng)
        assert trace["x"][chain].tolist() == [state.x for state in states]
        assert trace["inner.grid"][chain].tolist() == [state.inner.grid.tolist() for state in states]
        assert trace.info.evaluations[chain].tolist() == [info.evaluations for info in infos]
        assert repr(trace.last[chain]) == repr(states[-1])
        assert repr(trace.state(chain, 7)) == repr(states[7])


def test_dtypes_and_shapes_are_those_of_the_state():
    trace = gr.run(Walk(), MIXED, steps=5, rng=seeded(), chains=2)
    assert {name: (trace[name].dtype.name, trace[name].shape[2:]) for name in trace.names} == {
        "x": ("float64", ()),
        "count": ("int64", ()),
        "flag": ("bool", ()),
        "vector": ("float32", (3,)),
        "inner.scale": ("float64", ()),
        "inner.grid": ("float64", (2, 3)),
        "bits": ("uint8", ()),
    }
    assert trace.states.inner.grid.shape == (2, 5, 2, 3)
    assert [column.dtype.name for column in trace.info] == ["int64"] * 3 + ["float64"] * 2


def test_the_timing_of_threads_does_not_matter():
    calm = gr.run(Walk(), MIXED, steps=30, rng=seeded(1), chains=4)
    for _ in range(2):
        assert_same(gr.run(Walk(pause=1e-3), MIXED, steps=30, rng=seeded(1), chains=4), calm)


def test_raced_chains_in_threads_are_the_same():
    kernel = Raced()
    together = gr.run(kernel, Choice(0), steps=300, rng=seeded(2), chains=3)
    for chain, rng in enumerate(seeded(2).spawn(3)):
        states, _ = by_hand(kernel, Choice(0), 300, rng)
        assert together["arm"][chain].tolist() == [state.arm for state in states]
    assert 0.0 < together.fraction <= 1.0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 40), st.integers(0, 9), st.integers(1, 7))
def test_warmup_and_thinning(steps, warmup, thin):
    trace = gr.run(Walk(), MIXED, steps=steps, rng=seeded(), warmup=warmup, thin=thin)
    states, infos = by_hand(Walk(), MIXED, warmup + steps, seeded().spawn(1)[0])
    assert trace["x"][0].tolist() == [state.x for state in states[warmup:]][thin - 1 :: thin]
    assert trace.draws == steps // thin
    after = [infos[warmup + thin * k : warmup + thin * (k + 1)] for k in range(trace.draws)]
    assert trace.info.evaluations[0].tolist() == [sum(i.evaluations for i in part) for part in after]
    np.testing.assert_allclose(
        trace.info.acceptance[0], [np.mean([i.acceptance for i in p]) for p in after]
    )
    assert repr(trace.last[0]) == repr([MIXED, *states][-1])


def test_a_state_for_each_chain():
    trace = gr.run(Autoregression(0.0), [Point(0.0), Point(100.0)], steps=3, rng=seeded(), chains=2)
    assert trace.chains == 2
    still = gr.run(Still(), [Point(1.0), Point(2.0)], steps=2, rng=seeded(), chains=2)
    assert still["x"].tolist() == [[1.0, 1.0], [2.0, 2.0]]


class Still(Kernel):
    def step(self, rng, state):
        return state, Info(0, 0, 0, 0.0)


@dataclass(frozen=True)
class Changing(Kernel):
    becomes: object

    def step(self, rng, state):
        return Point(self.becomes), Info(0, 0, 0, 0.0)


@pytest.mark.parametrize("becomes", [1.0, np.zeros(2), True, np.int32(3), (1, 2)])
def test_a_leaf_that_changes_its_kind_is_an_error(becomes):
    with pytest.raises(ShapeMismatch, match="initial state") as raised:
        gr.run(Changing(becomes), Point(0), steps=3, rng=seeded())
    assert "chain 0" in raised.value.__notes__[0]


class Blocks(Still):
    def steps(self, rng, state, count):
        whole = np.zeros(count, np.int64)
        return Block(Point(rng.random(count)), Info(whole, whole, whole, np.zeros(count)))


@pytest.mark.parametrize("warmup", [0, 1])
def test_blocks_are_not_rounded_to_the_initial_state(warmup):
    with pytest.raises(ShapeMismatch, match="initial state"):
        gr.run(Blocks(), Point(0), steps=3, rng=seeded(), warmup=warmup)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"steps": -1}, InvalidArgument),
        ({"steps": 2.5}, InvalidArgument),
        ({"chains": 0}, InvalidArgument),
        ({"warmup": -1}, InvalidArgument),
        ({"thin": 0}, InvalidArgument),
        ({"rng": 0.5}, InvalidGenerator),
        ({"rng": np.random.RandomState(0)}, InvalidGenerator),
        ({"rng": None, "checkpoint": "run"}, InvalidGenerator),
        ({"state": None}, InvalidArgument),
        ({"state": np.zeros(3)}, InvalidArgument),
        ({"state": Point("here")}, InvalidArgument),
        ({"state": Point([1.0])}, InvalidArgument),
        ({"state": Point(None)}, InvalidArgument),
        ({"state": [Point(0.0)], "chains": 2}, ShapeMismatch),
        ({"state": [Point(0.0), Point(1)], "chains": 2}, ShapeMismatch),
    ],
)
def test_wrong_arguments_are_named(changed, error):
    arguments = {"kernel": Autoregression(), "state": Point(0.0), "steps": 3, "rng": seeded()} | changed
    with pytest.raises(error):
        gr.run(**arguments)


class Failing(Kernel):
    """The chain that starts at 1 fails at its third step; the others would go on for hours."""

    def step(self, rng, state):
        if state.x == 3.0:
            raise ZeroDivisionError("no")
        if state.x <= 0.0:
            time.sleep(1e-3)
            return state, Info(0, 0, 0, 0.0)
        return Point(state.x + 1.0), Info(0, 0, 0, 0.0)


def test_an_error_stops_all_chains_and_names_its_own():
    with pytest.raises(ZeroDivisionError, match="no") as raised:
        gr.run(Failing(), [Point(0.0), Point(1.0), Point(-1.0)], steps=100_000, rng=seeded(), chains=3)
    assert raised.value.__notes__ == ["In chain 1 of 3, after 2 steps."]
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


def test_an_error_of_the_display_stops_the_chains(monkeypatch):
    @contextmanager
    def broken(*arguments):
        yield lambda: 1 // 0

    monkeypatch.setattr("gumbelrace.chain.run.show_progress", broken)
    kernel = Counting()
    with pytest.raises(ZeroDivisionError):
        gr.run(kernel, Point(0.0), steps=3000, rng=seeded())
    assert 0 < len(kernel.seen) < 3000


class Counting(Kernel):
    """Is slow, and notes its steps."""

    def __init__(self):
        self.seen = []

    def step(self, rng, state):
        time.sleep(1e-3)
        self.seen.append(state)
        return state, Info(0, 0, 0, 0.0)


class Interrupting(Kernel):
    """Chain 0 presses Ctrl-C at its step 50."""

    def step(self, rng, state):
        if state.x == 49.0:
            _thread.interrupt_main()
        time.sleep(1e-4)
        return Point(state.x + 1.0), Info(1, 2, 1, 0.5)


only_in_main = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="Ctrl-C is for the main thread"
)


@only_in_main
def test_ctrl_c_gives_what_there_is():
    trace = gr.run(Interrupting(), [Point(0.0), Point(1000.0)], steps=100_000, rng=seeded(), chains=2)
    assert trace.interrupted
    assert 0 < trace.draws < 100_000
    assert trace["x"].shape == trace.info.looks.shape == (2, trace.draws)
    assert (trace["x"] - [[0.0], [1000.0]] == np.arange(1.0, trace.draws + 1.0)).all()
    assert trace.last[0].x >= 50.0
    assert "interrupted" in repr(trace)


class Insisting(Kernel):
    """Presses Ctrl-C twice in its first step."""

    def step(self, rng, state):
        for _ in range(2):
            _thread.interrupt_main()
            time.sleep(0.2)
        return state, Info(0, 0, 0, 0.0)


@only_in_main
def test_a_second_ctrl_c_is_as_always():
    with pytest.raises(KeyboardInterrupt):
        gr.run(Insisting(), Point(0.0), steps=100, rng=seeded())


@only_in_main
def test_ctrl_c_works_as_before_afterwards():
    gr.run(Interrupting(), Point(0.0), steps=100_000, rng=seeded())
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c()


def press_ctrl_c():
    _thread.interrupt_main()
    time.sleep(0.01)


def test_a_run_outside_the_main_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(gr.run(Walk(), MIXED, steps=5, rng=seeded())))
    thread.start()
    thread.join()
    assert_same(found[0], gr.run(Walk(), MIXED, steps=5, rng=seeded()))


class Overflowing(Kernel):
    def step(self, rng, state):
        return Point(float(np.float64(1e300) * np.float64(1e300))), Info(0, 0, 0, 0.0)


def test_settings_of_numpy_hold_in_the_threads():
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        gr.run(Overflowing(), Point(0.0), steps=1, rng=seeded())


def peak(steps, thin):
    tracemalloc.start()
    gr.run(Autoregression(), Point(0.0), steps=steps, rng=seeded(), thin=thin)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_memory_is_that_of_what_is_kept():
    """Ten times the steps and a tenth of them kept: the same peak, but for 20 kB of the interpreter's."""
    for _ in range(3):
        peak(1000, 1)  # what is made once
    short, long, unthinned = peak(1000, 1), peak(10_000, 10), peak(10_000, 1)
    assert abs(long - short) < 20_000
    assert unthinned - short == pytest.approx(9000 * 6 * 8, abs=20_000)  # six columns of eight bytes
