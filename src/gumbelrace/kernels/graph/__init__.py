"""Gibbs sampling on a graph of pairwise factors."""
