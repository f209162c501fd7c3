"""Search by guided expansion: search again for the question's entities together with their neighbours (S11).

The queries have the form "seed neighbour", the nearest and strongest neighbours first, each unordered pair
once, then the seeds' own names. A few results of each are fused by reciprocal rank with the hybrid rankings.
An empty graph gives no queries. This is the only graph search that embeds more than the question. Without an
embedder it searches keywords.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from waylore.recipes import Recipe
from waylore.retrieval.fusion import FusedCandidate, fuse
from waylore.retrieval.graph.neighbourhood import read_facts_around
from waylore.retrieval.graph.paths import build_adjacency, find_trails
from waylore.retrieval.graph.state import GraphQuery, GraphResult, add_same_entities
from waylore.retrieval.hybrid import search_keywords, search_vectors
from waylore.store.reads import Reads, run_together
from waylore.types.columns import to_fact_columns
from waylore.types.search import GraphPath, Ranking, Scored


@dataclass(frozen=True, slots=True)
class ExpansionQuery:
    """A query that the graph suggests, its proximity in the graph, and the path that suggests it."""

    text: str
    proximity: float
    path: GraphPath


def search_guided(question: GraphQuery, recipe: Recipe) -> Reads[GraphResult]:
    """Fuse the hybrid rankings and those of the expansion queries by reciprocal rank."""
    question = yield from add_same_entities(question, recipe)
    with question.trace.measure("walk"):
        facts = yield from read_facts_around(question.query, list(question.starts), recipe.walk)
        strengths = {f.id: f.weight * f.confidence for f in facts}
        adjacency = build_adjacency(to_fact_columns({"": facts}), list(strengths.values()))
        trails = find_trails(question.starts, adjacency, hops=recipe.walk.max_hops)
        paths = [trails.find_path(id_) for id_ in trails.before]
        queries = build_expansion_queries(question.starts, paths, strengths)[: recipe.expansion.max_queries]
    with question.trace.measure("expansion"):
        origins = yield from _find_origins(question, queries, recipe)
    ranking = tuple(Scored(id_, query.proximity) for id_, query in origins.items())
    rankings = {**question.all_rankings, "graph": ranking}
    by_rank = replace(recipe.hybrid, fusion="rrf")
    fused = fuse(rankings, by_rank, graph_weight=recipe.merge.graph_weight)
    tagged = tuple(_tag(candidate, origins) for candidate in fused)
    found = {id_: query.path for id_, query in origins.items()}
    return GraphResult(question.links, tagged, question.hybrid, found, facts)


def build_expansion_queries(
    starts: Mapping[str, str], paths: Iterable[GraphPath], strengths: Mapping[str, float]
) -> list[ExpansionQuery]:
    """Return queries of a seed and a neighbour, the nearest first, then the seeds' own names."""
    pairs: dict[frozenset[str], ExpansionQuery] = {}
    for path in sorted(paths, key=lambda p: _make_sort_key(p, strengths)):
        last = path.steps[-1]
        neighbour = last.fact.object if last.is_forward else last.fact.subject
        query = ExpansionQuery(f"{path.start} {neighbour}", 1 / (1 + len(path.steps)), path)
        pairs.setdefault(frozenset((path.start, neighbour)), query)
    own = [ExpansionQuery(name, 1.0, GraphPath(name)) for name in sorted(set(starts.values()))]
    return [*pairs.values(), *own]


def _make_sort_key(path: GraphPath, strengths: Mapping[str, float]) -> tuple[int, float, str]:
    return len(path.steps), -sum(strengths[f.id] for f in path.facts), str(path)


def _find_origins(
    question: GraphQuery, queries: list[ExpansionQuery], recipe: Recipe
) -> Reads[dict[str, ExpansionQuery]]:
    """Return the first query that found each passage, in the order of the queries."""
    limit = recipe.expansion.results_per_query
    rankings = yield from run_together([_run_query(question, query.text, limit) for query in queries])
    origins: dict[str, ExpansionQuery] = {}
    for query, ranking in zip(queries, rankings, strict=True):
        for scored in ranking:
            origins.setdefault(scored.id, query)
    return origins


def _run_query(question: GraphQuery, text: str, limit: int) -> Reads[Ranking]:
    query = replace(question.query, text=text, vector=None)
    if question.embedder is None or question.query.vector is None:
        return search_keywords(query, top_k=limit)
    return search_vectors(replace(query, vector=question.embedder.embed_query(text)), top_k=limit)


def _tag(candidate: FusedCandidate, origins: Mapping[str, ExpansionQuery]) -> FusedCandidate:
    """Record in the placement of a graph candidate which query found it (S11)."""
    if candidate.id not in origins:
        return candidate
    text = origins[candidate.id].text
    placements = tuple(p._replace(query=text) if p.search == "graph" else p for p in candidate.placements)
    return candidate._replace(placements=placements)
