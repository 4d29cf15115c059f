"""What kernels are made of, checked when they are made: each message says what to write."""

import functools
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbelrace.errors import InvalidArgument
from gumbelrace.methods.default import chain_method
from gumbelrace.methods.state import Question
from gumbelrace.population.arrays import floats
from gumbelrace.population.base import SharedPopulation
from gumbelrace.population.pairs import Pairs
from gumbelrace.population.trial import Call, check_result, try_out

PRIOR = "log_prior(x)"


def set_method(kernel: Any, delta: float | None, question: Question) -> None:
    """Give a frozen kernel the method that it was asked for, by `delta` or `method`, if that can answer."""
    method = chain_method(delta, kernel.method, question, functools.partial(typical_moves, kernel))
    method.check_question(question)
    object.__setattr__(kernel, "method", method)


def typical_moves(kernel: Any) -> list[SharedPopulation]:
    """Give moves that a kernel on continuous parameters may make, by its prior; none if none are known."""
    moves = getattr(getattr(kernel, "likelihood", None), "typical_moves", None)
    return [] if moves is None else moves(functools.partial(is_possible, kernel.log_prior))


def is_possible(log_prior: Any, point: NDArray[np.float64]) -> bool:
    """Whether a prior does not rule a point out."""
    try_out_prior(log_prior, point)
    return log_prior is None or float(log_prior(point)) > -np.inf


def check_target(likelihood: Any, log_prior: Any) -> None:
    """Check what all kernels on continuous parameters have."""
    check_function(likelihood, "likelihood", "likelihood(points), for example gumbelrace.likelihood(...)")
    check_log_prior(log_prior)


def check_log_prior(log_prior: Any) -> None:
    """Check a log prior, and what it gives if it is a numba function."""
    if log_prior is not None:
        check_function(log_prior, "log_prior", "log_prior(x), or None")
    if hasattr(log_prior, "py_func"):
        check_result(Call(log_prior, PRIOR, {"x": np.zeros(1)}))


def try_out_prior(log_prior: Any, point: NDArray[np.float64]) -> None:
    """Refuse a numba function that reads beyond a point: compiled code checks no index."""
    if hasattr(log_prior, "py_func"):
        try_out(Call(log_prior, PRIOR, {"x": point}))


def check_function(function: Any, name: str, form: str) -> None:
    if not callable(function):
        raise InvalidArgument(f"{name} is a {type(function).__name__}; give a function {form}")


def check_part(part: Any, name: str, method: str, example: str) -> None:
    """Check that something has a method, and is not only the class of such things."""
    if isinstance(part, Real) and "scale" in example:
        raise InvalidArgument(f"{name} is {part}; write {example.replace('scale', str(part))}")
    if isinstance(part, type) or not hasattr(part, method):
        raise InvalidArgument(f"{name} is {part!r}; write for example {example}")


def check_sweeps(scan: Any, annealing: Any) -> None:
    """Check what all kernels on discrete variables have."""
    check_part(scan, "scan", "order", "gumbelrace.kernels.Shuffled()")
    if isinstance(annealing, type) or not callable(annealing):
        raise InvalidArgument(
            f"annealing is {annealing!r}; write for example gumbelrace.kernels.Constant(0.5)"
        )


def check_pairs(pairs: Any) -> None:
    if not isinstance(pairs, Pairs):
        raise InvalidArgument(f"pairs is a {type(pairs).__name__}; make it with gumbelrace.pairs")


def check_room(labels: NDArray[Any], states: int) -> None:
    """Check that the dtype of labels holds the number of every state."""
    if states - 1 > np.iinfo(labels.dtype).max:
        raise InvalidArgument(
            f"labels of dtype {labels.dtype} cannot hold {states} states; write labels.astype(np.int32)"
        )


def check_state(state: Any, kind: type[tuple[Any, ...]]) -> None:
    if not all(hasattr(state, name) for name in getattr(kind, "_fields", ())):
        wanted = f"give a {kind.__name__}, as kernel.start(...) makes it"
        raise InvalidArgument(f"the state is a {type(state).__name__}; {wanted}")


def real_fields(state: Any, *names: str) -> Any:
    """Return a state whose fields of these names are in double precision, where they are real numbers."""
    return state._replace(**{name: _doubled(getattr(state, name), name) for name in names})


def _doubled(value: Any, name: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_doubled(within, name) for within in value)
    if isinstance(value, Real):
        return float(floats(value, name))
    # Anything else is refused where it is used.
    is_real = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    return floats(value, name) if is_real else value
