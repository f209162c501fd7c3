"""Rerankers, each behind an optional dependency."""
