"""What Gibbs sweeps on graphs cost, against compiled exact Gibbs sampling on the same graphs.

    python benchmarks/graph.py [--quick] [--only lattice equal ...]

Exact samplers of this file, as fast as could be made: `sums` adds up w_ij for each state of the
neighbours, O(n) a site, whatever D (dense: over a full row of an (n, n) matrix; sparse: over the
neighbours of nonzero weight); `kept` keeps these sums for all sites and repairs them, O(n), when a label
changes. They know that a Potts factor is zero for all labels but one, which the library's samplers do
not. All run in turn from the same labels in one thread; medians of processor time.

A factor is w_ij as seen from one site: an exact sweep reads n(n - 1) of them. `factors` is the share of
these that was read for at least one label, `evaluations` the share of the D·n(n - 1) pairs of factor and
label. Weights that are zero in double precision are read by nobody, but count. The full run takes about
fifteen minutes and 6 GB of memory.
"""

import math
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from shared import run_sections, show

import gumbelrace as gr
from gumbelrace.kernels.base import READ, ROWS
from gumbelrace.methods.absorb import Absorb
from gumbelrace.models.potts import gaussian_lattice

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]

SEED, WARM_UP, TURN_SECONDS = 1, 5, 0.02
METHODS = {
    "Thinning": gr.Thinning(),
    "Absorb": Absorb(),
    "Betting": gr.Betting(0.001),
    "Race(Normal)": gr.Race(delta=1e-5),
    "gr.Exact": gr.Exact(),
}


# ---- Exact samplers ----


@numba.njit(fastmath=True)
def pick(sums: Floats) -> int:
    """Draw a label with probability proportional to exp(sums)."""
    top, total = sums.max(), 0.0
    for a in range(len(sums)):
        total += math.exp(sums[a] - top)
    left, label = np.random.random() * total, 0  # noqa: NPY002 (to numba a Generator is slower)
    while label < len(sums) - 1:
        left -= math.exp(sums[label] - top)
        if left < 0.0:
            break
        label += 1
    return label


