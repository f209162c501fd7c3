"""Waylore: memory and knowledge retrieval for agents.

from waylore import Waylore

with Waylore.open("memory.waylore") as memory:
    memory.add("Ermengarde of Tours was the mother of Lothair II.")
    print(memory.search("Who was Lothair's mother?").hits[0].passage.text)
"""

from waylore.config import HYBRID, Recipe
from waylore.engine import Waylore
from waylore.errors import WayloreError
from waylore.models import Embedder, Extractor, Reranker
from waylore.store import Store
from waylore.types import (
    Claim,
    Contribution,
    Document,
    Entity,
    Explanation,
    Fact,
    Filter,
    Found,
    Hit,
    Merge,
    Passage,
    Receipt,
    Statistics,
)

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
