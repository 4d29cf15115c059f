"""What users give where a population is wanted."""

from typing import Any

from gumbelrace.errors import InvalidArgument
from gumbelrace.population.base import Population
from gumbelrace.population.table import table


def as_population(given: Any) -> Population:
    """Return a population as it is, and an array as a table of its rows and arms.

    Examples
    --------
    >>> as_population([[0.0, 1.0], [0.5, 1.0]]).arms
    2
    """
    if isinstance(given, Population):
        return given
    if callable(given):
        raise InvalidArgument(
            f"the population is a {type(given).__name__}; write likelihood(points), or "
            "gumbelrace.factors(function, size=N, arms=D)"
        )
    return table(given)
