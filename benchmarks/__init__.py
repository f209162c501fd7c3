"""Benchmarks: each is a command that prints what it measured beside the bare engine in the same run."""
