"""Draws from the posterior of a PyMC model, in one call like `pymc.sample`."""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gumbelrace.core.interrupts import never_missed
from gumbelrace.core.random import Rng, as_generator
from gumbelrace.errors import InvalidArgument, NoMode, NotConverged, optional
from gumbelrace.laplace.from_table import Passes, TablePosterior, as_passes
from gumbelrace.laplace.habits import refuse
from gumbelrace.laplace.posterior import Posterior, made_ready
from gumbelrace.laplace.progress import Progress
from gumbelrace.methods.base import Method
from gumbelrace.population.base import checked_count
from gumbelrace.pymc.checks import kinks
from gumbelrace.pymc.discrete_posterior import StatePosterior, states_made_ready
from gumbelrace.pymc.from_table import Columns, of_table
from gumbelrace.pymc.model import PymcModel, model_of
from gumbelrace.pymc.result import (
    as_pymc_gives_it,
    attributes,
    natural_values,
    statistics,
    wanted,
    warn_unless_converged,
)

# Steps that are checked exactly at the end: each reads all rows a few times, which compiling costs as well.
CHECKED = 5
KINKED = (
    "the log density has a kink, where it has no curvature, so that no normal law is close to the "
    "posterior; give a smooth likelihood, such as a StudentT with few degrees of freedom, or use pm.sample"
)


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
    table: Any = None,
    columns: Columns | None = None,
    **others: Any,
) -> Any:
    """Draw from the posterior of a PyMC model, reading a few rows of its data a step.

    Observed variables and potentials with rows, of one length or several, are read row by row; all else is
    the prior. Parameters are drawn as PyMC transforms them, and given as they are in the model. Each state
    of discrete parameters has a mode of its own: there may be 32 states in all.

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
        Who decides on moves, or draws states, whichever it can; see `gumbelrace.Metropolis` and `Gibbs`.
    var_names : sequence of str, optional
        Variables to keep. Default: all parameters and deterministics, but for those with a value for each
        row.
    check : int
        How many steps are checked exactly at the end; see `run`. None, with a `table`.
    table : table or Passes, optional
        Rows on disk, of any size; see `gumbelrace.posterior`. The model is built with a few of them.
    columns : mapping, optional
        For each array of the model that has rows, by its name (that of `pymc.Data`, or of the observed
        variable), the column of the table that it stands for; for a matrix, a list of them. Default: the
        column of the same name.
    **others
        Other arguments of `pymc.sample` are refused; the message says what to do instead.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree
        What `pymc.sample` of the installed PyMC gives. ``sample_stats`` has `evaluations` (factors read),
        `acceptance_rate` and `law_error`; the attributes of ``posterior`` have the promise, the forecast
        and the audit.

    Raises
    ------
    InvalidArgument
        The model has no rows, discrete parameters with too many states, missing data, or log factors that
        depend on other rows.
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
    refuse(others, sample)
    pymc, rng, begun = optional("pymc", "pymc"), as_generator(random_seed), time.perf_counter()
    model, said = checked_model(pymc, model), Progress(progressbar)
    # What is wrong is said now: to compile and draw takes minutes.
    wanted(model, var_names)
    for name, count, least in (("draws", draws, 1), ("chains", chains, 1), ("tune", tune, 0)):
        checked_count(count, name, least)
    fit: Any
    with never_missed():
        fit, compiled = (
            made_ready_for(model, said, method, initvals)
            if table is None
            else made_ready_on(model, said, method, initvals, as_passes(table, rng), columns)
        )
    with said("drawing"), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # PyMC's own checks are made below
        options = {"progress": progressbar, "check": check if table is None else 0}
        trace = fit.sample(draws, chains=chains, warmup=tune, rng=rng, **options)
    if not trace.draws:  # stopped before the first
        raise KeyboardInterrupt
    with said("deterministics"):
        vectors = fit.joint(trace) if isinstance(fit, StatePosterior) else trace["position"]
        values = natural_values(model, compiled.graph, vectors, var_names)
    attrs = attributes(fit, trace, time.perf_counter() - begun)
    result = as_pymc_gives_it(model, values, statistics(trace), attrs)
    if chains > 1:
        with np.errstate(invalid="ignore"):  # states may never change
            warn_unless_converged(result, model)
    return result


def checked_model(pymc: Any, model: Any) -> Any:
    """Give the model, or that of the ``with`` block around the call."""
    if model is not None and not isinstance(model, pymc.Model):
        raise InvalidArgument(
            f"model is {model!r}; it must be a pymc.Model. Within a `with` block leave it out, and name "
            "the number of draws: sample(draws=1000)"
        )
    return pymc.modelcontext(model)


def made_ready_for(
    model: Any, said: Progress, method: Method | None, initvals: Mapping[str, Any] | None = None
) -> tuple[Posterior | StatePosterior, PymcModel | StatePosterior]:
    """Compile a model, find its mode, and look how well a normal law fits; or those of each state.

    What is given second has the graph of the draws.
    """
    if model.discrete_value_vars:
        states = states_made_ready(model, said, method, initvals)
        return states, states
    with said("compiling"):
        compiled = model_of(model, initvals)
    try:
        return made_ready(compiled, compiled.functions.log_prior, method, said), compiled
    except NoMode as error:
        if kinked := kinks(model):
            raise NoMode(f"{', '.join(kinked)}: {KINKED}") from error
        raise


def made_ready_on(
    model: Any,
    said: Progress,
    method: Method | None,
    initvals: Mapping[str, Any] | None,
    passes: Passes,
    columns: Columns | None,
) -> tuple[TablePosterior, PymcModel]:
    """Compile a model of a few rows, and make it ready for all rows of a table."""
    if model.discrete_value_vars:
        raise InvalidArgument("with a table, parameters must be continuous; sum out the discrete ones")
    with said("compiling"):
        compiled = model_of(model, initvals)
    return of_table(compiled, columns, passes, method, said), compiled
