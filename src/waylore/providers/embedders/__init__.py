"""Embedders, each behind an optional dependency."""
