"""Discrete variables of a PyMC model: the states that they have, and parameter vectors that hold them.

A joint vector has all parameters of a model, first the continuous ones, as PyMC transforms them, and then
the discrete ones.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument, optional
from gumbelrace.laplace.model import Floats
from gumbelrace.pymc.graph import RowGraph

Labels = NDArray[np.int64]

# Joint states that are each expanded around a mode of their own.
MOST_STATES = 32
FINITE = "Bernoulli, Categorical, DiscreteUniform and Binomial variables have"


def levels_of(model: Any, value: Any) -> Labels:
    """Give the values that an entry of a discrete variable may have, some of them perhaps impossible."""
    node = model.values_to_rvs[value].owner
    kind, parameters = getattr(node.op, "name", None), node.op.dist_params(node)
    if kind == "bernoulli":
        return np.arange(2)
    if kind == "categorical":
        return np.arange(number_of(parameters[0].shape[-1], value, "the number of its states"))
    if kind == "binomial":
        return np.arange(number_of(parameters[0], value, "n", np.max) + 1)
    if kind == "discrete_uniform":
        low, high = parameters
        first, last = number_of(low, value, "lower", np.min), number_of(high, value, "upper", np.max)
        return np.arange(first, last + 1)
    name = node.op._print_name[0]
    raise InvalidArgument(
        f"{value.name} is {name}, which has no finite list of states, as {FINITE}; use one of those, sum "
        "it out, or leave it to another step in pm.sample"
    )


def number_of(graph: Any, value: Any, what: str, among: Any = np.max) -> int:
    """Give a number that the states of a variable depend on, if it is constant."""
    fold = optional("pymc.pytensorf", "pymc").constant_fold
    (found,) = fold([graph], raise_not_constant=False)
    if not isinstance(found, np.ndarray):
        raise InvalidArgument(
            f"{value.name}: {what} depends on parameters, so its states are not always the same; make it "
            "constant, or leave it to another step in pm.sample"
        )
    return int(among(found))


def joint_states(model: Any) -> Labels:
    """Give all states of the discrete variables together, of shape (states, entries)."""
    start, levels = model.initial_point(), list[Labels]()
    for value in model.discrete_value_vars:
        levels += [levels_of(model, value)] * np.size(start[value.name])
    count = int(np.prod([float(len(some)) for some in levels]))
    if count > MOST_STATES:
        names = ", ".join(value.name for value in model.discrete_value_vars)
        raise InvalidArgument(
            f"{names}: {count:,} states in all, and each would have a mode of its own; {MOST_STATES} at "
            "most. Use pm.sample(step=gumbelrace.pymc.Gibbs([...])), which draws entry by entry"
        )
    return np.array(list(product(*levels)), np.int64)


def joint_graph(model: Any, graph: RowGraph) -> RowGraph:
    """Give the same graphs as those of joint vectors."""
    discrete, start = list(model.discrete_value_vars), model.initial_point()
    shapes = [np.shape(start[value.name]) for value in discrete]
    return graph._replace(values=[*graph.values, *discrete], shapes=[*graph.shapes, *shapes])


def vector_of(values: Sequence[Any], point: dict[str, Any]) -> Floats:
    """Put the values of some variables, one after another, into a vector."""
    pieces = [np.ravel(point[value.name]) for value in values]
    return np.concatenate(pieces).astype(np.float64) if pieces else np.zeros(0)


def places_of(graph: RowGraph, values: Sequence[Any]) -> dict[Any, NDArray[np.int64]]:
    """Say where in the vectors of a graph the entries of some variables are."""
    sizes = [int(np.prod(shape)) for shape in graph.shapes]
    ends = np.cumsum(sizes)
    every = {
        value: np.arange(end - size, end)
        for value, size, end in zip(graph.values, sizes, ends, strict=True)
    }
    return {value: every[value] for value in values}


def example_points(model: Any, graph: RowGraph) -> list[Floats]:
    """Give joint vectors at the start, but in several states: each level of each discrete entry occurs."""
    rng, start = np.random.default_rng(0), vector_of(graph.values, model.initial_point())
    places = places_of(graph, model.discrete_value_vars)
    levels = {at: known_levels(model, value) for value in places for at in places[value]}
    count = min(max([len(some) for some in levels.values()], default=1), MOST_STATES)
    points = np.repeat(start[None], 2 * count, axis=0)
    for at, some in levels.items():
        points[:, at] = rng.permuted(np.resize(some, 2 * count)) if len(some) else start[at]
    return list(points)


def known_levels(model: Any, value: Any) -> Labels:
    """Give the levels of a discrete variable; none where there is no finite list of them."""
    try:
        return levels_of(model, value)
    except InvalidArgument:
        return np.zeros(0, np.int64)
