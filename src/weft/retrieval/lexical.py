"""Finds passages by their words."""

from weft.store.base import Store
from weft.store.reads import Reads, read
from weft.types import Query, Ranking


def lexical(query: Query, *, top_k: int) -> Reads[Ranking]:
    """Passages by BM25, best first."""
    return read(Store.lexical, query.text, top_k=top_k, where=query.where)
