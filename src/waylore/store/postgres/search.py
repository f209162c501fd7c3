"""Search the PostgreSQL store by words, by the vectors of passages, and by the vectors of names.

Words are found by a GIN index, or in a large collection by pg_textsearch, and scored by `store.bm25`. Vectors are
found by distance, those of names by the distance of their bits: all are compared if the caller sees few, otherwise an
HNSW index of the collection is searched. If the collection has an index on a Qdrant cluster, that one finds all of
these (`candidates`). The nearest are scored by `store.vectors`. So scores equal those of every other engine, and their
order is exact among the candidates.
"""

import math
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
from waylore.store.postgres.candidates.find import find_by_terms, find_near_entities, find_near_passages, has_index
from waylore.store.postgres.fetch import group_by_entity
from waylore.store.postgres.scope import PostgresScope
from waylore.store.postgres.steps import (
    SqlStatement,
    Steps,
    Wanted,
    filter_ids,
    make_statement,
    make_statement_by_ids,
    name_vector_tables,
    read_rows,
    to_array,
)
from waylore.store.reads import run_together
from waylore.text import terms
from waylore.types.columns import MentionColumns, TurnColumns
from waylore.types.identity import identity
from waylore.types.knowledge import Vector
from waylore.types.search import Ranking, Scored, TermCounts

MIN_CANDIDATES = 200  # minimum number of nearest passages that are ranked by their vectors
MIN_ENTITY_CANDIDATES = 2_000  # higher, because entities are found by their bits
MAX_TIE_FACTOR = 8  # at most this many times the candidates, if more entities are equally near
MIN_TEXTSEARCH_PASSAGES = 20_000  # smaller collections do not use pg_textsearch
MAX_EXACT_PASSAGES = 20_000  # up to here a search compares all passages, 1.5 µs each, and writes maintain no index
MAX_EXACT_ENTITIES = 100_000  # higher, because a passage has many entities and few searches need the nearest
MAX_SCANNED_ENTRIES = 40_000  # entries of an index that a search visits at most
MIN_SEARCH_WIDTH, MAX_SEARCH_WIDTH = 400, 1_000  # hnsw.ef_search: candidates of an index search; pgvector allows 1,000
MAX_NARROW_VECTORS = 100_000  # up to here the smallest width finds .997 of the ten nearest; of a million it finds .83


def dense(scope: PostgresScope, vector: Vector, *, top_k: int) -> Steps[Ranking]:
    """Find passages by cosine similarity, best first."""
    if not is_embedded(scope.collection.statistics, vector):
        return ()
    bound = {**scope.bindings, "vector": HalfVector(vector), "cap": max(MIN_CANDIDATES, 2 * top_k)}
    found = yield from find_near_passages(scope, vector, top_k)
    if found is None and scope.corpus.passages > MAX_EXACT_PASSAGES:
        width = choose_width(scope.collection.statistics.passages, bound["cap"])
        found = yield from _search_index("nearest_passages", bound, len(vector), width)
    if found is None and scope.tags:
        bound["first_tags"] = scope.tags[0]
        found = yield from _compare_all("nearest_tagged_passages", bound)
    if found is None:
        found = yield from _compare_all("nearest_passages_exactly", bound)
    return _rank_by_cosine(found, vector, top_k)


def dense_many(scope: PostgresScope, vectors: Sequence[Vector], *, top_k: int) -> Steps[Sequence[Ranking]]:
    """Find passages for each of several vectors, in one round trip."""
    return (yield from run_together([dense(scope, vector, top_k=top_k) for vector in vectors]))


def nearest_entities(scope: PostgresScope, vector: Vector, *, top_k: int) -> Steps[Ranking]:
    """Find entities by the cosine similarity of their names, best first."""
    if not is_embedded(scope.collection.statistics, vector):
        return ()
    cap = max(MIN_ENTITY_CANDIDATES, 2 * top_k)
    bound = {**scope.bindings, "bits": codes.format_bits(vector), "cap": cap, "everything": scope.is_everything}
    found = yield from find_near_entities(scope, vector, top_k)
    if found is None and scope.collection.statistics.entities > MAX_EXACT_ENTITIES:
        width = choose_width(scope.collection.statistics.entities, cap)
        found = yield from _search_index("nearest_entities", bound, len(vector), width)
    if found is None:
        found = yield from _compare_all("nearest_entities_exactly", {**bound, "most": MAX_TIE_FACTOR * cap})
    return _rank_by_cosine(found, vector, top_k)


