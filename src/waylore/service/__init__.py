"""A running service without a protocol: collections, callers, keys, limits, uploads and jobs."""
