"""Checkpoints: a run that was stopped, killed or made longer equals one that was not, bit for bit."""

import _thread
import errno
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.chain.kernels import MIXED, Autoregression, Choice, Point, Raced, Walk, assert_same
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.chain import checkpoint as module
from gumbelrace.chain import worker
from gumbelrace.chain.checkpoint import set_stream_state, stream_fingerprint, stream_state
from gumbelrace.chain.trace import name_of
from gumbelrace.errors import CheckpointBusy, CheckpointDamaged, CheckpointMismatch, InvalidGenerator
from gumbelrace.kernels.base import Info, Kernel
from gumbelrace.methods.default import Default, DefaultInLaw
from gumbelrace.methods.state import Question

ROOT = Path(__file__).resolve().parents[2]
GENERATORS = ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"]


@pytest.fixture
def always(monkeypatch):
    save_always(monkeypatch)


def save_always(patch):
    """Save after every step."""
    patch.setattr(module, "SHORTEST", 0.0)
    patch.setattr(module, "PATIENCE", 0.0)
    patch.setattr(worker, "SECONDS_A_BLOCK", 0.0)


def content(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def walk(path=None, **changed):
    arguments = {
        "kernel": Walk(),
        "state": MIXED,
        "steps": 23,
        "rng": seeded(5),
        "chains": 2,
        "warmup": 4,
        "thin": 3,
    }
    return gr.run(**(arguments | changed), checkpoint=path)


def test_a_checkpoint_changes_nothing(tmp_path, always):
    assert_same(walk(tmp_path / "new" / "run"), walk())


def test_a_finished_run_is_read_back(tmp_path, monkeypatch):
    made = walk(tmp_path)
    before = content(tmp_path)
    monkeypatch.setattr(Walk, "step", None)  # a single step would fail
    assert_same(walk(tmp_path, check=0), made)
    assert content(tmp_path) == before


@pytest.mark.parametrize("first", [0, 1, 2, 3, 4, 10, 22])
def test_a_run_is_made_longer(tmp_path, first):
    walk(tmp_path, steps=first)
    assert_same(walk(tmp_path), walk())


@pytest.mark.parametrize("name", GENERATORS)
def test_every_bit_generator_goes_on_where_it_was(tmp_path, name):
    def rng():
        return np.random.Generator(getattr(np.random, name)(11))

    walk(tmp_path, steps=7, rng=rng())
    assert_same(walk(tmp_path, rng=rng()), walk(rng=rng()))


class Spawning(Kernel):
    """Uses children of its generator."""

    def step(self, rng, state):
        return Point(float(rng.spawn(1)[0].normal() + rng.normal())), Info(0, 0, 0, 0.0)


def test_children_of_a_generator_go_on_too(tmp_path):
    arguments = {"kernel": Spawning(), "state": Point(0.0)}
    walk(tmp_path, steps=7, **arguments)
    assert_same(walk(tmp_path, **arguments), walk(**arguments))


class Killed(BaseException):
    """Comes out of nowhere."""


def kill_at(monkeypatch, function, call, when):
    """Let the given call of a function of `os` be the last thing that the process does."""
    original, count = getattr(os, function), iter(range(10**6))

    def last(*arguments):
        number = next(count)
        if number > call or (number == call and when == "before"):
            raise Killed
        result = original(*arguments)
        if number == call:
            raise Killed
        return result

    monkeypatch.setattr(os, function, last)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_run_that_dies_at_any_write_goes_on(tmp_path, function, when):
    expected = walk(chains=1)
    for call in range(10):
        path = tmp_path / str(call)
        with pytest.MonkeyPatch.context() as patch:
            save_always(patch)
            kill_at(patch, function, call, when)
            with pytest.raises(Killed):
                walk(path, chains=1)
        assert_same(walk(path, chains=1), expected)


KILLING = """
import os, signal, sys, time
import numpy as np
from gumbelrace.chain import checkpoint
from tests.chain.kernels import assert_same
from tests.chain.test_checkpoint import walk

checkpoint.SHORTEST, checkpoint.PATIENCE = 0.0, 0.5  # half of the time is spent writing
path, when, killed = sys.argv[1], np.random.default_rng(8), 0

def stamp():
    place = path + "/chain-0.npz"
    return os.path.exists(place) and os.stat(place).st_mtime_ns

for _ in range(10):
    before, child = stamp(), os.fork()
    if child == 0:
        walk(path, steps=6000)
        os._exit(0)
    while stamp() == before and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(1e-3)
    time.sleep(when.uniform(0.0, 0.03))
    os.kill(child, signal.SIGKILL)
    killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
assert killed > 3, killed
assert_same(walk(path, steps=6000), walk(steps=6000))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_killed_again_and_again_equals_one_that_was_not(tmp_path):
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", KILLING, str(tmp_path / "run")]
    subprocess.run(command, cwd=ROOT, env=environment(), check=True, timeout=120)


INTERRUPTED = """
import sys, threading, time
from tests.chain.kernels import Walk, assert_same
from tests.chain.test_checkpoint import walk

class Announced(Walk):
    def step(self, rng, state):
        if state.count > 20:
            print("running", flush=True)
        time.sleep(1e-3)
        return super().step(rng, state)

stopped = walk(sys.argv[1], kernel=Announced(), steps=20_000, thin=1)
assert stopped.interrupted and 0 < stopped.draws < 20_000, stopped
resumed = walk(sys.argv[1], kernel=Announced(), steps=stopped.draws + 50, thin=1)
assert not resumed.interrupted
assert_same(resumed, walk(steps=stopped.draws + 50, thin=1))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_saves_and_the_run_goes_on(tmp_path):
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "run")]
    process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"running\n"
    process.send_signal(2)
    process.communicate(timeout=120)
    assert process.returncode == 0


