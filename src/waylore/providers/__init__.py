"""Embedders, extractors and rerankers that use a model, each behind an optional dependency.

Import the module that you need. The core imports none of them, so nothing here is loaded unless you use it.
"""
