"""Bayesian ARCH models: data, priors, likelihoods, control variates and evidence."""

from gumbelrace.models.arch.data import (
    Lagged,
    Overnight,
    Repairs,
    Returns,
    lagged,
    returns_from_prices,
    simulate,
    standardised,
)
from gumbelrace.models.arch.likelihood import ArchLikelihood, Expansion, expand
from gumbelrace.models.arch.model import Arch, Evidence, Laplace, laplace, log_evidence_by_importance
from gumbelrace.models.arch.rows import Projection

__all__ = [
    "Arch",
    "ArchLikelihood",
    "Evidence",
    "Expansion",
    "Lagged",
    "Laplace",
    "Overnight",
    "Projection",
    "Repairs",
    "Returns",
    "expand",
    "lagged",
    "laplace",
    "log_evidence_by_importance",
    "returns_from_prices",
    "simulate",
    "standardised",
]
