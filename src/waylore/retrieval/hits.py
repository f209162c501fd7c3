"""Choose the hits: the best candidates, with superseded ones below what holds instead and equal texts as one hit.

Each hit has its document, its placements and the path that led to it. A reranker of the caller, a model that reads
question and passage together, may reorder them. It drops no hits, and what was superseded stays below what holds
instead.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import isfinite
from operator import itemgetter
from typing import TYPE_CHECKING

from waylore.errors import ModelError
from waylore.plugins import import_later
from waylore.protocols import Reranker
from waylore.recipes import Recipe
from waylore.retrieval.fusion import FusedCandidate
from waylore.retrieval.graph.linking import LinkedEntity
from waylore.retrieval.graph.state import GraphQuery, GraphResult, Loaded, load_passages
from waylore.retrieval.order import arrange, find_repeats, group_repeats, keep_all
from waylore.retrieval.relevance import BEST, list_best
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.types.knowledge import Document, Fact
from waylore.types.search import NEWER, GraphPath, Hit, Placement, Query, Ranking, Step, make_ranking

if TYPE_CHECKING:
    from waylore.retrieval.superseding import Superseding

MAX_COMPARED = 100  # candidates that are compared with what was said later
find_superseded = import_later("waylore.retrieval.superseding", "find_superseded")
mark_superseded = import_later("waylore.retrieval.superseding", "mark_superseded")


def put_superseded_below(
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


def choose_hits(
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


def _take_hits(graph: GraphResult, recipe: Recipe, left_out: Collection[str]) -> tuple[FusedCandidate, ...]:
    """Return the candidates that become hits, and as many more, which may have the same text as one of them."""
    max_added = recipe.merge.max_graph_passages
    if max_added is None:
        arranged = arrange(graph.hybrid, graph.candidates, left_out, graph.superseders)
        return tuple(islice(arranged, max(2 * recipe.top_k, BEST)))
    kept = keep_all(graph.hybrid, graph.candidates, graph.paths, top_k=recipe.top_k, max_added=max_added)
    return tuple(candidate for candidate in kept if candidate.id not in left_out)


def find_grouped(found: Iterable[tuple[str, str]], loaded: Loaded) -> Iterator[str]:
    """Yield the passages, best first, that are of the same session as an earlier one. Others have no session."""
    seen = set[tuple[str, str, str]]()
    for document, id_ in ((loaded[id_][1], id_) for id_, _ in found):
        session = (document.user, document.agent, document.session)
        if document.session and session in seen:
            yield id_
        seen.add(session)


def _find_dissimilar(query: Query, graph: GraphResult) -> Reads[set[str]]:
    """Return the candidates that are less similar to the question than it demands; none without vectors."""
    if query.min_similarity is None or query.vector is None:
        return set()
    ids = list(dict.fromkeys(candidate.id for candidate in (*graph.hybrid, *graph.candidates)))
    cosines = yield from read(Store.cosines, query.vector, ids, where=query.where)
    return {id_ for id_ in ids if cosines.get(id_, -1.0) < query.min_similarity}


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


def select_facts(hits: Sequence[Hit], named: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts to show: those of the paths in their order, then those of the named entities; no pairs."""
    on_paths = [fact for hit in hits if hit.path for fact in hit.path.facts]
    return tuple({fact.id: fact for fact in (*on_paths, *named) if fact.is_typed}.values())


def rank_candidates(graph: GraphResult) -> Ranking:
    """Return all candidates in the order of the hits."""
    arranged = list(arrange(graph.hybrid, graph.candidates, superseders=graph.superseders))
    return make_ranking(map(itemgetter(0), arranged), map(itemgetter(1), arranged))


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