def cosines(scope: PostgresScope, vector: Vector, passages: Sequence[str]) -> Steps[dict[str, float]]:
    """Return the cosine similarity of passages to a vector."""
    if not is_embedded(scope.collection.statistics, vector):
        return {}
    return codes.score_rows((yield from read_rows("vectors_of_passages", passages, **scope.bindings)), vector)


def nearby(
    scope: PostgresScope,
    vector: Vector,
    entities: Sequence[str],
    *,
    per_entity: int,
    keys: Sequence[str] = (),
    max_per_key: int = 0,
) -> Steps[tuple[MentionColumns, Mapping[str, float]]]:
    """Return the mentions of entities, and the cosine similarity of those passages to a vector."""
    is_near = is_embedded(scope.collection.statistics, vector)
    ids = {"ids": to_array(identity("key", key) for key in keys), "entities": to_array(filter_ids(entities))}
    bound = {**scope.bindings, **ids, "per_entity": per_entity, "cap": max_per_key + 1}
    [found] = yield [make_statement("nearby", **bound)]
    mentions = group_by_entity(found, per_entity)
    vectors = [(passage, blob) for _, passage, _, _, blob in found if blob is not None]
    return mentions, codes.score_rows(vectors, vector) if is_near else {}


def lexical(scope: PostgresScope, query: str, *, top_k: int) -> Steps[Ranking]:
    """Find passages by BM25, best first."""
    counted, found = yield from _find_words(scope, _list_term_ids(query), top_k)
    if not found or not counted:
        return ()
    scores = bm25.score(
        [(length, blob) for _, length, blob in found],
        [(number, passages) for _, number, passages in counted],
        passages=scope.corpus.passages,
        average_length=scope.corpus.average_length,
    )
    return tuple(s for s in _rank([id_.hex() for id_, *_ in found], scores, top_k) if s.score > 0)


def _find_words(scope: PostgresScope, ids: Sequence[str], top_k: int) -> Steps[tuple[list[Any], list[Any]]]:
    """Return the terms that the corpus has, and candidates with their terms, which the index finds if there is one."""
    if has_index(scope):
        counted = yield from _count_terms(scope, ids)
        found = yield from find_by_terms(scope, counted, top_k)
        if found is not None:
            return counted, found
    find = _find_by_textsearch if _uses_textsearch(scope) else _find_by_words
    counted, found = yield from run_together([_count_terms(scope, ids), find(scope, ids, top_k)])
    return counted, found


def word_scores(scope: PostgresScope, query: str, passages: Sequence[str]) -> Steps[dict[str, float]]:
    """Return the BM25 score of passages."""
    counted, found = yield from run_together(
        [
            _count_terms(scope, _list_term_ids(query)),
            read_rows("terms_of_passages", passages, **scope.bindings),
        ]
    )
    return bm25.score_rows(
        found,
        [(number, count) for _, number, count in counted],
        passages=scope.corpus.passages,
        average_length=scope.corpus.average_length,
    )


def count_terms(scope: PostgresScope, query: str) -> Steps[TermCounts]:
    """Count the passages of the corpus, and those with each term of a query."""
    known = yield from _find_terms(scope, query)
    return TermCounts(scope.corpus.passages, {term: count for term, (_, count) in known.items() if count})


def turns(
    scope: PostgresScope, query: str, passages: Sequence[str], *, before: int, after: int, same_role: bool = True
) -> Steps[TurnColumns]:
    """Return turns with their neighbours in the session."""
    known, found = yield from run_together(
        [
            _find_terms(scope, query),
            read_rows("turns", passages, **scope.bindings, before=before, after=after, same_role=same_role),
        ]
    )
    return columns.to_turns(found, terms(query), known, passages=scope.corpus.passages)


def _find_terms(scope: PostgresScope, query: str) -> Steps[dict[str, tuple[int, int]]]:
    """Return the number and the passages of each term of a query that the corpus has."""
    ids = {identity("term", term): term for term in terms(query)}
    counted = yield from _count_terms(scope, list(ids))
    return {ids[id_.hex()]: (number, count) for id_, number, count in counted}


def _list_term_ids(query: str) -> list[str]:
    return [identity("term", term) for term in sorted(set(terms(query)))]


