"""What a kernel owns: every place in which data may lie is seen, and a change in it is named."""

import functools
import json
import os
import subprocess
import sys
import warnings
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
import scipy.sparse
from tests.chain.kernels import Choice, Point, Raced
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.chain import kernel_data
from gumbelrace.chain.kernel_data import fingerprints
from gumbelrace.errors import CheckpointMismatch, InvalidArgument, UnseenData
from gumbelrace.kernels.base import Info, Kernel

GLOBAL = np.arange(5.0)
OTHER = np.ones(3)  # used by nobody
TEXTS = {"one": {"two", "three", "four"}}  # in another order in another process


@dataclass(frozen=True)
class Holder(Kernel):
    held: Any
    made: Any = field(init=False, default_factory=lambda: seeded().random(3))

    def step(self, rng, state):
        return Point(float(rng.normal())), Info(0, 0, 0, 1.0)


class Pair(NamedTuple):
    left: Any
    right: Any


class Slotted:
    __slots__ = ("__weakref__", "later", "slot")

    def __init__(self, slot):
        self.slot = slot


class Plain:
    def __init__(self, values):
        self.values = values

    @functools.cached_property
    def kept(self):
        return seeded().random(3)

    def method(self, x):
        return self.values @ x


@numba.njit
def log_factor(i, j, x, scale):
    return scale * x[i] * x[j]


def uses_a_global(x):
    return (lambda: GLOBAL @ x)()


def closure(values):
    return lambda x: values @ x


def with_default(values):
    def function(x, values=values):
        return values @ x

    return function


def frozen(values):
    @numba.njit
    def function(x):
        return values[x]

    return function


def pandas():
    return pytest.importorskip("pandas")


PLACES = {
    "held": lambda y: y,
    "held[1]": lambda y: (1, y),
    "held['y']": lambda y: {"y": y},
    "held.right": lambda y: Pair(None, y),
    "held.values": lambda y: Plain(y),
    "held.scale": lambda y: gr.kernels.RandomWalk(y),
    "held.data[0]": lambda y: gr.pairs(log_factor, (y, 2.0), 5),
    "held.data": lambda y: scipy.sparse.csr_matrix(np.diag(y)),
    "held.rewards": lambda y: gr.table(y[:, None]),
    "held.slot": lambda y: Slotted(y),
    "held['b']": lambda y: pandas().DataFrame({"a": "text", "b": y}),
    "held['a']": lambda y: pandas().DataFrame({"a": [f"text {v}" for v in y], "b": 0.0}),
    "held.index": lambda y: pandas().Series(0.0, y),
    "held.log_factors.values": lambda y: gr.factors(closure(y), size=5, arms=1),
}
CONTAINERS = {
    "objects": lambda y: np.array([*y, "text", None, (1, y)], object),
    "set": lambda y: {"one", "two", *y.tolist()},
    "frozensets": lambda y: [frozenset(y.tolist())],
    "deque": lambda y: deque(y.tolist()),
    "deque of deques": lambda y: deque([deque(y)]),
    "buffer": lambda y: bytearray(y.tobytes()),
    "long text": lambda y: 100 * str(y),
    "many": lambda y: [(v, "text", {"a": v}) for v in np.repeat(y, 5000).tolist()],
    "many in a dict": lambda y: {f"{place}": v for place, v in enumerate(np.repeat(y, 20))},
    "many of the last": lambda y: [(0.0,)] * 25_000 + [(v,) for v in np.repeat(y, 100).tolist()],
    "objects of objects": lambda y: np.array([Plain(y), Slotted(2)]),
    "many objects": lambda y: [Plain(v) for v in np.repeat(y, 5000)],
    "class": lambda y: type("Own", (), {"y": y, "__module__": __name__})(),
    "a class itself": lambda y: type("Own", (), {"y": y, "__module__": __name__}),
    "inherited": lambda y: type("Own", (type("Base", (), {"y": y, "__module__": __name__}),), {})(),
}
FUNCTIONS = {
    "closure": closure,
    "default": with_default,
    "method": lambda y: Plain(y).method,
    "partial": lambda y: functools.partial(np.dot, y),
    "numba": frozen,
}


@pytest.mark.parametrize("name", PLACES)
def test_data_are_seen_and_named(name):
    y, other = np.arange(1.0, 6.0), np.array([1.0, 2.0, 3.0, 4.5, 5.0])
    found, same, changed = (fingerprints(Holder(PLACES[name](values))) for values in (y, y.copy(), other))
    assert found == same
    assert kernel_data.differing(found, changed) == name
    assert not any("made" in held for held in found)


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_contents_are_seen(make):
    y, other = np.arange(1.0, 6.0), np.array([1.0, 2.0, 3.0, 4.5, 5.0])
    found, same, changed = (kernel_data.Search(Holder(make(values))) for values in (y, y.copy(), other))
    assert found.found == same.found != changed.found
    assert found.unseen == {}


