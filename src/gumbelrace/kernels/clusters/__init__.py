"""Gibbs sampling of partitions: clusters of mentions that pairwise factors hold together."""
