"""A posterior whose log factors are written in jax.numpy.

Derivatives come by JAX; sums go over chunks of rows, so that no array of shape (N, d, d) is ever made.
Where each row depends on few of many parameters, a Hessian comes from few products with directions.
Everything is computed in double precision, whatever the setting of JAX.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.errors import InvalidArgument
from gumbelrace.jax.data import entries, name_of
from gumbelrace.jax.packages import in_double, jax, jnp, lax
from gumbelrace.jax.sums import chunk_of, derivatives, left_between, left_over, over_chunks, rows_at
from gumbelrace.laplace.mode import Mode
from gumbelrace.laplace.model import Floats, Indices, Quadratic
from gumbelrace.laplace.parts import FEW, MANY_TIMES
from gumbelrace.laplace.sparse import Hessians, pairs

# Rows of a chunk are so many that they and their derivatives take about that many numbers.
NUMBERS, FEWEST, MOST = 2**20, 256, 16_384
# Which pairs of parameters matter is seen at some rows first, then at more; beside the point, at which
# derivatives may happen to be zero.
PATTERN_ROWS, PATTERN_MORE, BESIDE = 20_000, 4, 0.1

SEED = 0
# What JAX compiles for rows of one number.
COMPILED = ("_of_factors", "_of_prior", "_slope", "_slopes", "_left_over", "_left_over_at")

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
    is_steepened : bool
        Whether rows come with numbers by which the slopes of their expansions are multiplied, as `Steep`.
    """

    log_factors: LogFactors
    prior_of: Callable[[Any, Any], Any]
    rows: Any
    whole: Any
    example: Any
    is_steepened: bool = False

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
        given = rows.given if self.is_steepened else rows
        return self.log_factors(self.unravel(vector), given, whole).astype(float)

    def factors_of_slopes(self, rows: Any) -> Any:
        """Give by what the slopes of the expansions of some rows are multiplied."""
        return rows.factors if self.is_steepened else 1.0

    def left_of(self, rows: Any, whole: Any, centre: Any, step: Any) -> Any:
        """Give what second-order expansions leave of the log factors of some rows."""
        return left_over(lambda at: self.terms(at, rows, whole), centre, step, self.factors_of_slopes(rows))

    def left_of_move(self, rows: Any, whole: Any, centre: Any, ends: tuple[Any, Any]) -> Any:
        """Give by how much that differs between two steps from the centre."""
        return left_between(
            lambda at: self.terms(at, rows, whole), centre, *ends, self.factors_of_slopes(rows)
        )

    def steepened(self, factors: Floats) -> "JaxModel":
        """Give the same model, the slope of each row's expansion multiplied by a number of its own."""
        with in_double():
            made = replace(self._steep, rows=Steep(self.rows, jnp.asarray(factors)))
        share_compiled(self._steep, made)
        return made

    @functools.cached_property
    def _steep(self) -> "JaxModel":
        """The same model with factors of 1, compiled once for all others."""
        return replace(self, rows=Steep(self.rows, jnp.ones(self.size)), is_steepened=True)

    def slope(self, theta: Floats) -> Floats:
        """Give the sum of the slopes of all rows' expansions."""
        with in_double():
            return np.asarray(self._slope(theta, self.rows, self.whole))

    def log_prior_at(self, vector: Any, whole: Any) -> Any:
        """Give the log prior at a vector."""
        return jnp.asarray(self.prior_of(self.unravel(vector), whole), float)

    def shapes(self) -> dict[str, Any]:
        """Give the shapes of a log factor and of the log prior, without computing them."""
        with in_double():
            one = jax.tree.map(lambda leaf: leaf[:1], self.rows)
            at_start = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), self.example)
            factors = jax.eval_shape(self.log_factors, at_start, one, self.whole)
            if not isinstance(factors, jax.ShapeDtypeStruct):
                raise InvalidArgument(f"log_factor returns {factors!r}; it must return a number for a row")
            prior = jax.eval_shape(lambda *of: jnp.asarray(self.prior_of(*of)), at_start, self.whole)
        return {"log_factor": factors.update(shape=factors.shape[1:]), "log_prior": prior}

    def value(self, theta: Floats) -> float:
        """Give log p0(θ) + Σ log f_n(θ)."""
        prior = self.log_prior(theta)
        return prior + self._sums(theta, None)[0] if prior > -np.inf else prior

    def gradient(self, theta: Floats) -> Floats:
        """Give the gradient of the same."""
        nowhere = np.zeros((0, len(theta)))
        gradient: Floats = self._prior_sums(theta, nowhere)[1] + self._sums(theta, nowhere)[1]
        return gradient

    def prior(self, theta: Floats) -> Quadratic:
        """Give log p0 near θ."""
        return self._prior_hessians.at(theta)

    def factors(self, theta: Floats) -> Quadratic:
        """Give Σ log f_n near θ."""
        return self._hessians.at(theta)

    def log_prior(self, theta: Floats) -> float:
        """Give log p0(θ)."""
        found: float = self._prior_sums(theta, None)[0]
        return found

    def residuals(self, centre: Floats, step: Floats) -> Floats:
        """Give what second-order expansions leave of all log factors."""
        with in_double():
            return np.asarray(self._left_over(centre, step, self.rows, self.whole))

    def of_rows(self, numbers: Indices) -> Any:
        """Give the same model of some of its rows, as far as blocks need it: their residuals."""
        return SomeRows(self, numbers)

    def likelihood_of(self, mode: Mode, numbers: Indices, weights: Floats | None) -> Any:
        """Give the rows that a block changes, and their weights."""
        return Weighted(numbers, weights)

    def _sums(self, theta: Floats, directions: Floats | None) -> Any:
        with in_double():
            return as_numbers(self._of_factors(theta, directions, self.rows, self.whole))

    def _prior_sums(self, theta: Floats, directions: Floats | None) -> Any:
        with in_double():
            return as_numbers(self._of_prior(theta, directions, self.whole))

    @functools.cached_property
    def _hessians(self) -> Hessians:
        return Hessians(self._sums, self._pattern_at)

    @functools.cached_property
    def _prior_hessians(self) -> Hessians:
        return Hessians(self._prior_sums, self._prior_pattern_at)

    def _pattern_at(self, theta: Floats, attempt: int) -> Any:
        """Give the pairs of parameters that rows depend on: some rows, more of them, in the end all."""
        rng = np.random.default_rng(SEED)
        count = min(PATTERN_ROWS * PATTERN_MORE**attempt, self.size) if attempt < 2 else self.size
        some, chunk = rng.choice(self.size, count, replace=False), self.chunk_for(len(theta))
        touched = scipy.sparse.vstack(
            [self._touched(beside(theta), part) for part in np.split(some, range(chunk, count, chunk))]
        )
        return pairs(touched.indptr, touched.indices, len(theta))

    def _touched(self, theta: Floats, numbers: Indices) -> Any:
        """Give which parameters rows depend on, a sparse array of shape (rows, d)."""
        with in_double():
            slopes = self._slopes(theta, filled(numbers, self.chunk_for(len(theta))), self.rows, self.whole)
            return scipy.sparse.csr_array(np.asarray(slopes)[:, : len(numbers)].T != 0.0)

    def _prior_pattern_at(self, theta: Floats, attempt: int) -> Any:
        """Give the pairs of parameters that the prior couples."""
        products = self._prior_sums(beside(theta), np.eye(len(theta)))[2]
        found = np.nan_to_num(products) != 0.0
        return scipy.sparse.csr_array(found | found.T)

    @functools.cached_property
    def _of_prior(self) -> Any:
        def of_prior(theta: Any, directions: Any, whole: Any) -> Any:
            return derivatives(lambda at: self.log_prior_at(at, whole), theta, directions)

        return jax.jit(of_prior)

    @functools.cached_property
    def _of_factors(self) -> Any:
        def of_factors(theta: Any, directions: Any, rows: Any, whole: Any) -> Any:
            def of_chunk(part: Any, counts: Any) -> Any:
                def total(at: Any) -> Any:
                    return jnp.where(counts, self.terms(at, part, whole), 0.0).sum()

                return derivatives(total, theta, directions)

            return over_chunks(of_chunk, rows, self.chunk_for(0 if directions is None else len(directions)))

        return jax.jit(of_factors)

    @functools.cached_property
    def _slope(self) -> Any:
        def of_rows(theta: Any, rows: Any, whole: Any) -> Any:
            def of_chunk(part: Any, counts: Any) -> Any:
                times = jnp.where(counts, self.factors_of_slopes(part), 0.0)
                return jax.grad(lambda at: (times * self.terms(at, part, whole)).sum())(theta)

            return over_chunks(of_chunk, rows, self.chunk)

        return jax.jit(of_rows)

    @functools.cached_property
    def _slopes(self) -> Any:
        def along_axes(theta: Any, numbers: Any, rows: Any, whole: Any) -> Any:
            some = rows_at(rows, numbers)

            def along(direction: Any) -> Any:
                return jax.jvp(lambda at: self.terms(at, some, whole), (theta,), (direction,))[1]

            return jax.vmap(along)(jnp.eye(len(theta)))

        return jax.jit(along_axes)

    @functools.cached_property
    def _left_over(self) -> Any:
        def of_all(centre: Any, step: Any, rows: Any, whole: Any) -> Any:
            def of_chunk(begin: Any) -> Any:
                part, _ = chunk_of(rows, begin, self.chunk)
                return self.left_of(part, whole, centre, step)

            found = lax.map(of_chunk, jnp.arange(0, self.size, self.chunk))
            # The last chunk begins earlier than the others end.
            again = found.size - self.size
            return jnp.concatenate([found[:-1].ravel(), found[-1, again:]])

        return jax.jit(of_all)

    @functools.cached_property
    def _left_over_at(self) -> Any:
        def of_some(centre: Any, step: Any, numbers: Any, rows: Any, whole: Any) -> Any:
            return self.left_of(rows_at(rows, numbers), whole, centre, step)

        return jax.jit(of_some)

    @property
    def chunk(self) -> int:
        """Rows of a chunk."""
        return self.chunk_for(0)

    def chunk_for(self, directions: int) -> int:
        """Rows of a chunk of which derivatives along so many directions are computed."""
        numbers = sum(int(np.prod(leaf.shape[1:])) for leaf in jax.tree.leaves(self.rows))
        many = NUMBERS // max(numbers, directions, 1)
        return min(max(min(many, MOST), FEWEST), self.size)


