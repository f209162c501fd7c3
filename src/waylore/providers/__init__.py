"""Real embedders, extractors and rerankers, each behind an optional dependency.

Import the module you want: nothing here is imported by the core, and nothing here is imported until asked for.
"""
