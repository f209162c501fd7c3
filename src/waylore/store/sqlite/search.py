"""Searching the SQLite store: by words, by the vectors of passages, by the vectors of names.

Words are found by FTS5 and scored in `lexicon`; vectors are found by their bits and scored in `codes`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from waylore.store import bm25, vectors
from waylore.store.checks import is_embedded
from waylore.store.sql import load_queries
from waylore.store.sqlite.scope import Rows, Scope, any_of, by_ids, by_rows
from waylore.text import terms
from waylore.types.knowledge import Vector
from waylore.types.search import Ranking, Scored

SQL = load_queries("waylore.store.sqlite")
CANDIDATES = 2_000  # nearest by bits that are ranked by their vectors, at the least
TIES = 8  # times as many, at the most, where more are equally near


def dense(db: apsw.Connection, scope: Scope, vector: Vector, *, top_k: int) -> Ranking:
    """Passages by cosine, best first."""
    if not is_embedded(scope.collection.statistics, vector):
        return ()
    allowed = None if scope.is_everything else np.sort(_matching(db, scope.match))
    near = next(_nearest(db, scope, "passage", vector, allowed, max(CANDIDATES, 2 * top_k)))
    return _by_cosine(db, "passage", near, vector, top_k)


def nearest_entities(db: apsw.Connection, scope: Scope, vector: Vector, *, top_k: int) -> Ranking:
    """Entities by the cosine of their names, best first."""
    if not is_embedded(scope.collection.statistics, vector):
        return ()
    seen: list[Rows] = []
    for near in _nearest(db, scope, "entity", vector, None, max(CANDIDATES, 2 * top_k)):
        seen.append(near if scope.is_everything else _visible_entities(db, scope, near))
        if sum(map(len, seen)) >= top_k:
            break
    return _by_cosine(db, "entity", np.concatenate(seen), vector, top_k)


def cosines(db: apsw.Connection, scope: Scope, vector: Vector, passages: Sequence[str]) -> dict[str, float]:
    """How near these passages are to a vector."""
    if not is_embedded(scope.collection.statistics, vector):
        return {}
    return vectors.near(by_ids(db, "vectors_of_passages", passages, **scope.bindings), vector)


def lexical(db: apsw.Connection, scope: Scope, query: str, *, top_k: int) -> Ranking:
    """Passages by BM25, best first."""
    asked = tuple(dict.fromkeys(terms(query)))
    if not asked:
        return ()
    bound = {"collection": scope.collection.row, "terms": apsw.carray(asked)}
    known: list[Any] = db.execute(SQL["terms"], bound).fetchall()
    if not known:
        return ()
    reach = max(bm25.REACH, 2 * top_k)
    candidates = _matching(db, _candidates(db, scope, known, reach), limit=reach)
    found = by_rows(db, "passage_terms", candidates)
    passages = scope.collection.statistics.passages
    scores = bm25.bm25(
        [(length, blob) for _, length, blob in found],
        [(row, count) for _, row, count in known],
        passages=passages,
        average_length=max(scope.collection.length / passages, 1.0),
    )
    return _ranking(db, "passage", [row for row, *_ in found], scores, top_k)


def _candidates(db: apsw.Connection, scope: Scope, known: Sequence[Any], reach: int) -> str:
    """The rarest terms; more of them the fewer passages the caller sees."""
    frequencies = [(term, count) for term, _, count in known]
    rows = {term: str(row) for term, row, _ in known}
    visible = scope.match
    if not visible:
        return any_of(rows[t] for t in bm25.rarest_first(frequencies, reach=reach))
    seen = len(_matching(db, visible, limit=reach))
    widened = bm25.widened(reach, seen, scope.collection.statistics.passages)
    rare = bm25.rarest_first(frequencies, reach=widened)
    return f"{any_of(rows[t] for t in rare)} AND {visible}"


def _nearest(
    db: apsw.Connection, scope: Scope, kind: str, vector: Vector, allowed: Rows | None, wanted: int
) -> Iterator[Rows]:
    """Rows in groups of at least as many as wanted, nearest by bits first; a first group always comes."""
    query = vectors.bits(vector[None])[0]
    bound = {"collection": scope.collection.row, "kind": kind}
    blocks = db.execute(SQL["blocks"], bound)
    scanned = [(row, vectors.distances(bits, live, query)) for row, bits, live in blocks]
    if not scanned:
        yield np.empty(0, dtype=np.int64)
        return
    firsts = np.array([row for row, _ in scanned], dtype=np.int64)
    far = np.concatenate([distance for _, distance in scanned])
    if allowed is not None:
        far = _masked(far, firsts, allowed)
    within = np.cumsum(np.bincount(far, minlength=vectors.DEAD + 1))[: vectors.DEAD]
    start = 0
    while start < vectors.DEAD:
        seen = int(within[start - 1]) if start else 0
        end = min(int(np.searchsorted(within, seen + wanted)) + 1, int(vectors.DEAD))
        places = np.flatnonzero((far >= start) & (far < end))[: TIES * wanted]
        yield firsts[places // vectors.BLOCK] * vectors.BLOCK + places % vectors.BLOCK
        start = end


def _masked(far: npt.NDArray[np.uint16], firsts: Rows, allowed: Rows) -> npt.NDArray[np.uint16]:
    places = np.searchsorted(firsts, allowed // vectors.BLOCK) * vectors.BLOCK + allowed % vectors.BLOCK
    masked = np.full_like(far, vectors.DEAD)
    masked[places] = far[places]
    return masked


def _visible_entities(db: apsw.Connection, scope: Scope, rows: Rows) -> Rows:
    found = by_rows(db, "visible_entities", rows, **scope.bindings)
    return np.array([row for (row,) in found], dtype=np.int64)


def _by_cosine(db: apsw.Connection, kind: str, rows: Rows, vector: Vector, top_k: int) -> Ranking:
    found = by_rows(db, f"{kind}_vectors", rows)
    if not found:
        return ()
    return _ranking(
        db, kind, [row for row, _ in found], vectors.cosines([blob for _, blob in found], vector), top_k
    )


def _ranking(
    db: apsw.Connection, kind: str, rows: Sequence[int], scores: npt.NDArray[Any], top_k: int
) -> Ranking:
    """The best, ties broken by identity; scores are rounded, so that a tie is one on every engine."""
    if not len(rows):
        return ()
    rounded = np.round(scores.astype(np.float64), 6)
    least = np.sort(rounded)[-min(top_k, len(rounded))]
    kept = np.flatnonzero(rounded >= least)
    score_of = {rows[i]: float(rounded[i]) for i in kept.tolist()}
    ids = by_rows(db, f"{kind}_ids", list(score_of))
    ranked = sorted(((-score_of[row], id_) for row, id_ in ids))
    return tuple(Scored(id_.hex(), -score) for score, id_ in ranked[:top_k])


def _matching(db: apsw.Connection, match: str, *, limit: int = -1) -> Rows:
    found = db.execute(SQL["match"], {"match": match, "limit": limit})
    return np.fromiter((row for (row,) in found), dtype=np.int64)
