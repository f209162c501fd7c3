"""Answer questions from a store: cache answers (S14), and count how often passages and facts were used.

An answer is cached under the version of the collection, so a write by any process makes it unreachable. Uses are
counted after the answer is returned, in a thread of their own, and at most once an hour for each caller and item, so
that frequent questions raise no score. Each process has its own table of recent uses.
"""

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from queue import SimpleQueue
from threading import Lock

from cachetools import TTLCache

from waylore.config import CacheConfig
from waylore.errors import StoreError
from waylore.protocols import Embedder, Reranker
from waylore.recipes import Recipe
from waylore.retrieval.search import NO_EMBEDDER, search
from waylore.store.partial import get_left_out
from waylore.store.protocol import Store
from waylore.types.results import Statistics
from waylore.types.search import Query, SearchResult

log = logging.getLogger(__name__)
USE_SECONDS = 3_600.0  # in which a caller's uses of an item count once
MAX_RECENT_USES = 100_000  # uses that are known to be recent; the oldest are dropped


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
        self._used: SimpleQueue[tuple[str, SearchResult]] = SimpleQueue()
        self._recent_uses: TTLCache[tuple[str, str], None] = TTLCache(
            MAX_RECENT_USES, USE_SECONDS, timer=lambda: clock().timestamp()
        )
        self._use_counter = ThreadPoolExecutor(1, thread_name_prefix="waylore-usage")

    def search(self, query: Query, recipe: Recipe, route_reason: str, reranker: Reranker | None) -> SearchResult:
        """Return the cached answer to a question, or search the store."""
        known = self._store.statistics()
        key = (query.text, repr(query.where), query.as_of, _to_key(recipe), known.version)
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
        """Count the hits of an answer as used by a caller, later."""
        if result.hits:
            self._used.put((caller, result))
            self._use_counter.submit(self._count_uses)

    def close(self) -> None:
        """Finish counting uses."""
        self._use_counter.shutdown(wait=True)

    def _search_store(self, query: Query, recipe: Recipe, reranker: Reranker | None, mismatch: str) -> SearchResult:
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

    def _count_uses(self) -> None:
        """Write the uses of all answers since the last time. An error is logged: a read-only store can be read."""
        passages: list[str] = []
        facts: list[str] = []
        while not self._used.empty():
            caller, result = self._used.get()
            passages += self._take_unused(caller, (hit.passage.id for hit in result.hits))
            facts += self._take_unused(caller, (f.id for hit in result.hits if hit.path for f in hit.path.facts))
        try:
            if passages or facts:
                self._store.count_uses(passages=passages, facts=facts, at=self._clock())
        except StoreError as error:
            log.warning("uses were not counted: %s", error)

    def _take_unused(self, caller: str, items: Iterable[str]) -> list[str]:
        """Return the items that a caller did not use within the last hour, and remember them as used."""
        unused = [item for item in dict.fromkeys(items) if (caller, item) not in self._recent_uses]
        self._recent_uses.update({(caller, item): None for item in unused})
        return unused


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
