"""Build large PostgreSQL databases from a small sample."""
