"""What slots know of the rewards that are always read."""

import numpy as np

from gumbelrace.population.slots import LOST, READ, add_to


def test_what_rows_always_read_share_cancels():
    """Oracle: exact sums. 2^60 has no room for the rest, which would decide."""
    rewards = np.array([[2.0**60, 2.0**60], [-0.25, 0.5], [1.0, 1.0], [-np.inf, 3.0], [np.nan, 0.0]])

    def read(*rows):
        numbers = np.zeros((2, 6))
        for row in rows:
            for arm in range(2):
                add_to.py_func(numbers[arm], rewards[row, arm])
        return numbers[:, READ], numbers[:, LOST]

    sums, lost = read(0, 1, 2)
    assert (sums[1] - sums[0]) + (lost[1] - lost[0]) == 0.75
    assert sums[1] + lost[1] == sums[0] + lost[0]  # negative control: plain sums tie
    assert read(0, 1, 3)[0][0] == -np.inf < read(0, 1, 3)[0][1]
    assert np.isnan(read(1, 4)[0][0])
