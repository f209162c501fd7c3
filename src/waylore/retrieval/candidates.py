"""Finds passages by their meaning."""

from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.types.search import Query, Ranking


def dense(query: Query, *, top_k: int) -> Reads[Ranking]:
    """Passages by cosine, best first; none where the question has no vector."""
    if query.vector is None:
        return ()
    return (yield from read(Store.dense, query.vector, top_k=top_k, where=query.where))


def lexical(query: Query, *, top_k: int) -> Reads[Ranking]:
    """Passages by BM25, best first."""
    return read(Store.lexical, query.text, top_k=top_k, where=query.where)
