"""How far wrong decisions shift the law of a chain: small posteriors, quadrature or enumeration as oracle.

Every kernel runs with ``Race(Normal())``, the default where no range is known, at several δ, on factors
without control variate: points are close and every decision is hard. One more line has Metropolis-Hastings
decided by `Betting`, the default where a range is known. Shown: how far the mean is off, in
standard deviations of the right law, and the variance over the right one (each ± a standard error), and the
share of factors read. The number of steps is such that a variance is known to about 1%.

"rare rows" is Metropolis-Hastings by the normal law on a regression with a column that 20 rows of 20,000
have. "audit" sets what `trace.audit` says of a trace's errors beside the errors that it has.

    python benchmarks/chain_errors.py           # about forty minutes on two cores
    python benchmarks/chain_errors.py --quick   # one minute, errors of 3%
"""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from shared import options

import gumbelrace as gr
from gumbelrace.chain.trace import autocorrelation_time

DELTAS = 0.05, 0.01, 0.001, 1e-4, 1e-5
SIZE = 1000


class Law(NamedTuple):
    """Mean and variance of the right law of a function of the state."""

    mean: float
    variance: float


class Case(NamedTuple):
    """A kernel to run, where to start, the function of its states, and what its law should be."""

    kernel: Callable[[float], Any]  # of δ
    start: Any
    watched: Callable[[Any], Any]
    law: Law
    steps: int


@numba.njit
def logistic(n, theta, x, y):  # type: ignore[no-untyped-def]
    """Give the log factor of a logistic regression on one covariate."""
    return y[n] * x[n] * theta[0] - np.log1p(np.exp(x[n] * theta[0]))


@numba.njit
def flat_normal(theta):  # type: ignore[no-untyped-def]
    """Give the log of a wide normal prior."""
    return -0.5 * (theta[0] / 10.0) ** 2


def on_grid(log_density: Callable[[Any], Any], low: float, high: float) -> Law:
    """Find mean and variance by quadrature."""
    grid = np.linspace(low, high, 4001)
    log_p = np.array([log_density(t) for t in grid])
    p = np.exp(log_p - log_p.max())
    mean = (p @ grid) / p.sum()
    return Law(mean, (p @ (grid - mean) ** 2) / p.sum())


def continuous() -> dict[str, Case]:
    """Make kernels on the slope of a logistic regression."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=SIZE)
    y = (rng.random(SIZE) < 1.0 / (1.0 + np.exp(-x))).astype(float)
    law = on_grid(lambda t: y @ x * t - np.log1p(np.exp(x * t)).sum() - 0.005 * t * t, 0.0, 2.0)
    sd, mode = math.sqrt(law.variance), np.array([law.mean])
    likelihood = gr.likelihood(logistic, (x, y), size=SIZE)
    bounded = gr.likelihood(logistic, (x, y), size=SIZE, reward_range=(-10.0, 0.0))

    def gradient(index, theta):  # type: ignore[no-untyped-def]
        return np.array([x[index] @ (y[index] - 1.0 / (1.0 + np.exp(-x[index] * theta[0])))])

    def metropolis(delta: float) -> Any:
        return gr.Metropolis(
            likelihood, gr.kernels.RandomWalk(2.4 * sd), log_prior=flat_normal, method=gr.Race(delta=delta)
        )

    def by_betting(delta: float) -> Any:
        return gr.Metropolis(
            bounded, gr.kernels.RandomWalk(2.4 * sd), log_prior=flat_normal, method=gr.Betting(delta=delta)
        )

    def by_slices(delta: float) -> Any:
        return gr.Slice(likelihood, 2.0 * sd, log_prior=flat_normal, method=gr.Race(delta=delta))

    def langevin(delta: float) -> Any:
        return gr.Langevin(
            likelihood,
            gradient,
            size=SIZE,
            batch=200,
            scale=sd,
            log_prior=flat_normal,
            prior_gradient=lambda t: -t / 100.0,
            method=gr.Race(delta=delta),
        )

    def position(states: Any) -> Any:
        return states.position[..., 0]

    state, moving = gr.kernels.Position(mode), gr.kernels.LangevinState(mode, log_step=0.0)
    return {
        "Metropolis": Case(metropolis, state, position, law, 600_000),
        "by Betting": Case(by_betting, state, position, law, 600_000),
        "Slice": Case(by_slices, state, position, law, 12_000),
        "Langevin": Case(langevin, moving, position, law, 40_000),
    }


@numba.njit
def with_dummy(n, theta, dummy, y):  # type: ignore[no-untyped-def]
    """Give the log factor of a logistic regression on a constant and a column of few ones."""
    z = theta[0] + theta[1] * dummy[n]
    return y[n] * z - np.log1p(np.exp(z))


def rare_rows() -> Case:
    """Make a regression with a column that 20 rows of 20,000 have; watched: its slope."""
    size, few = 20_000, 20
    rng = np.random.default_rng(2)
    dummy = np.zeros(size)
    dummy[rng.choice(size, few, replace=False)] = 1.0
    y = (rng.random(size) < 1.0 / (1.0 + np.exp(1.0 - 2.5 * dummy))).astype(float)
    ones, ones_of_few = y.sum() - y @ dummy, y @ dummy
    a = np.log(ones / (size - few - ones)) + np.linspace(-0.15, 0.15, 301)
    likely = ones * a - (size - few) * np.log1p(np.exp(a))

    def marginal(b: float) -> float:
        log_p = likely + ones_of_few * (a + b) - few * np.log1p(np.exp(a + b)) - 0.005 * (a**2 + b**2)
        return float(np.logaddexp.reduce(log_p))

    law = on_grid(marginal, -3.0, 12.0)
    scale = np.diag([0.02, 2.4 * math.sqrt(law.variance)])
    likelihood = gr.likelihood(with_dummy, (dummy, y), size=size)
    return Case(
        lambda delta: gr.Metropolis(
            likelihood, gr.kernels.RandomWalk(scale), log_prior=wide_normal, method=gr.Race(delta=delta)
        ),
        gr.kernels.Position(np.array([a[150], law.mean])),
        lambda states: states.position[..., 1],
        law,
        10_000,
    )


@numba.njit
def wide_normal(theta):  # type: ignore[no-untyped-def]
    """Give the log of a wide normal prior of two parameters."""
    return -0.005 * (theta[0] ** 2 + theta[1] ** 2)


@numba.njit
def coupled(n, arm, rewards, other):  # type: ignore[no-untyped-def]
    """Give the log factor of a label, given the other variable's."""
    return rewards[n, arm, other[0]]


