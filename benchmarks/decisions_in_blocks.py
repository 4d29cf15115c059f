"""Do decisions from some of a block's rows shift what a chain settles in? Oracle: quadrature.

python benchmarks/decisions_in_blocks.py [--sweeps 200000]

A Poisson regression with a rate, 100 effects of groups and their unknown scale (4,000 rows), drawn
in blocks of 8 or 9 groups, some 350 rows each, and one of the rate and the scale. Each line is a
chain: the mean of the rate, of the scale and of all effects together, less the right ones, in
standard deviations, with standard errors by batches; the mean z² of the 102 means over stretches of
20,000 sweeps, how far it spreads from one to the next, and how it is correlated with the z² of the
rate alone; what decisions say of their own law.
"""

import argparse
import sys
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.laplace.cases import counts_in_groups, moments_of_groups, rate_factor, rate_prior, rate_terms

import gumbelrace as gr
from gumbelrace.kernels.blocks import Blocks
from gumbelrace.kernels.target import Position
from gumbelrace.laplace import blocks
from gumbelrace.laplace.compiled import CompiledModel
from gumbelrace.laplace.mode import find_mode

GROUPS, PARTS, BATCH, STRETCH = 100, 12, 500, 40  # a stretch is 40 batches of 500 sweeps
METHODS = {
    "Penalty()": gr.Penalty(),
    "error=1e-2": gr.Penalty(error=1e-2),
    "first=3": gr.Penalty(first=3, error=np.inf, most_variance=10.0),
}


def planned_blocks():
    group, y = counts_in_groups(GROUPS)
    start, names = np.zeros(2 + GROUPS), [str(i) for i in range(2 + GROUPS)]
    model = CompiledModel(rate_factor, rate_terms, (group, y), len(y), rate_prior, start, names)

    def parts(tried, has_own_rows):
        return PARTS if has_own_rows and len(tried.rows) > len(y) // 2 else 1

    with mock.patch.object(blocks, "parts_of", parts):
        planned = blocks.plan_blocks(model, find_mode(model))
    return planned, moments_of_groups(np.bincount(group, y), np.bincount(group))


def batches(kernel, moments, count):
    """Standardised means of batches of sweeps, and the mean `law_error`."""
    (mean, sd), rng, state = moments, np.random.default_rng(1), kernel.start()
    found, errors = [], []
    for _ in range(count + 1):
        made = kernel.steps(rng, state, BATCH)
        draws = made.states.position.copy()
        state = Position(draws[-1].copy())
        draws[:, 1] = np.exp(draws[:, 1])
        found.append(((draws - mean) / sd).mean(axis=0))
        errors.append(np.mean(made.info.law_error))
    return np.array(found[1:]), float(np.mean(errors))


def line(name, z, law_error):
    summary = np.column_stack([z[:, 0], z[:, 1], z[:, 2:].mean(axis=1)])
    off, error = summary.mean(axis=0), summary.std(axis=0, ddof=1) / np.sqrt(len(z))
    parts = z[: len(z) // STRETCH * STRETCH].reshape(-1, STRETCH, z.shape[1])
    squares = (parts.mean(axis=1) / (parts.std(axis=1, ddof=1) / np.sqrt(STRETCH))) ** 2
    each = squares.mean(axis=1)
    shifts = "  ".join(f"{o:+.4f} ± {e:.4f}" for o, e in zip(off, error, strict=True))
    alike = np.corrcoef(each, squares[:, 0])[0, 1]
    spread = each.std(ddof=1)
    print(
        f"{name:<11}{shifts}   {each.mean():.2f} ({spread:.2f}, {alike:.2f})   {law_error:.4f}", flush=True
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sweeps", type=int, default=200_000)
    sweeps = parser.parse_args().sweeps
    planned, moments = planned_blocks()
    print("decided by rate               scale               effects             mean z²  law error")
    for name, method in METHODS.items():
        kernel = Blocks(planned.blocks, planned.law, log_prior=rate_prior, method=method)
        line(name, *batches(kernel, moments, sweeps // BATCH))


if __name__ == "__main__":
    main()
