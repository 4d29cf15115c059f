"""Chains of a JAX model: a logistic regression with N = 1,000,000 rows and d = 10 columns.

    python benchmarks/jax_chains.py

Times are seconds of the processor. 2026-11-17, two shared cores:

    set-up 7.0 s (mode 1.3, other modes 0.6, pilot 4.1); the first call takes 6 s, mostly compiling
    1 chain    36,000 steps a second, 48 rows a step, 0.80 effective draws a step of the slowest parameter
    8 chains   54,000 steps a second in all, the same otherwise
"""

import time

import numpy as np
from shared import options, show

import gumbelrace.jax as raced
from gumbelrace.chain.trace import autocorrelation_time

SIZE, COLUMNS, DRAWS = 1_000_000, 10, 20_000


def log_factor(theta, row):
    import jax.numpy as jnp

    s = row["x"] @ theta
    return row["y"] * s - jnp.logaddexp(0.0, s)


def simulated(size):
    rng = np.random.default_rng(0)
    x, slopes = rng.normal(size=(size, COLUMNS)), rng.normal(0.0, 0.5, COLUMNS)
    return {"x": x, "y": (rng.random(size) < 1.0 / (1.0 + np.exp(-x @ slopes))).astype(float)}


def timed(function):
    began = time.process_time()
    found = function()
    return found, time.process_time() - began


def line(fit, chains):
    """Give steps a second: a longer run less a shorter one, as both compile, start and check."""

    def sampled(draws):
        return fit.sample(draws, chains=chains, rng_key=0, progress=False)

    _, first = timed(lambda: sampled(250))
    _, short = timed(lambda: sampled(250))
    trace, long = timed(lambda: sampled(250 + DRAWS))
    slowest = max(autocorrelation_time(trace.positions[:, :, n]) for n in range(COLUMNS))
    rate = chains * DRAWS / (long - short)
    return [
        f"{chains}",
        f"{first:.1f} s",
        f"{rate:,.0f}",
        f"{trace.rows.mean():.0f}",
        f"{1.0 / slowest:.2f}",
    ]


def main():
    size = SIZE // 20 if options(__doc__).parse_args().quick else SIZE
    data = simulated(size)
    fit, seconds = timed(
        lambda: raced.posterior(
            log_factor, data, start=np.zeros(COLUMNS), log_prior=lambda theta: -0.005 * theta @ theta
        )
    )
    header = "chains | first call | steps a second | rows a step | effective draws a step"
    show(f"N = {size:,}: set-up {seconds:.1f} s", header, [line(fit, chains) for chains in (1, 8)])


if __name__ == "__main__":
    main()
