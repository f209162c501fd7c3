"""Answer a question: run the stages in order and collect their results, times and failures.

A stage that fails is skipped and named in the result; the other stages answer without it (promise 9). The best
third of hybrid search is always among the hits, with or without the graph (promise 1), except with `graph_only`,
which does not run hybrid search.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import TypeAlias

from waylore.errors import StoreError, StoreUnavailable
from waylore.plugins import import_later
from waylore.protocols import Embedder, Reranker
from waylore.recipes import CHAIN, Recipe, TurnShare
from waylore.retrieval.gate import GateDecision, decide, may_ask_for_set
from waylore.retrieval.graph.chain import search_chain
from waylore.retrieval.graph.linking import LinkedEntity, link_entities
from waylore.retrieval.graph.state import GraphQuery, GraphResult, GraphSearch
from waylore.retrieval.hits import choose_hits, put_superseded_below, rank_candidates, rerank, select_facts
from waylore.retrieval.hybrid import cut_lists, rank_hybrid, rank_lists, search_keywords, search_vectors
from waylore.retrieval.parts import PART, PartResult, make_parts, merge_parts
from waylore.retrieval.relevance import Relevance, judge_relevance
from waylore.retrieval.scale import find_scale, measure_scale
from waylore.retrieval.trace import Trace
from waylore.store.partial import partial_answers
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_nothing, read_together, run_stage, run_together
from waylore.types.search import (
    CosineScale,
    Filter,
    Query,
    Ranking,
    SearchResult,
    SetAnswer,
)

NamedEntities: TypeAlias = tuple[bool, tuple[LinkedEntity, ...]]  # whether the caller sees facts, named entities
MixTurns: TypeAlias = Callable[[GraphQuery, GraphResult, Recipe], Reads[GraphResult]]
GRAPH_FAILED = "the graph could not be searched"
NO_EMBEDDER = "vector: no embedder was given, so only words were searched"
# Only the default recipe is loaded at the start.
GRAPH_SEARCHES: Mapping[str, GraphSearch] = MappingProxyType(
    {
        "neighbourhood": import_later("waylore.retrieval.graph.neighbourhood", "search_neighbourhood"),
        "guided": import_later("waylore.retrieval.graph.guided", "search_guided"),
        "activation": import_later("waylore.retrieval.graph.activation", "search_activation"),
        "citations": import_later("waylore.retrieval.graph.citations", "search_citations"),
        "chain": search_chain,
        "deep": import_later("waylore.retrieval.graph.deep", "search_deep"),
    }
)
search_conversation: GraphSearch = import_later("waylore.retrieval.conversation", "search_conversation")
answer_set_question = import_later("waylore.retrieval.relations.questions", "answer_set_question")
mix_turns: MixTurns = import_later("waylore.retrieval.conversation", "mix_turns")


def find_turns(store: Store, where: Filter) -> TurnShare:
    """Return how many of the passages that a caller may see are turns of conversations."""
    if not store.has_turns(where=where):
        return "none"
    return "all" if store.has_only_turns(where=where) else "some"


def search(
    store: Store,
    embedder: Embedder | None,
    query: Query,
    recipe: Recipe,
    *,
    now: datetime,
    reranker: Reranker | None = None,
) -> SearchResult:
    """Return the hits for a question, best first, each with its placements and the path that led to it."""
    with partial_answers() as skipped_cells:
        rows_read: Counter[str] = Counter()
        result = run_stage(store, _run_stages(embedder, query, recipe, now, reranker), rows_read)
    return replace(result, missing=(*result.missing, *skipped_cells.values()), rows_read=rows_read)


def _run_stages(
    embedder: Embedder | None, query: Query, recipe: Recipe, now: datetime, reranker: Reranker | None
) -> Reads[SearchResult]:
    trace = Trace()
    query = _embed_question(query, embedder, recipe, trace)
    result, set_answer = yield from read_together(
        _find_hits(embedder, query, recipe, now, reranker, trace), _answer_set_question(query, recipe, trace)
    )
    return replace(result, set_answer=set_answer, missing=tuple(dict.fromkeys(trace.missing)))


def _find_hits(
    embedder: Embedder | None, query: Query, recipe: Recipe, now: datetime, reranker: Reranker | None, trace: Trace
) -> Reads[SearchResult]:
    (question, decision, graph), parts = yield from read_together(
        _rank(embedder, query, recipe, now, trace), _rank_parts(embedder, query, recipe, now, trace)
    )
    query, first = question.query, question.rankings
    if parts:
        graph = merge_parts(graph, parts, recipe.parts)
    if recipe.mixes_turns:
        graph = yield from mix_turns(question, graph, recipe)
    with trace.measure("hits"):
        graph, superseding = yield from put_superseded_below(question, graph, recipe)
        hits, texts = yield from choose_hits(query, graph, recipe, superseding)
    pages = {id_: passage.document_id for id_, (passage, _) in graph.loaded.items()}
    relevance = judge_relevance(query, first, texts, pages)
    if superseding and hits and superseding.answers(hits[0]):
        relevance = Relevance(is_relevant=True)
    if reranker is not None and hits:
        hits = trace.call_model("reranker", lambda: rerank(reranker, query.text, hits), default=hits)
    return SearchResult(
        query=query.text,
        hits=hits,
        ranking=rank_candidates(graph),
        recipe=recipe.name,
        confidence=decision.confidence,
        skip_reason=decision.reason,
        gate=decision.outcome,
        entities=tuple(dict.fromkeys(found.entity for found in graph.links)),
        facts=select_facts(hits, graph.facts)[: min(recipe.merge.max_facts, recipe.walk.max_facts)],
        is_relevant=relevance.is_relevant,
        relevance_reason=relevance.reason,
        spans=graph.spans,
        candidates=trace.candidates,
        seconds=trace.seconds,
        started=trace.started,
    )


def _rank(
    embedder: Embedder | None, query: Query, recipe: Recipe, now: datetime, trace: Trace
) -> Reads[tuple[GraphQuery, GateDecision, GraphResult]]:
    """Run the searches of a question, and rank their candidates."""
    rankings, named = yield from _run_first_stages(query, recipe, trace)
    if not rankings["vector"]:
        query = replace(query, vector=None)  # no passage has a vector to compare it with
    first = cut_lists(rankings, recipe)
    question = GraphQuery(query, (), first, rankings, rank_lists(first, recipe), now, embedder, trace)
    decision, graph = yield from _search_graph(question, named, recipe)
    return question, decision, graph


def _rank_parts(
    embedder: Embedder | None, query: Query, recipe: Recipe, now: datetime, trace: Trace
) -> Reads[Sequence[PartResult]]:
    """Rank candidates for each part of a question that asks for several things. A part that fails is left out."""
    parts = make_parts(query, embedder, recipe.parts, trace) if recipe.asks_parts else []
    own = replace(recipe, graph=CHAIN.graph if recipe.graph else "", top_k=CHAIN.top_k)
    apart = Trace(missing=trace.missing, causes=trace.causes)  # with times of its own
    stages = [trace.run_stage(PART, _rank(embedder, part, own, now, apart), default=None) for part in parts]
    ranked = yield from run_together(stages)
    return [PartResult(part.text, of_it[2]) for part, of_it in zip(parts, ranked, strict=True) if of_it]


def _embed_question(query: Query, embedder: Embedder | None, recipe: Recipe, trace: Trace) -> Query:
    if query.vector is not None or not (recipe.has_hybrid and recipe.hybrid.vector_weight):
        return query
    if embedder is None:
        trace.missing.append(NO_EMBEDDER)
        return query
    vector = trace.call_model("embedding", lambda: embedder.embed_query(query.text), default=None, stage="vector")
    return replace(query, vector=vector, scale=_get_scale(embedder, trace) if vector is not None else None)


def _get_scale(embedder: Embedder, trace: Trace) -> CosineScale | None:
    """Return the scale of an embedder. The first search with a model that is not in the table measures it."""
    known = find_scale(embedder.name)
    if known is not None:
        return known
    return trace.call_model("unit", lambda: measure_scale(embedder), default=None, stage="scores")


def _run_first_stages(
    query: Query, recipe: Recipe, trace: Trace
) -> Reads[tuple[dict[str, Ranking], NamedEntities | None]]:
    """Run the stages that do not depend on each other: vector search, keyword search and entity linking."""
    depth = recipe.hybrid.count_candidates(recipe.top_k)
    by_vector = recipe.has_hybrid and query.vector is not None and bool(recipe.hybrid.vector_weight)
    by_words = recipe.has_hybrid and (bool(recipe.hybrid.text_weight) or not by_vector)
    near, words, named = yield from read_together(
        trace.run_stage("vector", search_vectors(query, top_k=depth), default=None) if by_vector else read_nothing(),
        trace.run_stage("keyword", search_keywords(query, top_k=depth), default=None) if by_words else read_nothing(),
        trace.run_stage("link", _find_named_entities(query, recipe), default=None) if recipe.graph else read_nothing(),
    )
    if recipe.has_hybrid and near is None and not by_words:
        words = yield from trace.run_stage("keyword", search_keywords(query, top_k=depth), default=None)
    if near is None and words is None and (recipe.has_hybrid or named is None):
        raise _make_search_error(trace) from trace.causes[-1]
    rankings = {"vector": near, "keyword": words}
    trace.candidates.update({name: len(ranking) for name, ranking in rankings.items() if ranking is not None})
    return {name: ranking or () for name, ranking in rankings.items()}, named


def _make_search_error(trace: Trace) -> StoreError:
    """Return the error for a question that no search can answer."""
    kind = StoreUnavailable if isinstance(trace.causes[-1], StoreUnavailable) else StoreError
    return kind(f"no search could be run: {'; '.join(trace.missing)}")


def _find_named_entities(query: Query, recipe: Recipe) -> Reads[NamedEntities]:
    """Return whether the caller may see a fact, and the entities that the question names."""
    seen = read(Store.has_facts, where=query.where)
    return (yield from read_together(seen, link_entities(query, recipe.linking)))


def _search_graph(
    question: GraphQuery, named: NamedEntities | None, recipe: Recipe
) -> Reads[tuple[GateDecision, GraphResult]]:
    """Let the gate decide, then search the graph. If it is not used, return the hybrid ranking alone."""
    decision, links = _ask_gate(question, named, recipe)
    if not decision.is_open:
        return decision, (yield from _rank_without_graph(question, links, recipe))
    graph_search = GRAPH_SEARCHES[recipe.graph](replace(question, links=links), recipe)
    result = yield from question.trace.run_stage("graph", graph_search, default=None)
    if result is None and not recipe.has_hybrid:
        raise _make_search_error(question.trace) from question.trace.causes[-1]
    if result is None:
        failed = replace(decision, reason=GRAPH_FAILED, outcome="failed")
        return failed, (yield from _rank_without_graph(question, links, recipe))
    question.trace.candidates["graph"] = len(result.candidates)
    return decision, result


def _ask_gate(
    question: GraphQuery, named: NamedEntities | None, recipe: Recipe
) -> tuple[GateDecision, tuple[LinkedEntity, ...]]:
    """Return whether to use the graph, and the entities that the question names."""
    if not recipe.graph:
        return GateDecision(None, "the recipe does not use the graph", "unused"), ()
    if named is None:
        return GateDecision(None, GRAPH_FAILED, "failed"), ()
    has_facts, links = named
    best = max((s.score for s in question.rankings["vector"]), default=None)
    text = question.query.text
    return decide(text, entities=len(links), best_cosine=best, has_facts=has_facts, config=recipe.gate), links


def _rank_without_graph(question: GraphQuery, links: tuple[LinkedEntity, ...], recipe: Recipe) -> Reads[GraphResult]:
    """Return the hybrid ranking alone, or that of the conversation."""
    if recipe.is_conversation:
        return (yield from search_conversation(question, recipe))
    hybrid = yield from rank_hybrid(question.query, question.all_rankings, question.hybrid, recipe, question.trace)
    return GraphResult(links, hybrid, hybrid)


def _answer_set_question(query: Query, recipe: Recipe, trace: Trace) -> Reads[SetAnswer | None]:
    """Return the set that the question asks for, if the recipe is for any question; read beside the other stages."""
    if recipe.graph != CHAIN.graph or not may_ask_for_set(query.text):
        return None
    stage = answer_set_question(query, recipe.walk.single_valued)
    answer: SetAnswer | None = yield from trace.run_stage("set", stage, default=None)
    return answer
