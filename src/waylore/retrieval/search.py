"""Answer a question: run the stages in order and collect their results, times and failures.

A stage that fails is skipped and named in the result; the other stages answer without it (promise 9). The best
third of hybrid search is always among the hits, with or without the graph (promise 1), except with `graph_only`,
which does not run hybrid search.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from waylore.errors import StoreError, StoreUnavailable
from waylore.plugins import import_later
from waylore.protocols import Embedder, Reranker
from waylore.recipes import CHAIN, Recipe, TurnShare
from waylore.retrieval.fusion import FusedCandidate
from waylore.retrieval.gate import GateDecision, decide, may_ask_for_set
from waylore.retrieval.graph.chain import search_chain
from waylore.retrieval.graph.linking import LinkedEntity, link_entities
from waylore.retrieval.graph.state import GraphQuery, GraphResult, GraphSearch, Loaded, load_passages
from waylore.retrieval.hybrid import cut_lists, rank_hybrid, rank_lists, search_keywords, search_vectors
from waylore.retrieval.order import arrange, find_repeats, group_repeats, keep_all
from waylore.retrieval.parts import PART, PartResult, make_parts, merge_parts
from waylore.retrieval.relevance import BEST, Relevance, judge_relevance, list_best
from waylore.retrieval.rerank import rerank
from waylore.retrieval.scale import find_scale, measure_scale
from waylore.retrieval.trace import Trace
from waylore.store.partial import partial_answers
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_nothing, read_together, run_stage, run_together
from waylore.types.knowledge import Document, Fact
from waylore.types.search import (
    NEWER,
    CosineScale,
    Filter,
    GraphPath,
    Hit,
    Query,
    Ranking,
    SearchResult,
    SetAnswer,
    Step,
    make_ranking,
)

if TYPE_CHECKING:
    from waylore.retrieval.superseding import Superseding

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
MAX_COMPARED = 100  # candidates that are compared with what was said later
find_superseded = import_later("waylore.retrieval.superseding", "find_superseded")
mark_superseded = import_later("waylore.retrieval.superseding", "mark_superseded")
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
        graph, superseding = yield from _put_superseded_below(question, graph, recipe)
        hits, texts = yield from _choose_hits(query, graph, recipe, superseding)
    pages = {id_: passage.document_id for id_, (passage, _) in graph.loaded.items()}
    relevance = judge_relevance(query, first, texts, pages)
    if superseding and hits and superseding.answers(hits[0]):
        relevance = Relevance(is_relevant=True)
    if reranker is not None and hits:
        hits = trace.call_model("reranker", lambda: rerank(reranker, query.text, hits), default=hits)
    return SearchResult(
        query=query.text,
        hits=hits,
        ranking=_rank_all(graph),
        recipe=recipe.name,
        confidence=decision.confidence,
        skip_reason=decision.reason,
        gate=decision.outcome,
        entities=tuple(dict.fromkeys(found.entity for found in graph.links)),
        facts=_select_facts(hits, graph.facts)[: min(recipe.merge.max_facts, recipe.walk.max_facts)],
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


def _rank_all(graph: GraphResult) -> Ranking:
    arranged = list(arrange(graph.hybrid, graph.candidates, superseders=graph.superseders))
    return make_ranking(map(itemgetter(0), arranged), map(itemgetter(1), arranged))


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


def _map_merges(links: Sequence[LinkedEntity]) -> dict[str, LinkedEntity]:
    """Return the links over a merge by name, without names that the question has itself."""
    named = {link.entity.name for link in links if link.same_as is None}
    return {link.entity.name: link for link in links if link.same_as and link.entity.name not in named}


def _prepend_merge(path: GraphPath | None, merges: Mapping[str, LinkedEntity]) -> GraphPath | None:
    """Let a path start at an entity that the question names, with the merge as its first step if needed."""
    merged = merges.get(path.start) if path else None
    if path is None or merged is None or merged.same_as is None:
        return path
    step = Step(merged.same_as, is_forward=merged.same_as.object_id == merged.entity.id)
    start = merged.same_as.subject if step.is_forward else merged.same_as.object
    is_way_back = bool(path.steps) and path.steps[0].fact.id == merged.same_as.id
    return GraphPath(start, path.steps[1:] if is_way_back else (step, *path.steps))


def _put_superseded_below(
    question: GraphQuery, graph: GraphResult, recipe: Recipe
) -> Reads[tuple[GraphResult, "Superseding | None"]]:
    """Load the first candidates and the best of each search, and put what was superseded below what holds instead.

    Without a candidate whose time is known, nothing else is read.
    """
    first = [each.id for each in _take_hits(graph, recipe, ())]
    wanted = [id_ for id_ in dict.fromkeys((*first, *list_best(question.rankings))) if id_ not in graph.loaded]
    graph = replace(graph, loaded={**graph.loaded, **(yield from load_passages(question.query, wanted))})
    if not any(passage.at for passage, _ in graph.loaded.values()):
        return graph, None
    ids = [each.id for each in islice(arrange(graph.hybrid, graph.candidates), max(MAX_COMPARED, 2 * recipe.top_k))]
    stage = find_superseded(question.query, ids, question.now, recipe.walk.single_valued)
    found: Superseding | None = yield from question.trace.run_stage("superseding", stage, default=None)
    if found is None:
        return graph, None
    candidates = found.reorder(graph.candidates, graph.turns)
    return replace(graph, candidates=candidates, superseders=found.superseders), found


def _choose_hits(
    query: Query, graph: GraphResult, recipe: Recipe, superseding: "Superseding | None"
) -> Reads[tuple[tuple[Hit, ...], list[str]]]:
    """Return the hits, those with the same text joined, and the texts of the best candidates with their titles.

    Passages that were forgotten meanwhile are left out.
    """
    loaded = dict(graph.loaded)
    repeats: dict[str, str] = {}
    gone = yield from _find_dissimilar(query, graph)
    while True:
        chosen = _take_hits(graph, recipe, {*repeats, *gone})
        missing = [candidate.id for candidate in chosen if candidate.id not in loaded]
        loaded |= yield from load_passages(query, missing)
        gone.update(id_ for id_ in missing if id_ not in loaded)
        found = [(each.id, loaded[each.id][0].text) for each in chosen if each.id in loaded]
        new = find_repeats(found) if recipe.merge.max_graph_passages is None else {}
        repeats |= new
        grouped = set(find_grouped(found, loaded)) if query.group_by == "session" else set()
        gone |= grouped
        if len(found) == len(chosen) and not new and not grouped:
            hits = chosen if recipe.merge.max_graph_passages is not None else chosen[: recipe.top_k]
            others = {first: [loaded[id_][1] for id_ in ids] for first, ids in group_repeats(repeats).items()}
            best = [loaded[candidate.id][0] for candidate in chosen[:BEST]]
            made = _make_hits(hits, graph, loaded, others)
            marked = (yield from mark_superseded(query, made, superseding, loaded)) if superseding else made
            return marked, [f"{passage.title} {passage.text}" for passage in best]


def find_grouped(found: Iterable[tuple[str, str]], loaded: Loaded) -> Iterator[str]:
    """Yield the passages, best first, that are of the same session as an earlier one. Others have no session."""
    seen = set[tuple[str, str, str]]()
    for document, id_ in ((loaded[id_][1], id_) for id_, _ in found):
        session = (document.user, document.agent, document.session)
        if document.session and session in seen:
            yield id_
        seen.add(session)


def _answer_set_question(query: Query, recipe: Recipe, trace: Trace) -> Reads[SetAnswer | None]:
    """Return the set that the question asks for, if the recipe is for any question; read beside the other stages."""
    if recipe.graph != CHAIN.graph or not may_ask_for_set(query.text):
        return None
    stage = answer_set_question(query, recipe.walk.single_valued)
    answer: SetAnswer | None = yield from trace.run_stage("set", stage, default=None)
    return answer


def _find_dissimilar(query: Query, graph: GraphResult) -> Reads[set[str]]:
    """Return the candidates that are less similar to the question than it demands; none without vectors."""
    if query.min_similarity is None or query.vector is None:
        return set()
    ids = list(dict.fromkeys(candidate.id for candidate in (*graph.hybrid, *graph.candidates)))
    cosines = yield from read(Store.cosines, query.vector, ids, where=query.where)
    return {id_ for id_ in ids if cosines.get(id_, -1.0) < query.min_similarity}


def _take_hits(graph: GraphResult, recipe: Recipe, left_out: Collection[str]) -> tuple[FusedCandidate, ...]:
    """Return the candidates that become hits, and as many more, which may have the same text as one of them."""
    max_added = recipe.merge.max_graph_passages
    if max_added is None:
        arranged = arrange(graph.hybrid, graph.candidates, left_out, graph.superseders)
        return tuple(islice(arranged, max(2 * recipe.top_k, BEST)))
    kept = keep_all(graph.hybrid, graph.candidates, graph.paths, top_k=recipe.top_k, max_added=max_added)
    return tuple(candidate for candidate in kept if candidate.id not in left_out)


def _make_hits(
    candidates: Sequence[FusedCandidate],
    graph: GraphResult,
    loaded: Loaded,
    others: Mapping[str, Sequence[Document]],
) -> tuple[Hit, ...]:
    """Return the hits. `others` has, by passage, the documents of those with the same text."""
    merges = _map_merges(graph.links)
    return tuple(
        Hit(
            replace(passage, vector=None),
            document,
            candidate.score,
            tuple(graph.explain(candidate)),
            _prepend_merge(graph.paths.get(candidate.id), merges),
            is_newer=any(placement.search == NEWER for placement in candidate.placements),
            also_in=tuple({o.id: o for o in others.get(candidate.id, ()) if o.id != document.id}.values()),
        )
        for candidate in candidates
        for passage, document in [loaded[candidate.id]]
    )


def _select_facts(hits: tuple[Hit, ...], named: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Return the facts to show: those of the paths in their order, then those of the named entities; no pairs."""
    on_paths = [fact for hit in hits if hit.path for fact in hit.path.facts]
    return tuple({fact.id: fact for fact in (*on_paths, *named) if fact.is_typed}.values())
