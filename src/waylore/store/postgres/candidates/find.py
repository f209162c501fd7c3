"""Find the candidates of a search by the index of a collection, and read them from PostgreSQL.

The index returns ids. PostgreSQL reads their rows under its own permissions, and they are scored like the candidates of
every other search: a wrong or old entry of the index can lose a hit, and never show one. Items that are waiting in the
outbox are read too, so that a search finds what was just written.
"""

from collections.abc import Sequence
from typing import Any

from waylore.store import bm25
from waylore.store.partial import note_incomplete
from waylore.store.postgres.candidates.outbox import ENTITY, PASSAGE
from waylore.store.postgres.scope import PostgresScope
from waylore.store.postgres.steps import Steps, filter_ids, make_statement, to_array
from waylore.store.qdrant.points import hash_word, shorten
from waylore.store.qdrant.queries import CandidateQuery, IndexPlace, Target, VisibleItems
from waylore.types.knowledge import Vector

MIN_CANDIDATES = 200  # minimum number of passages or entities that the index returns
MIN_WORD_CANDIDATES = 400  # higher, because the index weighs long passages a little differently
MAX_PENDING = 2_000  # items that are not in the index yet and that a search reads itself
MAX_EXACT = 20_000  # up to so many items of the caller all vectors are compared


def find_near_passages(scope: PostgresScope, vector: Vector, top_k: int) -> Steps[list[Any] | None]:
    """Return the id and vector of the nearest passages; None if the collection has no index, or it does not answer."""
    place = _get_place(scope)
    if place is None:
        return None
    query = CandidateQuery(
        place=place,
        target=Target.PASSAGE,
        visible=_make_visible(scope),
        limit=max(MIN_CANDIDATES, 2 * top_k),
        vector=vector,
        is_exact=scope.corpus.passages <= MAX_EXACT,
    )
    return (yield from _read_candidates(scope, query, "vectors_of_candidates", PASSAGE))


def find_near_entities(scope: PostgresScope, vector: Vector, top_k: int) -> Steps[list[Any] | None]:
    """Return the id and code of entities with the nearest names; None if the index cannot tell.

    It does not know which documents describe an entity, so it cannot filter by their metadata or expiry.
    """
    place = _get_place(scope)
    if place is None or scope.tags or scope.has_expired:
        return None
    query = CandidateQuery(
        place=place,
        target=Target.NAME,
        visible=VisibleItems(accesses=scope.accesses if scope.is_limited else None),
        limit=max(MIN_CANDIDATES, 2 * top_k),
        vector=vector,
        is_exact=scope.collection.statistics.entities <= MAX_EXACT,
    )
    return (yield from _read_candidates(scope, query, "codes_of_candidates", ENTITY))


def find_by_terms(scope: PostgresScope, counted: Sequence[Any], top_k: int) -> Steps[list[Any] | None]:
    """Return the id, length and terms of passages that have some terms: id, number, and number of passages.

    The weight of a term is its rarity in the passages of the caller. None if there is no index, or it does not answer.
    """
    place = _get_place(scope)
    if place is None or not counted:
        return None
    rarity = bm25.compute_idf([count for *_, count in counted], scope.corpus.passages)
    query = CandidateQuery(
        place=place,
        target=Target.WORDS,
        visible=_make_visible(scope),
        limit=max(MIN_WORD_CANDIDATES, 2 * top_k),
        weights=dict(zip((number for _, number, _ in counted), rarity.tolist(), strict=True)),
    )
    return (yield from _read_candidates(scope, query, "terms_of_candidates", PASSAGE))


def has_index(scope: PostgresScope) -> bool:
    """Return whether the collection has an index that is built."""
    return _get_place(scope) is not None


def _get_place(scope: PostgresScope) -> IndexPlace | None:
    index = scope.collection.index
    return index if index and index.is_built else None


def _make_visible(scope: PostgresScope) -> VisibleItems:
    turns = scope.turns
    return VisibleItems(
        accesses=scope.accesses if scope.is_limited else None,
        tags=[[shorten(bytes.fromhex(tag)) for tag in tags] for tags in scope.tags],
        since=turns["since"],
        until=turns["until"],
        said_by=turns["said_by"],
        speaker=hash_word("speaker", turns["speaker"]) if turns["speaker"] else None,
        expired_by=turns["expired_by"],
    )


def _read_candidates(scope: PostgresScope, query: CandidateQuery, rows: str, kind: int) -> Steps[list[Any] | None]:
    """Ask the index, and read what it has found, and what it does not have yet, from PostgreSQL."""
    [answer] = yield [query]
    if not answer:
        return None
    ids = to_array(filter_ids(answer[0]))
    bound = {**scope.bindings, "everything": scope.is_everything, "pending": MAX_PENDING, "ids": ids, "kind": kind}
    found, [(is_behind,)] = yield [make_statement(rows, **bound), make_statement("has_full_outbox", **bound)]
    if is_behind:
        note_incomplete("index", f"{MAX_PENDING:,} items or more are not in the search index yet")
    return found
