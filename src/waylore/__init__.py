"""Waylore: memory and knowledge retrieval for agents.

from waylore import Waylore

with Waylore.open("memory.waylore") as memory:
    memory.add("Ermengarde of Tours was the mother of Lothair II.")
    print(memory.search("Who was Lothair's mother?").hits[0].passage.text)
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waylore.engine.waylore import Waylore
    from waylore.errors import WayloreError
    from waylore.protocols import Embedder, Extractor, Reranker
    from waylore.recipes import HYBRID, Recipe
    from waylore.store.protocol import Store
    from waylore.types.author import Author
    from waylore.types.knowledge import Document, Entity, Fact, IndexedDocument, NewFact, Passage
    from waylore.types.results import AddedId, Merge, Receipt, RememberReport, Statistics
    from waylore.types.search import Explanation, Filter, Hit, SearchResult

__version__ = "0.1.0"

__all__ = [
    "HYBRID",
    "AddedId",
    "Author",
    "Document",
    "Embedder",
    "Entity",
    "Explanation",
    "Extractor",
    "Fact",
    "Filter",
    "Hit",
    "IndexedDocument",
    "Merge",
    "NewFact",
    "Passage",
    "Receipt",
    "Recipe",
    "RememberReport",
    "Reranker",
    "SearchResult",
    "Statistics",
    "Store",
    "Waylore",
    "WayloreError",
]

# Public names are imported on first use, so that `import waylore` and `waylore --version` load no engine.
_MODULES = {
    "HYBRID": "waylore.recipes",
    "AddedId": "waylore.types.results",
    "Author": "waylore.types.author",
    "Document": "waylore.types.knowledge",
    "Embedder": "waylore.protocols",
    "Entity": "waylore.types.knowledge",
    "Explanation": "waylore.types.search",
    "Extractor": "waylore.protocols",
    "Fact": "waylore.types.knowledge",
    "Filter": "waylore.types.search",
    "Hit": "waylore.types.search",
    "IndexedDocument": "waylore.types.knowledge",
    "Merge": "waylore.types.results",
    "NewFact": "waylore.types.knowledge",
    "Passage": "waylore.types.knowledge",
    "Receipt": "waylore.types.results",
    "RememberReport": "waylore.types.results",
    "Recipe": "waylore.recipes",
    "Reranker": "waylore.protocols",
    "SearchResult": "waylore.types.search",
    "Statistics": "waylore.types.results",
    "Store": "waylore.store.protocol",
    "Waylore": "waylore.engine.waylore",
    "WayloreError": "waylore.errors",
}

if not TYPE_CHECKING:  # a type checker reads the imports above, and still reports unknown names

    def __getattr__(name: str) -> object:
        """Import a public name on first use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(_MODULES[name]), name)
        return globals()[name]

    def __dir__() -> list[str]:
        """List the public names, also those that are not imported yet."""
        return sorted({*globals(), *__all__})
