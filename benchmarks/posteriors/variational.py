"""ADVI of PyMC on batches of rows, which is what people use where NUTS takes too long."""

import numpy as np
from measuring import ENOUGH, Chain, Task, now
from nuts_pymc import draws_of
from pymc_models import model_of

SEED, BATCH, STEPS = 6, 1_000, 200


def by_pymc(task: Task) -> Chain:
    """Fit until time is up; draws from the fit are independent, and cost next to nothing."""
    import pymc as pm

    begun = now()
    with model_of(task.problem, BATCH):
        fit = pm.ADVI(random_seed=SEED)
        fit.fit(STEPS, progressbar=False, obj_optimizer=pm.adam(learning_rate=0.01))
        ready, steps = now(), STEPS
        while (now() - ready).processor < task.seconds:
            fit.refine(STEPS, progressbar=False)
            steps += STEPS
        fitted = now()
        result = fit.approx.sample(20 * ENOUGH, random_seed=SEED)
    draws = draws_of(task, result.posterior)
    return Chain(draws, now() - fitted, fitted - begun, steps * BATCH / np.prod(draws.shape[:2]))
