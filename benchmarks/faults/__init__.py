"""Cause faults on real servers under load and report what callers see: `python -m benchmarks.faults`."""