def environment():
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


PRESSED = True


class Pressing(Kernel):
    """Presses Ctrl-C at its 50th step, if it is told to."""

    def step(self, rng, state):
        if PRESSED:
            time.sleep(1e-4)
            if state.x == 49.0:
                _thread.interrupt_main()
        return Point(state.x + 1.0), Info(1, 2, 1, rng.random())


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="Ctrl-C is for the main thread"
)
def test_ctrl_c_within_a_process(tmp_path, monkeypatch):
    arguments = {"state": Point(0.0), "steps": 20_000, "thin": 3}
    assert walk(tmp_path, kernel=Pressing(), **arguments).interrupted
    monkeypatch.setitem(globals(), "PRESSED", False)
    resumed = walk(tmp_path, kernel=Pressing(), **arguments)
    assert_same(resumed, walk(kernel=Pressing(), **arguments))


OTHER = {
    "chains": {"chains": 3},
    "warmup": {"warmup": 5},
    "thin": {"thin": 2},
    "kernel": {"kernel": Autoregression()},
    "rng": {"rng": seeded(6)},
    "initial state": {"state": MIXED._replace(x=0.25)},
    "fields": {"state": MIXED._replace(vector=np.zeros(4, np.float32))},
    "steps": {"steps": 22},
}


@pytest.mark.parametrize("name", OTHER)
def test_other_arguments_are_refused_and_nothing_is_changed(tmp_path, name):
    walk(tmp_path)
    before = content(tmp_path)
    with pytest.raises(CheckpointMismatch, match=name):
        walk(tmp_path, **OTHER[name])
    assert content(tmp_path) == before
    assert_same(walk(tmp_path), walk())


def test_another_method_is_refused(tmp_path):
    gr.run(Raced(), Choice(0), steps=5, rng=seeded(), checkpoint=tmp_path)
    with pytest.raises(CheckpointMismatch, match=r"Betting, delta 0.05.*Betting, delta 0.01"):
        gr.run(Raced(gr.Betting(0.01)), Choice(0), steps=5, rng=seeded(), checkpoint=tmp_path)


def test_default_methods_are_named_as_users_know_them():
    """In files and in refusals; neither class can be written by a user."""
    defaults = [DefaultInLaw(Question.ACCEPT), Default()]
    assert [name_of(method) for method in defaults] == ["default method (Penalty)", "default method"]
    assert name_of(gr.Betting()) == "Betting"


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]


