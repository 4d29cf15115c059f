"""Sums of the rows' polynomials: polynomials in (α, ν), so that no row is read to evaluate them.

With d = α - α₀, a_n the lags of row n and w_n = a_n·d, the sum over rows of Σ_ij c_ij w^i e^j is

    Σ_n c_0j e^j + (Σ_n c_1j a_n)·d e^j + d'(Σ_n c_2j a_n a_n')d e^j + (Σ_n c_30 a_n ⊗ a_n ⊗ a_n)[d, d, d].

A *form* holds these sums in the order in which they are needed, equal ones once: about m³/6 numbers for
m = q + 1, or m² without the third degree.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from gumbelrace.models.arch.rows import ALPHA, NU, ORDER, Floats, row

# A form starts with the sums of c_0j; then for each i those of d_i, and for each j ≤ i those of d_i d_j.
CONSTANTS, LINEAR, SQUARE = 4, 3, 2

ONE, AT_ALPHA = np.uint64(1), np.uint64(ALPHA)


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
