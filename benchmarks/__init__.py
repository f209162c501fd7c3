"""Benchmarks. Each is a command that prints its figures beside those of a baseline in the same run."""
