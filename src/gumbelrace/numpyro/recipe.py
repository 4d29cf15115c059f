"""Posterior draws of a NumPyro model in one call."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumbelrace.errors import InvalidArgument
from gumbelrace.jax.packages import in_double, jax, jnp
from gumbelrace.jax.recipe import as_key, check_callable, made_ready
from gumbelrace.jax.trace import JaxTrace, as_arviz
from gumbelrace.laplace.habits import refuse
from gumbelrace.laplace.pilot import Forecast
from gumbelrace.laplace.progress import Progress
from gumbelrace.numpyro.rowwise import FEWEST_ROWS, RowwiseModel, rowwise
from gumbelrace.numpyro.sites import Sites
from gumbelrace.population.base import checked_count


@dataclass(frozen=True, eq=False, repr=False)
class NumpyroTrace:
    """Draws of a NumPyro model.

    Attributes
    ----------
    trace : JaxTrace
        The draws without constraints, what they took, r-hat, and what the check at the end has found.
    forecast : Forecast
        What the pilot had expected.
    """

    trace: JaxTrace
    forecast: Forecast
    _sites: Mapping[str, Any]

    def __repr__(self) -> str:
        """Say what there is."""
        return f"NumpyroTrace({', '.join(self._sites)}; {self.trace!r})"

    def get_samples(self, group_by_chain: bool = False) -> dict[str, Any]:
        """Give the draws as `numpyro.infer.MCMC.get_samples` does: latent sites, and deterministic ones.

        Deterministic sites that depend on single rows are left out: `numpyro.infer.Predictive` gives them.

        Parameters
        ----------
        group_by_chain : bool
            Whether arrays have the shape (chains, draws, ...), or (chains × draws, ...).
        """
        if group_by_chain:
            return {name: jnp.asarray(values) for name, values in self._sites.items()}
        return {
            name: jnp.asarray(values.reshape(-1, *values.shape[2:])) for name, values in self._sites.items()
        }

    def to_arviz(
        self,
        dims: Mapping[str, Sequence[str]] | None = None,
        coords: Mapping[str, Sequence[Any]] | None = None,
    ) -> Any:
        """Convert to the DataTree of ArviZ, as `JaxTrace.to_arviz` does; needs the extra ``arviz``."""
        return as_arviz(self._sites, self.trace, dims, coords)


def sample(
    model: Callable[..., Any],
    *args: Any,
    rng_key: Any = None,
    num_samples: int = 1000,
    num_chains: int = 4,
    num_warmup: int = 100,
    progress_bar: bool = True,
    **kwargs: Any,
) -> NumpyroTrace:
    """Draw from the posterior of a NumPyro model, reading few rows for each draw.

    The model is used as it is. It has one ``numpyro.plate`` over its observed rows: with
    ``subsample_size`` and ``numpyro.subsample``, as `numpyro.infer.HMCECS` takes it, with data indexed by
    the plate, or a plain one, the data being arguments whose first dimension is N. Latent sites are
    continuous, and none lies in that plate.

    Parameters
    ----------
    model : callable
        The model.
    *args, **kwargs
        What the model takes.
    rng_key : key of jax.random, int, or None
        A key, a seed, or None for no seed.
    num_samples, num_chains, num_warmup : int
        Draws of each chain, how many chains, and steps before that are not kept.
    progress_bar : bool
        Say on standard error what is being done, and show how far the chains are, in a terminal or a
        notebook, if the package rich is there.

    Raises
    ------
    InvalidArgument
        The model is not of this kind; the message says where, and what to do.
    NoMode
        The posterior has no mode, or is flat along some parameters, which are named.

    Warns
    -----
    PoorFit, NotConverged, PromiseBroken
        As `gumbelrace.jax.JaxPosterior.sample` does.

    Examples
    --------
    ::

        import numpyro, numpyro.distributions as dist, gumbelrace.numpyro as raced

        def model(x, y):
            b = numpyro.sample("b", dist.Normal(0.0, 10.0).expand([x.shape[1]]).to_event(1))
            with numpyro.plate("rows", len(y)):
                numpyro.sample("y", dist.Bernoulli(logits=x @ b), obs=y)

        raced.sample(model, x, y, rng_key=0).get_samples()["b"]
    """
    check_callable(model, "model")
    check_call(model, args, kwargs)
    counts = ("num_samples", num_samples, 1), ("num_chains", num_chains, 1), ("num_warmup", num_warmup, 0)
    for name, count, least in counts:
        checked_count(count, name, least)
    key, said = as_key(rng_key), Progress(progress_bar)
    with said("model"):
        found, start = rowwise(model, args, kwargs)
    fit = made_ready(found.as_jax(start), said)
    trace = fit.sample(
        num_samples, chains=num_chains, warmup=num_warmup, rng_key=key, progress=progress_bar
    )
    return NumpyroTrace(trace, fit.forecast, natural(found, trace.draws))


def check_call(model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse what the model does not take: arguments of `numpyro.infer.MCMC`, perhaps."""
    signature = inspect.signature(model)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        refuse([name for name in kwargs if name not in signature.parameters], sample)
        raise InvalidArgument(f"the model cannot be called with what was given: {error}") from error


def natural(model: RowwiseModel, draws: Sites) -> dict[str, Any]:
    """Give the values of sites as users know them, but of those that depend on which rows are computed."""
    count = model.plate.size
    with in_double():
        first = {name: values[0, 0] for name, values in draws.items()}
        some = [model.values(first, rows) for rows in (np.arange(FEWEST_ROWS), np.arange(count)[-3:])]
        kept = [name for name in some[0] if same(*(values[name] for values in some))]

        def of_draw(theta: Sites) -> dict[str, Any]:
            values = model.values(theta, np.arange(FEWEST_ROWS))
            return {name: values[name] for name in kept}

        return {
            name: np.asarray(values) for name, values in jax.jit(jax.vmap(jax.vmap(of_draw)))(draws).items()
        }


def same(one: Any, other: Any) -> bool:
    return np.shape(one) == np.shape(other) and bool(np.allclose(one, other, equal_nan=True))