def test_a_sparse_matrix_is_what_it_says_not_what_it_keeps():
    rng, graph = seeded(), scipy.sparse.random_array((30, 30), density=0.3, rng=seeded())
    entries, places = graph.tocoo(), rng.permutation(graph.nnz)
    mixed = scipy.sparse.csr_array((entries.data[places], [c[places] for c in entries.coords]), (30, 30))
    looked_at = graph.tocsr().copy()
    assert looked_at.has_canonical_format  # SciPy looks, and keeps what it has found
    before = fingerprints(Holder(graph.tocsr()))
    assert fingerprints(Holder(looked_at)) == fingerprints(Holder(mixed)) == before
    assert kernel_data.differing(before, fingerprints(Holder(1.5 * graph.tocsr()))) == "held.data"


UNSEEN = {
    "a generator": lambda: (v for v in [1.0]),
    "a set": lambda: {Plain(1.0)},
    "part of too much to be searched": lambda: functools.reduce(lambda inner, _: [inner], range(99), OTHER),
}


@pytest.mark.parametrize("what", UNSEEN)
def test_what_cannot_be_seen_is_named_once(what, tmp_path):
    def run(tag):
        kernel = Holder([1.0, UNSEEN[what]()])
        options = {"checkpoint": tmp_path / str(tag), "progress": False, "tag": tag}
        gr.run(kernel, Point(0.0), steps=2, rng=0, **options)

    with pytest.warns(UnseenData, match=rf"held\[1\].*\({what}\).*tag=") as caught:
        run(None)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run("May")


@pytest.mark.parametrize("make", FUNCTIONS.values(), ids=FUNCTIONS)
def test_data_of_functions_are_seen(make):
    y, other = np.arange(1.0, 6.0), np.array([1.0, 2.0, 3.0, 4.5, 5.0])
    found, same, changed = (fingerprints(Holder(make(values))) for values in (y, y.copy(), other))
    assert found == same != changed


def test_numbers_beside_arrays_count():
    one, other = (fingerprints(Holder(gr.pairs(log_factor, (OTHER, s), 3))) for s in (1.0, 2.0))
    assert kernel_data.differing(one, other) == "held.data[1]"


def test_global_variables_are_those_that_are_used(monkeypatch):
    before = fingerprints(Holder(uses_a_global))
    assert list(before) == ["held", "held.GLOBAL"]
    monkeypatch.setitem(globals(), "GLOBAL", np.arange(1.0, 6.0))
    assert fingerprints(Holder(uses_a_global)) != before


def test_what_a_chain_keeps_for_later_is_no_data():
    plain = Plain(OTHER)
    before = fingerprints(Holder(plain))
    assert plain.kept.size == 3
    assert fingerprints(Holder(plain)) == before
    assert fingerprints(Holder(seeded())) == {}


