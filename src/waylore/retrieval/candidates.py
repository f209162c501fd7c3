"""Search passages by vector and by keywords.

Each function is one stage of a search. It returns a ranking and neither merges rankings nor loads texts.
"""

from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.types.search import Query, Ranking


def search_vectors(query: Query, *, top_k: int) -> Reads[Ranking]:
    """Return passages by cosine, best first. Without a vector of the question the ranking is empty."""
    if query.vector is None:
        return ()
    return (yield from read(Store.dense, query.vector, top_k=top_k, where=query.where))


def search_keywords(query: Query, *, top_k: int) -> Reads[Ranking]:
    """Return passages by BM25, best first."""
    return read(Store.lexical, query.text, top_k=top_k, where=query.where)
