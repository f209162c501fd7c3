"""Measure how well recipes answer the questions of benchmark sets."""
