"""Posterior draws of a model written in jax.numpy, of arrays or of a table on disk."""

from collections.abc import Callable
from typing import Any

from gumbelrace.errors import InvalidArgument
from gumbelrace.jax.data import as_rows, check_start
from gumbelrace.jax.from_table import posterior_of_table
from gumbelrace.jax.model import JaxModel
from gumbelrace.jax.packages import jax
from gumbelrace.jax.recipe import JaxPosterior, check_callable, check_numbers, made_ready
from gumbelrace.laplace.progress import Progress
from gumbelrace.population.base import checked_count


def posterior(
    log_factor: Callable[[Any, Any], Any],
    data: Any,
    size: int | None = None,
    *,
    start: Any,
    log_prior: Callable[[Any], Any] | None = None,
    table: Any = None,
    progress: bool = True,
) -> JaxPosterior:
    """Make a posterior p(θ) ∝ p0(θ) ∏ f_n(θ) ready to be drawn from: find its mode, its law and weights.

    Parameters
    ----------
    log_factor : callable
        ``log_factor(theta, row)`` in jax.numpy, log f_n for one row.
    data : pytree of arrays
        Arrays with N rows each; `row` is the same pytree of their n-th entries. With a `table`, names of
        its columns in the place of arrays: ``{"x": ["x0", "x1"], "y": "y"}``.
    size : int, optional
        N, if it shall be checked.
    start : pytree of numbers and arrays
        A θ, where to look for the mode, for example zeros. θ has no constraints: take logarithms of what is
        positive.
    log_prior : callable, optional
        ``log_prior(theta)`` in jax.numpy. Default: flat.
    table : table or Passes, optional
        Rows on disk, of any size; see `gumbelrace.posterior`.
    progress : bool
        Say on standard error what is being done.

    Raises
    ------
    NoMode
        The posterior has no mode, or is flat along some parameters, which are named.

    Warns
    -----
    PoorFit
        The posterior has a further mode.

    Notes
    -----
    All is computed in double precision; the setting of JAX is left as it is.

    Examples
    --------
    ::

        import jax.numpy as jnp, gumbelrace.jax as raced

        def log_factor(theta, row):
            s = theta["a"] + row["x"] @ theta["b"]
            return row["y"] * s - jnp.logaddexp(0.0, s)

        fit = raced.posterior(log_factor, {"x": x, "y": y}, start={"a": 0.0, "b": jnp.zeros(x.shape[1])})
        trace = fit.sample(draws=1000, chains=4, rng_key=0)
        trace.draws["b"].shape  # (4, 1000, x.shape[1])
    """
    check_callable(log_factor, "log_factor")
    if log_prior is not None:
        check_callable(log_prior, "log_prior")
    check_start(start)
    if table is not None:
        if size is not None:
            raise InvalidArgument("with a table there is no size to give; leave it out")
        return posterior_of_table(by_row(log_factor), prior_of(log_prior), data, start, table, progress)
    rows = as_rows(data, None if size is None else checked_count(size, "size"))
    model = JaxModel(by_row(log_factor), prior_of(log_prior), rows, (), start)
    check_numbers(model)
    return made_ready(model, Progress(progress))


def by_row(log_factor: Any) -> Any:
    """Give the log factors of some rows."""
    return lambda theta, some, whole: jax.vmap(log_factor, (None, 0))(theta, some)


def prior_of(log_prior: Any) -> Any:
    """Give a log prior that takes what is no row, too."""
    return lambda theta, whole: 0.0 if log_prior is None else log_prior(theta)
