"""A discrete posterior: Student-t regression whose three coefficients each have one of ten values.

Coefficients lie on grids of half a posterior standard deviation around the truth, so that several of the
1,000 joint states are likely, and no sums over the rows can be kept. A draw is a sweep over the three.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from measuring import now, sizes_of

from gumbelrace.models import student

SEED, COLUMNS, STATES, FREEDOM, SCALE, FIRST = 1, 3, 10, 4.0, 1.0, 20


class Data:
    """Rows, and the values that each coefficient may have."""

    def __init__(self, size: int) -> None:
        rng = np.random.default_rng(SEED)
        self.x = rng.normal(size=(size, COLUMNS))
        truth = rng.normal(size=COLUMNS)
        self.y = self.x @ truth + rng.standard_t(FREEDOM, size)
        steps = np.arange(STATES) - 0.5 * (STATES - 1)
        self.grid = truth[:, None] + 0.5 * np.sqrt(7.0 / 5.0 / size) * steps

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.x, self.y, FREEDOM, SCALE

    def at(self, labels: Any) -> Any:
        """Give the coefficients of states of shape (..., 3)."""
        return self.grid[np.arange(COLUMNS), labels]

    def states_of(self, labels: Any, variable: int) -> Any:
        """Give the coefficients of all states of one of them, given the others."""
        points = np.tile(self.at(labels), (STATES, 1))
        points[:, variable] = self.grid[variable]
        return points


@numba.njit(fastmath=True)
def log_likelihoods(points: Any, x: Any, y: Any) -> Any:
    """Add up log factors, a row at a time for all points."""
    sums = np.zeros(len(points))
    for n in range(len(y)):
        for a in range(len(points)):
            r = y[n] - x[n, 0] * points[a, 0] - x[n, 1] * points[a, 1] - x[n, 2] * points[a, 2]
            sums[a] -= 2.5 * np.log1p(0.25 * r * r)
    return sums


def law_of(data: Data) -> tuple[Any, Any]:
    """Enumerate all joint states: the oracle."""
    states = np.array(list(itertools.product(range(STATES), repeat=COLUMNS)))
    sums = log_likelihoods(data.at(states), data.x, data.y)
    weights = np.exp(sums - sums.max())
    return states, weights / weights.sum()


# ---- Contenders: a function that makes one sweep, and gives states and evaluations ----

Sweep = Callable[[], tuple[Any, float]]


def raced(data: Data, with_control: bool = True) -> Sweep:
    import gumbelrace as gr

    target = gr.likelihood(student.log_factor, data.arrays, len(data.y))
    if with_control:
        mode, hessian = student.mode(data.x, data.y, FREEDOM, SCALE)
        metric = np.linalg.cholesky(-hessian).T
        bounds = student.remainder(data.x, metric, FREEDOM, SCALE)
        options = {"remainder": bounds, "metric": metric}
        target = target.minus(gr.parameter_taylor(student.terms, data.arrays, len(data.y), mode, **options))
    kernel = gr.Gibbs(lambda labels, v: (target(data.states_of(labels, v)), None), variables=COLUMNS)
    rng, state = np.random.default_rng(SEED), kernel.start(np.full(COLUMNS, STATES // 2))

    def sweep() -> tuple[Any, float]:
        nonlocal state
        state, info = kernel.step(rng, state)
        return state.labels, info.evaluations

    return sweep


def exact(data: Data) -> Sweep:
    rng, labels = np.random.default_rng(SEED), np.full(COLUMNS, STATES // 2)

    def sweep() -> tuple[Any, float]:
        for v in range(COLUMNS):
            sums = log_likelihoods(data.states_of(labels, v), data.x, data.y)
            labels[v] = np.argmax(sums + rng.gumbel(size=STATES))
        return labels.copy(), COLUMNS * STATES * len(data.y)

    return sweep


def numpyro_gibbs(data: Data) -> Sweep:
    """DiscreteHMCGibbs needs a continuous parameter: one on which nothing depends, moved by one step."""
    import numpyro.distributions as dist
    from numpyro.infer import HMC, DiscreteHMCGibbs

    import jax
    import numpyro
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", True)
    grid, arrays = jnp.asarray(data.grid), (jnp.asarray(data.x), jnp.asarray(data.y))

    def model(x: Any, y: Any) -> None:
        numpyro.sample("idle", dist.Normal(0.0, 1.0))
        z = [numpyro.sample(f"z{v}", dist.Categorical(jnp.ones(STATES) / STATES)) for v in range(COLUMNS)]
        b = jnp.stack([grid[v, z[v]] for v in range(COLUMNS)])
        numpyro.sample("y", dist.StudentT(FREEDOM, x @ b, SCALE), obs=y)

    kernel = DiscreteHMCGibbs(HMC(model, num_steps=1, step_size=1.0, adapt_step_size=False))
    state = kernel.init(jax.random.key(SEED), 0, None, arrays, {})
    advance = jax.jit(lambda state, arrays: kernel.sample(state, arrays, {}))

    def sweep() -> tuple[Any, float]:
        nonlocal state
        state = advance(state, arrays)
        # Of each coefficient the other nine states; then a leapfrog step.
        evaluations = (COLUMNS * (STATES - 1) + 1) * len(data.y)
        return np.array([int(state.z[f"z{v}"]) for v in range(COLUMNS)]), evaluations

    return sweep


def pymc_gibbs(data: Data, proposal: str) -> Sweep:
    import pymc as pm
    import pytensor.tensor as pt

    with pm.Model() as model:
        z = pm.Categorical("z", np.full(STATES, 1.0 / STATES), shape=COLUMNS)
        b = pt.as_tensor(data.grid)[np.arange(COLUMNS), z]
        pm.StudentT("y", nu=FREEDOM, mu=data.x @ b, sigma=SCALE, observed=data.y)
        step = pm.CategoricalGibbsMetropolis(
            [z], proposal=proposal, rng=SEED, compile_kwargs={"mode": "NUMBA"}
        )
    point, states = model.initial_point(), 1 if proposal == "uniform" else STATES

    def sweep() -> tuple[Any, float]:
        nonlocal point
        point, _ = step.step(point)
        return np.array(point["z"]), COLUMNS * states * len(data.y)

    return sweep


# ---- What is measured ----


def measured(make: Callable[[Data], Sweep], ask: Any) -> dict[str, Any]:
    """Make sweeps until time is up; compare them with the law."""
    data = Data(ask.size)
    states, law = law_of(data)
    begun, sweep = now(), make(data)
    for _ in range(FIRST):
        sweep()
    ready, made = now(), []
    while (now() - ready).processor < ask.seconds:
        made.append(sweep())
    spent, (found, evaluations) = (now() - ready).processor, zip(*made, strict=True)
    labels = np.array(found)
    effective = float(np.min(sizes_of(labels[None].astype(float))))
    return {
        "setup": (ready - begun).processor,
        "rate": effective / spent,
        "share": float(np.mean(evaluations)) / (COLUMNS * STATES * ask.size),
        "effective": effective,
        "off": [distance(part, law) for part in (labels, drawn(states, law, int(effective)))],
    }


def drawn(states: Any, law: Any, count: int) -> Any:
    return states[np.random.default_rng(SEED).choice(len(law), size=count, p=law)]


def distance(labels: Any, law: Any) -> float:
    """Give the largest total variation of the law of one coefficient."""
    cube = law.reshape((STATES,) * COLUMNS)
    others = [tuple(w for w in range(COLUMNS) if w != v) for v in range(COLUMNS)]
    shares = [np.bincount(labels[:, v], minlength=STATES) / len(labels) for v in range(COLUMNS)]
    return max(float(0.5 * np.abs(s - cube.sum(axis=o)).sum()) for s, o in zip(shares, others, strict=True))


def enumerated(ask: Any) -> dict[str, Any]:
    """All joint states once; draws then cost nothing."""
    data = Data(ask.size)
    log_likelihoods(data.grid.T[:1].copy(), data.x, data.y)  # compiles
    begun = now()
    law_of(data)
    return {"setup": (now() - begun).processor, "share": STATES**COLUMNS / (COLUMNS * STATES)}


WAYS = {
    "ours": lambda ask: measured(raced, ask),
    "ours, no control variate": lambda ask: measured(lambda data: raced(data, False), ask),
    "exact Gibbs, numba": lambda ask: measured(exact, ask),
    "NumPyro DiscreteHMCGibbs": lambda ask: measured(numpyro_gibbs, ask),
    "PyMC CategoricalGibbs": lambda ask: measured(lambda data: pymc_gibbs(data, "uniform"), ask),
    "PyMC, proportional": lambda ask: measured(lambda data: pymc_gibbs(data, "proportional"), ask),
    "all states, once": enumerated,
}
