"""Find candidates by an index on a Qdrant cluster, and keep that index up to date through an outbox."""
