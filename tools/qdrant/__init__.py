"""Real Qdrant servers for tests and benchmarks."""
