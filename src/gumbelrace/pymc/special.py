"""Special functions without a numba version in PyTensor, by elementary ones: else Python is called.

The trigamma function is the second derivative of the log gamma function, which log densities are full of.
"""

from typing import Any

from gumbelrace.errors import optional

# ψ'(x) = Σ_{k < SHIFTS} 1/(x + k)² + ψ'(y) with y = x + SHIFTS, and of that the asymptotic series is
# 1/y + 1/(2y²) + Σ_j B_2j / y^(2j + 1), with Bernoulli's numbers B_2j. The next term is below 1e-14.
SHIFTS = 10
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)


def trigamma(x: Any) -> Any:
    """Give ψ'(x) of positive numbers, in graphs or arrays.

    Examples
    --------
    >>> round(trigamma(1.0), 12)  # π² / 6
    1.644934066848
    """
    y = x + SHIFTS
    inverse = 1.0 / (y * y)
    series: Any = 0.0
    for number in reversed(BERNOULLI):
        series = inverse * (number + series)
    total = (1.0 + series) / y + 0.5 * inverse
    for k in range(SHIFTS):
        total = total + 1.0 / ((x + k) * (x + k))
    return total


def is_trigamma(node: Any) -> bool:
    """Whether a node of a graph is the trigamma function."""
    math = optional("pytensor.scalar.math", "pymc")
    return isinstance(getattr(node.op, "scalar_op", None), math.TriGamma)
