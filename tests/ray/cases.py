"""What tests with Ray share."""

import os

import numpy as np
from tests.laplace.cases import log_prior

import gumbelrace as gr
from gumbelrace.models import logistic

SMALL = {"object_store_memory": 100_000_000}
COLUMNS = (["0", "1"], "2")
SHARDS = 3


def fitted(table, rng=0, **options):
    return gr.posterior(
        logistic.log_factor,
        logistic.terms,
        COLUMNS,
        table=gr.Passes(table, rng=rng, pool_rows=40_000, **options),
        start=np.zeros(2),
        log_prior=log_prior,
        progress=False,
    )


def same(fit, alone):
    """Whether sums, rows in the pool and draws are the same, bit for bit."""
    pools = [one.kernel.pools.pool(0) for one in (fit, alone)]
    draws = [one.sample(200, rng=1, progress=False)["position"] for one in (fit, alone)]
    return (
        np.array_equal(fit.mode, alone.mode)
        and np.array_equal(fit.law.covariance, alone.law.covariance)
        and np.array_equal(pools[0].inverse, pools[1].inverse)
        and all(map(np.array_equal, pools[0].rows, pools[1].rows))
        and np.array_equal(*draws)
    )


def loading(folder, calls, before=lambda shard, call: None):
    """Load a shard after `before` was told which call of it this is; `calls` gets a file for each."""

    def load(shard):
        call = len([name for name in os.listdir(calls) if name.startswith(f"{shard}-")])
        (calls / f"{shard}-{call}").touch()
        before(shard, call)
        return {str(k): column for k, column in enumerate(np.load(folder / f"{shard}.npy").T)}

    return load
