"""What deciding would cost if scores were so and so: the race itself, on scores that are made up."""

import numpy as np

from gumbelrace.choosing.campaign import Campaign
from gumbelrace.choosing.replay import Replay
from gumbelrace.choosing.scores import Scores

MEAN = 0.75  # of the best, in units of the range
ALIKE = 0.5  # share of the examples on which candidates agree as far as their means allow
MOST_SCORES = 2e7


def rows_if_behind(gap: float, campaign: Campaign) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Give for each candidate the examples needed if all but one are behind by a gap; None if too many.

    Scores are the lowest or the highest; the best has them at a mean of 3/4. On half of the examples all
    candidates answer alike, as far as their means allow.
    """
    count, size = len(campaign.terms.names), campaign.scores.size
    if count * size > MOST_SCORES:
        return None
    rng = np.random.default_rng([count, size])
    chance = np.where(np.arange(count) == 0, MEAN, MEAN - gap)[:, None]
    alike, draws = rng.random(size) < ALIKE, rng.random((count, size))
    made_up = (np.where(alike, draws[0], draws) < chance).astype(np.float64)
    scores = Scores(count, size)
    scores.put_all(made_up, made_up)
    Replay(scores, campaign.replay.promise).go_on()
    return scores.settled
