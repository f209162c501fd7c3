"""Reorder hits with the caller's reranker, a model that reads question and passage together.

It drops no hits. What was superseded stays below what holds instead. If the reranker fails, the search keeps the order
of the hits and reports the failure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite

from waylore.errors import ModelError
from waylore.protocols import Reranker
from waylore.types.search import Hit, Placement


def rerank(reranker: Reranker, question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits by the reranker's score, which replaces theirs. The reranker also reads their paths."""
    scores = [round(float(score), 6) for score in reranker.rerank(question, [_format_hit(hit) for hit in hits])]
    if len(scores) != len(hits):
        raise ModelError(f"the reranker returned {len(scores)} scores for {len(hits)} passages; check the reranker")
    if not all(map(isfinite, scores)):
        raise ModelError("the reranker returned a score that is not a finite number; check the reranker")
    known = {hit.passage.id: (hit, score) for hit, score in zip(hits, scores, strict=True)}
    limits = {id_: _limit_score(id_, known) for id_ in known}
    ordered = sorted(known, key=lambda id_: (-limits[id_][0], limits[id_][1], id_))
    return tuple(_apply_score(known[id_][0], rank, limits[id_][0]) for rank, id_ in enumerate(ordered, start=1))


def _limit_score(id_: str, known: Mapping[str, tuple[Hit, float]]) -> tuple[float, int]:
    """Return the score of a hit, at most that of the hits that supersede it, and how many of these there are."""
    scores: dict[str, float] = {}
    while id_ in known and id_ not in scores:
        hit, scores[id_] = known[id_]
        id_ = hit.superseded_by.passage_id if hit.superseded_by else ""
    return min(scores.values()), len(scores) - 1


def _format_hit(hit: Hit) -> str:
    """Return the passage with the facts that led to it. A distant passage cannot be judged without them."""
    facts = "; ".join(fact.embeddable for fact in hit.path.facts) if hit.path else ""
    return f"{hit.passage.embeddable}\n{facts}".rstrip()


def _apply_score(hit: Hit, rank: int, score: float) -> Hit:
    """Make the reranker's score the whole score of a hit. The placements of the searches stay, with share 0."""
    searches = tuple(p._replace(share=0.0) for p in hit.placements)
    return replace(hit, score=score, placements=(*searches, Placement("reranker", rank, score, score)))
