"""Measure searches on PostgreSQL with many passages and many tenants: `python -m benchmarks.tenants`."""
