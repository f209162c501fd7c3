"""Move a collection between two PostgreSQL servers by their own logical replication."""
