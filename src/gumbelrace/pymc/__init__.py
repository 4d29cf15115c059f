"""Posterior draws from PyMC models, unchanged: ``sample(model)``. Needs the extra ``pymc``."""

from gumbelrace.pymc.sampling import sample as sample

__all__ = ["sample"]
