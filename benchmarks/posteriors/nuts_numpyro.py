"""NUTS and HMCECS of NumPyro: as people run them, and given Laplace's law. All start at the mode."""

import numpy as np
from measuring import FEWEST, MOST_ENTRIES, Chain, Task, now, tuning
from numpyro.infer import HMCECS, NUTS
from numpyro_models import model_of

import jax
from jax import numpy as jnp

jax.config.update("jax_enable_x64", True)

SEED = 4
# Rows that HMCECS reads, in blocks of which a step renews one; steps that one compiled call makes.
SUBSAMPLE, BLOCKS, CALL = 300, 10, 100


def as_it_is(task: Task) -> Chain:
    kernel = NUTS(model_of(task.problem))
    return run(task, kernel, tuning(task), 1, task.problem.size)


def with_law(task: Task) -> Chain:
    """Tune nothing but the length of steps: the law has the masses."""
    kernel = NUTS(model_of(task.problem), **masses(task))
    return run(task, kernel, 200, 1, task.problem.size)


def hmcecs(task: Task) -> Chain:
    """Expand log factors at the mode, as its authors advise, and give it the law's masses."""
    model = model_of(task.problem, SUBSAMPLE)
    inner = NUTS(model, **masses(task))
    at_mode = task.problem.parts(task.problem.natural(task.law.mode))
    kernel = HMCECS(inner, num_blocks=BLOCKS, proxy=HMCECS.taylor_proxy(at_mode))
    return run(task, kernel, 300, CALL, SUBSAMPLE)


def masses(task: Task) -> dict:
    names, covariance = tuple(task.problem.names), jnp.asarray(task.law.covariance)
    return {"dense_mass": [names], "inverse_mass_matrix": {names: covariance}, "adapt_mass_matrix": False}


def run(task: Task, kernel, warmup: int, steps: int, rows: int) -> Chain:
    """Make so many steps a call, in compiled code, until time is up."""
    begun, problem = now(), task.problem
    data = tuple(map(jnp.asarray, problem.data))
    state = kernel.init(jax.random.key(SEED), warmup, problem.parts(task.law.mode), data, {})

    @jax.jit
    def advanced(state, data):
        def step(state, _):
            state = kernel.sample(state, data, {})
            inner = getattr(state, "hmc_state", state)
            theta = [jnp.ravel(inner.z[name]) for name in problem.names]
            return state, (jnp.concatenate(theta), inner.num_steps)

        return jax.lax.scan(step, state, length=steps)

    for _ in range(-(-warmup // steps)):
        state, made = jax.block_until_ready(advanced(state, data))
    ready, calls = now(), []
    most = MOST_ENTRIES // (steps * problem.dimension)
    while ((now() - ready).processor < task.seconds or steps * len(calls) < FEWEST) and len(calls) < most:
        state, made = jax.block_until_ready(advanced(state, data))
        calls.append(made)
    spent = now() - ready
    thetas, leapfrogs = (np.concatenate(parts) for parts in zip(*calls, strict=True))
    setup = task.law.seconds + (ready - begun)
    return Chain(problem.natural(thetas)[None], spent, setup, rows * float(leapfrogs.mean()))
