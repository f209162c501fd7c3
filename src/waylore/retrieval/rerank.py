"""Reorder hits with the caller's reranker, a model that reads question and passage together.

It drops no hits. If the reranker fails, the search keeps the order of the hits and reports the failure.
"""

from collections.abc import Sequence
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
    scored = sorted(zip(scores, hits, strict=True), key=lambda pair: (-pair[0], pair[1].passage.id))
    return tuple(_apply_score(hit, rank, score) for rank, (score, hit) in enumerate(scored, start=1))


def _format_hit(hit: Hit) -> str:
    """Return the passage with the facts that led to it. A distant passage cannot be judged without them."""
    facts = "; ".join(fact.embeddable for fact in hit.path.facts) if hit.path else ""
    return f"{hit.passage.embeddable}\n{facts}".rstrip()


def _apply_score(hit: Hit, rank: int, score: float) -> Hit:
    """Make the reranker's score the whole score of a hit. The placements of the searches stay, with share 0."""
    searches = tuple(p._replace(share=0.0) for p in hit.placements)
    return replace(hit, score=score, placements=(*searches, Placement("reranker", rank, score, score)))
