"""Guided expansion: searches again for what the question names together with its neighbours (S11).

Queries of the form "seed neighbour", nearest and strongest neighbours first, each unordered pair once, then
the seeds' own names; a few results each, joined by reciprocal rank with the hybrid rankings. An empty graph
gives no queries. It is the one graph search that embeds more than the question; without an embedder it
searches words.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from waylore.recipes import Recipe
from waylore.retrieval.candidates import dense, lexical
from waylore.retrieval.fusion import Fused, fuse
from waylore.retrieval.graph.neighbourhood import facts_around
from waylore.retrieval.graph.paths import adjacency, trails
from waylore.retrieval.graph.state import Asked, Reached, resolved
from waylore.store.reads import Reads, side_by_side
from waylore.types.search import FactPath, Ranking, Scored


@dataclass(frozen=True, slots=True)
class ExpansionQuery:
    """A query that the graph suggests, how near in the graph, and the path that suggests it."""

    text: str
    proximity: float
    path: FactPath


def guided(asked: Asked, recipe: Recipe) -> Reads[Reached]:
    """The rankings of the base and of the expansion queries, joined by reciprocal rank."""
    asked = yield from resolved(asked, recipe)
    with asked.trace.stage("walk"):
        facts = yield from facts_around(asked.query, list(asked.starts), recipe.walk)
        bearing = {f.id: f.weight * f.confidence for f in facts}
        known = trails(asked.starts, adjacency(facts, bearing), hops=recipe.walk.max_hops)
        paths = [known.to(id_) for id_ in known.before]
        queries = expansion_queries(asked.starts, paths, bearing)[: recipe.expansion.max_queries]
    with asked.trace.stage("expansion"):
        origins = yield from _origins(asked, queries, recipe)
    ranking = tuple(Scored(id_, query.proximity) for id_, query in origins.items())
    rankings = {**asked.rankings, "graph": ranking}
    by_rank = replace(recipe.hybrid, fusion="rrf")
    fused = fuse(rankings, by_rank, graph_weight=recipe.merge.graph_weight)
    tagged = tuple(_tagged(candidate, origins) for candidate in fused)
    return Reached(asked.links, tagged, {id_: query.path for id_, query in origins.items()}, facts)


def expansion_queries(
    starts: Mapping[str, str], paths: Iterable[FactPath], bearing: Mapping[str, float]
) -> list[ExpansionQuery]:
    """Pairs of a seed and a neighbour, the nearest first, then the seeds' own names."""
    pairs: dict[frozenset[str], ExpansionQuery] = {}
    for path in sorted(paths, key=lambda p: _nearness(p, bearing)):
        last = path.steps[-1]
        neighbour = last.fact.object if last.is_forward else last.fact.subject
        query = ExpansionQuery(f"{path.start} {neighbour}", 1 / (1 + len(path.steps)), path)
        pairs.setdefault(frozenset((path.start, neighbour)), query)
    own = [ExpansionQuery(name, 1.0, FactPath(name)) for name in sorted(set(starts.values()))]
    return [*pairs.values(), *own]


def _nearness(path: FactPath, bearing: Mapping[str, float]) -> tuple[int, float, str]:
    return len(path.steps), -sum(bearing[f.id] for f in path.facts), str(path)


def _origins(asked: Asked, queries: list[ExpansionQuery], recipe: Recipe) -> Reads[dict[str, ExpansionQuery]]:
    """The first query that found each passage, in the order of the queries."""
    limit = recipe.expansion.results_per_query
    rankings = yield from side_by_side([_results(asked, query.text, limit) for query in queries])
    origins: dict[str, ExpansionQuery] = {}
    for query, ranking in zip(queries, rankings, strict=True):
        for scored in ranking:
            origins.setdefault(scored.id, query)
    return origins


def _results(asked: Asked, text: str, limit: int) -> Reads[Ranking]:
    query = replace(asked.query, text=text, vector=None)
    if asked.embedder is None or asked.query.vector is None:
        return lexical(query, top_k=limit)
    return dense(replace(query, vector=asked.embedder.embed_query(text)), top_k=limit)


def _tagged(candidate: Fused, origins: Mapping[str, ExpansionQuery]) -> Fused:
    """S11: a result of the graph says which query found it."""
    if candidate.id not in origins:
        return candidate
    text = origins[candidate.id].text
    placements = tuple(replace(p, query=text) if p.search == "graph" else p for p in candidate.placements)
    return replace(candidate, placements=placements)
