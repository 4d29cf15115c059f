"""Does a kernel leave its target invariant? Tools without autocorrelation.

Replicates start from independent exact draws of the target (by quadrature), and each makes a few steps. If
the kernel leaves the target invariant, where they end are independent draws of the target again, whatever
the kernel's mixing: a chi-square test of the exact distribution function, in cells of equal probability.

A method that errs in a decision with probability at most δ moves the law of a replicate by at most δ for
each decision (Proposition 1): `slack` is that total variation, and the statistic is compared with the
noncentral chi-square law that it allows.
"""

import numpy as np
from scipy.special import chdtrc, chndtr, ndtr

import gumbelrace as gr

FALSE_ALARM = 1e-4
CELLS = 16


class Quadrature:
    """A density on an interval, known up to a constant."""

    def __init__(self, log_density, low, high, points=20_001):
        self.grid = np.linspace(low, high, points)
        log_p = np.array([log_density(x) for x in self.grid])
        p = np.exp(log_p - log_p.max())
        steps = 0.5 * (p[1:] + p[:-1])
        self.cumulative = np.concatenate([[0.0], np.cumsum(steps)]) / steps.sum()

    def draw(self, rng, count):
        return np.interp(rng.random(count), self.cumulative, self.grid)

    def cdf(self, x):
        return np.interp(x, self.grid, self.cumulative)


def tail(cells, probabilities, slack=0.0):
    """Probability of a chi-square as large, if the law is right but for a total variation of `slack`."""
    counts = np.bincount(cells, minlength=len(probabilities))
    expected = len(cells) * probabilities
    statistic = np.sum((counts - expected) ** 2 / expected)
    # All of the total variation may lie in the two rarest cells.
    shift = len(cells) * slack**2 * np.sum(1.0 / np.sort(probabilities)[:2])
    freedom = len(probabilities) - 1
    return 1.0 - chndtr(statistic, freedom, shift) if slack > 0.0 else chdtrc(freedom, statistic)


def invariance(kernel, target, rng, replicates=1200, steps=3, slack=0.0, state=gr.kernels.Position):
    """Tail probability of where replicates end that start from the (one-dimensional) target."""
    ends = [
        after(kernel, state(np.array([x])), steps, rng).position[0] for x in target.draw(rng, replicates)
    ]
    cells = np.minimum((target.cdf(np.array(ends)) * CELLS).astype(int), CELLS - 1)
    return tail(cells, np.full(CELLS, 1.0 / CELLS), slack)


def after(kernel, state, steps, rng):
    for _ in range(steps):
        state, _ = kernel.step(rng, state)
    return state


def chain(kernel, state, steps, seed):
    """Give all states and infos of a chain."""
    rng, visited = np.random.default_rng(seed), []
    for _ in range(steps):
        state, info = kernel.step(rng, state)
        visited.append((state, info))
    return visited


class Cauchy:
    """Location of Cauchy data, log f_n(x) = -log(1 + (y_n - x)²), on x ≥ cut."""

    def __init__(self, size, seed, cut=-np.inf):
        self.y = np.random.default_rng(seed).standard_cauchy(size)
        self.cut = cut
        self.target = Quadrature(self.log_density, max(-1.5, cut), 1.5)

    def likelihood(self, points):
        return gr.table(-np.log1p((self.y[:, None] - points[:, 0]) ** 2))

    def log_prior(self, x):
        return -0.5 * x[0] ** 2 if x[0] >= self.cut else -np.inf

    def gradient(self, index, x):
        apart = self.y[index] - x[0]
        return np.array([np.sum(2.0 * apart / (1.0 + apart**2))])

    def prior_gradient(self, x):
        return -x

    def log_density(self, x):
        return self.log_prior(np.array([x])) - np.log1p((self.y - x) ** 2).sum()


class Rate:
    """Rate of exponential data, log f_n(x) = log x - x y_n: a positive parameter, its law skewed."""

    def __init__(self, size, seed):
        self.y = np.random.default_rng(seed).exponential(size=size)
        self.target = Quadrature(self.log_density, 1e-9, 8.0)

    def likelihood(self, points):
        return gr.table(np.log(points[:, 0]) - self.y[:, None] * points[:, 0])

    def log_density(self, x):
        return len(self.y) * np.log(x) - x * self.y.sum()


class Line:
    """Normal data of mean x0 + x1 z, no prior: the law is normal, in closed form."""

    def __init__(self, size, rng):
        self.design = np.column_stack([np.ones(size), rng.normal(1.0, 1.0, size)])
        self.y = rng.normal(size=size)
        covariance = np.linalg.inv(self.design.T @ self.design)
        self.mean, self.root = covariance @ self.design.T @ self.y, np.linalg.cholesky(covariance)

    def likelihood(self, points):
        return gr.table(-0.5 * (self.y[:, None] - self.design @ points.T) ** 2)

    def gradient(self, index, x):
        return self.design[index].T @ (self.y[index] - self.design[index] @ x)

    def invariance(self, kernel, rng, replicates, state=gr.kernels.Position):
        """Smaller tail probability of the two margins of where replicates end, whitened, and doubled."""
        starts = self.mean + rng.normal(size=(replicates, 2)) @ self.root.T
        ends = np.array([after(kernel, state(start), 2, rng).position for start in starts])
        margins = ndtr(np.linalg.solve(self.root, (ends - self.mean).T)) * CELLS
        return 2.0 * min(tail(cells, np.full(CELLS, 1.0 / CELLS)) for cells in margins.astype(int))
