"""Measure questions that ask for a set: whether `related` returns all of it, and nothing else."""
