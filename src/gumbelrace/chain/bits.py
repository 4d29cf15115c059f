"""The state of a random bit generator as JSON: exact, and safe to read."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from gumbelrace.errors import InvalidGenerator

ARRAY = "array"


def stream_state(rng: np.random.Generator) -> dict[str, Any]:
    """Give all that the future of a generator depends on, in a form that JSON can hold.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> state = json.loads(json.dumps(stream_state(rng)))
    >>> expected = rng.normal(size=3)
    >>> again = np.random.default_rng(0)
    >>> set_stream_state(again, state)
    >>> (again.normal(size=3) == expected).all()
    np.True_
    """
    spawned = getattr(rng.bit_generator.seed_seq, "n_children_spawned", 0)
    return {"bits": _encoded(rng.bit_generator.state), "spawned": spawned}


def set_stream_state(rng: np.random.Generator, state: dict[str, Any]) -> None:
    """Put a generator, new from its seed, where `stream_state` was taken."""
    rng.bit_generator.state = _decoded(state["bits"])
    if state["spawned"]:
        rng.spawn(state["spawned"])  # later children differ from those that the chain had


def fingerprint(rngs: Sequence[np.random.Generator]) -> str:
    """Give a short text that differs for generators in different states."""
    text = json.dumps([stream_state(rng) for rng in rngs], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _encoded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _encoded(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return {ARRAY: value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, (int, str)):
        return value
    raise InvalidGenerator(
        f"the bit generator has a {type(value).__name__} in its state, which a checkpoint cannot hold; "
        "use one of NumPy's, for example rng=numpy.random.default_rng(0)"
    )


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if ARRAY in value:
        return np.array(value[ARRAY], np.dtype(value["dtype"]))
    return {key: _decoded(part) for key, part in value.items()}
