"""An index on a Qdrant cluster: it finds candidates for searches. It has ids, vectors and permissions, and no text."""
