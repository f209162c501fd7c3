"""Lets a model that reads question and passage together order the hits anew, if the caller brings one.

It reorders and drops nothing: what was found stays found. A reranker that fails is left out, and the answer
says so; the search sees to that.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from waylore.errors import ModelError
from waylore.protocols import Reranker
from waylore.types.search import Hit, Placement


def rerank(reranker: Reranker, question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Hits by the reranker's score, which becomes their score; the path is read with the passage."""
    scores = [round(float(score), 6) for score in reranker.rerank(question, [_read(hit) for hit in hits])]
    if not all(map(isfinite, scores)):
        raise ModelError("the reranker gave scores that are no numbers")
    scored = sorted(zip(scores, hits, strict=True), key=lambda pair: (-pair[0], pair[1].passage.id))
    return tuple(_placed(hit, rank, score) for rank, (score, hit) in enumerate(scored, start=1))


def _read(hit: Hit) -> str:
    """The passage, and the facts that led to it: a passage two hops away makes sense only with them."""
    facts = "; ".join(fact.embeddable for fact in hit.path.facts) if hit.path else ""
    return f"{hit.passage.embeddable}\n{facts}".rstrip()


def _placed(hit: Hit, rank: int, score: float) -> Hit:
    """All of the final score is the reranker's; where the searches placed the hit stays readable."""
    searches = tuple(replace(p, share=0.0) for p in hit.placements)
    return replace(hit, score=score, placements=(*searches, Placement("reranker", rank, score, score)))
