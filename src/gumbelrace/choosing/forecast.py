"""What deciding is expected to cost, by how fast wealth has grown."""

import numpy as np

from gumbelrace.choosing.bets import Floats
from gumbelrace.choosing.campaign import Campaign
from gumbelrace.choosing.replay import PRIOR_VARIANCE, Replay
from gumbelrace.choosing.scores import Indices


def rows_to_decide(replay: Replay) -> Floats:
    """Give for each candidate the positions at which it is expected to be out; all, if nobody knows."""
    scores, size = replay.scores, replay.scores.size
    found = scores.settled.astype(np.float64)
    racing = replay.racing[replay.racing != replay.leader]
    if replay.is_over:
        return found
    if (scores.settled[racing] == 0).any():
        return np.where(replay.wanted, float(size), found)
    found[racing] += _more_rows(replay, racing)
    found[replay.leader] = found[racing].max()
    return np.minimum(found, size)


def _more_rows(replay: Replay, racing: Indices) -> Floats:
    settled = replay.scores.settled[racing]
    rest = np.maximum(replay.scores.size - settled, 1)
    gain = _gaps(replay, racing) + replay.promise.tolerance
    spread = (replay.squares[racing] + PRIOR_VARIANCE) / (settled + 1.0) + gain**2
    missing = -np.log(replay.promise.delta_out) - replay.log_wealth[racing]
    # The true gain is as likely above the estimate as below: its square is larger by the error's.
    growth = (np.maximum(gain, 0.0) ** 2 + spread / settled) / (2.0 * spread)  # of log W, a row
    more: Floats = missing / growth
    if replay.promise.sampled.finite:
        more = rest - rest / (1.0 + more / rest)
    return more


def _gaps(replay: Replay, racing: Indices) -> Floats:
    """Give by how much the leader is ahead, where both are settled."""
    scores, leader, found = replay.scores, np.array([replay.leader]), np.zeros(len(racing))
    settled = scores.settled[racing]
    for rows in np.unique(settled):
        group = settled == rows
        ahead = scores.low_sums(leader, int(rows)) - scores.high_sums(racing[group], int(rows))
        found[group] = ahead / rows
    return found


def cost_to_decide(campaign: Campaign) -> float:
    """Give what is expected to be spent before the race is over."""
    more = np.maximum(rows_to_decide(campaign.replay) - campaign.scores.settled, 0.0)
    return float((more * campaign.terms.costs).sum())
