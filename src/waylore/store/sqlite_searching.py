"""Searching the SQLite store: by words, by the vectors of passages, by the vectors of names.

Words are found by FTS5 and scored in `lexicon`; vectors are found by their bits and scored in `codes`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from waylore.store import codes, lexicon
from waylore.store.checks import is_embedded
from waylore.store.queries import queries
from waylore.store.sqlite_scope import Rows, Scope, any_of, by_ids, by_rows
from waylore.text import terms
from waylore.types import Ranking, Scored, Vector

SQL = queries("sqlite")
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
    return codes.near(by_ids(db, "vectors_of_passages", passages, **scope.bindings), vector)


def lexical(db: apsw.Connection, scope: Scope, query: str, *, top_k: int) -> Ranking:
    """Passages by BM25, best first."""
    asked = tuple(dict.fromkeys(terms(query)))
    if not asked:
        return ()
    bound = {"collection": scope.collection.row, "terms": apsw.carray(asked)}
    known: list[Any] = db.execute(SQL["terms"], bound).fetchall()
    if not known:
        return ()
    reach = max(lexicon.REACH, 2 * top_k)
    candidates = _matching(db, _candidates(db, scope, known, reach), limit=reach)
    found = by_rows(db, "passage_terms", candidates)
    passages = scope.collection.statistics.passages
    scores = lexicon.bm25(
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
        return any_of(rows[t] for t in lexicon.rarest_first(frequencies, reach=reach))
    seen = len(_matching(db, visible, limit=reach))
    widened = lexicon.widened(reach, seen, scope.collection.statistics.passages)
    rare = lexicon.rarest_first(frequencies, reach=widened)
    return f"{any_of(rows[t] for t in rare)} AND {visible}"


def _nearest(
    db: apsw.Connection, scope: Scope, kind: str, vector: Vector, allowed: Rows | None, wanted: int
) -> Iterator[Rows]:
    """Rows in groups of at least as many as wanted, nearest by bits first; a first group always comes."""
    query = codes.bits(vector[None])[0]
    bound = {"collection": scope.collection.row, "kind": kind}
    blocks = db.execute(SQL["blocks"], bound)
    scanned = [(row, codes.distances(bits, live, query)) for row, bits, live in blocks]
    if not scanned:
        yield np.empty(0, dtype=np.int64)
        return
    firsts = np.array([row for row, _ in scanned], dtype=np.int64)
    far = np.concatenate([distance for _, distance in scanned])
    if allowed is not None:
        far = _masked(far, firsts, allowed)
    within = np.cumsum(np.bincount(far, minlength=codes.DEAD + 1))[: codes.DEAD]
    start = 0
    while start < codes.DEAD:
        seen = int(within[start - 1]) if start else 0
        end = min(int(np.searchsorted(within, seen + wanted)) + 1, int(codes.DEAD))
        places = np.flatnonzero((far >= start) & (far < end))[: TIES * wanted]
        yield firsts[places // codes.BLOCK] * codes.BLOCK + places % codes.BLOCK
        start = end


def _masked(far: npt.NDArray[np.uint16], firsts: Rows, allowed: Rows) -> npt.NDArray[np.uint16]:
    places = np.searchsorted(firsts, allowed // codes.BLOCK) * codes.BLOCK + allowed % codes.BLOCK
    masked = np.full_like(far, codes.DEAD)
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
        db, kind, [row for row, _ in found], codes.cosines([blob for _, blob in found], vector), top_k
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
