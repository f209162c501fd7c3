"""Check whether a model answers questions better with the contexts of Waylore."""
