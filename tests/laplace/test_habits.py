"""Arguments of other samplers: what is said instead of taking them."""

import pytest

from gumbelrace.errors import InvalidArgument
from gumbelrace.laplace.habits import INSTEAD, SAME, answer, refuse


def sampler(draws=1, *, warmup=0, rng_key=None, **others):
    refuse(others, sampler)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_samples": 5}, "^num_samples: it is called draws. Arguments are draws, warmup, rng_key$"),
        ({"tune": 5, "seed": 1}, "^tune: it is called warmup; seed: it is called rng_key. "),
        ({"cores": 4}, "^cores: all chains run in one process, leave it out. "),
        ({"chains": 4}, "^chains: unknown, leave it out. "),  # a name for what this one does not take
        ({"drws": 4}, "^drws: unknown, leave it out. "),
    ],
)
def test_each_argument_is_answered(given, message):
    with pytest.raises(InvalidArgument, match=message):
        sampler(**given)


def test_nothing_is_said_of_nothing():
    sampler(5, warmup=3, rng_key=0)


def test_what_is_known_by_another_name_is_not_called_meaningless():
    assert not set(INSTEAD) & set().union(*SAME)
    assert answer("thinning", ["draws"]) == "thin the draws afterwards, if at all, leave it out"
