"""What a run would cost, from made-up scores: of the size of real races in that case."""

import numpy as np
import pytest
from tests.choosing.cases import campaign_of, raced

from gumbelrace.choosing import rehearsal


def test_it_is_of_the_size_of_races_in_that_case():
    """Ten races of other scores of the same kind, seeds 0 to 9: their mean up to a factor of 3."""
    count, size, gap = 4, 2000, 0.1
    chance = np.where(np.arange(count) == 0, rehearsal.MEAN, rehearsal.MEAN - gap)[:, None]
    rows = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        draws, alike = rng.random((count, size)), rng.random(size) < rehearsal.ALIKE
        scores = (np.where(alike, draws[0], draws) < chance).astype(float)
        rows.append(raced(scores).scores.settled.sum())
    told = rehearsal.rows_if_behind(gap, campaign_of(count, size)).sum()
    assert 1 / 3 < told / np.mean(rows) < 3


def test_small_gaps_cost_more_and_no_more_than_everything():
    campaign = campaign_of(4, 500)
    told = [rehearsal.rows_if_behind(gap, campaign).sum() for gap in (0.3, 0.1, 0.0)]
    assert told == sorted(told)
    assert told[-1] <= 4 * 500
    assert campaign.evaluated.sum() == 0


def test_too_many_scores_are_not_made_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rehearsal, "MOST_SCORES", 1999)
    assert rehearsal.rows_if_behind(0.1, campaign_of(4, 500)) is None
