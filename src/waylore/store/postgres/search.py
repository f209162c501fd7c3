"""Searching the PostgreSQL store: by words, by the vectors of passages, by the vectors of names.

Words are found by pg_textsearch, or else by a GIN index, and scored in `lexicon`. Vectors are found by
distance: all of them where the caller sees few, else by an HNSW index of the collection's own; the nearest are
scored in `codes`. So scores are those of every other engine, and their order is exact among what was found.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from pgvector import HalfVector
from psycopg import sql

from waylore.store import bm25
from waylore.store import rows as columns
from waylore.store import vectors as codes
from waylore.store.checks import is_embedded
from waylore.store.postgres.scope import Scope
from waylore.store.postgres.steps import (
    SQL,
    Statement,
    Steps,
    Wanted,
    array,
    known,
    of_ids,
    rows,
    statement,
)
from waylore.store.reads import side_by_side
from waylore.text import terms
from waylore.types.identity import identity
from waylore.types.knowledge import Mention, Vector
from waylore.types.search import Ranking, Scored

CANDIDATES = 200  # nearest that are ranked by their vectors, at the least
WIDER = 4  # times as many as are wanted are taken from pg_textsearch, whose order is not quite ours
EXACT = 20_000  # passages that a search compares one by one: 1.5 µs each, and writes need not tend an index
EXACT_NAMES = 100_000  # and entities: there are many to a passage, and few searches ask for the nearest
FAR = 40_000  # entries of an index that a search may see before it gives up
WIDE, WIDEST = 400, 1_000  # candidates that an index looks at together, at the least and at the most


def dense(scope: Scope, vector: Vector, *, top_k: int) -> Steps[Ranking]:
    """Passages by cosine, best first."""
    if not is_embedded(scope.collection.statistics, vector):
        return ()
    bound = {**scope.bindings, **_asked(vector, top_k)}
    found = (yield from _through_index("nearest_passages", bound)) if scope.passages > EXACT else None
    if found is None and scope.tags:
        bound["first_tags"] = scope.tags[0]
        found = yield from _exactly("nearest_tagged_passages", bound)
    if found is None:
        found = yield from _exactly("nearest_passages_exactly", bound)
    return _by_cosine(found, vector, top_k)


def nearest_entities(scope: Scope, vector: Vector, *, top_k: int) -> Steps[Ranking]:
    """Entities by the cosine of their names, best first."""
    if not is_embedded(scope.collection.statistics, vector):
        return ()
    bound = {**scope.bindings, **_asked(vector, top_k), "everything": scope.is_everything}
    is_large = scope.collection.statistics.entities > EXACT_NAMES
    found = (yield from _through_index("nearest_entities", bound)) if is_large else None
    if found is None:
        found = yield from _exactly("nearest_entities_exactly", bound)
    return _by_cosine(found, vector, top_k)


def cosines(scope: Scope, vector: Vector, passages: Sequence[str]) -> Steps[dict[str, float]]:
    """How near these passages are to a vector."""
    if not is_embedded(scope.collection.statistics, vector):
        return {}
    return codes.near((yield from rows("vectors_of_passages", passages, **scope.bindings)), vector)


def nearby(
    scope: Scope,
    vector: Vector,
    entities: Sequence[str],
    *,
    per_entity: int,
    keys: Sequence[str] = (),
    most: int = 0,
) -> Steps[tuple[Mapping[str, tuple[Mention, ...]], Mapping[str, float]]]:
    """Where entities are mentioned, and how near those passages are to a vector."""
    is_near = is_embedded(scope.collection.statistics, vector)
    asked = {"ids": array(identity("key", key) for key in keys), "entities": array(known(entities))}
    bound = {**scope.bindings, **asked, "per_entity": per_entity, "cap": most + 1}
    [found] = yield [statement("nearby", **bound)]
    mentions = columns.mentions_by_entity((row[:4] for row in found), per_entity)
    vectors = [(passage, blob) for _, passage, _, _, blob in found if blob is not None]
    return mentions, codes.near(vectors, vector) if is_near else {}


def lexical(scope: Scope, query: str, *, top_k: int) -> Steps[Ranking]:
    """Passages by BM25, best first."""
    asked = [identity("term", term) for term in sorted(set(terms(query)))]
    passages = scope.collection.statistics.passages
    find = _ranked if scope.has_textsearch else _matched
    counted, found = yield from side_by_side(
        [rows("terms", asked, collection=scope.collection.key), find(scope, asked, top_k)]
    )
    if not found:
        return ()
    scores = bm25.bm25(
        [(length, blob) for _, length, blob in found],
        [(number, passages) for _, number, passages in counted],
        passages=passages,
        average_length=max(scope.collection.length / max(passages, 1), 1.0),
    )
    return tuple(s for s in _ranking([id_.hex() for id_, *_ in found], scores, top_k) if s.score > 0)


def _ranked(scope: Scope, asked: Sequence[str], top_k: int) -> Steps[list[Any]]:
    """Candidates that pg_textsearch finds, by its index: the planner would rather look at all and sort them."""
    limit = max(CANDIDATES, WIDER * top_k)
    bound = {"collection": scope.collection.key, "visible": scope.match, "limit": limit}
    return (yield from _under(statement("unsorted_settings"), of_ids("match_ranked", asked, **bound)))


def _matched(scope: Scope, asked: Sequence[str], top_k: int) -> Steps[list[Any]]:
    """Candidates that the inverted index finds."""
    reach = max(bm25.REACH, 2 * top_k)
    bound = {
        **scope.bindings,
        "mark": scope.collection.mark,
        "visible": f" & {scope.match}" if scope.match else "",
        "seen": min(scope.passages, reach) if scope.match else reach,
        "first_tags": scope.tags[0] if scope.tags else [],
        "passages": scope.collection.statistics.passages,
    }
    return (yield from rows("match", asked, **bound, limit=reach))


def _asked(vector: Vector, top_k: int) -> dict[str, Any]:
    return {"vector": HalfVector(vector), "cap": max(CANDIDATES, 2 * top_k)}


def _through_index(query: str, bound: dict[str, Any]) -> Steps[list[Any] | None]:
    """What an index finds; None if the filter let too few of them through."""
    wide = str(min(max(bound["cap"], WIDE), WIDEST))
    settings = statement("search_settings", wanted=wide, most=str(FAR))
    found = yield from _under(settings, Statement(_typed(query, bound["vector"].dimensions()), bound))
    return found if len(found) == bound["cap"] else None


def _exactly(query: str, bound: dict[str, Any]) -> Steps[list[Any]]:
    """All that the caller may see, by distance."""
    return (yield from _under(statement("planned_settings"), statement(query, **bound)))


def _under(settings: Statement, wanted: Wanted) -> Steps[list[Any]]:
    """The rows of a statement under settings of its own; what comes after it has the usual ones."""
    _, found, _ = yield [settings, wanted, statement("exact_settings")]
    return found


@lru_cache(maxsize=64)
def _typed(query: str, dimension: int) -> sql.Composed:
    """A query of vectors of one length, which is part of their type."""
    return sql.SQL(SQL[query]).format(dimension=sql.Literal(dimension))


def _by_cosine(found: Sequence[Any], vector: Vector, top_k: int) -> Ranking:
    near = codes.cosines([blob for _, blob in found], vector)
    return _ranking([id_.hex() for id_, _ in found], near, top_k)


def _ranking(ids: Sequence[str], scores: npt.NDArray[np.float64], top_k: int) -> Ranking:
    """The best, ties broken by identity; scores are rounded, so that a tie is one on every engine."""
    ranked = sorted(zip((-np.round(scores, 6)).tolist(), ids, strict=True))
    return tuple(Scored(id_, -score) for score, id_ in ranked[:top_k])
