"""The commands of an index on a Qdrant cluster."""
