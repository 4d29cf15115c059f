"""One row of an ARCH model, compiled: its variance, log density and their derivatives.

The log density of r_t is c(ν) + g(σ², ν), with y = r_t², k = νσ² + y and

    g = ½ν log σ² - ½(ν + 1) log k,    c = log Γ(½ν + ½) - log Γ(½ν) - ½ log π + ½ν log ν.

The variance σ² = α·a_t is linear in α, a_t = (1, r²_{t-1}, ..., r²_{t-q}). So all derivatives in (α, ν) are
those of g in (σ², ν), times entries of a_t. A parameter is laid out as a *point*: what is the same for
every row is computed once.
"""

import math
from collections.abc import Sequence

import numba
import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import OPTIONS, kernel

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

# Entries of a point: order q, ν, c(ν), α_0, ..., α_q; what follows is not read.
ORDER, NU, CONSTANT, ALPHA = 0, 1, 2, 3

# Inlined into the kernels that call it, without reference counts, but Python may call it too.
row = numba.njit(**{**OPTIONS, "forceinline": True, "_nrt": False})

# Unsigned indices cannot count from the end: only then does the sum run in vector registers.
ONE, FIRST = np.uint64(1), np.uint64(ALPHA + 1)


@row
def softplus(t):  # type: ignore[no-untyped-def]
    return max(t, 0.0) + math.log1p(math.exp(-abs(t)))


@row
def log_prior(x, tau):  # type: ignore[no-untyped-def]
    """Log density of x where α_i = τ softplus(x_i / τ) and ν = softplus(x_d) are Gamma(1, 1) variables."""
    total, last = 0.0, len(x) - 1
    for i in range(len(x)):
        scale = tau if i < last else 1.0
        # log of dα/dx, the logistic function, is -softplus(-x / τ).
        total -= scale * softplus(x[i] / scale) + softplus(-x[i] / scale)
    return total


@row
def place(x, tau, point):  # type: ignore[no-untyped-def]
    """Lay out a parameter x as a point."""
    last = len(x) - 1
    nu = softplus(x[last])
    point[ORDER], point[NU] = last - 1, nu
    point[CONSTANT] = math.lgamma(0.5 * nu + 0.5) - math.lgamma(0.5 * nu)
    point[CONSTANT] += 0.5 * (nu * math.log(nu) - math.log(math.pi))
    for i in range(last):
        point[ALPHA + i] = tau * softplus(x[i] / tau)


@row
def variance(n, point, squares, where):  # type: ignore[no-untyped-def]
    """Give σ² of row n, whose lags follow squares[where[n]]."""
    lags, total = np.uint64(where[n]) + ONE, 0.0
    for i in range(np.uint64(point[ORDER])):
        total += point[FIRST + i] * squares[lags + i]
    return point[ALPHA] + total


@row
def shape(s, nu, y):  # type: ignore[no-untyped-def]
    """Give g, the log density without its constant."""
    return 0.5 * nu * math.log(s) - 0.5 * (nu + 1.0) * math.log(nu * s + y)


@row
def slopes(s, nu, y):  # type: ignore[no-untyped-def]
    """Give the derivatives of g in σ² and in ν."""
    k, half = nu * s + y, 0.5 * (nu + 1.0)
    in_nu = 0.5 * math.log(s / k) - half * s / k
    return 0.5 * nu / s - half * nu / k, in_nu


@row
def curvatures(s, nu, y):  # type: ignore[no-untyped-def]
    """Give the second derivatives of g: σ² twice, σ² and ν, ν twice."""
    k, half = nu * s + y, 0.5 * (nu + 1.0)
    mixed = 0.5 / s - (nu + 0.5) / k + half * nu * s / k**2
    return half * (nu / k) ** 2 - 0.5 * nu / s**2, mixed, half * (s / k) ** 2 - s / k


@row
def log_factor(n, point, squares, where):  # type: ignore[no-untyped-def]
    """Log density of row n given its lags."""
    s = variance(n, point, squares, where)
    return point[CONSTANT] + shape(s, point[NU], squares[where[n]])


@kernel
def log_likelihood(points: Floats, squares: Floats, where: Indices) -> Floats:
    totals = np.zeros(len(points))
    for a in range(len(points)):
        for n in range(len(where)):
            totals[a] += log_factor(n, points[a], squares, where)
    return totals


@kernel
def slope_sums(rows: Indices, point: Floats, squares: Floats, where: Indices) -> Floats:
    order = int(point[ORDER])
    sums = np.zeros(order + 2)
    for n in rows:
        start = where[n]
        in_s, in_nu = slopes(variance(n, point, squares, where), point[NU], squares[start])
        sums[0] += in_s
        sums[order + 1] += in_nu
        for i in range(1, order + 1):
            sums[i] += in_s * squares[start + i]
    return sums


@kernel
def row_curvatures(point: Floats, squares: Floats, where: Indices) -> Floats:
    """Give the second derivatives of g of every row, of shape (3, N)."""
    found = np.empty((3, len(where)))
    for n in range(len(where)):
        s = variance(n, point, squares, where)
        found[0, n], found[1, n], found[2, n] = curvatures(s, point[NU], squares[where[n]])
    return found


@kernel
def row_shapes(s: Floats, nu: float, y: Floats) -> Floats:
    found = np.empty(len(s))
    for n in range(len(s)):
        found[n] = shape(s[n], nu, y[n])
    return found


@kernel
def row_derivatives(s: Floats, nu: float, y: Floats) -> Floats:
    """Give g of rows and its derivatives up to the second, those with most σ² first; of shape (N, 6)."""
    found = np.empty((len(s), 6))
    for n in range(len(s)):
        at = found[n]
        at[0] = shape(s[n], nu, y[n])
        at[1], at[2] = slopes(s[n], nu, y[n])
        at[3], at[4], at[5] = curvatures(s[n], nu, y[n])
    return found


@kernel
def _laid_out(x: Floats, tau: float, width: int) -> Floats:
    point = np.zeros(width)
    place(x, tau, point)
    return point


def points_of(xs: Sequence[Floats] | Floats, tau: float, lags: int) -> Floats:
    """Lay out parameters, of orders up to `lags`, as rows of an array of points."""
    return np.stack([_laid_out(np.asarray(x, np.float64), tau, ALPHA + 1 + lags) for x in xs])
