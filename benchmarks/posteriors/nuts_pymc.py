"""NUTS on all rows, by PyMC and by nutpie: as people run them, but from the mode, and tuned less.

Less tuning favours them where seconds to the first draws are counted, and hardly matters otherwise.
"""

import time

import numpy as np
from measuring import FEWEST, Chain, Task, now, tuning
from pymc_models import model_of

SEED = 3
LONGEST = 100_000  # draws: more than time will allow


def by_pymc(task: Task) -> Chain:
    """Stop, as Ctrl-C does, when time is up."""
    import pymc as pm

    begun, seen = now(), []

    def watch(trace, draw):
        if not draw.tuning:
            seen.append(now())
            if (seen[-1] - seen[0]).processor > task.seconds and len(seen) > FEWEST:
                raise KeyboardInterrupt

    with model_of(task.problem):
        result = pm.sample(
            LONGEST,
            tune=tuning(task),
            chains=1,
            cores=1,
            init="adapt_diag",
            initvals=natural_mode(task),
            callback=watch,
            progressbar=False,
            compute_convergence_checks=False,
            random_seed=SEED,
        )
    # The first draw is seen when it is made: it counts as tuning.
    draws = draws_of(task, result.posterior)[:, 1:]
    steps = np.asarray(result.sample_stats["n_steps"])[:, 1:].mean()
    return Chain(draws, seen[-1] - seen[0], seen[0] - begun, task.problem.size * steps)


def by_nutpie(task: Task) -> Chain:
    """Stop it in the background; its time is shared out by leapfrog steps."""
    import nutpie

    begun = now()
    compiled = nutpie.compile_pymc_model(model_of(task.problem), initial_points=natural_mode(task))
    ready, settings = now(), {"chains": 1, "cores": 1, "seed": SEED, "progress_bar": False}
    running = nutpie.sample(compiled, draws=LONGEST, tune=tuning(task), blocking=False, **settings)
    while True:
        time.sleep(0.5)
        result, spent = running.inspect(), now() - ready
        steps = [steps_in(result, group) for group in ("warmup_sample_stats", "sample_stats")]
        drawing = spent.times(steps[1].sum() / max(sum(part.sum() for part in steps), 1))
        if drawing.processor > task.seconds and steps[1].size > FEWEST:
            break
    running.abort()
    draws = draws_of(task, result.posterior)
    rows = task.problem.size * steps[1].mean()
    return Chain(draws, drawing, ready - begun + (spent - drawing), rows)


def steps_in(result, group):
    """Leapfrog steps of each draw of a group, which may be missing yet."""
    found = getattr(result, group, None)
    steps = np.zeros((1, 0)) if found is None else np.asarray(found["n_steps"], float)
    return steps[np.isfinite(steps)]


def natural_mode(task: Task) -> dict:
    return task.problem.parts(task.problem.natural(task.law.mode))


def draws_of(task: Task, posterior) -> np.ndarray:
    """Join variables in the order of θ."""
    parts = [np.asarray(posterior[name]) for name in task.problem.names]
    return np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=2)
