"""The catalogue: which cells exist, and which cell holds each collection."""
