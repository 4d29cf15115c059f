"""Markov kernels whose every decision is a race."""
