"""The method alone: which arm has the highest sum of rewards."""

from numpy.typing import ArrayLike

from gumbelrace.core.random import Rng
from gumbelrace.methods.base import Method, Outcome
from gumbelrace.methods.default import single_method
from gumbelrace.population.arrays import ByArm
from gumbelrace.population.base import Population


def best(
    population: Population | ArrayLike,
    *,
    offset: ByArm | None = None,
    delta: float | None = None,
    method: Method | None = None,
    rng: Rng = None,
) -> Outcome:
    """Find the best arm, reading as few rewards as needed.

    Parameters
    ----------
    population : Population, or array_like of shape (N, D)
        The rewards; an array is taken as a `table`.
    offset : array_like of shape (D,), optional
        Added to the sum of each arm; -inf rules an arm out. Where arms have names, a dict or a series of
        pandas by these names will do.
    delta : float, optional
        Bound on the probability that the arm returned is not the best; 0.05 for the default method.
    method : Method, optional
        Who decides. Default: `Betting` where the population knows its reward range, else ``Race()``.
    rng : numpy.random.Generator, int, or None
        Chooses the rows: a generator, a seed, or None for no seed.

    Returns
    -------
    Outcome
        The arm, the rewards read and their share, the looks taken, and what is promised.

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
    return single_method(delta, method).best(population, offset, rng)
