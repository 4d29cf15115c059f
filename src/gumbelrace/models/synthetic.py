"""The paper's synthetic problem (section 5.1): a fixed p(X), rewards of any shape and variance."""

import numpy as np
from numpy.typing import NDArray


def normalised(
    rewards: NDArray[np.float64], log_p: NDArray[np.float64], scale: float
) -> NDArray[np.float64]:
    """Shift and scale each column so that it sums to `log_p` and has standard deviation `scale`.

    Parameters
    ----------
    rewards : ndarray of shape (N, D)
        Rewards of any distribution.
    log_p : ndarray of shape (D,)
        Wanted sums, log p(X).
    scale : float
        Wanted standard deviation σ: the smaller, the easier.
    """
    centred: NDArray[np.float64] = rewards - rewards.mean(axis=0)
    centred *= scale / rewards.std(axis=0)
    centred += (log_p / len(rewards)) - centred.mean(axis=0)
    return centred
