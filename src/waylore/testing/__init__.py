"""The conformance tests for authors of stores. They need pytest."""

from waylore.testing.suite import StoreConformance
from waylore.testing.world import OpenStore

__all__ = ["OpenStore", "StoreConformance"]
