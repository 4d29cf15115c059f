"""Posterior draws of a model that is written as numba functions, of arrays or of a table on disk."""

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from gumbelrace.errors import InvalidArgument, NoMode
from gumbelrace.kernels.target import checked_point
from gumbelrace.laplace.check_terms import check_terms
from gumbelrace.laplace.compiled import CompiledModel
from gumbelrace.laplace.from_table import as_passes, posterior_of_table
from gumbelrace.laplace.model import Floats
from gumbelrace.laplace.posterior import Posterior, made_ready
from gumbelrace.laplace.progress import Progress
from gumbelrace.methods.base import Method
from gumbelrace.population.base import checked_count
from gumbelrace.population.trial import checked_data, checked_dispatcher


def posterior(
    log_factor: Any,
    terms: Any,
    data: tuple[Any, ...],
    size: int | None = None,
    *,
    start: ArrayLike,
    log_prior: Callable[[Floats], float] | None = None,
    remainder: Callable[[Floats], ArrayLike] | None = None,
    method: Method | None = None,
    table: Any = None,
    progress: bool = True,
) -> Posterior:
    """Make a posterior p(θ) ∝ p0(θ) ∏ f_n(θ) ready to be drawn from: find its mode, its law and a kernel.

    Parameters
    ----------
    log_factor : numba function
        ``log_factor(n, theta, *data) -> float``.
    terms : numba function
        ``terms(n, centre, direction, *data) -> (value, slope, curvature)``: log f_n at the centre, and its
        first two derivatives along `direction`.
    data : tuple
        Arrays and numbers that both take. With a `table`, the names of its columns in the place of arrays:
        ``(["x0", "x1"], "y")`` for a matrix of two columns and a vector.
    size : int
        Number of rows N; not with a `table`.
    start : array_like of shape (d,)
        Where to look for the mode, for example zeros. θ has no constraints: take logarithms of what is
        positive.
    log_prior : callable, optional
        ``log_prior(theta) -> float``, smooth, by numba for speed. Default: flat.
    remainder : callable, optional
        ``remainder(metric)`` gives M_n with ``|log f_n(θ) - h_n(θ)| ≤ M_n ‖W(θ - mode)‖³``, `metric` being
        W, h_n the second-order expansion: for example ``lambda metric: logistic.remainder(x, metric)``. It
        makes exact tests possible (`Thinning`).
    method : Method, optional
        Who decides; see `Metropolis`.
    table : table or Passes, optional
        Rows on disk, `open_table(path)`, of any size: they are read in few passes, and chains then run in
        memory, on rows that were drawn ahead. `Passes` has the seed of these and a checkpoint. No
        `remainder` goes with it, and no other method than `Penalty`.
    progress : bool
        Say on standard error what is being done.

    Raises
    ------
    NoMode
        The posterior has no mode, or is flat along some parameters, which are named.

    Examples
    --------
    >>> import numpy as np, gumbelrace as gr
    >>> from gumbelrace.models import logistic
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(20_000, 2))
    >>> y = (rng.uniform(size=len(x)) < 1 / (1 + np.exp(-x.sum(axis=1)))).astype(float)
    >>> fit = gr.posterior(logistic.log_factor, logistic.terms, (x, y), len(x), start=[0.0, 0.0])
    >>> trace = fit.sample(draws=500, rng=0, progress=False)
    >>> trace["position"].shape
    (4, 500, 2)
    """
    checked_dispatcher(log_factor, "log_factor")
    checked_dispatcher(terms, "terms")
    point, said = checked_point(start), Progress(wanted=progress)
    names = [f"theta[{i}]" for i in range(len(point))]
    if table is not None:
        if size is not None or remainder is not None:
            raise InvalidArgument("with a table there is no size to give, and no remainder; leave them out")
        model = CompiledModel(log_factor, terms, (), 0, log_prior, point, names)
        return posterior_of_table(model, checked_names(data), log_prior, method, as_passes(table), said)
    given = checked_data(data, "(x, y)"), checked_count(size, "size")
    model = CompiledModel(log_factor, terms, *given, log_prior, point, names, remainder)
    try:
        return made_ready(model, log_prior, method, said)
    except NoMode:
        check_terms(model)
        raise


def checked_names(data: Any) -> tuple[Any, ...]:
    """Return the names of columns, if they are in a tuple as arrays would be."""
    if not isinstance(data, tuple):
        raise InvalidArgument(
            f"data is {data!r}; with a table give a tuple of names of its columns, for example "
            '(["x0", "x1"], "y")'
        )
    return data
