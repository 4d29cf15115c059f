"""The exact rival: proposals of Laplace's law, tested with all rows, many at once by matrix products."""

import numpy as np
from measuring import MOST_ENTRIES, Chain, Task, now
from problems import COLUMNS, Problem

SEED, BATCH = 5, 64
ROWS = 4_096  # at a time, so that intermediate results fit into a cache


def by_batches(task: Task) -> Chain:
    begun, problem, rng = now(), task.problem, np.random.default_rng(SEED)
    mode, root, total = task.law.mode, task.law.root, totals_of(problem)

    def heights(z):
        """Log posterior less the log density of the law, up to a constant."""
        points = mode + z @ root.T
        priors = np.array([problem.log_prior(point) for point in points])
        return total(points) + priors + 0.5 * np.square(z).sum(axis=1)

    z = np.zeros((BATCH, len(mode)))
    current, height = z[0], heights(z)[0]  # compiles
    ready, chain = now(), []
    while (now() - ready).processor < task.seconds and len(chain) * len(mode) < MOST_ENTRIES:
        z = rng.standard_normal((BATCH, len(mode)))
        for proposed, value in zip(z, heights(z), strict=True):
            if value - height > -rng.standard_exponential():
                current, height = proposed, value
            chain.append(current)
    spent = now() - ready
    draws = problem.natural(mode + np.array(chain) @ root.T)[None]
    return Chain(draws, spent, task.law.seconds + (ready - begun), problem.size)


def totals_of(problem: Problem):
    """Give the function that sums log factors over all rows, of many points at once."""
    if problem.kind == "logistic":
        from tests_of_moves import log_likelihoods  # written in vector registers, for it alone

        x, y = problem.data
        signed = x * (2.0 * y[:, None] - 1.0)
        return lambda points: log_likelihoods(signed, points)
    return by_jax(problem)


def by_jax(problem: Problem):
    import jax.numpy as jnp

    import jax

    jax.config.update("jax_enable_x64", True)
    parts, rest = in_parts(problem)
    of_part = {"student": student, "poisson": poisson}[problem.kind]

    @jax.jit
    def total(points, parts, rest):
        in_turn = jax.lax.map(lambda part: of_part(points, *part).sum(axis=1), parts)
        return in_turn.sum(axis=0) + of_part(points, *rest).sum(axis=1)

    parts, rest = (tuple(map(jnp.asarray, some)) for some in (parts, rest))
    return lambda points: np.asarray(total(points, parts, rest))


def in_parts(problem: Problem):
    """Cut data into parts of equal length, and what is left."""
    count = problem.size // ROWS
    whole = [array[: count * ROWS].reshape(count, ROWS, *array.shape[1:]) for array in problem.data]
    return whole, [array[count * ROWS :] for array in problem.data]


def student(points, x, y):
    """Log factors of shape (points, rows)."""
    import jax.numpy as jnp
    from jax.scipy.special import gammaln

    log_sigma, nu = points[:, -2:-1], jnp.exp(points[:, -1:])
    r = (y - points[:, :-2] @ x.T) * jnp.exp(-log_sigma)
    constant = gammaln(0.5 * nu + 0.5) - gammaln(0.5 * nu) - 0.5 * jnp.log(nu * jnp.pi)
    return constant - log_sigma - 0.5 * (nu + 1.0) * jnp.log1p(r * r / nu)


def poisson(points, x, group, y):
    import jax.numpy as jnp

    s = points[:, :COLUMNS] @ x.T + points[:, COLUMNS + 1 :][:, group]
    return y * s - jnp.exp(s)
