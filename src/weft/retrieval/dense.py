"""Finds passages by their meaning."""

from weft.store.base import Store
from weft.types import Query, Ranking


def dense(store: Store, query: Query, *, top_k: int) -> Ranking:
    """Passages by cosine, best first; none where the question has no vector."""
    if query.vector is None:
        return ()
    return store.dense(query.vector, top_k=top_k, where=query.where)
