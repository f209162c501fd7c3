"""Searching the PostgreSQL store: by words, by the vectors of passages, by the vectors of names.

Words are found by a GIN index and scored in `lexicon`; vectors are found by distance, all of them where the
caller sees few, else by an HNSW index of the collection's own, and the nearest are scored in `codes`. So the
scores are those of every other engine, and their order is exact among what was found.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from pgvector import HalfVector
from psycopg import sql

from weft.store import codes, lexicon
from weft.store.checks import is_embedded
from weft.store.postgres_scope import Scope, any_of, by_ids, run, term_word
from weft.store.postgres_server import Connection
from weft.store.queries import queries
from weft.text import terms
from weft.types import Ranking, Scored, Vector, identity

SQL = queries("postgres")
CANDIDATES = 200  # nearest that are ranked by their vectors, at the least
EXACT = 20_000  # vectors that a search compares one by one: 1.5 µs each, and writes need not tend an index
FAR = 40_000  # entries of an index that a search may see before it gives up
WIDEST = 1_000  # candidates that an index looks at together


def dense(db: Connection, scope: Scope, vector: Vector, *, top_k: int) -> Ranking:
    """Passages by cosine, best first."""
    if not is_embedded(scope.collection.statistics, vector):
        return ()
    bound = {**scope.bindings, **_asked(vector, top_k)}
    found = _through_index(db, "nearest_passages", scope.passages, bound)
    if found is None and scope.tags:
        found = _unprepared(db, SQL["nearest_tagged_passages"], {**bound, "first_tags": scope.tags[0]})
    if found is None:
        found = _unprepared(db, SQL["nearest_passages_exactly"], bound)
    return _by_cosine(found, vector, top_k)


def nearest_entities(db: Connection, scope: Scope, vector: Vector, *, top_k: int) -> Ranking:
    """Entities by the cosine of their names, best first."""
    if not is_embedded(scope.collection.statistics, vector):
        return ()
    bound = {**scope.bindings, **_asked(vector, top_k), "everything": scope.is_everything}
    found = _through_index(db, "nearest_entities", scope.collection.statistics.entities, bound)
    if found is None:
        found = _unprepared(db, SQL["nearest_entities_exactly"], bound)
    return _by_cosine(found, vector, top_k)


def cosines(db: Connection, scope: Scope, vector: Vector, passages: Sequence[str]) -> dict[str, float]:
    """How near these passages are to a vector."""
    if not is_embedded(scope.collection.statistics, vector):
        return {}
    rows = by_ids(db, "vectors_of_passages", passages, **scope.bindings)
    near = codes.cosines([blob for _, blob in rows], vector)
    return {id_.hex(): score for (id_, _), score in zip(rows, near.tolist(), strict=True)}


def lexical(db: Connection, scope: Scope, query: str, *, top_k: int) -> Ranking:
    """Passages by BM25, best first."""
    asked = {identity("term", term): term for term in terms(query)}
    known = by_ids(db, "terms", asked, collection=scope.collection.key)
    if not known:
        return ()
    reach = max(lexicon.REACH, 2 * top_k)
    frequencies = {asked[term.hex()]: (number, passages) for term, number, passages in known}
    match = _candidates(db, scope, frequencies, reach)
    found = run(db, "match", match=match, limit=reach).fetchall()
    passages = scope.collection.statistics.passages
    scores = lexicon.bm25(
        [(length, blob) for _, length, blob in found],
        list(frequencies.values()),
        passages=passages,
        average_length=max(scope.collection.length / max(passages, 1), 1.0),
    )
    return _ranking([id_.hex() for id_, *_ in found], scores, top_k)


def _candidates(db: Connection, scope: Scope, frequencies: dict[str, tuple[int, int]], reach: int) -> str:
    """The rarest terms; more of them the fewer passages the caller sees."""
    visible = scope.match
    seen = _seen(db, scope, reach) if visible else reach
    counted = [(term, passages) for term, (_, passages) in frequencies.items()]
    widened = lexicon.widened(reach, seen, scope.collection.statistics.passages)
    rare = lexicon.rarest_first(counted, reach=widened)
    either = any_of(term_word(scope.collection.mark, frequencies[term][0]) for term in rare)
    return f"{either} & {visible}" if visible else either


def _seen(db: Connection, scope: Scope, reach: int) -> int:
    """How many passages the caller sees, as far as it matters."""
    if not scope.tags:
        return min(scope.passages, reach)
    bound = {**scope.bindings, "first_tags": scope.tags[0], "limit": reach}
    [(count,)] = run(db, "count_tagged", **bound).fetchall()
    return int(count)


def _asked(vector: Vector, top_k: int) -> dict[str, Any]:
    return {"vector": HalfVector(vector), "cap": max(CANDIDATES, 2 * top_k)}


def _through_index(db: Connection, query: str, seen: int, bound: dict[str, Any]) -> list[Any] | None:
    """What an index finds; None if all should be looked at, or the filter let too few of them through."""
    if seen <= EXACT:
        return None
    run(db, "search_settings", wanted=str(min(bound["cap"], WIDEST)), most=str(FAR))
    found = _unprepared(db, _typed(query, bound["vector"].dimensions()), bound)
    run(db, "exact_settings")
    return found if len(found) == bound["cap"] else None


@lru_cache(maxsize=64)
def _typed(query: str, dimension: int) -> sql.Composed:
    """A query of vectors of one length, which is part of their type."""
    return sql.SQL(SQL[query]).format(dimension=sql.Literal(dimension))


def _unprepared(db: Connection, query: Any, bound: dict[str, Any]) -> list[Any]:
    """Planned for the collection at hand, since only then its own index can be chosen."""
    return db.execute(query, bound, prepare=False, binary=True).fetchall()


def _by_cosine(found: Sequence[Any], vector: Vector, top_k: int) -> Ranking:
    near = codes.cosines([blob for _, blob in found], vector)
    return _ranking([id_.hex() for id_, _ in found], near, top_k)


def _ranking(ids: Sequence[str], scores: npt.NDArray[np.float64], top_k: int) -> Ranking:
    """The best, ties broken by identity; scores are rounded, so that a tie is one on every engine."""
    ranked = sorted(zip((-np.round(scores, 6)).tolist(), ids, strict=True))
    return tuple(Scored(id_, -score) for score, id_ in ranked[:top_k])
