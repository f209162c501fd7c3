"""Answers a question: runs the stages in order and collects what each one did.

A stage that fails is left out and named in the answer; the others answer without it (promise 9). Graph
stages are not here yet: they join between fusion and hits.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from weft.config import Recipe
from weft.errors import ModelError, StoreError
from weft.models import Embedder
from weft.retrieval.dense import dense
from weft.retrieval.fusion import Fused, fuse
from weft.retrieval.lexical import lexical
from weft.store.base import Store
from weft.types import Found, Hit, Query, Ranking


def search(store: Store, embedder: Embedder | None, query: Query, recipe: Recipe) -> Found:
    """Hits for a question, best first, each with where every search placed it."""
    missing: list[str] = []
    seconds: dict[str, float] = {}

    def timed(stage: str, run: Callable[[], Ranking]) -> Ranking:
        start = time.perf_counter()
        try:
            return run()
        except (StoreError, ModelError) as error:
            missing.append(f"{stage}: {error}")
            return ()
        finally:
            seconds[stage] = time.perf_counter() - start

    depth = recipe.top_k * recipe.hybrid.depth
    rankings = {
        "dense": timed("dense", lambda: dense(store, _embedded(query, embedder), top_k=depth)),
        "lexical": timed("lexical", lambda: lexical(store, query, top_k=depth)),
    }
    if embedder is None and query.vector is None:
        missing.append("dense: no embedder was given, so only words were searched")
    if len(missing) == len(rankings):
        raise StoreError(f"no search could be run: {'; '.join(missing)}")
    fused = fuse(rankings, recipe.hybrid)
    return Found(
        query=query.text,
        hits=_hits(store, query, fused[: recipe.top_k]),
        missing=tuple(missing),
        candidates={search: len(ranking) for search, ranking in rankings.items()},
        seconds=seconds,
    )


def _embedded(query: Query, embedder: Embedder | None) -> Query:
    if embedder is None or query.vector is not None:
        return query
    return replace(query, vector=embedder.embed_query(query.text))


def _hits(store: Store, query: Query, fused: tuple[Fused, ...]) -> tuple[Hit, ...]:
    """The passages behind a ranking; one that was forgotten meanwhile is left out."""
    passages = store.passages([f.id for f in fused], where=query.where)
    documents = store.documents(
        list(dict.fromkeys(p.document_id for p in passages.values())), where=query.where
    )
    return tuple(
        Hit(passage, documents[passage.document_id], f.score, f.placements)
        for f in fused
        if (passage := passages.get(f.id)) and passage.document_id in documents
    )
