"""SGLD of BlackJAX on batches of rows, its gradients less those of the same rows at the mode.

That is the control variate of Baker et al. (2019). In coordinates in which Laplace's law is standard, the
same length of step suits all: 0.1 has a bias of a few percent by itself, and batches add to it.
"""

import blackjax
import numpy as np
from measuring import MOST_ENTRIES, Chain, Task, now
from problems import PRIOR_SD

import jax
from jax import numpy as jnp

jax.config.update("jax_enable_x64", True)

SEED, BATCH, LENGTH, CALL = 7, 1_000, 0.1, 500


def by_blackjax(task: Task) -> Chain:
    """Make CALL steps a compiled call, until time is up."""
    begun, problem = now(), task.problem
    x, y = map(jnp.asarray, problem.data)
    mode, root = jnp.asarray(task.law.mode), jnp.asarray(task.law.root)

    def slope(theta, x, y):
        return (y - jax.nn.sigmoid(x @ theta)) @ x

    whole = slope(mode, x, y)

    def gradient(u, rows):
        theta = mode + root @ u
        along = problem.size / BATCH * (slope(theta, *rows) - slope(mode, *rows))
        return root.T @ (whole + along - theta / PRIOR_SD**2)

    sampler = blackjax.sgld(gradient)

    @jax.jit
    def advanced(u, key):
        def step(u, key):
            noise, choice = jax.random.split(key)
            rows = jax.random.randint(choice, (BATCH,), 0, problem.size)
            u = sampler.step(noise, u, (x[rows], y[rows]), LENGTH)
            return u, mode + root @ u

        return jax.lax.scan(step, u, jax.random.split(key, CALL))

    u, key, calls = jnp.zeros(problem.dimension), jax.random.key(SEED), []
    u, _ = jax.block_until_ready(advanced(u, key))
    ready = now()
    while (now() - ready).processor < task.seconds and len(calls) * CALL * len(u) < MOST_ENTRIES:
        u, made = jax.block_until_ready(advanced(u, jax.random.fold_in(key, len(calls))))
        calls.append(np.asarray(made))
    draws = np.concatenate(calls)[None]
    return Chain(draws, now() - ready, task.law.seconds + (ready - begun), BATCH)
