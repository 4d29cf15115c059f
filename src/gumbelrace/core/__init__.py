"""Compiled foundations: how functions are compiled, packed data, random numbers and orders of rows."""
