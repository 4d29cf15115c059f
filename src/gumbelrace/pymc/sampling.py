"""Draws from the posterior of a PyMC model, in one call like `pymc.sample`."""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import NotConverged, optional
from gumbelrace.laplace.posterior import Posterior, made_ready
from gumbelrace.laplace.progress import Progress
from gumbelrace.methods.base import Method
from gumbelrace.pymc.model import PymcModel, model_of
from gumbelrace.pymc.result import (
    as_pymc_gives_it,
    attributes,
    natural_values,
    statistics,
    warn_unless_converged,
)

# Steps that are checked exactly at the end: each reads all rows a few times, which compiling costs as well.
CHECKED = 5


def sample(
    model: Any = None,
    draws: int = 1000,
    *,
    chains: int = 4,
    tune: int = 100,
    random_seed: Rng = None,
    progressbar: bool = True,
    initvals: Mapping[str, Any] | None = None,
    method: Method | None = None,
    var_names: Sequence[str] | None = None,
    check: int = CHECKED,
) -> Any:
    """Draw from the posterior of a PyMC model, reading a few rows of its data a step.

    Observed variables and potentials with rows, of one length or several, are read row by row; all else is
    the prior. Parameters are drawn as PyMC transforms them, and given as they are in the model.

    Parameters
    ----------
    model : pymc.Model, optional
        The model. Default: that of the ``with`` block around the call.
    draws, chains, tune : int
        Draws of each chain, how many chains, and steps before that are not kept.
    random_seed : int, numpy.random.Generator, or None
        A seed, a generator, or None for no seed.
    progressbar : bool
        Say on standard error what is being done.
    initvals : mapping, optional
        Values of parameters, by their names, from which to look for the mode, as `pymc.sample` takes them.
        Default: PyMC's own. Chains start from draws of the law around the mode.
    method : Method, optional
        Who decides; see `Metropolis`.
    var_names : sequence of str, optional
        Variables to keep. Default: all parameters and deterministics, but for those with a value for each
        row.
    check : int
        How many steps are checked exactly at the end; see `run`.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree
        What `pymc.sample` of the installed PyMC gives. ``sample_stats`` has `evaluations` (factors read),
        `acceptance_rate` and `law_error`; the attributes of ``posterior`` have the promise, the forecast
        and the audit.

    Raises
    ------
    InvalidArgument
        The model has no rows, discrete parameters, missing data, or log factors that depend on other rows.
    NoMode
        The posterior has no mode, or is flat along some parameters, which are named.

    Warns
    -----
    PoorFit, PromiseBroken
        As `Posterior.sample` does.
    NotConverged
        PyMC's own checks, of r-hat and effective sample sizes, find something.

    Examples
    --------
    ::

        import pymc as pm, gumbelrace.pymc as raced

        with pm.Model() as model:
            a, b = pm.Normal("a", 0, 10), pm.Normal("b", 0, 10, shape=10)
            pm.Bernoulli("y", logit_p=a + x @ b, observed=y)

        idata = raced.sample(model, draws=2000, chains=4, random_seed=0)
    """
    pymc, rng, begun = optional("pymc", "pymc"), as_generator(random_seed), time.perf_counter()
    model, said = pymc.modelcontext(model), Progress(progressbar)
    fit, compiled = made_ready_for(model, said, method, initvals)
    with said("drawing"), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # PyMC's own checks are made below
        options = {"progress": progressbar, "check": check}
        trace = fit.sample(draws, chains=chains, warmup=tune, rng=rng, **options)
    with said("deterministics"):
        values = natural_values(model, compiled.graph, trace["position"], var_names)
    attrs = attributes(fit, trace, time.perf_counter() - begun)
    result = as_pymc_gives_it(model, values, statistics(trace), attrs)
    if chains > 1:
        warn_unless_converged(result, model)
    return result


def made_ready_for(
    model: Any, said: Progress, method: Method | None, initvals: Mapping[str, Any] | None = None
) -> tuple[Posterior, PymcModel]:
    """Compile a model, find its mode, and look how well a normal law fits."""
    with said("compiling"):
        compiled = model_of(model, initvals)
    return made_ready(compiled, compiled.functions.log_prior, method, said), compiled
