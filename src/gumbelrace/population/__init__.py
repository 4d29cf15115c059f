"""Finite populations of rewards, and how compiled code reads them."""
