"""Settings: their tables, and the only place that reads the environment."""
