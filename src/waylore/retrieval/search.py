"""Answers a question: runs the stages in order and collects what each one did.

A stage that fails is left out and named in the answer; the others answer without it (promise 9). Whatever the
graph does, the hybrid top K is in the answer (promise 1).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import TypeAlias

from waylore.errors import StoreError, StoreUnavailable
from waylore.protocols import Embedder, Reranker
from waylore.recipes import Recipe
from waylore.retrieval.candidates import dense, lexical
from waylore.retrieval.fusion import Fused, additive, fuse
from waylore.retrieval.gate import Gated, gate
from waylore.retrieval.graph.activation import activation
from waylore.retrieval.graph.chain import chain
from waylore.retrieval.graph.citations import citations
from waylore.retrieval.graph.guided import guided
from waylore.retrieval.graph.linking import Link, link
from waylore.retrieval.graph.neighbourhood import neighbourhood
from waylore.retrieval.graph.state import Asked, GraphSearch, Reached
from waylore.retrieval.rerank import rerank
from waylore.retrieval.trace import Trace
from waylore.store.partial import partial_answers
from waylore.store.protocol import Store
from waylore.store.reads import Reads, answered, nothing, read, together
from waylore.types.knowledge import Fact
from waylore.types.search import FactPath, Found, Hit, Query, Ranking, Step

Named: TypeAlias = tuple[int, tuple[Link, ...]]  # how many facts there are, and what the question names
NOT_SEARCHED = "the graph could not be searched"
NO_EMBEDDER = "dense: no embedder was given, so only words were searched"
GRAPHS: Mapping[str, GraphSearch] = MappingProxyType(
    {
        "neighbourhood": neighbourhood,
        "guided": guided,
        "activation": activation,
        "citations": citations,
        "chain": chain,
    }
)


def search(
    store: Store,
    embedder: Embedder | None,
    query: Query,
    recipe: Recipe,
    *,
    now: datetime,
    reranker: Reranker | None = None,
) -> Found:
    """Hits for a question, best first, each with where every search placed it and the path that led to it."""
    with partial_answers() as left_out:
        rows: Counter[str] = Counter()
        found = answered(store, _found(embedder, query, recipe, now, reranker), rows)
    return replace(found, missing=(*found.missing, *left_out.values()), rows=rows)


def _found(
    embedder: Embedder | None, query: Query, recipe: Recipe, now: datetime, reranker: Reranker | None
) -> Reads[Found]:
    trace = Trace()
    query = _embedded(query, embedder, recipe, trace)
    rankings, named = yield from _first(query, recipe, trace)
    if not rankings["dense"]:
        query = replace(query, vector=None)  # there is nothing that it could be compared with
    asked = Asked(query, (), rankings, _fused(rankings, recipe), now, embedder, trace)
    gated, reached = yield from _reached(asked, named, recipe)
    added = recipe.top_k if recipe.merge.max_graph_passages is None else recipe.merge.max_graph_passages
    chosen = additive(asked.hybrid, reached.candidates, reached.paths, top_k=recipe.top_k, added=added)
    with trace.stage("hits"):
        hits = yield from _hits(query, chosen, reached)
    if reranker is not None:
        hits = trace.asks("reranker", lambda: rerank(reranker, query.text, hits), instead=hits)
    return Found(
        query=query.text,
        hits=hits,
        recipe=recipe.name,
        confidence=gated.confidence,
        skipped=gated.reason,
        gate=gated.decision,
        entities=tuple(dict.fromkeys(found.entity for found in reached.links)),
        facts=_told(hits, reached.facts)[: min(recipe.merge.max_facts, recipe.walk.max_facts)],
        missing=tuple(trace.missing),
        candidates=trace.candidates,
        seconds=trace.seconds,
        began=trace.began,
    )


def _embedded(query: Query, embedder: Embedder | None, recipe: Recipe, trace: Trace) -> Query:
    if query.vector is not None or not recipe.hybrid.vector_weight:
        return query
    if embedder is None:
        trace.missing.append(NO_EMBEDDER)
        return query
    vector = trace.asks("embedding", lambda: embedder.embed_query(query.text), instead=None, lost="dense")
    return replace(query, vector=vector)


def _first(query: Query, recipe: Recipe, trace: Trace) -> Reads[tuple[dict[str, Ranking], Named | None]]:
    """The rankings of the hybrid base, and what the question names: none of it waits for the other."""
    depth = recipe.hybrid.reach(recipe.top_k)
    by_vector = query.vector is not None and bool(recipe.hybrid.vector_weight)
    by_words = bool(recipe.hybrid.text_weight) or not by_vector
    near, words, named = yield from together(
        trace.reads("dense", dense(query, top_k=depth), instead=None) if by_vector else nothing(),
        trace.reads("lexical", lexical(query, top_k=depth), instead=None) if by_words else nothing(),
        trace.reads("link", _named(query, recipe), instead=None) if recipe.graph else nothing(),
    )
    if near is None and not by_words:
        words = yield from trace.reads("lexical", lexical(query, top_k=depth), instead=None)
    if near is None and words is None:
        cause = trace.causes[-1]
        kind = StoreUnavailable if isinstance(cause, StoreUnavailable) else StoreError
        raise kind(f"no search could be run: {'; '.join(trace.missing)}") from cause
    rankings = {"dense": near, "lexical": words}
    trace.candidates.update({name: len(ranking) for name, ranking in rankings.items() if ranking is not None})
    return {name: ranking or () for name, ranking in rankings.items()}, named


def _named(query: Query, recipe: Recipe) -> Reads[Named]:
    """What the question names, and how many facts there are that could lead on from it."""
    known, links = yield from together(read(Store.statistics), link(query, recipe.linking))
    return known.facts, links


def _fused(rankings: Mapping[str, Ranking], recipe: Recipe) -> tuple[Fused, ...]:
    """The hybrid ranking; where only words were searched they make all of the score."""
    return fuse(rankings, recipe.hybrid if rankings["dense"] else replace(recipe.hybrid, text_weight=1.0))


def _reached(asked: Asked, named: Named | None, recipe: Recipe) -> Reads[tuple[Gated, Reached]]:
    """What the graph makes of it: ask the gate, search; hybrid alone where that is not to be."""
    if not recipe.graph:
        return Gated(None, "the recipe does not use the graph", "unused"), Reached((), asked.hybrid)
    if named is None:
        return Gated(None, NOT_SEARCHED, "failed"), Reached((), asked.hybrid)
    facts, links = named
    best = max((s.score for s in asked.rankings["dense"]), default=None)
    gated = gate(asked.query.text, entities=len(links), best_cosine=best, facts=facts, config=recipe.gate)
    if not gated.is_open:
        return gated, Reached(links, asked.hybrid)
    graph = GRAPHS[recipe.graph](replace(asked, links=links), recipe)
    reached = yield from asked.trace.reads("graph", graph, instead=None)
    if reached is None:
        return replace(gated, reason=NOT_SEARCHED, decision="failed"), Reached(links, asked.hybrid)
    asked.trace.candidates["graph"] = len(reached.candidates)
    return gated, replace(reached, paths=_from_named(reached.paths, reached.links))


def _from_named(paths: Mapping[str, FactPath], links: Sequence[Link]) -> dict[str, FactPath]:
    """Paths from what the question names: one that begins at another name of it says over which fact."""
    named = {found.entity.name for found in links if found.over is None}
    others = [found for found in links if found.over and found.entity.name not in named]
    merged = {found.entity.name: found for found in others}
    return {id_: _prefixed(path, merged.get(path.start)) for id_, path in paths.items()}


def _prefixed(path: FactPath, merged: Link | None) -> FactPath:
    if merged is None or merged.over is None:
        return path
    step = Step(merged.over, is_forward=merged.over.object_id == merged.entity.id)
    start = merged.over.subject if step.is_forward else merged.over.object
    is_way_back = bool(path.steps) and path.steps[0].fact.id == merged.over.id
    return FactPath(start, path.steps[1:] if is_way_back else (step, *path.steps))


def _hits(query: Query, fused: Sequence[Fused], reached: Reached) -> Reads[tuple[Hit, ...]]:
    """The passages behind a ranking; one that was forgotten meanwhile is left out."""
    shown = dict(reached.shown)
    others = [f.id for f in fused if f.id not in shown]
    if others:
        passages, sources = yield from together(
            read(Store.passages, others, where=query.where), read(Store.sources, others, where=query.where)
        )
        shown |= {id_: (passage, sources[id_]) for id_, passage in passages.items() if id_ in sources}
    return tuple(
        Hit(replace(passage, vector=None), document, f.score, f.placements, reached.paths.get(f.id))
        for f in fused
        if f.id in shown
        for passage, document in [shown[f.id]]
    )


def _told(hits: tuple[Hit, ...], others: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """The facts worth telling: those of the paths in their order, then those of what the question names."""
    along = [fact for hit in hits if hit.path for fact in hit.path.facts]
    return tuple({fact.id: fact for fact in (*along, *others)}.values())