@pytest.mark.parametrize("columns", [1, 2, 8])
def test_of_large_arrays_a_sample_from_everywhere_counts(columns):
    """Values of one column, or the last one, or the form; every 100th row of a million entries."""
    large = np.zeros((2**20 // columns, columns), np.float32)
    before = fingerprints(Holder(large))
    for place in (np.s_[::100, columns - 1], np.s_[-1, -1], np.s_[0, 0]):
        changed = large.copy()
        changed[place] = 1.0
        assert fingerprints(Holder(changed)) != before
    assert fingerprints(Holder(large.T.copy())) != before or columns == 2**20
    assert fingerprints(Holder(np.asfortranarray(large))) == before


def test_what_refers_to_itself_has_an_end():
    endless = [OTHER]
    endless.append(endless)
    assert list(fingerprints(Holder(endless))) == ["held[0]"]


def prior(sd):
    return lambda x: -0.5 * float(x @ x) / sd**2


def conditional(weight):
    def given(labels, variable):
        return gr.table(np.zeros((5, 2))), [0.0, weight]

    return given


@numba.njit
def by_square(n, theta, y):
    return -0.5 * (y[n] - theta[0]) ** 2


@numba.njit
def by_distance(n, theta, y):
    return -0.5 * abs(y[n] - theta[0])


Y, WIDE = np.arange(300.0) / 300.0, prior(1.0)


def metropolis(log_factor=by_square, size=300, log_prior=WIDE, method=None):
    likelihood = gr.likelihood(log_factor, (Y,), size)
    return gr.Metropolis(
        likelihood, gr.kernels.RandomWalk(0.1), log_prior=log_prior, method=method or gr.Race(first=8)
    )


POSTERIORS = {
    "likelihood.rows.size": (metropolis(), metropolis(size=200)),
    "likelihood.log_factor": (metropolis(), metropolis(by_distance)),
    "log_prior.sd": (metropolis(), metropolis(log_prior=prior(0.01))),
    "log_prior": (metropolis(log_prior=lambda x: -x @ x), metropolis(log_prior=lambda x: -2.0 * x @ x)),
    "log_prior of the same form": (
        metropolis(log_prior=lambda x: np.sin(x[0])),
        metropolis(log_prior=lambda x: np.cos(x[0])),
    ),
    "method.first": (metropolis(), metropolis(method=gr.Race(first=50))),
    "method.bound": (metropolis(), metropolis(method=gr.Race(gr.methods.Serfling(), first=8))),
    "conditional.weight": tuple(gr.Gibbs(conditional(weight), 2) for weight in (0.0, 1.0)),
    "keep": tuple(
        gr.ClusterGibbs(gr.pairs(log_factor, (OTHER, 1.0), 3), keep=k) for k in ("pairs", "nothing")
    ),
    "pairs.size": tuple(gr.ClusterGibbs(gr.pairs(log_factor, (OTHER, 1.0), n)) for n in (2, 3)),
}


@pytest.mark.parametrize("name", POSTERIORS)
def test_another_posterior_is_seen_and_named(name):
    one, other = map(fingerprints, POSTERIORS[name])
    assert kernel_data.differing(one, other) == name.partition(" ")[0]


def test_the_size_of_a_population_counts():
    one, other = (fingerprints(Holder(gr.factors(closure(OTHER), n, 2))) for n in (5, 6))
    assert kernel_data.differing(one, other) == "held.sizes"


def test_a_checkpoint_by_another_function_is_refused(tmp_path):
    def run(kernel):
        start = gr.kernels.Position(np.zeros(1))
        return gr.run(kernel, start, steps=3, rng=seeded(), checkpoint=tmp_path, progress=False, check=0)

    run(metropolis(log_prior=lambda x: -x @ x))
    run(metropolis(log_prior=lambda x: -x @ x))
    with pytest.raises(
        CheckpointMismatch, match=r"function log_prior of the kernel differs.*version of Python"
    ):
        run(metropolis(log_prior=lambda x: -2.0 * x @ x))


class Counted:
    """A likelihood that counts, in an attribute, one of its class, and a variable around it."""

    calls_of_all = 0

    def __init__(self, scale):
        self.scale, self.calls = scale, 0

    def __call__(self, points):
        self.calls += 1
        Counted.calls_of_all += 1
        return gr.table(-self.scale * (Y[:, None] - points[:, 0]) ** 2)


def counting_prior():
    calls = 0

    def log_prior(x):
        nonlocal calls
        calls += 1
        return -0.5 * float(x @ x)

    return log_prior


def test_what_counts_while_a_chain_runs_is_no_data():
    likelihood = Counted(1.0)
    kernel = gr.Metropolis(likelihood, gr.kernels.RandomWalk(0.1), log_prior=counting_prior())
    before, of_class = fingerprints(kernel), fingerprints(Holder(Counted))
    gr.run(kernel, gr.kernels.Position(np.zeros(1)), steps=5, rng=seeded(), progress=False)
    assert Counted.calls_of_all >= likelihood.calls > 0
    assert fingerprints(kernel) == before
    assert fingerprints(Holder(Counted)) == of_class
    assert fingerprints(gr.Metropolis(Counted(2.0), kernel.proposal, log_prior=kernel.log_prior)) != before


def in_a_set(x):
    """Tell whether a text is one of a set, whose order differs between processes."""
    return x in {"one", "two", "three", "four"}


def moved():
    exec(compile("\n\ndef f(x):\n    return x + 1.5", "elsewhere", "exec"), space := {"__name__": __name__})
    return space["f"]


def test_where_a_function_stands_is_no_data():
    def f(x):
        """Have a docstring."""
        return x + 1.5

    assert fingerprints(Holder(f)) == fingerprints(Holder(moved()))


ELSEWHERE = """
import json
from tests.chain import test_kernel_data
from tests.chain.test_kernel_data import TEXTS, Holder, fingerprints, in_a_set, metropolis
print(json.dumps(fingerprints(Holder((metropolis(), in_a_set, TEXTS)))))
"""


def test_fingerprints_are_the_same_in_another_process():
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join([str(root / "src"), str(root)])
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", ELSEWHERE]
    made = subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True, timeout=120)
    assert json.loads(made.stdout) == fingerprints(Holder((metropolis(), in_a_set, TEXTS)))


def raced(rewards, path, **options):
    kernel = Raced(population=gr.table(rewards))
    return gr.run(kernel, Choice(0), steps=20, rng=seeded(1), checkpoint=path, progress=False, **options)


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    rewards = seeded(3).normal(0.0, 0.02, size=(500, 2))
    raced(rewards, tmp_path)
    raced(rewards.copy(), tmp_path)
    rewards[250, 1] += 1e-9
    with pytest.raises(
        CheckpointMismatch, match=r"data of the kernel \(population.rewards\) are not those"
    ):
        raced(rewards, tmp_path)


def test_a_tag_says_what_cannot_be_seen(tmp_path):
    rewards = seeded(3).normal(0.0, 0.02, size=(500, 2))
    raced(rewards, tmp_path, tag="May")
    raced(rewards, tmp_path, tag="May")
    for tag in ("June", None):
        with pytest.raises(CheckpointMismatch, match="tag was 'May'"):
            raced(rewards, tmp_path, tag=tag)
    with pytest.raises(InvalidArgument, match="tag"):
        raced(rewards, tmp_path, tag=5)
