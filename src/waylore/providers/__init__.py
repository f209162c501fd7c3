"""Embedders and extractors that use a model, each behind an optional dependency.

Import the module you want. The core imports none of them, so nothing here is loaded unless you use it.
"""
