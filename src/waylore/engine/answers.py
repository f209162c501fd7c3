"""Answer questions from a store, and cache the answers (S14).

An answer is cached under the version of the collection, so a write by any process makes it unreachable. The same holds
for the share of turns of conversations that a caller sees: the method `auto` needs it in each search. Once a document
that the caller may see has expired, answers are not cached until it is forgotten. Uses are counted by `uses`, which
writes them later; they are written at once if an answer depends on them.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace
from datetime import datetime
from functools import partial
from threading import Lock

from cachetools import LRUCache, TTLCache

from waylore.config import CacheConfig
from waylore.engine.uses import UseCounter
from waylore.protocols import Embedder, Reranker
from waylore.recipes import ACTIVATION, Recipe, TurnShare, apply_weights
from waylore.retrieval.search import NO_EMBEDDER, find_turns, search
from waylore.store.partial import get_left_out
from waylore.store.protocol import Store
from waylore.types.results import Statistics
from waylore.types.search import Filter, Query, SearchResult

MAX_CALLERS = 1_024  # pairs of labels and user with a cached share of turns
CachedAnswer = tuple[SearchResult, datetime | None]  # with the first expiry of a visible document
ChooseRecipe = Callable[[Callable[[], TurnShare]], tuple[Recipe, str]]  # with the reason for the choice


class Answers:
    """The answers of one open collection."""

    def __init__(
        self, store: Store, embedder: Embedder | None, cache: CacheConfig, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._cache: TTLCache[object, CachedAnswer] | None = TTLCache(cache.size, cache.seconds) if cache.size else None
        self._cached_version = 0
        self._turns: LRUCache[object, TurnShare] = LRUCache(MAX_CALLERS)
        self._entity_counts: Counter[str] = Counter()
        self._lock = Lock()
        self._uses = UseCounter(store, clock)

    def search(self, query: Query, choose: ChooseRecipe, reranker: Reranker | None) -> SearchResult:
        """Return the cached answer to a question, or search the store with the recipe that is chosen for it."""
        known = self._store.statistics()
        recipe, reason = choose(partial(self._find_turns, query.where, known.version))
        recipe, weights = apply_weights(recipe, known.weights)
        where = replace(query.where, now=None)
        asked = (query.text, repr(where), query.as_of, query.min_similarity, query.group_by)
        key = (*asked, _to_key(recipe), known.version)
        result = None if reranker or get_left_out() else self._find_cached(key, known.version, query.where)
        from_cache = result is not None
        if result is None:
            result = self._search_store(query, recipe, reranker, describe_mismatch(known, self._embedder))
            if not reranker and set(result.missing) <= {NO_EMBEDDER}:
                self._store_cached(key, result, query.where)
        with self._lock:
            self._entity_counts.update(entity.name for entity in result.entities)
        return replace(result, route_reason=", ".join(filter(None, (reason, weights))), from_cache=from_cache)

    def list_frequent_names(self, limit: int) -> list[str]:
        """Return the entities that questions named most often."""
        with self._lock:
            return [name for name, _ in self._entity_counts.most_common(limit)]

    def record_use(self, result: SearchResult, caller: str) -> None:
        """Count the hits of an answer as used by a caller. The counts are written later."""
        self._uses.record(result, caller)

    def write_uses(self) -> None:
        """Write the counts of uses so far."""
        self._uses.write()

    def close(self) -> None:
        """Write the counts of uses."""
        self._uses.close()

    def _search_store(self, query: Query, recipe: Recipe, reranker: Reranker | None, mismatch: str) -> SearchResult:
        if recipe.graph == ACTIVATION.graph:
            self._uses.write()  # only this search reads the counts
        now = self._clock()
        valid = query if query.as_of else replace(query, as_of=now)
        embedder = None if mismatch else self._embedder
        result = search(self._store, embedder, valid, recipe, now=now, reranker=reranker)
        return replace(result, missing=(f"vector: {mismatch}", *result.missing[1:])) if mismatch else result

    def _find_turns(self, where: Filter, version: int) -> TurnShare:
        """Return the share of turns among the visible passages, read once for a version of the collection."""
        key = (where.labels, where.user, version)
        with self._lock:
            known = self._turns.get(key)
        if known:
            return known
        found = find_turns(self._store, where)
        if not get_left_out():  # a missing cell may have others
            with self._lock:
                self._turns[key] = found
        return found

    def _find_cached(self, key: object, version: int, where: Filter) -> SearchResult | None:
        if self._cache is None:
            return None
        with self._lock:
            if version != self._cached_version:  # answers of another version can never be returned again
                self._cache.clear()
                self._cached_version = version
            result, expiry = self._cache.get(key, (None, None))
        return result if _is_lasting(where, expiry) else None

    def _store_cached(self, key: object, result: SearchResult, where: Filter) -> None:
        """Cache an answer with the time at which the first document that the caller may see expires."""
        if self._cache is None:
            return
        expiry = self._store.first_expiry(where=where)
        if _is_lasting(where, expiry):
            with self._lock:
                self._cache[key] = (result, expiry)


def _is_lasting(where: Filter, expiry: datetime | None) -> bool:
    """Return whether an answer stays the same until the next write: no visible document has expired yet.

    Otherwise the next one may expire at any time.
    """
    return where.as_of is not None or expiry is None or where.now is None or where.now < expiry


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
