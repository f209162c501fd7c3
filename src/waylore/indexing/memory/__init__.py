"""Store memories of conversations without repetitions."""
