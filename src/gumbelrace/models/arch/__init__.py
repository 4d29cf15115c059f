"""Bayesian ARCH models: data, priors, likelihoods, control variates and evidence."""

from gumbelrace.models.arch.data import Lagged, lagged, simulate
from gumbelrace.models.arch.expansion import Expansion, expand
from gumbelrace.models.arch.fit import Evidence, Laplace, laplace, log_evidence_by_importance
from gumbelrace.models.arch.likelihood import ArchLikelihood
from gumbelrace.models.arch.model import Arch
from gumbelrace.models.arch.polynomials import Projection

__all__ = [
    "Arch",
    "ArchLikelihood",
    "Evidence",
    "Expansion",
    "Lagged",
    "Laplace",
    "Projection",
    "expand",
    "lagged",
    "laplace",
    "log_evidence_by_importance",
    "simulate",
]
