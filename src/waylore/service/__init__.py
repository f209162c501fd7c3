"""A running service without HTTP: collections, callers, API keys, rate limits, uploads and jobs."""
