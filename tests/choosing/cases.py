"""Scores that are known, and campaigns on them without workers of their own."""

import numpy as np
from scipy.special import ndtri

from gumbelrace.choosing.attempts import Outcome, Patience
from gumbelrace.choosing.bets import Sampled
from gumbelrace.choosing.campaign import Campaign, Terms
from gumbelrace.choosing.replay import Promise, Replay
from gumbelrace.choosing.scores import Scores
from gumbelrace.choosing.store import Store


def paired(chances, size, rng, share=0.6):
    """Right or wrong answers of candidates with these chances, on examples that are easy or hard."""
    ease = np.sqrt(share) * rng.normal(size=size)
    noise = np.sqrt(1.0 - share) * rng.normal(size=(len(chances), size))
    return (ease + noise < ndtri(chances)[:, None]).astype(float)


def raced(low, high=None, delta=0.05, tolerance=0.0, finite=True):
    """The race on scores in the order in which they lie."""
    scores = Scores(*low.shape)
    scores.put_all(low, low if high is None else high)
    replay = Replay(scores, Promise(Sampled(low.shape[1], finite), delta, tolerance))
    replay.go_on()
    return replay


def campaign_of(count, size, on_failure="lowest", workers=1, budget=np.inf, tolerance=0.0):
    """A campaign in memory, at the positions in their order."""
    names, numbers = tuple(map(str, range(count))), np.arange(size)
    terms = Terms(names, np.arange(count), numbers, numbers, (0.0, 1.0), np.ones(count), budget, on_failure)
    promise = Promise(Sampled(size, finite=True), 0.05, tolerance)
    return Campaign(terms, promise, Store(None), Patience(retries=0), workers)


def served(campaign, outcome_of, rng, workers):
    """Let workers of random speed fill a campaign; `outcome_of` gives scores, None for a failure."""
    under_way = []
    while not campaign.is_finished:
        while len(under_way) < workers and (task := campaign.take()):
            under_way.append(task)
        for _ in range(int(rng.integers(1, len(under_way) + 1)) if under_way else 0):
            task = under_way.pop(int(rng.integers(len(under_way))))
            score = outcome_of(task)
            campaign.put(task, Outcome(score, 0.0, 1, "failed" if score is None else None))
        campaign.settle()
    return campaign
