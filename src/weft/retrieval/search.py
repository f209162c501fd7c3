"""Answers a question: runs the stages in order and collects what each one did.

A stage that fails is left out and named in the answer; the others answer without it (promise 9). Whatever the
graph does, the hybrid top K is in the answer (promise 1).
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from weft.config import Recipe
from weft.errors import StoreError, StoreUnavailable
from weft.models import Embedder, Reranker
from weft.retrieval.activation import activation
from weft.retrieval.asking import Asked, GraphSearch, Reached, Trace
from weft.retrieval.chain import chain
from weft.retrieval.citations import citations
from weft.retrieval.dense import dense
from weft.retrieval.expansion import guided
from weft.retrieval.fusion import Fused, additive, fuse
from weft.retrieval.gating import Gated, gate
from weft.retrieval.lexical import lexical
from weft.retrieval.linking import Link, link, with_same
from weft.retrieval.neighbourhood import neighbourhood
from weft.retrieval.reranking import rerank
from weft.store.base import Store
from weft.store.tolerance import partial_answers
from weft.types import Fact, FactPath, Found, Hit, Query, Ranking, Step

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
        found = _answered(store, embedder, query, recipe, now, reranker)
    return replace(found, missing=(*found.missing, *left_out.values()))


def _answered(
    store: Store,
    embedder: Embedder | None,
    query: Query,
    recipe: Recipe,
    now: datetime,
    reranker: Reranker | None,
) -> Found:
    trace = Trace()
    query = _embedded(query, embedder, recipe, trace)
    rankings = _rankings(store, query, recipe, trace)
    if not rankings["dense"]:
        query = replace(query, vector=None)  # there is nothing that it could be compared with
    asked = Asked(query, (), rankings, _fused(rankings, recipe), now, embedder, trace)
    asked, gated, reached = _reached(store, asked, recipe)
    added = recipe.top_k if recipe.merge.max_graph_passages is None else recipe.merge.max_graph_passages
    chosen = additive(asked.hybrid, reached.candidates, reached.paths, top_k=recipe.top_k, added=added)
    with trace.stage("hits"):
        hits = _hits(store, query, chosen, reached.paths)
    if reranker is not None:
        hits = trace.run("reranker", lambda: rerank(reranker, query.text, hits), instead=hits, of=Exception)
    return Found(
        query=query.text,
        hits=hits,
        recipe=recipe.name,
        confidence=gated.confidence,
        skipped=gated.reason,
        entities=tuple(dict.fromkeys(found.entity for found in asked.links)),
        facts=_told(hits, reached.facts)[: min(recipe.merge.max_facts, recipe.walk.max_facts)],
        missing=tuple(trace.missing),
        candidates=trace.candidates,
        seconds=trace.seconds,
    )


def _embedded(query: Query, embedder: Embedder | None, recipe: Recipe, trace: Trace) -> Query:
    if query.vector is not None or not recipe.hybrid.vector_weight:
        return query
    if embedder is None:
        trace.missing.append(NO_EMBEDDER)
        return query
    vector = trace.run("dense", lambda: embedder.embed_query(query.text), instead=None, of=Exception)
    trace.seconds["embedding"] = trace.seconds.pop("dense")
    return replace(query, vector=vector)


def _rankings(store: Store, query: Query, recipe: Recipe, trace: Trace) -> dict[str, Ranking]:
    """The rankings of the hybrid base. A search that weighs nothing is not run, unless the other cannot be."""
    depth = recipe.hybrid.reach(recipe.top_k)
    rankings: dict[str, Ranking | None] = {"dense": None, "lexical": None}
    if recipe.hybrid.vector_weight and query.vector is not None:
        rankings["dense"] = trace.run("dense", lambda: dense(store, query, top_k=depth), instead=None)
    if recipe.hybrid.text_weight or rankings["dense"] is None:
        rankings["lexical"] = trace.run("lexical", lambda: lexical(store, query, top_k=depth), instead=None)
    if all(ranking is None for ranking in rankings.values()):
        cause = trace.causes[-1]
        kind = StoreUnavailable if isinstance(cause, StoreUnavailable) else StoreError
        raise kind(f"no search could be run: {'; '.join(trace.missing)}") from cause
    trace.candidates.update({name: len(ranking) for name, ranking in rankings.items() if ranking is not None})
    return {name: ranking or () for name, ranking in rankings.items()}


def _fused(rankings: Mapping[str, Ranking], recipe: Recipe) -> tuple[Fused, ...]:
    """The hybrid ranking; where only words were searched they make all of the score."""
    return fuse(rankings, recipe.hybrid if rankings["dense"] else replace(recipe.hybrid, text_weight=1.0))


def _reached(store: Store, asked: Asked, recipe: Recipe) -> tuple[Asked, Gated, Reached]:
    """What the graph makes of it: link, ask the gate, search; hybrid alone where that is not to be."""
    nothing = Reached(asked.hybrid)
    if not recipe.graph:
        return asked, Gated(None, "the recipe does not use the graph"), nothing
    facts = asked.trace.run("link", lambda: store.statistics().facts, instead=None)
    links = asked.trace.run("link", lambda: link(store, asked.query, recipe.linking), instead=None)
    if facts is None or links is None:
        return asked, Gated(None, "the graph could not be searched"), nothing
    asked = replace(asked, links=links)
    best = max((s.score for s in asked.rankings["dense"]), default=None)
    gated = gate(asked.query.text, entities=len(links), best_cosine=best, facts=facts, config=recipe.gate)
    if not gated.is_open:
        return asked, gated, nothing
    walked = asked.trace.run("graph", lambda: _walked(store, asked, recipe), instead=None)
    if walked is None:
        return asked, replace(gated, reason="the graph could not be searched"), nothing
    asked, reached = walked
    asked.trace.candidates["graph"] = len(reached.candidates)
    return asked, gated, replace(reached, paths=_from_named(reached.paths, asked))


def _walked(store: Store, asked: Asked, recipe: Recipe) -> tuple[Asked, Reached]:
    """The graph search of the recipe, from what the question names and from what is the same."""
    with asked.trace.stage("resolve"):
        links = with_same(store, asked.query, asked.links, recipe.resolution)
    asked = replace(asked, links=links)
    return asked, GRAPHS[recipe.graph](store, asked, recipe)


def _from_named(paths: Mapping[str, FactPath], asked: Asked) -> dict[str, FactPath]:
    """Paths from what the question names: one that begins at another name of it says over which fact."""
    named = {found.entity.name for found in asked.links if found.over is None}
    others = [found for found in asked.links if found.over and found.entity.name not in named]
    merged = {found.entity.name: found for found in others}
    return {id_: _prefixed(path, merged.get(path.start)) for id_, path in paths.items()}


def _prefixed(path: FactPath, merged: Link | None) -> FactPath:
    if merged is None or merged.over is None:
        return path
    step = Step(merged.over, is_forward=merged.over.object_id == merged.entity.id)
    start = merged.over.subject if step.is_forward else merged.over.object
    is_way_back = bool(path.steps) and path.steps[0].fact.id == merged.over.id
    return FactPath(start, path.steps[1:] if is_way_back else (step, *path.steps))


def _hits(
    store: Store, query: Query, fused: tuple[Fused, ...], paths: Mapping[str, FactPath]
) -> tuple[Hit, ...]:
    """The passages behind a ranking; one that was forgotten meanwhile is left out."""
    passages = store.passages([f.id for f in fused], where=query.where)
    documents = store.documents(
        list(dict.fromkeys(p.document_id for p in passages.values())), where=query.where
    )
    return tuple(
        Hit(passage, documents[passage.document_id], f.score, f.placements, paths.get(f.id))
        for f in fused
        if (passage := passages.get(f.id)) and passage.document_id in documents
    )


def _told(hits: tuple[Hit, ...], others: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """The facts worth telling: those of the paths in their order, then those of what the question names."""
    along = [fact for hit in hits if hit.path for fact in hit.path.facts]
    return tuple({fact.id: fact for fact in (*along, *others)}.values())
