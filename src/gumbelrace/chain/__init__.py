"""Chains: a kernel run step after step, in several threads, with checkpoints."""
