"""Finds passages by their words."""

from waylore.store.base import Store
from waylore.store.reads import Reads, read
from waylore.types import Query, Ranking


def lexical(query: Query, *, top_k: int) -> Reads[Ranking]:
    """Passages by BM25, best first."""
    return read(Store.lexical, query.text, top_k=top_k, where=query.where)
