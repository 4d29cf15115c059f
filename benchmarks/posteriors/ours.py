"""Posterior draws by this package: a numba model, a PyMC model, a JAX model; each in one call."""

import numpy as np
from measuring import MOST_ENTRIES, Chain, Law, Seconds, Task, now
from problems import Problem

SEED, CHAINS = 2, 4
# Draws of each chain in the first call: fewer of many parameters, as a sweep over these takes long.
FIRST, FIRST_OF_MANY, MANY = 1_000, 250, 500


def by_numba(task: Task) -> Chain:
    import gumbelrace as gr

    begun, problem = now(), task.problem
    fit = gr.posterior(
        problem.log_factor,
        problem.terms,
        problem.data,
        problem.size,
        start=np.zeros(problem.dimension),
        log_prior=problem.log_prior,
        remainder=problem.remainder,
        progress=False,
    )
    return measured(task, now() - begun, lambda draws: sampled(fit, draws))


def by_pymc(task: Task) -> Chain:
    from pymc_models import model_of

    import gumbelrace.pymc as raced
    from gumbelrace.pymc import sampling

    fits, made_ready_for, begun = [], sampling.made_ready_for, now()

    def remembered(*arguments):
        """Keep the fit that the call makes, to draw more from it: a second call would compile again."""
        fits.append((*made_ready_for(*arguments), now()))
        return fits[-1][:2]

    sampling.made_ready_for = remembered
    model = model_of(task.problem)
    raced.sample(model, first_of(task.problem), chains=CHAINS, random_seed=SEED, progressbar=False)
    spent, (fit, _, ready) = now() - begun, fits[0]
    setup = ready - begun
    return measured(task, setup, lambda draws: sampled(fit, draws), first=spent - setup)


def by_jax(task: Task) -> Chain:
    from numpyro_models import log_factor_of, log_prior_of, rows_of

    import gumbelrace.jax as raced

    begun, problem = now(), task.problem
    fit = raced.posterior(
        log_factor_of(problem),
        rows_of(problem),
        start=np.zeros(problem.dimension),
        log_prior=log_prior_of(problem),
        progress=False,
    )

    def sample(draws):
        trace = fit.sample(draws, chains=CHAINS, rng_key=SEED, progress=False)
        return trace.positions, trace.rows.mean()

    return measured(task, now() - begun, sample)


def sampled(fit, draws):
    """Draw, and give the draws and the rows read for each; a row is read at two points."""
    trace = fit.sample(draws, chains=CHAINS, rng=SEED, progress=False, check=0)
    return trace["position"], trace.info.evaluations.mean() / 2


def measured(task: Task, setup: Seconds, sample, first: Seconds | None = None) -> Chain:
    """Draw a first time, then twice more: what they differ by has neither compiling nor checks."""
    few, most = first_of(task.problem), longest(task.problem)
    first = first or timed(sample, few)[1]
    _, short = timed(sample, few)
    draws = 4 * few
    (positions, rows), long = timed(sample, draws)
    while (long - short).processor < 0.5 * task.seconds and draws < most:
        draws = min(4 * draws, most)
        (positions, rows), long = timed(sample, draws)
    spent, begun = (long - short).times(draws / (draws - few)), (setup + first, CHAINS * few)
    return Chain(task.problem.natural(positions), spent, setup, rows, begun)


def timed(sample, draws):
    begun = now()
    found = sample(draws)
    return found, now() - begun


def first_of(problem: Problem) -> int:
    return FIRST if problem.dimension < MANY else FIRST_OF_MANY


def longest(problem: Problem) -> int:
    return max(4 * FIRST, min(64_000, MOST_ENTRIES // (CHAINS * problem.dimension)))


# ---- Laplace's law, for the others ----


def law_of(problem: Problem) -> Law:
    """Find the mode, and the normal law of the same curvature."""
    from gumbelrace.laplace.compiled import CompiledModel
    from gumbelrace.laplace.mode import find_mode

    begun, start = now(), np.zeros(problem.dimension)
    functions = problem.log_factor, problem.terms, problem.data, problem.size, problem.log_prior
    names = [f"theta[{i}]" for i in range(len(start))]
    mode = find_mode(CompiledModel(*functions, start, names))
    covariance = np.linalg.inv(mode.precision)
    return Law(mode.theta, 0.5 * (covariance + covariance.T), now() - begun)
