"""Waylore: memory and knowledge retrieval for agents.

from waylore import Waylore

with Waylore.open("memory.waylore") as memory:
    memory.add("Ermengarde of Tours was the mother of Lothair II.")
    print(memory.search("Who was Lothair's mother?").hits[0].passage.text)
"""

from waylore.engine.waylore import Waylore
from waylore.errors import WayloreError
from waylore.protocols import Embedder, Extractor, Reranker
from waylore.recipes import HYBRID, Recipe
from waylore.store.protocol import Store
from waylore.types.knowledge import Claim, Contribution, Document, Entity, Fact, Passage
from waylore.types.results import Merge, Receipt, Statistics
from waylore.types.search import Explanation, Filter, Found, Hit

__version__ = "0.1.0"

__all__ = [
    "HYBRID",
    "Claim",
    "Contribution",
    "Document",
    "Embedder",
    "Entity",
    "Explanation",
    "Extractor",
    "Fact",
    "Filter",
    "Found",
    "Hit",
    "Merge",
    "Passage",
    "Receipt",
    "Recipe",
    "Reranker",
    "Statistics",
    "Store",
    "Waylore",
    "WayloreError",
]
