"""Special functions without a numba version in PyTensor, by elementary ones: else Python is called.

The trigamma function is the second derivative of the log gamma function, which log densities are full of.
"""

from collections.abc import Sequence
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


def elementary(graphs: Sequence[Any]) -> list[Any]:
    """Build graphs anew with the trigamma function by elementary ones."""
    made: dict[Any, Any] = {}
    for node in optional("pytensor.graph.traversal", "pymc").toposort(graphs):
        inputs = [made.get(given, given) for given in node.inputs]
        if is_trigamma(node):
            made[node.outputs[0]] = trigamma(inputs[0]).astype(node.outputs[0].type.dtype)
        elif any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            made.update(zip(node.outputs, node.op.make_node(*inputs).outputs, strict=True))
    return [made.get(graph, graph) for graph in graphs]


def is_trigamma(node: Any) -> bool:
    math = optional("pytensor.scalar.math", "pymc")
    return isinstance(getattr(node.op, "scalar_op", None), math.TriGamma)
