"""Measure questions that ask for a set: whether `related` returns exactly this set."""
