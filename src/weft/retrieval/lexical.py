"""Finds passages by their words."""

from weft.store.base import Store
from weft.types import Query, Ranking


def lexical(store: Store, query: Query, *, top_k: int) -> Ranking:
    """Passages by BM25, best first."""
    return store.lexical(query.text, top_k=top_k, where=query.where)
