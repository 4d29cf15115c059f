"""How the control variates of ARCH models are made."""

from collections.abc import Iterator, Sequence

import numpy as np

from gumbelrace.errors import InvalidArgument, ShapeMismatch
from gumbelrace.models.arch.data import Lagged
from gumbelrace.models.arch.expansion import Coefficients, Expansion, Known, mean_squares
from gumbelrace.models.arch.model import Arch
from gumbelrace.models.arch.polynomials import TERMS, Centre, Projection, form_of
from gumbelrace.models.arch.rows import ALPHA, NU, ORDER, Floats, Indices, points_of
from gumbelrace.population.control import Always

# Pilots at which the misfit of rows is found.
PILOTS = 64

# Rows whose lags are copied at a time: they fit into the cache.
BLOCK = 2048


def expand(
    data: Lagged,
    models: Sequence[Arch],
    pilots: Sequence[Floats],
    fit: Projection | None = None,
    share: float = 0.01,
) -> Expansion:
    """Expand the log factors of models around where they will be read.

    Parameters
    ----------
    data : Lagged
        Rows.
    models : sequence of K Arch
        Models of different orders.
    pilots : sequence of K arrays of shape (M, q + 2)
        Parameters of each model like those at which it will be read, some hundred of them: draws from its
        pseudoprior. Their means of α and ν are the centre.
    fit : Projection
        How the polynomials are chosen.
    share : float
        Share of the rows that is always read: those on which the polynomials fit the pilots worst.

    Examples
    --------
    >>> import gumbelrace as gr
    >>> from gumbelrace.models.arch.likelihood import ArchLikelihood
    >>> from gumbelrace.models.arch import lagged, laplace, simulate, standardised
    >>> rng = np.random.default_rng(0)
    >>> data = lagged(standardised(simulate(13_000, rng)), 10)
    >>> models = [Arch(order) for order in (5, 10)]
    >>> pilots = [laplace(model, data).sample(rng, 300) for model in models]
    >>> population = ArchLikelihood(data, control=expand(data, models, pilots))([p[0] for p in pilots])
    >>> outcome = gr.best(population, rng=rng)
    >>> outcome.arm, outcome.evaluations / population.rewards < 0.05
    (1, True)
    """
    if not 0.0 <= share < 1.0:
        raise InvalidArgument(f"share is {share}; it must lie in [0, 1)")
    model_of = models_by_order(models, data)
    points = [_checked_pilots(*pair, data) for pair in zip(models, pilots, strict=True)]
    centres = np.stack([pilot.mean(axis=0) for pilot in points])
    base, terms = _fitted_all(data, points, fit or Projection())
    parts = (*data.parts, base, terms, centres, model_of)
    always = _worst(np.sum([mean_squares(pilot[:PILOTS], *parts) for pilot in points], axis=0), share)
    raced = always.raced if always else np.arange(data.size)
    forms = [form_of(_blocks(data, m.order, terms[:, k], raced), m.order) for k, m in enumerate(models)]
    known = Known(
        always.rows if always else np.empty(0, np.int64),
        len(raced),
        terms.shape[2] == TERMS[3],
        centres,
        np.concatenate(forms),
        np.cumsum([0, *map(len, forms)]),
        model_of,
    )
    return Expansion(data, base, terms, known, always)


def models_by_order(models: Sequence[Arch], data: Lagged) -> Indices:
    """Give the number of the model of each order up to that of the data, -1 if there is none."""
    orders = [model.order for model in models]
    if not orders or len(set(orders)) < len(orders):
        raise InvalidArgument(f"the models have orders {orders}; give at least one, all different")
    if max(orders) > data.lags:
        raise ShapeMismatch(f"the data have {data.lags} lags; a model of order {max(orders)} needs as many")
    found = np.full(data.lags + 1, -1)
    found[orders] = np.arange(len(orders))
    return found


def _checked_pilots(model: Arch, pilots: Floats, data: Lagged) -> Floats:
    if np.ndim(pilots) != 2 or np.shape(pilots)[1] != model.dimension or len(pilots) < 2:
        raise ShapeMismatch(
            f"pilots of order {model.order} have shape {np.shape(pilots)}; give two or more parameters, "
            f"of shape (M, {model.dimension})"
        )
    return points_of(pilots, model.tau, data.lags)


def _fitted_all(data: Lagged, pilots: Sequence[Floats], fit: Projection) -> tuple[Floats, Coefficients]:
    """Give the variances of all rows and models at the centres, and their coefficients."""
    found = [_fitted(data, pilot, fit) for pilot in pilots]
    base, terms = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    if not (np.abs(terms) < np.finfo(np.float32).max).all():
        raise InvalidArgument("log factors have no finite expansion there; give pilots around the mode")
    return base, terms.astype(np.float32)


def _fitted(data: Lagged, pilots: Floats, fit: Projection) -> tuple[Floats, Floats]:
    """Give the variances of all rows at the centre, and the coefficients of their polynomials."""
    order, centre = int(pilots[0, ORDER]), pilots.mean(axis=0)
    alphas = pilots[:, ALPHA : ALPHA + order + 1]
    covariance = np.atleast_2d(np.cov(alphas.T))
    s, squared = np.empty(data.size), np.empty(data.size)
    for start in range(0, data.size, BLOCK):
        rows = slice(start, start + BLOCK)
        design = data.design(order, rows)
        s[rows] = design @ centre[ALPHA : ALPHA + order + 1]
        squared[rows] = np.einsum("ni,ni->n", design @ covariance, design)
    spread, y = np.sqrt(squared), data.squares[data.where]
    return s, fit.coefficients(Centre(s, spread, centre[NU], pilots[:, NU].std(), y))


def _blocks(
    data: Lagged, order: int, terms: Coefficients, rows: Indices
) -> Iterator[tuple[Floats, Floats]]:
    for start in range(0, len(rows), BLOCK):
        some = rows[start : start + BLOCK]
        yield data.design(order, some), terms[some].astype(np.float64)


def _worst(misfit: Floats, share: float) -> Always | None:
    count = int(share * len(misfit))
    return Always(np.sort(np.argpartition(misfit, -count)[-count:]), len(misfit)) if count else None
