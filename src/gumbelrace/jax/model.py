"""A posterior whose log factors are written in jax.numpy.

Derivatives come by JAX; sums go over chunks of rows, so that no array of shape (N, d, d) is ever made.
Everything is computed in double precision, whatever the setting of JAX.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.jax.packages import in_double, jax, jnp, lax
from gumbelrace.laplace.model import Floats, Quadratic
from gumbelrace.laplace.parts import FEW, MANY_TIMES

# Rows of a chunk are so many that they and their derivatives take about that many numbers.
NUMBERS, FEWEST, MOST = 2**20, 256, 16_384

SEED = 0

# Log factors of some rows: of θ as the user knows it, those rows, and what is no row.
LogFactors = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, eq=False)
class JaxModel:
    """Log factors and a log prior by JAX.

    Attributes
    ----------
    log_factors : callable
        ``log_factors(theta, rows, whole)`` gives the log factors of some rows, an array of shape (k,).
    prior_of : callable
        ``prior_of(theta, whole)``.
    rows : pytree of arrays
        All rows, along the first dimension of each.
    whole : pytree of arrays
        What both take besides.
    example : pytree of numbers and arrays
        A θ, where to look for the mode.
    """

    log_factors: LogFactors
    prior_of: Callable[[Any, Any], Any]
    rows: Any
    whole: Any
    example: Any

    @functools.cached_property
    def size(self) -> int:
        """Number of rows, N."""
        return int(jax.tree.leaves(self.rows)[0].shape[0])

    @functools.cached_property
    def start(self) -> Floats:
        """Where to begin looking for the mode."""
        leaves = [np.ravel(np.asarray(leaf, np.float64)) for leaf in jax.tree.leaves(self.example)]
        return np.concatenate(leaves)

    def unravel(self, vector: Any) -> Any:
        """Give θ as the user knows it, of a vector."""
        leaves, form = jax.tree.flatten(self.example)
        ends = np.cumsum([np.size(leaf) for leaf in leaves])
        parts = jnp.split(vector, ends[:-1])
        shaped = [part.reshape(np.shape(leaf)) for part, leaf in zip(parts, leaves, strict=True)]
        return jax.tree.unflatten(form, shaped)

    @functools.cached_property
    def names(self) -> Sequence[str]:
        """The name of each coordinate."""
        leaves = jax.tree_util.tree_flatten_with_path(self.example)[0]
        return [name for path, leaf in leaves for name in entries(name_of(path), np.shape(leaf))]

    @functools.cached_property
    def few(self) -> "JaxModel":
        """The same model of some of its rows; itself if there are few."""
        if self.size < MANY_TIMES * FEW:
            return self
        some = np.sort(np.random.default_rng(SEED).choice(self.size, FEW, replace=False))
        with in_double():
            return replace(self, rows=jax.tree.map(lambda leaf: leaf[some], self.rows))

    def terms(self, vector: Any, rows: Any, whole: Any) -> Any:
        """Give the log factors of some rows at a vector."""
        return self.log_factors(self.unravel(vector), rows, whole).astype(float)

    def log_prior_at(self, vector: Any, whole: Any) -> Any:
        """Give the log prior at a vector."""
        return jnp.asarray(self.prior_of(self.unravel(vector), whole), float)

    def shapes(self) -> dict[str, Any]:
        """Give the shapes of a log factor and of the log prior, without computing them."""
        with in_double():
            one = jax.tree.map(lambda leaf: leaf[:1], self.rows)
            at_start = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), self.example)
            factors = jax.eval_shape(self.log_factors, at_start, one, self.whole)
            prior = jax.eval_shape(lambda *of: jnp.asarray(self.prior_of(*of)), at_start, self.whole)
        return {"log_factor": factors.update(shape=factors.shape[1:]), "log_prior": prior}

    def value(self, theta: Floats) -> float:
        """Give log p0(θ) + Σ log f_n(θ)."""
        prior = self.log_prior(theta)
        return prior + self._sums(theta, 0)[0] if prior > -np.inf else prior

    def gradient(self, theta: Floats) -> Floats:
        """Give the gradient of the same."""
        with in_double():
            of_prior = self._of_prior(theta, self.whole, order=1)[1]
        gradient: Floats = np.asarray(of_prior) + self._sums(theta, 1)[1]
        return gradient

    def prior(self, theta: Floats) -> Quadratic:
        """Give log p0 near θ."""
        with in_double():
            return quadratic(self._of_prior(theta, self.whole, order=2))

    def factors(self, theta: Floats) -> Quadratic:
        """Give Σ log f_n near θ."""
        return quadratic(self._sums(theta, 2))

    def log_prior(self, theta: Floats) -> float:
        """Give log p0(θ)."""
        with in_double():
            return float(self._of_prior(theta, self.whole, order=0)[0])

    def residuals(self, centre: Floats, step: Floats) -> Floats:
        """Give what second-order expansions leave of all log factors."""
        with in_double():
            return np.asarray(self._left_over(centre, step, self.rows, self.whole))

    def _sums(self, theta: Floats, order: int) -> Any:
        with in_double():
            return jax.tree.map(np.asarray, self._of_factors(theta, self.rows, self.whole, order=order))

    @functools.cached_property
    def _of_prior(self) -> Any:
        def of_prior(theta: Any, whole: Any, order: int) -> Any:
            return derivatives(lambda at: self.log_prior_at(at, whole), theta, order)

        return jax.jit(of_prior, static_argnames="order")

    @functools.cached_property
    def _of_factors(self) -> Any:
        def of_factors(theta: Any, rows: Any, whole: Any, order: int) -> Any:
            def of_chunk(part: Any, counts: Any) -> Any:
                def total(at: Any) -> Any:
                    return jnp.where(counts, self.terms(at, part, whole), 0.0).sum()

                return derivatives(total, theta, order)

            return over_chunks(of_chunk, rows, self.chunk)

        return jax.jit(of_factors, static_argnames="order")

    @functools.cached_property
    def _left_over(self) -> Any:
        def of_all(centre: Any, step: Any, rows: Any, whole: Any) -> Any:
            def of_chunk(begin: Any) -> Any:
                part, _ = chunk_of(rows, begin, self.chunk)
                return left_over(lambda at: self.terms(at, part, whole), centre, step)

            found = lax.map(of_chunk, jnp.arange(0, self.size, self.chunk))
            # The last chunk begins earlier than the others end.
            again = found.size - self.size
            return jnp.concatenate([found[:-1].ravel(), found[-1, again:]])

        return jax.jit(of_all)

    @functools.cached_property
    def chunk(self) -> int:
        """Rows of a chunk."""
        many = NUMBERS // max(len(self.start), 1)
        return min(max(min(many, MOST), FEWEST), self.size)


def derivatives(function: Callable[[Any], Any], theta: Any, order: int) -> tuple[Any, ...]:
    """Give the value of a function, and its gradient and Hessian as far as `order` asks for them."""
    if order == 0:
        return (function(theta),)
    value, gradient = jax.value_and_grad(function)(theta)
    if order == 1:
        return value, gradient

    def column(direction: Any) -> Any:
        return jax.jvp(jax.grad(function), (theta,), (direction,))[1]

    return value, gradient, jax.vmap(column)(jnp.eye(len(theta)))


def over_chunks(function: Callable[[Any, Any], Any], rows: Any, chunk: int) -> Any:
    """Sum what a function gives of chunks of rows, and of which of those rows count."""
    size = jax.tree.leaves(rows)[0].shape[0]

    def add(total: Any, begin: Any) -> Any:
        return jax.tree.map(jnp.add, total, function(*chunk_of(rows, begin, chunk))), None

    zero = jax.tree.map(jnp.zeros_like, jax.eval_shape(function, *chunk_of(rows, 0, chunk)))
    return lax.scan(add, zero, jnp.arange(0, size, chunk))[0]


def chunk_of(rows: Any, begin: Any, chunk: int) -> tuple[Any, Any]:
    """Give the rows from `begin` on, and which of them count: the last chunk begins among those before."""
    first = jnp.minimum(begin, jax.tree.leaves(rows)[0].shape[0] - chunk)
    part = jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, first, chunk), rows)
    return part, first + jnp.arange(chunk) >= begin


def left_over(terms: Callable[[Any], Any], centre: Any, step: Any) -> Any:
    """Give log factors at centre + step, less their expansion at the centre to second order."""

    def along(at: Any) -> Any:
        return jax.jvp(terms, (at,), (step,))

    (value, slope), (_, curvature) = jax.jvp(along, (centre,), (step,))
    return terms(centre + step) - value - slope - 0.5 * curvature


def left_between(terms: Callable[[Any], Any], centre: Any, here: Any, there: Any) -> Any:
    """Give by how much `left_over` differs between two steps.

    With a = there - here and b = (there + here) / 2 the expansion grows by ∂_a f + ∂_a ∂_b f.
    """

    def along(at: Any) -> Any:
        return jax.jvp(terms, (at,), (0.5 * (there + here),))

    _, (slope, curvature) = jax.jvp(along, (centre,), (there - here,))
    return terms(centre + there) - terms(centre + here) - slope - curvature


def quadratic(found: tuple[Any, ...]) -> Quadratic:
    value, gradient, hessian = map(np.asarray, found)
    return Quadratic(float(value), gradient, 0.5 * (hessian + hessian.T))


def name_of(path: Sequence[Any], alone: str = "theta") -> str:
    """Give the name of a leaf of a pytree: a.b of {"a": {"b": 0.0}}, `alone` of a leaf that is all."""
    parts = [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path]
    return ".".join(parts) or alone


def entries(name: str, shape: tuple[int, ...]) -> list[str]:
    """Name the entries of an array."""
    return [f"{name}[{', '.join(map(str, index))}]" if shape else name for index in np.ndindex(*shape)]


def as_rows(data: Any, size: int | None) -> Any:
    """Give data as arrays of JAX, numbers with a point in double precision, or say which has other rows."""
    with in_double():
        rows = jax.tree.map(as_array, data)
    leaves = jax.tree_util.tree_flatten_with_path(rows)[0]
    if not leaves:
        raise InvalidArgument("data has no arrays; give a pytree of arrays with N rows each")
    count = leaves[0][1].shape[:1] if size is None else (size,)
    for path, leaf in leaves:
        if leaf.shape[:1] != count or leaf.shape[:1] == ():
            raise ShapeMismatch(
                f"{name_of(path, 'an array')} of the data has shape {leaf.shape}, and others have "
                f"{count or 'no'} rows; what is no row belongs into log_factor itself"
            )
    return rows


def as_array(leaf: Any) -> Any:
    array = jnp.asarray(leaf)
    return array.astype(float) if jnp.issubdtype(array.dtype, jnp.floating) else array