def gibbs() -> Case:
    """Make two variables with three labels, symmetric rewards; watched: whether the first has label 0."""
    rng = np.random.default_rng(1)
    rewards = rng.normal(0.0, 0.05, (SIZE, 3, 3))
    rewards += rewards.transpose(0, 2, 1)
    rewards *= 0.7
    joint = np.exp(rewards.sum(axis=0) - rewards.sum(axis=0).max())
    p = float((joint.sum(axis=1) / joint.sum())[0])

    def conditional(labels, variable):  # type: ignore[no-untyped-def]
        return gr.compiled(coupled, (rewards, labels[1 - variable : 2 - variable].copy()), SIZE, 3), None

    return Case(
        lambda delta: gr.Gibbs(conditional, 2, method=gr.Race(delta=delta)),
        gr.kernels.Labels(np.zeros(2, np.int64)),
        lambda states: (states.labels[..., 0] == 0).astype(float),
        Law(p, p * (1.0 - p)),
        20_000,
    )


@numba.njit
def agreement(label, other, weight):  # type: ignore[no-untyped-def]
    """Give the weight if two labels agree, else minus it."""
    return weight if label == other else -weight


def graph() -> Case:
    """Make an Ising model in which all pairs are neighbours; watched: how many have label 1."""
    n, strength, field = 300, 0.7 / 300, 0.02
    weights = np.full((n, n), strength)
    np.fill_diagonal(weights, 0.0)
    k = np.arange(n + 1)
    same = k * (k - 1) / 2 + (n - k) * (n - k - 1) / 2
    log_choose = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k])
    log_p = log_choose + strength * (2.0 * same - n * (n - 1) / 2) + field * k
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return Case(
        lambda delta: gr.GraphGibbs(weights, 2, agreement, unary=[0.0, field], method=gr.Race(delta=delta)),
        gr.kernels.Labels(np.zeros(n, np.int32)),
        lambda states: states.labels.sum(axis=-1).astype(float),
        Law(float(p @ k), float(p @ k**2 - (p @ k) ** 2)),
        15_000,
    )


@numba.njit
def normal(n, arm, points, y):  # type: ignore[no-untyped-def]
    """Give the log factor of a normal mean."""
    return -0.5 * (y[n] - points[arm, 0]) ** 2