class Steep(NamedTuple):
    """Rows, and the numbers by which the slopes of their expansions are multiplied."""

    given: Any
    factors: Any


class Weighted(NamedTuple):
    """Rows, and the weights by which they are picked; None: all the same."""

    numbers: Indices
    weights: Floats | None


class SomeRows(NamedTuple):
    """Some rows of a model, computed by what is compiled for any of them."""

    model: JaxModel
    numbers: Indices

    def residuals(self, centre: Floats, step: Floats) -> Floats:
        """Give what second-order expansions leave of their log factors."""
        model, chunk = self.model, self.model.chunk
        parts = np.split(self.numbers, range(chunk, len(self.numbers), chunk))
        with in_double():
            found = [
                model._left_over_at(centre, step, filled(part, chunk), model.rows, model.whole)
                for part in parts
            ]
        return np.concatenate([np.asarray(some)[: len(p)] for some, p in zip(found, parts, strict=True)])


def share_compiled(one: JaxModel, other: JaxModel) -> None:
    """Let a model use what is compiled for another one, of other rows, but as many."""
    vars(other).update({name: getattr(one, name) for name in COMPILED})


def as_numbers(found: tuple[Any, ...]) -> tuple[Any, ...]:
    """Give a value, and the arrays after it, as NumPy has them."""
    return np.float64(found[0]), *map(np.asarray, found[1:])


def filled(numbers: Indices, count: int) -> Indices:
    """Repeat the first row until there are so many: what is compiled takes one length only."""
    return np.concatenate([numbers, np.full(count - len(numbers), numbers[:1].sum())])


def beside(theta: Floats) -> Floats:
    """Give a point beside another, at which derivatives may happen to be zero."""
    return theta + BESIDE * np.random.default_rng(SEED).standard_normal(len(theta))
