"""Faults done to real servers under load, and what the callers saw: `python -m benchmarks.faults`."""