def carlin_chib() -> Case:
    """Make normal data whose mean has a narrow or a wide prior; watched: the model."""
    y = np.random.default_rng(2).normal(0.12, 1.0, SIZE)
    log_evidence = []

    def likelihood(points):  # type: ignore[no-untyped-def]
        return gr.compiled(normal, (np.array(points), y), SIZE, len(points))

    def candidate(scale: float, delta: float) -> Any:
        def log_prior(x):  # type: ignore[no-untyped-def]
            return -0.5 * (x[0] / scale) ** 2 - math.log(scale * math.sqrt(2.0 * math.pi))

        variance = 1.0 / (SIZE + scale**-2)
        law = gr.kernels.NormalPseudoprior([variance * y.sum()], [[variance]])
        log_evidence.append(log_prior(np.zeros(1)) - law.log_density(np.zeros(1)))
        walk = gr.Metropolis(
            likelihood, gr.kernels.RandomWalk(0.07), log_prior=log_prior, method=gr.Race(delta=delta)
        )
        return gr.kernels.Candidate(walk, law, log_prior)

    def kernel(delta: float) -> Any:
        return gr.CarlinChib(
            [candidate(s, delta) for s in (0.1, 0.5)], likelihood, method=gr.Race(delta=delta)
        )

    start = kernel(0.05).start(rng=np.random.default_rng(3))
    p = 1.0 / (1.0 + math.exp(log_evidence[0] - log_evidence[1]))
    return Case(kernel, start, lambda states: states.model.astype(float), Law(p, p * (1.0 - p)), 20_000)


def report(name: str, case: Case, delta: float, share: float) -> None:
    """Run a case at one δ and print a line."""
    began = time.perf_counter()
    steps = int(case.steps * share)
    trace = gr.run(
        case.kernel(delta),
        case.start,
        steps=steps,
        rng=np.random.default_rng(1),
        chains=2,
        progress=False,
        warmup=200,
    )
    z = (case.watched(trace.states) - case.law.mean) / math.sqrt(case.law.variance)
    errors = [np.std(f) * math.sqrt(autocorrelation_time(f) / f.size) for f in (z, (z - z.mean()) ** 2)]
    print(
        f"{name:11} {delta:<7g} {z.mean():+7.3f} ± {errors[0]:.3f} {z.var():8.3f} ± {errors[1]:.3f} "
        f"{trace.fraction:7.1%} {time.perf_counter() - began:6.0f} s",
        flush=True,
    )


def report_audit(case: Case, delta: float, step: float, share: float) -> None:
    """Print what an audit says of a trace's errors, and what they are."""
    steps, sd = int(100_000 * share), math.sqrt(case.law.variance)
    kernel = case.kernel(delta)
    kernel = gr.Metropolis(
        kernel.likelihood, gr.kernels.RandomWalk(step * sd), log_prior=flat_normal, method=kernel.method
    )
    trace = gr.run(kernel, case.start, steps=steps, rng=np.random.default_rng(1), progress=False)
    mean, variance = trace.audit(0.05, rng=np.random.default_rng(2)).bias
    z = (case.watched(trace.states) - case.law.mean) / sd
    print(
        f"{'audit':11} {delta:<7g} step {step:.1f} sd: mean {mean.value:+.3f} ± {mean.error:.3f} "
        f"({z.mean():+.3f}), variance {variance.value:+.3f} ± {variance.error:.3f} "
        f"({z.var() - 1.0:+.3f})",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    cases = {**continuous(), "Gibbs": gibbs(), "GraphGibbs": graph(), "CarlinChib": carlin_chib()}
    cases["rare rows"] = rare_rows()
    names, parser = [*cases, "audit"], options(__doc__, "a tenth of the steps, three δ")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    arguments = parser.parse_args()
    quick, wanted, share = arguments.quick, arguments.only, 0.1 if arguments.quick else 1.0
    print(f"{'kernel':11} {'δ':7} {'mean off by (sd)':>15} {'variance ratio':>16} {'read':>7}")
    for name, case in cases.items():
        deltas = DELTAS[-1:] if name == "rare rows" else DELTAS[::2] if quick else DELTAS
        for delta in deltas if name in wanted else ():
            report(name, case, delta, share)
    for delta, step in ((0.05, 1.0), (0.05, 2.4), (0.01, 1.0)) if "audit" in wanted else ():
        report_audit(cases["Metropolis"], delta, step, share)


if __name__ == "__main__":
    main()
