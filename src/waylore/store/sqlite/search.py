"""Search the SQLite store by words, by the vectors of passages, and by the vectors of names.

Words are found by FTS5 and scored by `store.bm25`. Vectors are found by their bits and scored by
`store.vectors`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from waylore.store import bm25, vectors
from waylore.store.checks import is_embedded
from waylore.store.packing import split_ids
from waylore.store.rows import to_turns
from waylore.store.sql import load_queries
from waylore.store.sqlite.blocks import (
    NO_VECTOR,
    find_passage_vectors,
    find_visible,
    read_passage_ids,
    read_passage_terms,
    read_passage_vectors,
)
from waylore.store.sqlite.scope import (
    Rows,
    SqliteScope,
    match_any,
    parse_numbers,
    read_joined,
    run_by_ids,
    run_by_rows,
)
from waylore.text import terms
from waylore.types.columns import TurnColumns
from waylore.types.knowledge import Vector
from waylore.types.search import Ranking, TermCounts, make_ranking

SQL = load_queries("waylore.store.sqlite")
MIN_CANDIDATES = 2_000  # minimum number of rows, nearest by bits, that are ranked by their vectors
MIN_OF_MANY = 200  # the same, if several vectors find a few rows each
MIN_BLOCK_ROWS = 64  # a block with fewer rows of the caller is not read: reading their vectors costs less
POSTINGS_PER_ROW = 25  # reading a passage of the caller costs as much as skipping this many postings of others
MAX_TIE_FACTOR = 8  # at most this many times the candidates, if more rows are equally near


def dense(db: apsw.Connection, scope: SqliteScope, vector: Vector, *, top_k: int) -> Ranking:
    """Find passages by cosine similarity, best first."""
    if not is_embedded(scope.collection.statistics, vector):
        return ()
    [near] = _find_near(db, scope, [vector], max(MIN_CANDIDATES, 2 * top_k))
    if not len(near):
        return ()
    scores = vectors.compare(*read_passage_vectors(db, scope, near, len(vector)), vector)
    return _rank_passages(db, scope, near, scores, top_k)


def dense_many(db: apsw.Connection, scope: SqliteScope, questions: Sequence[Vector], *, top_k: int) -> list[Ranking]:
    """Find passages for each of several vectors. Blocks and vectors are read once."""
    if not questions or not all(is_embedded(scope.collection.statistics, vector) for vector in questions):
        return [() for _ in questions]
    near = _find_near(db, scope, questions, max(MIN_OF_MANY, 2 * top_k))
    rows = np.unique(np.concatenate([np.empty(0, np.int64), *near]))
    codes = vectors.join_codes([read_joined(db, "joined_passage_vectors", rows)], len(questions[0]))
    rankings = []
    for vector, own in zip(questions, near, strict=True):
        scores = vectors.compute_cosines([codes[np.searchsorted(rows, own)].tobytes()], vector)
        rankings.append(_rank_passages(db, scope, own, scores, top_k))
    return rankings


def _find_near(db: apsw.Connection, scope: SqliteScope, questions: Sequence[Vector], wanted: int) -> list[Rows]:
    """Return, for each vector, the rows of passages that are nearest by bits: at least `wanted`, or all."""
    if scope.needs_words:
        rows = _list_rows(db, scope)
        return [_take_nearest_rows(db, rows, vector, wanted) for vector in questions]
    known = scope.visible
    if known.every is not None and len(known.every) < wanted:
        return [known.every] * len(questions)
    scans = _scan_blocks(db, scope, "passage", questions)
    expired = _list_expired(db, scope)
    nearest = [_take_nearest(firsts, _hide(far, firsts, expired), wanted) for firsts, far in scans]
    known.every = next((rows for rows in nearest if len(rows) < wanted), None)  # with fewer than wanted these are all
    return nearest


def nearest_entities(db: apsw.Connection, scope: SqliteScope, vector: Vector, *, top_k: int) -> Ranking:
    """Find entities by the cosine similarity of their names, best first."""
    if not is_embedded(scope.collection.statistics, vector):
        return ()
    wanted = max(MIN_CANDIDATES, 2 * top_k)
    [(firsts, far)] = _scan_blocks(db, scope, "entity", [vector])
    if not scope.is_everything:
        far = _mask(far, firsts, _find_visible(db, scope, firsts, far, wanted))
    rows = _take_nearest(firsts, far, wanted)
    if not len(rows):
        return ()
    scores = vectors.compute_cosines([read_joined(db, "joined_entity_vectors", rows)], vector)
    return _rank(partial(read_joined, db, "joined_entity_ids"), rows, scores, top_k)


def cosines(db: apsw.Connection, scope: SqliteScope, vector: Vector, passages: Sequence[str]) -> dict[str, float]:
    """Return the cosine similarity of passages to a vector."""
    if not is_embedded(scope.collection.statistics, vector):
        return {}
    return cosines_of_rows(db, scope, vector, find_visible(db, scope, passages))


def cosines_of_rows(
    db: apsw.Connection, scope: SqliteScope, vector: Vector, passages: Mapping[int, str]
) -> dict[str, float]:
    """Return the cosine similarity of passages, given by row and id, to a vector. The caller may see all of them."""
    if not passages or not is_embedded(scope.collection.statistics, vector):
        return {}
    rows = np.array(sorted(passages), np.int64)
    found, lengths = find_passage_vectors(db, scope, rows, len(vector))
    near = zip(rows.tolist(), lengths.tolist(), vectors.compare(found, lengths, vector).tolist(), strict=True)
    return {passages[row]: cosine for row, length, cosine in near if length != NO_VECTOR}


def lexical(db: apsw.Connection, scope: SqliteScope, query: str, *, top_k: int) -> Ranking:
    """Find passages by BM25, best first."""
    known = _find_terms(db, scope, query)
    if not known:
        return ()
    max_postings = max(bm25.MAX_POSTINGS, 2 * top_k)
    rare = _choose_rarest(db, scope, known, max_postings)
    if scope.is_limited and sum(total for *_, total in rare) > POSTINGS_PER_ROW * scope.corpus.passages:
        rows = _list_rows(db, scope)  # others have most of the postings: the caller's passages are read instead
        rows = rows[np.flatnonzero(_score_words(db, scope, rows, rare))[-max_postings:]]
    else:
        words = match_any(str(row) for _, row, *_ in rare)
        match = f"{words} AND {scope.match}" if scope.match else words
        rows = _list_matches(db, scope, match, limit=max_postings)
    return _rank_passages(db, scope, rows, _score_words(db, scope, rows, known), top_k)


def _score_words(db: apsw.Connection, scope: SqliteScope, rows: Rows, known: Sequence[Any]) -> npt.NDArray[np.float64]:
    """Return the BM25 score of passages, given by row, for known terms."""
    if not len(rows):
        return np.zeros(0)
    return bm25.score_columns(
        *read_passage_terms(db, scope, rows),
        [(row, count) for _, row, count, _ in known],
        passages=scope.corpus.passages,
        average_length=scope.corpus.average_length,
    )


def word_scores(db: apsw.Connection, scope: SqliteScope, query: str, passages: Sequence[str]) -> dict[str, float]:
    """Return the BM25 score of passages."""
    visible, known = find_visible(db, scope, passages), _find_terms(db, scope, query)
    if not known:
        return dict.fromkeys(visible.values(), 0.0)
    scores = np.round(_score_words(db, scope, np.array(list(visible), np.int64), known), 6)
    return dict(zip(visible.values(), scores.tolist(), strict=True))


def count_terms(db: apsw.Connection, scope: SqliteScope, query: str) -> TermCounts:
    """Count the passages of the corpus, and those with each term of a query."""
    known = _find_terms(db, scope, query)
    return TermCounts(scope.corpus.passages, {term: count for term, _, count, _ in known if count})


def turns(
    db: apsw.Connection,
    scope: SqliteScope,
    query: str,
    passages: Sequence[str],
    *,
    before: int,
    after: int,
    same_role: bool,
) -> TurnColumns:
    """Return turns with their neighbours in the session."""
    near = run_by_ids(db, "turn_rows", passages, **scope.bindings, before=before, after=after, same_role=same_role)
    rows = {row for pair in near for some in pair if some for row in some.split(",")}
    found = run_by_rows(db, "turns", list(map(int, rows)))
    counted = {term: (row, count) for term, row, count, _ in _find_terms(db, scope, query)}
    return to_turns(found, terms(query), counted, passages=scope.corpus.passages)


def _find_terms(db: apsw.Connection, scope: SqliteScope, query: str) -> list[Any]:
    """Return the terms of a query that the corpus has, each with its row and its passages, there and in all."""
    words = tuple(dict.fromkeys(terms(query)))
    if not words:
        return []
    statement = SQL["visible_terms"] if scope.is_limited else SQL["terms"]
    bound = {**scope.bindings, "terms": apsw.carray(words)}
    return scope.recall(("terms", words), lambda: db.execute(statement, bound).fetchall())


def _choose_rarest(db: apsw.Connection, scope: SqliteScope, known: Sequence[Any], max_postings: int) -> list[Any]:
    """Return the rarest terms. The fewer passages have the tags, the more they are."""
    widened: float = max_postings
    if scope.match:
        widened = bm25.widen_limit(max_postings, _count_seen(db, scope, max_postings), scope.corpus.passages)
    rare = set(bm25.choose_rarest([(term, count) for term, _, count, _ in known], max_postings=widened))
    return [each for each in known if each[0] in rare]


def _count_seen(db: apsw.Connection, scope: SqliteScope, limit: int) -> int:
    """Return how many passages pass the filter, up to a limit. A filter by speaker alone is not counted."""
    if scope.turns["since"] is not None or scope.turns["until"] is not None:
        return int(db.execute(SQL["count_between"], {**scope.bindings, "limit": limit}).get)
    return len(_list_rows(db, scope, limit=limit)) if scope.tags else scope.corpus.passages


def _scan_blocks(
    db: apsw.Connection, scope: SqliteScope, kind: str, questions: Sequence[Vector]
) -> list[tuple[Rows, npt.NDArray[np.uint16]]]:
    """Return, for each vector, the blocks of a collection, and the distance of each of their rows by bits."""
    found = db.execute(SQL["blocks"], {"collection": scope.collection.row, "kind": kind})
    blocks = found if len(questions) == 1 else found.fetchall()
    return [_compare_blocks(blocks, vector) for vector in questions]


def _compare_blocks(blocks: Iterable[Any], vector: Vector) -> tuple[Rows, npt.NDArray[np.uint16]]:
    """Return the numbers of blocks, and the distance of each of their rows by bits."""
    query = vectors.to_bits(vector[None])[0]
    scanned = [(row, vectors.compute_distances(bits, live, query)) for row, bits, live in blocks]
    far = [np.empty(0, dtype=np.uint16), *(distance for _, distance in scanned)]
    return np.array([row for row, _ in scanned], dtype=np.int64), np.concatenate(far)


def _take_nearest_rows(db: apsw.Connection, rows: Rows, vector: Vector, wanted: int) -> Rows:
    """Return those of some rows that are nearest by bits: at least `wanted`, or all.

    Only blocks in which many of the rows lie are read as a whole. The result is the same as with all blocks.
    """
    if len(rows) <= wanted:
        return rows
    blocks, counts = np.unique(rows // vectors.BLOCK_ROWS, return_counts=True)
    dense_blocks = blocks[counts >= MIN_BLOCK_ROWS]
    is_in_block = np.isin(rows // vectors.BLOCK_ROWS, dense_blocks)
    firsts, scanned = _compare_blocks(run_by_rows(db, "blocks_by_row", dense_blocks), vector)
    far = np.empty(len(rows), dtype=np.uint16)
    far[is_in_block] = scanned[_to_places(firsts, rows[is_in_block])]
    far[~is_in_block] = vectors.compute_code_distances(
        read_joined(db, "joined_passage_vectors", rows[~is_in_block]), vector
    )
    return rows[np.flatnonzero(far < _find_end(far, wanted))[: MAX_TIE_FACTOR * wanted]]


def _take_nearest(firsts: Rows, far: npt.NDArray[np.uint16], wanted: int) -> Rows:
    """Return the rows that are nearest by bits: at least `wanted`, or all."""
    end = _find_end(far, wanted)
    return _to_rows(firsts, np.flatnonzero(far < end)[: MAX_TIE_FACTOR * wanted])


def _find_end(far: npt.NDArray[np.uint16], wanted: int) -> int:
    """Return the distance below which there are `wanted` rows, or all."""
    within = np.cumsum(np.bincount(far[far < vectors.DEAD_DISTANCE]))
    place = int(np.searchsorted(within, wanted))
    return place + 1 if place < len(within) else int(vectors.DEAD_DISTANCE)


def _to_rows(firsts: Rows, places: npt.NDArray[np.intp]) -> Rows:
    return firsts[places // vectors.BLOCK_ROWS] * vectors.BLOCK_ROWS + places % vectors.BLOCK_ROWS


def _to_places(firsts: Rows, rows: Rows) -> Rows:
    return np.searchsorted(firsts, rows // vectors.BLOCK_ROWS) * vectors.BLOCK_ROWS + rows % vectors.BLOCK_ROWS


def _mask(far: npt.NDArray[np.uint16], firsts: Rows, allowed: Rows) -> npt.NDArray[np.uint16]:
    places = _to_places(firsts, allowed)
    masked = np.full_like(far, vectors.DEAD_DISTANCE)
    masked[places] = far[places]
    return masked


def _hide(far: npt.NDArray[np.uint16], firsts: Rows, hidden: Rows) -> npt.NDArray[np.uint16]:
    far[_to_places(firsts, hidden)] = vectors.DEAD_DISTANCE
    return far


def _list_expired(db: apsw.Connection, scope: SqliteScope) -> Rows:
    """Return the rows of visible passages that have expired."""
    found = db.execute(SQL["expired_passages"], scope.bindings) if scope.has_expired else ()
    return np.fromiter((row for (row,) in found), dtype=np.int64)


def _find_visible(
    db: apsw.Connection, scope: SqliteScope, firsts: Rows, far: npt.NDArray[np.uint16], wanted: int
) -> Rows:
    """Return visible entities: at least the `wanted` nearest by bits, or all.

    Hidden entities are read but not counted, so they do not change the candidates.
    """
    seen = np.empty(0, dtype=np.int64)
    start, tried = 0, wanted
    while len(seen) < wanted and start < vectors.DEAD_DISTANCE:
        end = _find_end(far, tried)
        rows = _to_rows(firsts, np.flatnonzero((far >= start) & (far < end)))
        found = run_by_rows(db, "visible_entities", rows, **scope.bindings)
        seen = np.concatenate([seen, np.array([row for (row,) in found], dtype=np.int64)])
        start, tried = end, 2 * tried
    return seen


def _rank(read_ids: Callable[[Rows], bytes], rows: Rows, scores: npt.NDArray[Any], top_k: int) -> Ranking:
    """Return the best rows, with ties broken by id. `read_ids` reads ids one behind the other.

    Scores are rounded, so that ties are the same on every engine.
    """
    if not len(rows):
        return ()
    rounded = np.round(scores.astype(np.float64), 6)
    worst = len(rounded) - min(top_k, len(rounded))
    kept = np.flatnonzero(rounded >= np.partition(rounded, worst)[worst])
    joined = read_ids(rows[kept])
    ids, halves, best = split_ids(joined), np.frombuffer(joined, ">u8").reshape(-1, 2), rounded[kept]
    order = np.lexsort((halves[:, 1], halves[:, 0], -best))[:top_k]
    return make_ranking(map(ids.__getitem__, order.tolist()), best[order].tolist())


def _rank_passages(
    db: apsw.Connection, scope: SqliteScope, rows: Rows, scores: npt.NDArray[Any], top_k: int
) -> Ranking:
    """Return the best passages, which the filter has let through, and remember their rows."""

    def read_ids(best: Rows) -> bytes:
        joined = read_passage_ids(db, scope, best)
        scope.visible.by_id.update(zip(split_ids(joined), best.tolist(), strict=True))
        return joined

    return _rank(read_ids, rows, scores, top_k)


def _list_rows(db: apsw.Connection, scope: SqliteScope, *, limit: int = -1) -> Rows:
    """Return the rows of the passages that the filter lets through, in order, or some of them up to a limit."""
    return np.sort(_list_matches(db, scope, scope.match, limit=limit))


def _list_matches(db: apsw.Connection, scope: SqliteScope, match: str, *, limit: int) -> Rows:
    """Return the rows of the newest passages with these words that the filter lets through."""
    return parse_numbers(db.execute(SQL["match"], {**scope.turns, "match": match, "limit": limit}).get)
