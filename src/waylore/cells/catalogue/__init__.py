"""The catalogue: which cells there are, and which cell holds each collection."""
