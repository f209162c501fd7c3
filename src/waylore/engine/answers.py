"""Answer questions from a store, and cache the answers (S14).

An answer is cached under the version of the collection, so a write by any process makes it unreachable. Uses are
counted by `uses`, which writes them later; they are written at once if an answer depends on them.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace
from datetime import datetime
from threading import Lock

from cachetools import TTLCache

from waylore.config import CacheConfig
from waylore.engine.uses import UseCounter
from waylore.protocols import Embedder, Reranker
from waylore.recipes import ACTIVATION, Recipe
from waylore.retrieval.search import NO_EMBEDDER, search
from waylore.store.partial import get_left_out
from waylore.store.protocol import Store
from waylore.types.results import Statistics
from waylore.types.search import Query, SearchResult


class Answers:
    """The answers of one open collection."""

    def __init__(
        self, store: Store, embedder: Embedder | None, cache: CacheConfig, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._cache: TTLCache[object, SearchResult] | None = TTLCache(cache.size, cache.seconds) if cache.size else None
        self._cached_version = 0
        self._entity_counts: Counter[str] = Counter()
        self._lock = Lock()
        self._uses = UseCounter(store, clock)

    def search(self, query: Query, recipe: Recipe, route_reason: str, reranker: Reranker | None) -> SearchResult:
        """Return the cached answer to a question, or search the store."""
        known = self._store.statistics()
        key = (query.text, repr(query.where), query.as_of, query.min_similarity, _to_key(recipe), known.version)
        result = None if reranker or get_left_out() else self._find_cached(key, known.version)
        from_cache = result is not None
        if result is None:
            result = self._search_store(query, recipe, reranker, describe_mismatch(known, self._embedder))
            if not reranker and set(result.missing) <= {NO_EMBEDDER}:
                self._store_cached(key, result)
        with self._lock:
            self._entity_counts.update(entity.name for entity in result.entities)
        return replace(result, route_reason=route_reason, from_cache=from_cache)

    def list_frequent_names(self, limit: int) -> list[str]:
        """Return the entities that questions named most often."""
        with self._lock:
            return [name for name, _ in self._entity_counts.most_common(limit)]

    def record_use(self, result: SearchResult, caller: str) -> None:
        """Count the hits of an answer as used by a caller. The counts are written later."""
        self._uses.record(result, caller)

    def close(self) -> None:
        """Write the counts of uses."""
        self._uses.close()

    def _search_store(self, query: Query, recipe: Recipe, reranker: Reranker | None, mismatch: str) -> SearchResult:
        if recipe.graph == ACTIVATION.graph:
            self._uses.write()  # it is the one search that reads them
        now = self._clock()
        valid = query if query.as_of else replace(query, as_of=now)
        embedder = None if mismatch else self._embedder
        result = search(self._store, embedder, valid, recipe, now=now, reranker=reranker)
        return replace(result, missing=(f"vector: {mismatch}", *result.missing[1:])) if mismatch else result

    def _find_cached(self, key: object, version: int) -> SearchResult | None:
        if self._cache is None:
            return None
        with self._lock:
            if version != self._cached_version:  # answers of another version can never be returned again
                self._cache.clear()
                self._cached_version = version
            return self._cache.get(key)

    def _store_cached(self, key: object, result: SearchResult) -> None:
        if self._cache is not None:
            with self._lock:
                self._cache[key] = result


def describe_mismatch(known: Statistics, embedder: Embedder | None) -> str:
    """Return why a collection cannot be searched with this embedder; empty if it can."""
    if embedder is None or not known.documents or known.model == embedder.name:
        return ""
    return (
        f"the collection was embedded with {known.model or 'no model'}, not with {embedder.name}: "
        "open it with that model, or change it with `waylore reembed` (Waylore.reembed(url, embedder=…))"
    )


def _to_key(recipe: Recipe) -> Hashable:
    """Return a key for a recipe; one that holds a list cannot be hashed."""
    try:
        hash(recipe)
    except TypeError:
        return repr(recipe)
    return recipe