DAMAGE = {
    "run.json cut": ("run.json", lambda data: data[:-3]),
    "run.json of others": ("run.json", lambda data: b'{"name": "theirs"}'),
    "run.json a list": ("run.json", lambda data: b"[1, 2]"),
    "run.json later version": ("run.json", lambda data: data.replace(b'"version": 4', b'"version": 5')),
    "place empty": ("chain-1.npz", lambda data: b""),
    "place cut": ("chain-1.npz", lambda data: data[:-40]),
    "draws cut": ("chain-0.draws", lambda data: data[:-1]),
    "draws empty": ("chain-0.draws", lambda data: b""),
    "draws changed": ("chain-0.draws", lambda data: flipped(data, len(data) // 2)),
    "draws gone": ("chain-0.draws", None),
    "run.json gone": ("run.json", None),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_and_nothing_is_changed(tmp_path, kind):
    walk(tmp_path)
    name, harm = DAMAGE[kind]
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    if harm is not None:
        (tmp_path / name).write_bytes(harm(data))
    before = content(tmp_path)
    with pytest.raises(CheckpointDamaged, match="damaged"):
        walk(tmp_path, steps=40)
    assert content(tmp_path) == before


def test_no_changed_byte_goes_unseen(tmp_path):
    """Each byte of where a chain is: changed, it is noticed, or it is one that means nothing (a date)."""
    expected = walk(tmp_path, chains=1)
    path = tmp_path / "chain-0.npz"
    data = path.read_bytes()
    noticed = 0
    for place in seeded().permutation(len(data))[:200]:
        path.write_bytes(flipped(data, place))
        try:
            assert_same(walk(tmp_path, chains=1), expected)
        except (CheckpointDamaged, CheckpointMismatch):
            noticed += 1
    assert noticed > 100


def test_what_a_write_that_failed_has_left_is_ignored(tmp_path):
    walk(tmp_path, steps=9)
    with open(tmp_path / "chain-0.draws", "ab") as file:
        file.write(b"half a dr")
    (tmp_path / "chain-1.npz.new").write_bytes(b"half a pl")
    assert_same(walk(tmp_path), walk())


def test_objects_are_not_read(tmp_path):
    walk(tmp_path)
    np.savez(tmp_path / "chain-0.npz", place=np.array([print]), state=np.array([print]))
    with pytest.raises(CheckpointDamaged):
        walk(tmp_path)


def test_what_is_not_a_checkpoint_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for path in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(CheckpointDamaged, match="not a checkpoint"):
            walk(path)
    assert content(tmp_path) == {"notes.txt": b"mine"}


@pytest.mark.parametrize("part", ["np.savez", "os.fsync", "os.replace"])
def test_a_full_disk_leaves_the_old_checkpoint(tmp_path, monkeypatch, part):
    """Whatever part of a write fails, in a run that makes the first one longer."""
    walk(tmp_path, steps=9)
    owner, function = part.split(".")
    with monkeypatch.context() as patch:
        patch.setattr(getattr(module, owner), function, no_space)
        with pytest.raises(OSError, match="no space left") as full:
            walk(tmp_path, steps=40)
    if part != "os.replace":  # the true one names its files
        assert str(tmp_path) in full.value.filename
    assert_same(walk(tmp_path), walk())


def no_space(*arguments, **options):
    raise OSError(errno.ENOSPC, "no space left")


def test_two_runs_do_not_write_to_one_checkpoint(tmp_path):
    pytest.importorskip("fcntl")
    walk(tmp_path)
    held = module.alone(tmp_path / module.LOCK, AssertionError())
    with held, pytest.raises(CheckpointBusy, match="another run"):
        walk(tmp_path)


class Breaking(Walk):
    def step(self, rng, state):
        rng.random()
        if state.count > 5:
            raise ZeroDivisionError
        return super().step(rng, state)


class Unbroken(Walk):
    def step(self, rng, state):
        rng.random()
        return super().step(rng, state)


def test_a_run_goes_on_after_an_error(tmp_path, always):
    """The chain that failed goes on from before the step at which it did."""
    Breaking.__qualname__ = Unbroken.__qualname__
    with pytest.raises(ZeroDivisionError):
        walk(tmp_path, kernel=Breaking())
    assert_same(walk(tmp_path, kernel=Unbroken()), walk(kernel=Unbroken()))


def test_draws_are_written_once(tmp_path, always, monkeypatch):
    """What a checkpoint writes does not grow with the chain: every draw is written a single time."""
    spans, append = [], module.ChainFiles._append

    def noted(files, columns, first, last):
        spans.append((first, last))
        return append(files, columns, first, last)

    monkeypatch.setattr(module.ChainFiles, "_append", noted)
    walk(tmp_path, chains=1, thin=1, warmup=0)
    assert spans == [(k, k + 1) for k in range(23)]


def test_saves_keep_their_distance(tmp_path, monkeypatch):
    """After a write that took a second there is none for a hundred."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.ChainFiles, "_append", lambda *_: now.__setitem__(0, now[0] + 1.0) or 0)
    chain = one_chain()
    files = module.ChainFiles(tmp_path, 0, chain.layout)
    assert not files.due()
    files.save(chain)
    now[0] = 101.0 + 99.9
    assert not files.due()
    now[0] = 101.0 + 100.1
    assert files.due()


def one_chain():
    from gumbelrace.chain.worker import NOTHING, Chain, Draw, Layout, Plan

    layout = Layout(Draw(Point(0.0), NOTHING))
    return Chain(Autoregression(), Point(0.0), seeded(), Plan(9, 0, 1), (layout, layout.columns(9)))


def test_run_json_is_for_people_too(tmp_path):
    walk(tmp_path)
    found = json.loads((tmp_path / "run.json").read_text())
    assert (found["kernel"], found["chains"], found["thin"]) == ("Walk", 2, 3)


@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"])
def test_a_stream_goes_on_from_its_json(name):
    rng, again = (np.random.Generator(getattr(np.random, name)(3)) for _ in range(2))
    rng.random(5, np.float32)  # half of a 64-bit word is left
    set_stream_state(again, json.loads(json.dumps(stream_state(rng))))
    assert stream_fingerprint([rng]) == stream_fingerprint([again])
    assert (rng.random(7, np.float32) == again.random(7, np.float32)).all()
    assert stream_fingerprint([rng]) == stream_fingerprint([again])


def test_fingerprints_differ():
    rngs = [np.random.default_rng(seed) for seed in (0, 1)]
    assert stream_fingerprint(rngs[:1]) != stream_fingerprint(rngs[1:])


def test_a_foreign_bit_generator_is_named():
    class Strange:
        seed_seq, state = None, {"bits": 0.5}

    class Holder:
        bit_generator = Strange()

    with pytest.raises(InvalidGenerator, match="float"):
        stream_state(Holder())
