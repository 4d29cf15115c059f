"""Bounds on the error of an estimated mean: a formula and its ingredients."""
