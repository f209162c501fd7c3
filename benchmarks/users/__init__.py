"""Measure memories of many users, and of one user over years: `python -m benchmarks.users`."""
