"""Approximations of the rewards whose sums are known."""
