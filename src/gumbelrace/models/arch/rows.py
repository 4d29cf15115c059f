"""One row of an ARCH model, compiled: its log density, the derivatives, and polynomials close to it.

The log density of r_t is c(ν) + g(σ², ν), with y = r_t², k = νσ² + y and

    g = ½ν log σ² - ½(ν + 1) log k,    c = log Γ(½ν + ½) - log Γ(½ν) - ½ log π + ½ν log ν.

The variance σ² = α·a_t is linear in α, a_t = (1, r²_{t-1}, ..., r²_{t-q}). So all derivatives in (α, ν) are
those of g in (σ², ν), times entries of a_t. A parameter is laid out as a *point*: what is the same for
every row is computed once.

Near a centre, polynomials in (σ², ν) are close to g. With w = σ² - s, s the variance at the centre, and
e = ν - ν₀, the polynomial of a row has the terms

    1, w, e, w², we, e²    and, in the third degree,    w³, w²e, we², e³.

Their sums are polynomials in (α, ν), so that no row is read to evaluate them. With d = α - α₀, a_n the lags
of row n and w_n = a_n·d, the sum over rows of Σ_ij c_ij w^i e^j is

    Σ_n c_0j e^j + (Σ_n c_1j a_n)·d e^j + d'(Σ_n c_2j a_n a_n')d e^j + (Σ_n c_30 a_n ⊗ a_n ⊗ a_n)[d, d, d].

A *form* holds these sums in the order in which they are needed, equal ones once: about m³/6 numbers for
m = q + 1, or m² without the third degree.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gumbelrace.core.jit import OPTIONS, kernel
from gumbelrace.errors import InvalidArgument

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

# Entries of a point: order q, ν, c(ν), α_0, ..., α_q; what follows is not read.
ORDER, NU, CONSTANT, ALPHA = 0, 1, 2, 3

# Inlined into the kernels that call it, without reference counts, but Python may call it too.
row = numba.njit(**{**OPTIONS, "forceinline": True, "_nrt": False})

# Unsigned indices cannot count from the end: only then does the sum run in vector registers.
ONE, AT_ALPHA, FIRST = np.uint64(1), np.uint64(ALPHA), np.uint64(ALPHA + 1)

# Powers of w and of e in each term.
POWERS = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3))
TERMS = {2: 6, 3: 10}
# A quadrature node is not put closer to zero than this share of the centre.
CLOSEST = 0.1
# A form starts with the sums of c_0j; then for each i those of d_i, and for each j ≤ i those of d_i d_j.
CONSTANTS, LINEAR, SQUARE = 4, 3, 2


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
def _point_of(x: Floats, tau: float, width: int) -> Floats:
    point = np.zeros(width)
    place(x, tau, point)
    return point


def points_of(xs: Sequence[Floats] | Floats, tau: float, lags: int) -> Floats:
    """Lay out parameters, of orders up to `lags`, as rows of an array of points."""
    return np.stack([_point_of(np.asarray(x, np.float64), tau, ALPHA + 1 + lags) for x in xs])


class Centre(NamedTuple):
    """Where rows are expanded, and how far from there they will be read."""

    s: Floats  # variance of each row at the centre
    spread: Floats  # standard deviation of that variance
    nu: float  # ν₀
    nu_spread: float  # standard deviation of ν
    y: Floats  # squared returns of the rows


@dataclass(frozen=True)
class Projection:
    """Polynomials with the least mean square error where rows will be read.

    That is for normal w and e with the spreads of the centre, taken to be independent. What is left over
    has 2 to 4 times less variance than with a Taylor polynomial, and is less skewed.

    Parameters
    ----------
    degree : int
        2 or 3.
    nodes : int
        Number of Gauss-Hermite nodes on each axis.
    """

    degree: int = 3
    nodes: int = 5

    def __post_init__(self) -> None:
        if self.degree not in TERMS:
            raise InvalidArgument(f"degree is {self.degree!r}; it must be 2 or 3")
        if self.nodes <= self.degree:
            raise InvalidArgument(
                f"nodes is {self.nodes}; degree {self.degree} needs more than {self.degree}"
            )

    def coefficients(self, centre: Centre) -> Floats:
        """Give the coefficients of all rows, of shape (N, terms)."""
        if not (centre.nu_spread > 0.0 and (centre.spread > 0.0).all()):
            raise InvalidArgument("a spread around the centre is zero; give pilots that differ")
        t, e, solve = self._least_squares()
        s = np.maximum(centre.s + t[:, None] * centre.spread, CLOSEST * centre.s)
        nu = np.maximum(centre.nu + e * centre.nu_spread, CLOSEST * centre.nu)
        values = np.stack([row_shapes(*node, centre.y) for node in zip(s, nu, strict=True)], axis=1)
        powers = np.array(POWERS[: TERMS[self.degree]])
        found: Floats = values @ solve.T / centre.nu_spread ** powers[:, 1]
        found /= centre.spread[:, None] ** powers[:, 0]
        return found

    def _least_squares(self) -> tuple[Floats, Floats, Floats]:
        """Give the nodes of w and e, and the matrix that turns values there into coefficients."""
        axis, weight = np.polynomial.hermite_e.hermegauss(self.nodes)
        t, e = (grid.ravel() for grid in np.meshgrid(axis, axis))
        root = np.sqrt(np.outer(weight, weight).ravel())
        design = np.column_stack([t**i * e**j for i, j in POWERS[: TERMS[self.degree]]])
        solve = np.linalg.pinv(design * root[:, None]) * root
        return t, e, np.asarray(solve, np.float64)


@row
def polynomial(terms, w, e):  # type: ignore[no-untyped-def]
    in_w, in_e = terms[1] + terms[4] * e + terms[3] * w, terms[2] + terms[5] * e
    if len(terms) > 6:
        in_w += w * (terms[6] * w + terms[7] * e) + terms[8] * e * e
        in_e += terms[9] * e * e
    return terms[0] + w * in_w + e * in_e


def form_of(blocks: Iterable[tuple[Floats, Floats]], order: int) -> Floats:
    """Sum rows, given in blocks: lags of shape (B, m), and coefficients of shape (B, 6) or (B, 10)."""
    m, cubic = order + 1, False
    constants, once = np.zeros(CONSTANTS), np.zeros((LINEAR, m))
    twice, thrice = np.zeros((SQUARE, m, m)), np.zeros((m, m, m))
    for design, terms in blocks:
        cubic = terms.shape[1] > 6
        c = np.pad(terms.T, ((0, 10 - terms.shape[1]), (0, 0)))
        constants += c[[0, 2, 5, 9]].sum(axis=1)
        once += c[[1, 4, 8]] @ design
        for k in range(SQUARE):
            twice[k] += (design.T * c[(3, 7)[k]]) @ design
        for i in range(m if cubic else 0):
            lower = design[:, : i + 1]
            thrice[i, : i + 1, : i + 1] += (lower.T * (c[6] * design[:, i])) @ lower
    return np.concatenate([constants, *_laid_out(once, twice, thrice if cubic else None)])


def _laid_out(once: Floats, twice: Floats, thrice: Floats | None) -> Iterator[Floats]:
    for i in range(once.shape[1]):
        yield once[:, i]
        for j in range(i + 1):
            yield twice[:, i, j] * (2.0 if j < i else 1.0)
            if thrice is not None:
                yield thrice[i, j, : j + 1] * _orderings(i, j)


def _orderings(i: int, j: int) -> Floats:
    """Give in how many orders the indices i ≥ j ≥ k can be put, for each k."""
    pairs_apart = int(j < i) + (np.arange(j + 1) < j).astype(int)
    return np.take([1.0, 3.0, 6.0], pairs_apart)


@row
def form_value(point, centre, form, cubic):  # type: ignore[no-untyped-def]
    """Evaluate the sum of the polynomials at a point."""
    e, at = point[NU] - centre[NU], np.uint64(CONSTANTS)
    total = form[0] + e * (form[1] + e * (form[2] + e * form[3]))
    for i in range(np.uint64(point[ORDER]) + ONE):
        slope = form[at] + e * (form[at + ONE] + e * form[at + ONE + ONE])
        at += np.uint64(LINEAR)
        for j in range(i + ONE):
            curvature = form[at] + e * form[at + ONE]
            at += np.uint64(SQUARE)
            if cubic:
                for k in range(j + ONE):
                    curvature += form[at + k] * (point[AT_ALPHA + k] - centre[AT_ALPHA + k])
                at += j + ONE
            slope += curvature * (point[AT_ALPHA + j] - centre[AT_ALPHA + j])
        total += slope * (point[AT_ALPHA + i] - centre[AT_ALPHA + i])
    return total
