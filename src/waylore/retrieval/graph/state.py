"""The input and the output of a graph search, which all graph searches share."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol, TypeAlias

from waylore.protocols import Embedder
from waylore.recipes import Recipe
from waylore.retrieval.fusion import FusedCandidate
from waylore.retrieval.graph.linking import LinkedEntity, add_merged_entities
from waylore.retrieval.hybrid import rank_hybrid
from waylore.retrieval.trace import Trace
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_together
from waylore.types.knowledge import Document, Fact, Passage, get_enriched
from waylore.types.search import GraphPath, Placement, Query, Ranking

if TYPE_CHECKING:
    from waylore.spans import Span

Loaded: TypeAlias = Mapping[str, tuple[Passage, Document]]  # passages by id, each with its document


@dataclass(frozen=True, slots=True)
class GraphQuery:
    """A question after both searches: linked entities, the rankings so far, and the time that counts as now.

    The graph uses `rankings`. `all_rankings` are longer if many hits are wanted; hybrid search uses them. `hybrid` has
    the order of the lists until `rank_hybrid` has read the missing scores, together with the first read of a graph
    search.
    """

    query: Query
    links: tuple[LinkedEntity, ...]
    rankings: Mapping[str, Ranking]
    all_rankings: Mapping[str, Ranking]
    hybrid: tuple[FusedCandidate, ...]
    now: datetime
    embedder: Embedder | None = None
    trace: Trace = field(default_factory=Trace)

    @property
    def starts(self) -> dict[str, str]:
        """The linked entities: names by entity id."""
        return {link.entity.id: link.entity.name for link in self.links}


@dataclass(frozen=True, slots=True)
class GraphResult:
    """The result of a graph search: linked entities, all candidates in one order, paths and facts to show.

    `hybrid` is the order of hybrid search, whose best stay in the answer. `loaded` has candidates that the search has
    read already, each with its document. `explain` returns the placements of a candidate that becomes a hit. `turns`
    are the candidates that were ranked by the features of turns. `superseders` stand above others, by their ids.
    `spans` are the days that the question names, if turns near them were preferred.
    """

    links: tuple[LinkedEntity, ...]
    candidates: tuple[FusedCandidate, ...]
    hybrid: tuple[FusedCandidate, ...]
    paths: Mapping[str, GraphPath] = field(default_factory=dict)
    facts: tuple[Fact, ...] = ()
    loaded: Loaded = field(default_factory=dict)
    explain: Callable[[FusedCandidate], Sequence[Placement]] = attrgetter("placements")
    turns: Collection[str] = ()
    superseders: Mapping[str, str] = field(default_factory=dict)
    spans: "tuple[Span, ...]" = ()


def load_passages(query: Query, ids: Sequence[str]) -> Reads[dict[str, tuple[Passage, Document]]]:
    """Load passages with their documents. Instead of what a model added to a passage, that passage is loaded."""
    loaded = yield from _load(query, ids)
    added = {id_: get_enriched(document) for id_, (passage, document) in loaded.items() if passage.is_silent}
    known = loaded | (yield from _load(query, sorted({*added.values()} - loaded.keys())))
    found = {id_: known[of] for id_, of in ((id_, added.get(id_, id_)) for id_ in loaded) if of in known}
    return {id_: (passage, document) for id_, (passage, document) in found.items() if not passage.is_silent}


def attribute_facts(query: Query, facts: Sequence[Fact]) -> Reads[tuple[Fact, ...]]:
    """Return facts, those that a model added with the passage in which it read them."""
    added = {fact.passage_id for fact in facts if fact.status == "staged" and fact.source == "system"}
    loaded = yield from load_passages(query, sorted(added))
    return tuple(
        replace(fact, passage_id=loaded[fact.passage_id][0].id) if fact.passage_id in loaded else fact for fact in facts
    )


def _load(query: Query, ids: Sequence[str]) -> Reads[dict[str, tuple[Passage, Document]]]:
    if not ids:
        return {}
    passages, sources = yield from read_together(
        read(Store.passages, ids, where=query.where), read(Store.sources, ids, where=query.where)
    )
    return {id_: (passage, sources[id_]) for id_, passage in passages.items() if id_ in sources}


class GraphSearch(Protocol):
    """One way to use the graph."""

    def __call__(self, question: GraphQuery, recipe: Recipe) -> Reads[GraphResult]:
        """Return candidates, best first, with the hybrid candidates among them."""
        ...


def add_same_entities(question: GraphQuery, recipe: Recipe) -> Reads[GraphQuery]:
    """Return the question with links to the entities that are the same as one of its entities, and hybrid's order."""
    with question.trace.measure("resolve"):
        links, hybrid = yield from read_together(
            add_merged_entities(question.query, question.links, recipe.resolution),
            rank_hybrid(question.query, question.all_rankings, question.hybrid, recipe, question.trace),
        )
    return replace(question, links=links, hybrid=hybrid)
