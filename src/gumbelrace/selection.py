"""The method alone: which arm has the highest sum of rewards."""

import numpy as np
from numpy.typing import ArrayLike

from gumbelrace.core.jit import check_generator
from gumbelrace.methods.base import Outcome
from gumbelrace.methods.default import default_method
from gumbelrace.population.base import Population
from gumbelrace.population.given import as_population


def best(
    population: Population | ArrayLike,
    delta: float = 0.05,
    *,
    rng: np.random.Generator,
    offset: ArrayLike | None = None,
) -> Outcome:
    """Find the best arm, reading as few rewards as needed.

    `Betting` decides where the population knows its reward range, else ``Race()``; to choose
    yourself, call ``method.best(population, offset, rng)``.

    Parameters
    ----------
    population : Population, or array_like of shape (N, D)
        The rewards; an array is taken as a `table`.
    delta : float
        Bound on the probability that the arm returned is not the best.
    rng : numpy.random.Generator
        Chooses the rows.
    offset : array_like of shape (D,), optional
        Added to the sum of each arm.

    Returns
    -------
    Outcome
        The arm, the rewards read, the looks taken, and whether everything was read.

    Examples
    --------
    Which of three models has the highest mean score on 100,000 examples?

    >>> import numpy as np, gumbelrace as gr
    >>> rng = np.random.default_rng(0)
    >>> correct = rng.random((100_000, 3)) < [0.70, 0.73, 0.78]
    >>> outcome = gr.best(correct, delta=0.01, rng=rng)
    >>> outcome.arm, outcome.evaluations < 30_000
    (2, True)
    """
    check_generator(rng)
    rewards = as_population(population)
    return default_method(rewards, delta).best(rewards, offset, rng)
