"""Answer the parts of a question that asks for several things, and merge their rankings with that of the whole.

The vector of such a question lies between its parts, so a passage that answers one of them may be far from it. Each
part is searched as a question of its own. The ranks of the whole question and of the parts are added as reciprocals,
those of parts with a smaller weight, so that a part adds passages but replaces few. What is far worse than the best
passage of a part counts less: in a small collection every passage has a good rank.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from waylore.config import PartsConfig
from waylore.protocols import Embedder, embed_queries
from waylore.retrieval.fusion import FusedCandidate, scale, scale_all, sort_by_score
from waylore.retrieval.graph.state import GraphResult
from waylore.retrieval.order import arrange
from waylore.retrieval.trace import Trace
from waylore.text import split_units
from waylore.types.search import Placement, Query

PART = "part"  # the name of this search in placements
_ASKING = r"(?:(?:in|on|at|by|for|from|with|of|to|under|into|about|until|since|as)\s+)?"
_ASKING += r"(?:what|which|who|whom|whose|where|when|why|how)\b"
# A title may have a sentence end or a capital "And Who", and "Dr." ends no sentence.
_AFTER_SENTENCE = rf"[?？]\s*(?=\S)(?!or\b|and\b)|(?:(?<!\b[A-Z])(?<!\b[A-Z][a-z])\.|;)\s+(?=(?i:{_ASKING}))"
_BOUNDARY = re.compile(rf"{_AFTER_SENTENCE}|,?\s+and\s+(?={_ASKING})")


@dataclass(frozen=True, slots=True)
class PartResult:
    """A part of a question and the result of its search."""

    text: str
    graph: GraphResult


def split_question(text: str, config: PartsConfig) -> list[str]:
    """Return the parts of a question that asks for several things; none if it asks for one."""
    if len(split_units(text)) > config.max_words:
        return []
    parts = [part.strip(" \n\t.,;?？") for part in _BOUNDARY.split(text)]
    long = [part for part in parts if len(split_units(part)) >= config.min_words]
    return long[: config.max_parts] if len(long) > 1 else []


def make_parts(query: Query, embedder: Embedder | None, config: PartsConfig, trace: Trace) -> list[Query]:
    """Return a query for each part of a question, embedded in one call; none without vectors."""
    texts = split_question(query.text, config)
    if not texts or embedder is None or query.vector is None:
        return []
    vectors = trace.call_model("embed parts", lambda: embed_queries(embedder, texts), default=None, stage=PART)
    pairs = zip(texts, vectors, strict=True) if vectors is not None else ()
    return [replace(query, text=text, vector=vector) for text, vector in pairs]


def merge_parts(whole: GraphResult, parts: Sequence[PartResult], config: PartsConfig) -> GraphResult:
    """Return the result of the whole question with the best candidates of its parts among its own.

    Only the first candidates of each ranking count, so the order does not depend on the number of hits.
    """
    sum_of_weights = 1.0 + config.weight * len(parts)
    placed: dict[str, list[Placement]] = {}
    for rank, each in _list_best(whole, config):
        share = _compute_share(rank, config) / sum_of_weights
        placed[each.id] = list(scale(each, share / each.score if each.score else 0.0).placements)
    for part in parts:
        listed = list(_list_best(part.graph, config))
        best = max((each.score for _, each in listed), default=0.0) or 1.0
        for rank, each in listed:
            share = config.weight * _compute_share(rank, config) * each.score / best / sum_of_weights
            placed.setdefault(each.id, []).append(Placement(PART, rank, each.score, share, part.text))
    merged = sort_by_score(placed)
    rest = [each for each in whole.candidates if each.id not in placed]
    results = [whole, *(part.graph for part in parts)]
    return replace(
        whole,
        candidates=(*merged, *scale_all(rest, merged[-1].score if merged else 1.0)),
        paths={id_: path for result in reversed(results) for id_, path in result.paths.items()},
        facts=tuple({fact.id: fact for result in results for fact in result.facts}.values()),
        loaded={id_: known for result in results for id_, known in result.loaded.items()},
    )


def _list_best(result: GraphResult, config: PartsConfig) -> Iterator[tuple[int, FusedCandidate]]:
    """Yield the first candidates as they would become hits, with their ranks."""
    return enumerate(islice(arrange(result.hybrid, result.candidates), config.depth), 1)


def _compute_share(rank: int, config: PartsConfig) -> float:
    """Return the reciprocal rank, 1 for the first."""
    return (config.rrf_k + 1) / (config.rrf_k + rank)
