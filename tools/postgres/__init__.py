"""Real PostgreSQL servers for tests and benchmarks. The product does not use this package."""
