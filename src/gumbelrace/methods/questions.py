"""What a kernel asks, and the noise with which whoever finds winners answers it.

Arms have values v_i: their offset plus the sum of their rewards. To draw an arm with probability
∝ exp(v_i / T) is to find the best of v_i + T·(Gumbel noise); to accept arm 1 in place of arm 0 with
probability min(1, exp(v_1 - v_0)) is to find the better of v_0 + log u and v_1.
"""

from enum import IntEnum

import numpy as np

from gumbelrace.core.jit import kernel, part
from gumbelrace.core.random import Bits, gumbel, uniform
from gumbelrace.population.base import Floats


class Question(IntEnum):
    """What is asked of the arms.

    Attributes
    ----------
    WINNER
        Which is the best?
    DRAW
        Which, with probability ∝ exp(value / temperature)?
    ACCEPT
        The second in place of the first, with the probability of Metropolis and Hastings?
    """

    WINNER = 0
    DRAW = 1
    ACCEPT = 2


CURRENT, PROPOSED = 0, 1  # the arms of ACCEPT
DRAWN, ACCEPTED = int(Question.DRAW), int(Question.ACCEPT)


@part
def add_noise(question: int, temperature: float, offset: Floats, bits: Bits) -> None:
    """Add the noise with which finding the best arm answers a question."""
    if question == DRAWN and temperature > 0.0:
        for arm in range(len(offset)):
            offset[arm] += temperature * gumbel(bits)
    elif question == ACCEPTED:
        offset[CURRENT] += np.log(uniform(bits))


@kernel
def put_noise(question: int, temperature: float, offsets: Floats, bits: Bits) -> None:
    """Add noise to each row of offsets: what is left to do is to find the best arm."""
    for draw in range(len(offsets)):
        add_noise(question, temperature, offsets[draw], bits)
