"""Minus the Hessian of a log posterior: Newton's step, and where the posterior is flattest."""

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy  # its parts load when first used

from gumbelrace.laplace.model import Floats, dense

# Curvatures below that share of the largest (parameters scaled to equal curvature) are those of no mode.
FLAT = 1e-10
# What is added to the curvature of all parameters, once they are scaled, until all curvatures are positive.
ADDED = 0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e4, 1e6
# Steps of a search for the flattest direction.
ITERATIONS, SEED = 30, 0


class Bowl(Protocol):
    """Minus a Hessian."""

    def newton_step(self, gradient: Floats) -> tuple[Floats, float]:
        """Give the step to the mode, and how many standard deviations away it is.

        Where the curvature has the wrong sign, the step goes uphill all the same.
        """

    def flattest(self) -> tuple[float, Floats]:
        """Give the least curvature as a share of the largest, and how much of each parameter is in it."""


def bowl_of(precision: Any) -> Bowl:
    """Scale parameters to equal curvature, and diagonalise, or factorise what is sparse."""
    diagonal = np.abs(precision.diagonal())
    scales = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, max(diagonal.max(), 1e-300)))
    if isinstance(precision, np.ndarray):
        return Diagonalised(scales, *np.linalg.eigh(scales[:, None] * precision * scales))
    scaled = scipy.sparse.diags_array(scales) @ precision @ scipy.sparse.diags_array(scales)
    return factorised(scales, scipy.sparse.csc_array(scaled))


class Diagonalised(NamedTuple):
    """Curvatures and axes after parameters were scaled."""

    scales: Floats
    curvatures: Floats
    axes: Floats

    def newton_step(self, gradient: Floats) -> tuple[Floats, float]:
        along = self.axes.T @ (self.scales * gradient)
        curvatures = np.maximum(np.abs(self.curvatures), FLAT * np.abs(self.curvatures).max())
        step = self.scales * (self.axes @ (along / curvatures))
        return step, float(np.sqrt(np.sum(along**2 / curvatures)))

    def flattest(self) -> tuple[float, Floats]:
        least = int(np.argmin(self.curvatures))
        share = self.curvatures[least] / np.abs(self.curvatures).max()
        return float(share), np.abs(self.scales * self.axes[:, least])


class Factorised(NamedTuple):
    """A sparse factor after parameters were scaled, and enough was added to the curvatures."""

    scales: Floats
    scaled: Any
    factor: Any
    added: float

    def newton_step(self, gradient: Floats) -> tuple[Floats, float]:
        slopes = self.scales * gradient
        step = self.factor.solve(slopes)
        return self.scales * step, float(np.sqrt(slopes @ step))

    def flattest(self) -> tuple[float, Floats]:
        if self.added > 0.0:
            return Diagonalised(self.scales, *np.linalg.eigh(dense(self.scaled))).flattest()
        axis = np.random.default_rng(SEED).standard_normal(len(self.scales))
        for _ in range(ITERATIONS):
            axis = self.factor.solve(axis / np.linalg.norm(axis))
        largest = abs(self.scaled).sum(axis=0).max()  # or less
        return float(1.0 / (np.linalg.norm(axis) * largest)), np.abs(self.scales * axis)


def factorised(scales: Floats, scaled: Any) -> Factorised:
    """Factorise a symmetric sparse matrix, after so much was added to its diagonal that it is positive."""
    for added in ADDED:
        factor = positive_factor(scaled + added * scipy.sparse.eye_array(len(scales), format="csc"))
        if factor is not None:
            break
    return Factorised(scales, scaled, factor, added)


def positive_factor(matrix: Any) -> Any:
    """Factorise a symmetric matrix in an order that keeps it sparse; None if it is not positive."""
    options = {"SymmetricMode": True}
    try:
        factor = scipy.sparse.linalg.splu(
            scipy.sparse.csc_array(matrix),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options=options,
        )
    except RuntimeError:  # exactly singular
        return None
    symmetric = (factor.perm_r == factor.perm_c).all()
    return factor if symmetric and (factor.U.diagonal() > 0.0).all() else None