def _count_terms(scope: PostgresScope, ids: Sequence[str]) -> Steps[list[Any]]:
    """Return the terms that the corpus has: id, number, and the number of passages there."""
    return read_rows("visible_terms" if scope.is_limited else "terms", ids, **scope.bindings)


def _uses_textsearch(scope: PostgresScope) -> bool:
    """Return whether to find candidates by pg_textsearch instead of GIN.

    The order of pg_textsearch depends on all rows of its index: on hidden passages and on other collections. The
    candidates of GIN depend on the corpus of the caller.
    """
    is_hiding = scope.is_limited or scope.turns["has_turns"] or scope.has_expired
    may_use = scope.has_textsearch and not is_hiding
    return may_use and scope.corpus.passages >= MIN_TEXTSEARCH_PASSAGES


def _find_by_textsearch(scope: PostgresScope, ids: Sequence[str], top_k: int) -> Steps[list[Any]]:
    """Find candidates by pg_textsearch, many of them, because its order is not ours.

    Sorting is switched off, because the planner would read and sort all passages instead of using the index.
    """
    limit = max(bm25.MAX_POSTINGS, 2 * top_k)
    bound = {"collection": scope.collection.key, "visible": scope.match, "limit": limit}
    return (
        yield from _run_with_settings(
            make_statement("unsorted_settings"), make_statement_by_ids("match_ranked", ids, **bound)
        )
    )


def _find_by_words(scope: PostgresScope, ids: Sequence[str], top_k: int) -> Steps[list[Any]]:
    """Find candidates by the GIN index."""
    reach = max(bm25.MAX_POSTINGS, 2 * top_k)
    bound = {
        **scope.bindings,
        "mark": scope.collection.mark,
        "visible": f" & {scope.match}" if scope.match else "",
        "seen": min(scope.corpus.passages, reach) if scope.match else reach,
        "first_tags": scope.tags[0] if scope.tags else [],
        "passages": scope.corpus.passages,
        "endings": scope.term_endings,
    }
    return (yield from read_rows("match", ids, **bound, limit=reach))


def choose_width(vectors: int, wanted: int) -> int:
    """Return how many candidates the search of an index keeps: more among many vectors, and at least those wanted."""
    needed = int(MIN_SEARCH_WIDTH * math.sqrt(vectors / MAX_NARROW_VECTORS))
    return min(max(needed, wanted, MIN_SEARCH_WIDTH), MAX_SEARCH_WIDTH)


def _search_index(query: str, bound: dict[str, Any], dimension: int, width: int) -> Steps[list[Any] | None]:
    """Search an index of vectors; return None if too few of its candidates pass the filter."""
    settings = make_statement("search_settings", wanted=str(width), most=str(MAX_SCANNED_ENTRIES))
    found = yield from _run_with_settings(
        settings, SqlStatement(_format_query(query, dimension, bound["own_vectors"]), bound)
    )
    return found if len(found) == bound["cap"] else None


def _compare_all(query: str, bound: dict[str, Any]) -> Steps[list[Any]]:
    """Compare every vector that the caller may see, and return the nearest."""
    return (yield from _run_with_settings(make_statement("planned_settings"), make_statement(query, **bound)))


def _run_with_settings(settings: SqlStatement, wanted: Wanted) -> Steps[list[Any]]:
    """Run a statement under its own settings, and restore the usual ones."""
    _, found, _ = yield [settings, wanted, make_statement("exact_settings")]
    return found


@lru_cache(maxsize=1_024)
def _format_query(query: str, dimension: int, own_vectors: str) -> sql.Composed:
    """Return a query for vectors of one dimension, which is part of their type."""
    return sql.SQL(name_vector_tables(query, own_vectors)).format(dimension=sql.Literal(dimension))


def _rank_by_cosine(found: Sequence[Any], vector: Vector, top_k: int) -> Ranking:
    near = codes.compute_cosines([blob for _, blob in found], vector)
    return _rank([id_.hex() for id_, _ in found], near, top_k)


def _rank(ids: Sequence[str], scores: npt.NDArray[np.float64], top_k: int) -> Ranking:
    """Return the best ids, with ties broken by id.

    Scores are rounded, so that ties are the same on every engine.
    """
    ranked = sorted(zip((-np.round(scores, 6)).tolist(), ids, strict=True))
    return tuple(Scored(id_, -score) for score, id_ in ranked[:top_k])
