"""What slots know of the rewards of the head."""

import numba
import numpy as np

from gumbelrace.population.likelihood import LOST, READ, head_reader


@numba.njit
def log_factor(n, theta, rewards):
    return rewards[n, int(theta[0])]


READER = head_reader(log_factor)


@numba.njit
def read(numbers, point, rows, data):
    READER(numbers, point, rows, data)


def test_what_rows_of_the_head_share_cancels():
    """Oracle: exact sums. 2^60 has no room for the rest, which would decide."""
    rewards = np.array([[2.0**60, 2.0**60], [-0.25, 0.5], [1.0, 1.0], [-np.inf, 3.0], [np.nan, 0.0]])

    def sums(*rows):
        numbers = np.zeros((2, 6))
        for arm in range(2):
            read(numbers[arm], np.array([float(arm)]), np.array(rows), (rewards,))
        return numbers[:, READ], numbers[:, LOST]

    found, lost = sums(0, 1, 2)
    assert (found[1] - found[0]) + (lost[1] - lost[0]) == 0.75
    assert found[1] + lost[1] == found[0] + lost[0]  # negative control: plain sums tie
    assert sums(0, 1, 3)[0][0] == -np.inf < sums(0, 1, 3)[0][1]
    assert np.isnan(sums(1, 4)[0][0])
