"""The order of an ARCH model of simulated returns, order 10: 5, 10, ..., 30, innovations of Student's t."""

import time
from typing import Any

import numpy as np

from gumbelrace.applications.arch import ORDERS, bic_by_package, fit_orders, log_normalised, posterior
from gumbelrace.models.arch.data import simulate, standardised

SEED, ADAPT, STEPS, CHAINS = 10, 2_000, 10_000, 2


def returns_of(ask: Any) -> Any:
    return standardised(simulate(ask.size, np.random.default_rng(SEED)))


def answer(log_p: Any, began: float, **more: Any) -> dict[str, Any]:
    best = int(np.argmax(log_p))
    seconds = time.process_time() - began
    return {"order": ORDERS[best], "log_p": list(log_p), "seconds": seconds, **more}


def by_chain(ask: Any) -> dict[str, Any]:
    """Fit, then a chain over orders and parameters; the first call compiles and does not count."""
    import gumbelrace as gr

    def run(steps: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(SEED)
        fitted = fit_orders(returns_of(ask), rng=rng)
        kernel = fitted.kernel()
        state = fitted.start(kernel, rng)
        trace = gr.run(kernel, state, steps=steps, rng=rng, chains=CHAINS, progress=False)
        return fitted, (trace, posterior(np.asarray(trace["model"]), state.log_weights, fitted))

    run(100)
    began = time.process_time()
    fitted, (trace, orders) = run(STEPS)
    share = float(np.mean(trace.info.evaluations)) / fitted.exact_reads
    return answer([one.log_probability for one in orders], began, share=share)


def by_laplace(ask: Any) -> dict[str, Any]:
    fit_orders(returns_of(ask), rng=SEED)  # compiles
    began = time.process_time()
    return answer(log_normalised(fit_orders(returns_of(ask), rng=SEED).log_evidence), began)


def by_bic(ask: Any) -> dict[str, Any]:
    bic_by_package(returns_of(ask), ORDERS[:1])  # compiles
    began = time.process_time()
    return answer(log_normalised(-0.5 * np.array(bic_by_package(returns_of(ask), ORDERS))), began)


WAYS = {"ours, a chain": by_chain, "ours, Laplace": by_laplace, "arch, BIC": by_bic}
