"""What users may give as `rng`: a generator, a seed, or nothing."""

import numpy as np
import pytest
from tests.common import seeded

import gumbelrace as gr
from gumbelrace.core.random import as_generator, check_generator
from gumbelrace.errors import InvalidGenerator

REWARDS = np.random.default_rng(1).normal(size=(300, 3))


@pytest.mark.parametrize("seed", [5, np.int64(5), [5], np.random.SeedSequence(5), np.random.PCG64(5)])
def test_a_seed_gives_the_generator_of_numpy(seed):
    assert as_generator(seed).random() == np.random.default_rng(5).random()


def test_a_generator_stays_itself_and_none_is_never_the_same():
    rng = seeded()
    assert as_generator(rng) is check_generator(rng) is rng
    assert as_generator(None).random() != as_generator(None).random()


@pytest.mark.parametrize("wrong", [0.5, -1, True, "5", np.random.RandomState(5), np.random])
def test_anything_else_is_refused(wrong):
    with pytest.raises(InvalidGenerator, match="rng=0"):
        as_generator(wrong)


@pytest.mark.parametrize("seed", [5, None])
def test_what_is_called_again_and_again_needs_a_generator(seed):
    """A seed would make every step the same."""
    with pytest.raises(InvalidGenerator, match="from one to the next"):
        check_generator(seed)


@pytest.mark.parametrize(
    "call",
    [
        lambda rng: gr.sample(REWARDS, size=20, rng=rng).arms.tolist(),
        lambda rng: gr.best(REWARDS, rng=rng),
        lambda rng: gr.Race().best(REWARDS, rng=rng),
        lambda rng: gr.audit(REWARDS, gr.Race(), draws=20, rng=rng),
    ],
    ids=["sample", "best", "Method.best", "audit"],
)
def test_a_seed_stands_for_its_generator(call):
    assert call(7) == call(seeded(7))
    call(None)


def test_a_seed_sequence_stays_as_it_is():
    seed = np.random.SeedSequence(5)
    first, second = (as_generator(seed).spawn(1)[0].random() for _ in range(2))
    assert (first, seed.n_children_spawned) == (second, 0)
    assert first == np.random.default_rng(5).spawn(1)[0].random()


@pytest.mark.parametrize("size", [300, 20_000])
def test_any_seed_reshuffles(size):
    table = gr.table(seeded().normal(size=(size, 2)))
    first, second = (table.reshuffled(rng)._rewards for rng in (1, seeded(1)))
    np.testing.assert_array_equal(first, second)
    with pytest.raises(InvalidGenerator):
        table.reshuffled("x")


def test_a_pseudoprior_needs_a_generator():
    with pytest.raises(InvalidGenerator, match="from one to the next"):
        gr.kernels.NormalPseudoprior([0.0], [[1.0]]).sample(1)
