"""Extractors that use a model, each behind an optional dependency."""
