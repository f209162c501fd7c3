"""Weft: memory and knowledge retrieval for agents.

from weft import Weft

with Weft.open("memory.weft") as memory:
    memory.add("Ermengarde of Tours was the mother of Lothair II.")
    print(memory.search("Who was Lothair's mother?").hits[0].passage.text)
"""

from weft.config import HYBRID, Recipe
from weft.engine import Weft
from weft.errors import WeftError
from weft.models import Embedder, Extractor, Reranker
from weft.store import Store
from weft.types import (
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
    "Weft",
    "WeftError",
]
