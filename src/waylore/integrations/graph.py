"""Zep's `graph` member over an open `Waylore`: add texts and facts of a user or graph, and search them.

An edge is a fact with its interval. A passage without facts is an edge too, for prompts made of edges.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from waylore.engine.waylore import Waylore
from waylore.errors import ArgumentError
from waylore.indexing.conversations.export import ExportText
from waylore.indexing.conversations.messages import to_time
from waylore.indexing.conversations.transcript import read_transcript
from waylore.integrations import records
from waylore.integrations.records import AddedTriple, EntityEdge, EntityNode, Episode, GraphSearchResults
from waylore.integrations.unused import UnusedArguments
from waylore.types.knowledge import NewFact
from waylore.types.messages import Conversation, Message
from waylore.types.search import Hit, SearchResult

GRAPH = "graph:"  # prefix of the name of a graph that belongs to no user
LIMIT = 10  # results of a search, as in Zep
OVERSAMPLED = 10  # this multiple of hits is read if a filter may leave some out
CHARACTERS_PER_TOKEN = 4
FILTERS = (
    "edge_types",
    "exclude_edge_types",
    "node_labels",
    "exclude_node_labels",
    "created_at",
    "valid_at",
    "invalid_at",
    "expired_at",
)


class ZepGraph:
    """`zep.graph`: texts and facts of a user, or of a graph that belongs to no user."""

    def __init__(self, memory: Waylore, unused: UnusedArguments) -> None:
        self._memory, self._unused = memory, unused

    def add(
        self,
        *,
        data: str,
        type: str,  # noqa: A002 (Zep's name)
        created_at: Any = None,
        document_id: str | None = None,
        graph_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        source_description: str | None = None,
        strict_ontology: bool | None = None,
        user_id: str | None = None,
    ) -> Episode:
        """Add a text, JSON, or messages (`Name: text` on each line).

        created_at: the time of its event; None means unknown, or now for messages.
        """
        self._unused.report("graph.add", {"document_id": document_id, "strict_ontology": strict_ontology})
        user, at = _choose_user(user_id, graph_id), to_time(created_at, "created_at")
        if type == "message":
            said = _read_messages(data)
            [id_, *_] = self._memory.remember(said, user=user, at=at, metadata=metadata).documents
        else:
            id_ = self._memory.add(data, title=source_description, user=user, at=at, metadata=metadata)
        added = self._memory.get(id_, user=user)
        return records.make_episode(added.document, added.passages[0], data)

    def add_fact_triple(
        self,
        *,
        fact: str,
        fact_name: str,
        created_at: Any = None,
        edge_attributes: Mapping[str, Any] | None = None,
        expired_at: Any = None,
        graph_id: str | None = None,
        invalid_at: Any = None,
        metadata: Mapping[str, Any] | None = None,
        source_node_attributes: Mapping[str, Any] | None = None,
        source_node_labels: Sequence[str] | None = None,
        source_node_name: str | None = None,
        source_node_summary: str | None = None,
        source_node_uuid: str | None = None,
        target_node_attributes: Mapping[str, Any] | None = None,
        target_node_labels: Sequence[str] | None = None,
        target_node_name: str | None = None,
        target_node_summary: str | None = None,
        target_node_uuid: str | None = None,
        user_id: str | None = None,
        valid_at: Any = None,
    ) -> AddedTriple:
        """Add a fact with its interval, and return it as an edge.

        source_node_name, target_node_name: must be given; nodes cannot be named by their ids.
        source_node_labels, target_node_labels: the first label is the type of the entity.
        invalid_at, expired_at: when the fact ceased to hold; the first given one is used.
        """
        without_effect = {
            "edge_attributes": edge_attributes,
            "source_node_attributes": source_node_attributes,
            "source_node_summary": source_node_summary,
            "source_node_uuid": source_node_uuid,
            "target_node_attributes": target_node_attributes,
            "target_node_summary": target_node_summary,
            "target_node_uuid": target_node_uuid,
        }
        self._unused.report("graph.add_fact_triple", without_effect)
        user = _choose_user(user_id, graph_id)
        stated = NewFact(
            _require_name("source_node_name", source_node_name),
            fact_name,
            _require_name("target_node_name", target_node_name),
            fact,
            valid_from=to_time(valid_at, "valid_at"),
            valid_to=to_time(invalid_at, "invalid_at") or to_time(expired_at, "expired_at"),
            subject_type=next(iter(source_node_labels or ()), ""),
            object_type=next(iter(target_node_labels or ()), ""),
            source="user_edit",
        )
        at = to_time(created_at, "created_at")
        [id_] = self._memory.add_facts([stated], user=user, at=at, metadata=metadata)
        added = self._memory.get(id_, user=user)
        return AddedTriple(edge=records.make_edge(added.facts[0], added.document))

    def search(
        self,
        *,
        query: str,
        bfs_origin_node_uuids: Sequence[str] | None = None,
        center_node_uuid: str | None = None,
        graph_id: str | None = None,
        limit: int | None = None,
        max_characters: int | None = None,
        mmr_lambda: float | None = None,
        reranker: str | None = None,
        return_raw_results: bool | None = None,
        scope: str | None = None,
        search_filters: Any = None,
        user_id: str | None = None,
    ) -> GraphSearchResults:
        """Search the texts and facts of a user or graph.

        limit: the number of results, 10 by default.
        max_characters: the length of the context, with the scope auto.
        scope: edges (facts, and passages without facts), nodes, episodes, or auto (a context for a model).
            search_filters: `edge_types`, `node_labels`, types and labels to exclude, and filters of dates.
        """
        without_effect = {
            "bfs_origin_node_uuids": bfs_origin_node_uuids,
            "center_node_uuid": center_node_uuid,
            "mmr_lambda": mmr_lambda,
            "reranker": reranker,
            "return_raw_results": return_raw_results,
        }
        self._unused.report("graph.search", without_effect)
        number, wanted = limit or LIMIT, self._read_filters(search_filters)
        user = _choose_user(user_id, graph_id)
        found = self._memory.search(query, user=user, top_k=number * (OVERSAMPLED if wanted else 1))
        if scope in (None, "edges"):
            return GraphSearchResults(edges=list(islice(self._list_edges(found, wanted), number)))
        if scope == "nodes":
            return GraphSearchResults(nodes=list(islice(self._list_nodes(found, wanted), number)))
        if scope == "episodes":
            made = [records.make_episode(hit.document, hit.passage, hit.text, hit.score) for hit in found.hits]
            return GraphSearchResults(episodes=[each for each in made if _is_dated(each, wanted)][:number])
        if scope == "auto":
            tokens = max(1, max_characters // CHARACTERS_PER_TOKEN) if max_characters else None
            return GraphSearchResults(context=self._memory.context(found, max_tokens=tokens).text)
        raise ArgumentError(f"scope must be edges, nodes, episodes or auto, got {scope!r:.40}")

    def create(self, *, graph_id: str, description: str | None = None, name: str | None = None) -> dict[str, str]:
        """Return the id of a graph. It exists when data is added to it."""
        self._unused.report("graph.create", {"description": description, "name": name})
        return {"graph_id": _require_name("graph_id", graph_id)}

    def delete(self, graph_id: str) -> dict[str, str]:
        """Forget a graph."""
        self._memory.forget(user=_choose_user(None, graph_id))
        return {"message": "OK"}

    def set_ontology(self, entities: Any = None, edges: Any = None, **targets: Any) -> None:
        """Report that ontologies have no effect."""
        self._unused.report("graph.set_ontology", {"entities": entities, "edges": edges, **targets})

    def _read_filters(self, filters: Any) -> dict[str, Any]:
        """Return the supported filters with a value, and report the others."""
        if filters is None:
            return {}
        fields = filters if isinstance(filters, Mapping) else vars(filters)
        others = {name: fields[name] for name in fields if name not in FILTERS}
        self._unused.report("graph.search_filters", others)
        return {name: fields[name] for name in FILTERS if fields.get(name) is not None}

    def _list_edges(self, found: SearchResult, wanted: Mapping[str, Any]) -> Iterator[EntityEdge]:
        """Yield the facts of the hits, best hit first; a passage without facts becomes an edge."""
        seen = set[str]()
        for hit in found.hits:
            for edge in self._make_edges(hit):
                limits = wanted.get("edge_types"), wanted.get("exclude_edge_types")
                is_wanted = records.matches_names([edge.name], *limits) and _is_dated(edge, wanted)
                if is_wanted and edge.uuid_ not in seen:
                    seen.add(edge.uuid_)
                    yield edge

    def _make_edges(self, hit: Hit) -> list[EntityEdge]:
        stated = self._memory.get(hit.document.id, user=hit.document.user).facts
        own = [fact for fact in stated if fact.passage_id == hit.passage.id]
        if not own:
            return [records.make_text_edge(hit.passage, hit.document, hit.score)]
        subjects = dict.fromkeys(fact.subject for fact in own)
        dated = {
            (fact.id, fact.passage_id): fact
            for subject in subjects
            for fact in self._memory.facts(subject, user=hit.document.user)
        }
        return [records.make_edge(dated.get((fact.id, fact.passage_id), fact), hit.document, hit.score) for fact in own]

    def _list_nodes(self, found: SearchResult, wanted: Mapping[str, Any]) -> Iterator[EntityNode]:
        """Yield the entities of the question, then the entities of the hits."""
        seen = set[str]()
        documents = (self._memory.get(hit.document.id, user=hit.document.user) for hit in found.hits)
        for entity in (*found.entities, *(entity for each in documents for entity in each.entities)):
            node = records.make_node(entity)
            limits = wanted.get("node_labels"), wanted.get("exclude_node_labels")
            if entity.id not in seen and records.matches_names(node.labels, *limits):
                seen.add(entity.id)
                yield node


def _is_dated(item: EntityEdge | Episode, wanted: Mapping[str, Any]) -> bool:
    """Return whether the times of an edge or episode fit the filters."""
    names = ("created_at", "valid_at", "invalid_at", "expired_at")
    return all(records.matches_dates(getattr(item, name, None), wanted.get(name)) for name in names)


def _choose_user(user_id: str | None, graph_id: str | None) -> str:
    """Return the user of Waylore for a user or a graph of Zep."""
    if bool(user_id) == bool(graph_id):
        raise ArgumentError("user_id or graph_id must be given, and not both")
    return user_id or f"{GRAPH}{graph_id}"


def _require_name(name: str, value: str | None) -> str:
    if not value:
        raise ArgumentError(f"{name} must not be empty")
    return value


def _read_messages(data: str) -> list[Message]:
    """Return the messages of a transcript; a text without names is one message of the user."""
    found = read_transcript(ExportText("messages", "messages", data))
    said = [message for each in found if isinstance(each, Conversation) for message in each.messages]
    return said or [Message("user", data)]
