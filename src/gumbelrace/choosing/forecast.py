"""What deciding is expected to cost, by how fast wealth has grown."""

import numpy as np

from gumbelrace.choosing.bets import Floats
from gumbelrace.choosing.campaign import Campaign
from gumbelrace.choosing.replay import PRIOR_VARIANCE, Replay


def rows_to_decide(replay: Replay) -> Floats:
    """Give for each candidate the positions at which it is expected to be out; all, if nobody knows."""
    scores, size, rows = replay.scores, replay.scores.size, replay.rows
    found = np.where(replay.wanted, float(size), scores.settled)
    racing = np.flatnonzero(replay.wanted & (np.arange(len(found)) != replay.leader))
    if rows == 0 or rows == size or len(racing) == 0:
        return found
    settled = scores.settled[racing]
    leading = np.array([scores.low_sums(np.array([replay.leader]), int(n))[0] for n in settled])
    own = np.array(
        [scores.high_sums(np.array([c]), int(n))[0] for c, n in zip(racing, settled, strict=True)]
    )
    gain = (leading - own) / settled + replay.promise.tolerance
    spread = (replay.squares[racing] + PRIOR_VARIANCE) / (settled + 1.0) + gain**2
    missing = -np.log(replay.promise.delta_out) - replay.log_wealth[racing]
    growth = (np.maximum(gain, 0.0) ** 2 + spread / settled) / (2.0 * spread)  # of log W, a row
    more = missing / growth
    rest = size - settled
    found[racing] = settled + (rest - rest / (1.0 + more / rest) if replay.promise.sampled.finite else more)
    found[replay.leader] = found[racing].max()
    return np.minimum(found, size)


def cost_to_decide(campaign: Campaign) -> float:
    """Give what is expected to be spent before the race is over."""
    more = np.maximum(rows_to_decide(campaign.replay) - campaign.scores.settled, 0.0)
    return float((more * campaign.terms.costs).sum())