@numba.njit(fastmath=True)
def dense_sweep(weights: Floats, labels: Labels, arms: int) -> None:
    """Add up each row by the labels, in four places at once: one would wait for itself."""
    n, parts = np.uint64(len(labels)), np.zeros((4, arms))
    four, end = np.uint64(4), np.uint64(len(labels) // 4 * 4)
    for i in range(n):
        parts[:] = 0.0
        for j in range(np.uint64(0), end, four):
            for part in range(4):
                k = j + np.uint64(part)
                parts[part, np.uint64(labels[k])] += weights[i, k]
        for j in range(end, n):
            parts[0, np.uint64(labels[j])] += weights[i, j]
        labels[i] = pick(parts[0] + parts[1] + parts[2] + parts[3])


@numba.njit(fastmath=True)
def sparse_sweep(starts, neighbours, weights, labels, arms):
    parts = np.zeros((4, arms))
    for i in range(len(labels)):
        parts[:] = 0.0
        first, last = np.uint64(starts[i]), np.uint64(starts[i + 1])
        for k in range(first, last):
            parts[k & np.uint64(3), np.uint64(labels[np.uint64(neighbours[k])])] += weights[k]
        labels[i] = pick(parts[0] + parts[1] + parts[2] + parts[3])


@numba.njit(fastmath=True)
def kept_sums(starts, neighbours, weights, labels, arms):
    sums = np.zeros((len(labels), arms))
    for i in range(len(labels)):
        for k in range(starts[i], starts[i + 1]):
            sums[i, labels[neighbours[k]]] += weights[k]
    return sums


@numba.njit(fastmath=True)
def kept_sweep(starts, neighbours, weights, labels, sums):
    """Draw from sums that are kept, and repair the neighbours' when a label changes."""
    touched = 0
    for i in range(len(labels)):
        old, new = labels[i], pick(sums[i])
        if new != old:
            labels[i] = new
            touched += starts[i + 1] - starts[i]
            for k in range(np.uint64(starts[i]), np.uint64(starts[i + 1])):
                j = np.uint64(neighbours[k])
                sums[j, old] -= weights[k]
                sums[j, new] += weights[k]
    return touched


@numba.njit
def costly(label: int, other: int, weight: float) -> float:
    """A potential that is not a weight times something: no sums can be kept."""
    return math.log1p(weight * math.exp(-0.5 * abs(label - other)))


@numba.njit(fastmath=True)
def costly_sweep(starts, neighbours, weights, labels, arms):
    sums = np.zeros(arms)
    for i in range(len(labels)):
        sums[:] = 0.0
        for k in range(starts[i], starts[i + 1]):
            other = labels[neighbours[k]]
            for a in range(arms):
                sums[a] += costly(a, other, weights[k])
        labels[i] = pick(sums)


# ---- Timing ----


class Sweep(NamedTuple):
    """What a sweep took on average: seconds of the processor, factors read, evaluations."""

    seconds: float
    factors: float
    evaluations: float


Sampler = Callable[[Labels], tuple[Labels, int, int]]


def raced(kernel: gr.GraphGibbs) -> Sampler:
    rng = np.random.default_rng(SEED)

    def sweep(labels: Labels) -> tuple[Labels, int, int]:
        found, tally, _ = kernel._sweep(rng, gr.kernels.Labels(labels))
        return found, int(tally[ROWS]), int(tally[READ])

    return sweep


def exact(sweep: Callable[..., Any], arms: int, factors: int, *graph: Any) -> Sampler:
    def run(labels: Labels) -> tuple[Labels, int, int]:
        sweep(*graph, labels, arms)
        return labels, factors, factors * arms

    return run


def kept(matrix: Any, arms: int) -> Sampler:
    """Keep sums between sweeps; they are counted as read when they are repaired."""
    graph, memory = (matrix.indptr, matrix.indices, matrix.data), {}

    def run(labels: Labels) -> tuple[Labels, int, int]:
        if "sums" not in memory:
            memory["sums"] = kept_sums(*graph, labels, arms)
        touched = kept_sweep(*graph, labels, memory["sums"])
        return labels, touched, touched * arms

    return run


def measure(samplers: dict[str, Sampler], start: Labels, repeats: int) -> dict[str, list[Sweep]]:
    """Run every sampler once from the same labels (compiling), then all in turn, again and again."""
    labels = {name: sampler(start.copy())[0] for name, sampler in samplers.items()}
    results: dict[str, list[Sweep]] = {name: [] for name in samplers}
    for _ in range(repeats):
        for name, sampler in samplers.items():
            labels[name], sweep = timed(sampler, labels[name])
            results[name].append(sweep)
    return results


def timed(sampler: Sampler, labels: Labels) -> tuple[Labels, Sweep]:
    """Make sweeps for at least TURN_SECONDS; give what one took on average."""
    started, seconds, count, factors, evaluations = time.thread_time(), 0.0, 0, 0, 0
    while seconds < TURN_SECONDS:
        labels, more_factors, more_evaluations = sampler(labels)
        count, factors, evaluations = count + 1, factors + more_factors, evaluations + more_evaluations
        seconds = time.thread_time() - started
    return labels, Sweep(seconds / count, factors / count, evaluations / count)


def field(matrix: Any, arms: int, potential: Any, dense: bool) -> tuple[dict[str, Sampler], gr.GraphGibbs]:
    """The samplers of this file that can do the problem, and the library's."""
    matrix = scipy.sparse.csr_array(matrix)
    graph, n = (matrix.indptr, matrix.indices, matrix.data), matrix.shape[0]
    samplers: dict[str, Sampler] = {}
    if isinstance(potential, gr.models.Potts):
        if dense:
            samplers["sums, dense"] = exact(dense_sweep, arms, n * (n - 1), matrix.toarray())
        if not dense or matrix.nnz < 0.9 * n * (n - 1):
            samplers["sums, sparse"] = exact(sparse_sweep, arms, matrix.nnz, *graph)
        samplers["kept"] = kept(matrix, arms)
    else:
        samplers["exact"] = exact(costly_sweep, arms, matrix.nnz, *graph)
    kernel = gr.GraphGibbs(matrix, arms, potential)
    for name, method in METHODS.items():
        samplers[name] = raced(kernel.with_method(method))
    return samplers, kernel


def table_rows(
    label: str, matrix: Any, arms: int, potential: Any, repeats: int, dense: bool
) -> list[list[str]]:
    samplers, kernel = field(matrix, arms, potential, dense)
    rng, n = np.random.default_rng(SEED), matrix.shape[0]
    state = kernel.start(rng=rng)
    for _ in range(WARM_UP):
        state, info = kernel.step(rng, state)
    results = measure(samplers, state.labels, repeats)
    unit = median(sweep.seconds for sweep in next(iter(results.values())))
    rows = []
    for name, sweeps in results.items():
        seconds = median(sweep.seconds for sweep in sweeps)
        shares = [
            sum(sweep.factors for sweep in sweeps) / (len(sweeps) * n * (n - 1)),
            sum(sweep.evaluations for sweep in sweeps) / (len(sweeps) * arms * n * (n - 1)),
        ]
        errors = audited(kernel, METHODS[name], state) if name in METHODS else ""
        rows.append([label, name, f"{1e3 * seconds:.2f}", f"{1e6 * seconds / n:.2f}"])
        rows[-1] += [f"{seconds / unit:.3f}", *(f"{share:.4%}" for share in shares), errors]
    rows[-1][-1] = f"(moved {info.acceptance:.0%})"
    return rows


def audited(kernel: gr.GraphGibbs, method: gr.Method, state: gr.kernels.Labels) -> str:
    if isinstance(method, gr.Exact) or not method.finds_winners:
        return ""
    wrong, decisions, *_ = kernel.with_method(method).audit(np.random.default_rng(SEED), state)
    return f"{wrong}/{decisions}"


HEADER = "problem | sampler | ms/sweep | us/site | x first | factors | evaluations | errors"


# ---- Problems ----


def complete(n: int, weight: Callable[[np.random.Generator, int], Any]) -> Floats:
    """Weights of all pairs, symmetric, zero diagonal."""
    rng, matrix = np.random.default_rng(SEED), np.zeros((n, n))
    for i in range(1, n):
        matrix[i, :i] = matrix[:i, i] = weight(rng, i)
    return matrix


def lattice(quick: bool) -> None:
    """The Potts model of Poisson-Gibbs, and a larger one."""
    for side, repeats in ((20, 21),) if quick else ((20, 21), (100, 7)):
        matrix = gaussian_lattice(side, beta=4.6, gamma=1.5)
        n = side**2
        title = f"lattice: {side}x{side}, q=10, β=4.6, γ=1.5, fully connected; "
        title += f"{matrix.nnz / (n * (n - 1)):.1%} of the weights are not zero in double precision"
        show(
            title, HEADER, table_rows(f"{side}x{side}", matrix, 10, gr.models.Potts(), repeats, dense=True)
        )


def equal(quick: bool) -> None:
    """Equal weights β/n: how strong may they be?"""
    n, rows = (1000 if quick else 10_000), []
    for beta in (1.0, 8.0) if quick else (0.5, 2.0, 4.0, 8.0):
        matrix = complete(n, lambda rng, count, beta=beta: beta / n)
        rows += table_rows(f"β={beta:g}", matrix, 10, gr.models.Potts(), 3 if n > 5000 else 11, dense=True)
    show(f"equal: fully connected Potts, n={n}, q=10, w = β/n", HEADER, rows)


def normal(quick: bool) -> None:
    """Weights from a normal law of deviation β/√n: how strong may they be?"""
    n, rows = (1000 if quick else 10_000), []
    for beta in (0.05, 0.5) if quick else (0.02, 0.05, 0.2):
        scale = beta / math.sqrt(n)
        matrix = complete(n, lambda rng, count, scale=scale: rng.normal(0.0, scale, count))
        rows += table_rows(f"β={beta:g}", matrix, 10, gr.models.Potts(), 3 if n > 5000 else 11, dense=True)
    show(f"normal: fully connected Potts, n={n}, q=10, w ~ N(0, β²/n)", HEADER, rows)


def sizes(quick: bool) -> None:
    """Equal weights, β = 2: from how many neighbours on does a race pay?"""
    rows = []
    for n in (100, 1000) if quick else (30, 100, 300, 1000, 3000):
        matrix = complete(n, lambda rng, count, n=n: 2.0 / n)
        rows += table_rows(f"n={n}", matrix, 10, gr.models.Potts(), 11, dense=True)
    show("sizes: fully connected Potts, q=10, w = 2/n", HEADER, rows)


def user(quick: bool) -> None:
    """A costly potential of the user's, weights uniform."""
    n, rows = (300 if quick else 2000), []
    for beta in (2.0,) if quick else (0.5, 2.0, 8.0):
        matrix = complete(n, lambda rng, count, beta=beta: rng.uniform(0.0, beta / n, count))
        potential = gr.models.Pairwise(costly, lambda w: (np.zeros_like(w), np.log1p(w)))
        rows += table_rows(f"β={beta:g}", matrix, 10, potential, 3, dense=False)
    show(f"user: log(1 + w exp(-|a - b|/2)), n={n}, q=10, w ~ U(0, β/n)", HEADER, rows)


def stay(quick: bool) -> None:
    """How much more often labels stay than by chance, by Thinning; what that costs of the draws."""
    n, sweeps, rows = 3000, (5 if quick else 40), []
    for beta in (0.5, 1.0, 2.0, 4.0, 8.0):
        kernel = gr.GraphGibbs(complete(n, lambda rng, count, beta=beta: beta / n), 10, gr.models.Potts())
        rng, stays, chance = np.random.default_rng(SEED), 0.0, 0.0
        state = kernel.start(rng=rng)
        for _ in range(sweeps):
            before, (state, info) = state, kernel.step(rng, state)
            stays += np.mean(before.labels == state.labels) / sweeps
            chance += np.sum((np.bincount(state.labels, minlength=10) / n) ** 2) / sweeps
        correlation = (stays - chance) / (1.0 - chance)
        share = (1.0 - correlation) / (1.0 + correlation)
        rows.append([f"β={beta:g}", f"{info.evaluations / n / 10:.1f}"])
        rows[-1] += [f"{correlation:.3f}", f"{share:.1%}"]
    header = "problem | evaluations a site and label | correlation with the next label | effective draws"
    show(f"stay: fully connected Potts, n={n}, q=10, w = β/n, by Thinning", header, rows)


def law(quick: bool) -> None:
    """Do raced chains have the law of exact ones? Energy and largest label share, over chains."""
    print("\nlaw: mean over chains ± standard error; exact, raced, difference in standard errors\n")
    for side, count in [(20, 30)] if quick else [(20, 30), (100, 6)]:
        matrix = gaussian_lattice(side, beta=4.6, gamma=1.5)
        kernel = gr.GraphGibbs(matrix, 10, gr.models.Potts())
        graph = matrix.indptr, matrix.indices, matrix.data
        samplers = exact(sparse_sweep, 10, matrix.nnz, *graph), raced(kernel)
        chains = [np.array([chain(s, matrix, seed) for seed in range(count)]) for s in samplers]
        means, errors = ([f(c) for c in chains] for f in (center, spread))
        for k, name in enumerate(("energy a site", "pairs of equal neighbours", "largest label share")):
            z = (means[1][k] - means[0][k]) / math.hypot(errors[0][k], errors[1][k])
            both = (f"{m[k]:.5f} ± {e[k]:.5f}" for m, e in zip(means, errors, strict=True))
            print(f"  {side}x{side}  {name:>26}", *both, f"{z:+.1f}", sep="  ", flush=True)


def chain(sampler: Sampler, matrix: Any, seed: int, sweeps: int = 100) -> Floats:
    """Means of a chain: energy a site, share of equal nearest neighbours, largest label share."""
    n, side = matrix.shape[0], math.isqrt(matrix.shape[0])
    labels = np.random.default_rng(seed).integers(10, size=n, dtype=np.int32)
    rows, columns, sums = np.repeat(np.arange(n), np.diff(matrix.indptr)), matrix.indices, np.zeros(3)
    for sweep in range(-50, sweeps):
        labels = sampler(labels)[0]
        if sweep >= 0 and sweep % 5 == 0:
            grid = labels.reshape(side, side)
            sums += [
                0.5 * matrix.data[labels[rows] == labels[columns]].sum() / n,
                np.mean(grid[1:] == grid[:-1]),
                np.bincount(labels).max() / n,
            ]
    return sums / (sweeps / 5)


def center(chains: Floats) -> Floats:
    return chains.mean(axis=0)


def spread(chains: Floats) -> Floats:
    return chains.std(axis=0, ddof=1) / math.sqrt(len(chains))


SECTIONS = {
    "law": law,
    "stay": stay,
    "lattice": lattice,
    "equal": equal,
    "normal": normal,
    "sizes": sizes,
    "user": user,
}


if __name__ == "__main__":
    run_sections(__doc__, SECTIONS)
