"""A LlamaIndex retriever over an open `Waylore`, for query engines, chat engines and agents, sync and async.

It only searches: the caller adds, forgets and closes through its own `Waylore`. The vector of a `QueryBundle` is not
used, because it may come from another model.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError
from waylore.integrations.metadata import KEY, build_metadata
from waylore.protocols import Reranker
from waylore.recipes import AUTO, Recipe
from waylore.types.knowledge import Scalar
from waylore.types.search import NO_FILTER, Filter, Hit, SearchResult

try:
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import (
        NodeRelationship,
        NodeWithScore,
        ObjectType,
        QueryBundle,
        RelatedNodeInfo,
        TextNode,
    )
    from llama_index.core.vector_stores import (
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
    )
except ImportError as error:
    raise ImportError("llama-index-core is not installed; run `pip install 'waylore[llamaindex]'`") from error


class PassageNode(TextNode):
    """A passage as a node, with the same hash in every search, so that fused rankings recognise it."""

    @property
    def hash(self) -> str:
        """The hash of the stored text and metadata. LlamaIndex's own would include the explanation."""
        return TextNode(text=self.text, metadata=_drop_search_data(self.metadata)).hash


class WayloreRetriever(BaseRetriever):
    """Passages for a question, best first, with path and citation in their metadata.

    `filters` are LlamaIndex's own: equality and membership, which must all match. `where` is Waylore's filter,
    with the labels of the caller (`Filter(labels=…)`). Both apply together.
    """

    def __init__(
        self,
        memory: Waylore,
        *,
        similarity_top_k: int = 10,
        method: str | Recipe = AUTO,
        where: Filter = NO_FILTER,
        filters: MetadataFilters | None = None,
        as_of: datetime | None = None,
        reranker: Reranker | None = None,
        rerank: bool | None = None,
        min_similarity: float | None = None,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> None:
        self._memory = memory
        self._limit = similarity_top_k
        self._arguments: dict[str, Any] = {
            "top_k": similarity_top_k,
            "method": method,
            "where": _add_filters(where, filters) if filters else where,
            "as_of": as_of,
            "reranker": reranker,
            "rerank": rerank,
            "min_similarity": min_similarity,
        }
        super().__init__(callback_manager=callback_manager, verbose=verbose)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _make_nodes(self._memory.search(query_bundle.query_str, **self._arguments), self._limit)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _make_nodes(await self._memory.asearch(query_bundle.query_str, **self._arguments), self._limit)


def _make_nodes(result: SearchResult, limit: int) -> list[NodeWithScore]:
    """Return the best hits as nodes: at most `limit`, as users of LlamaIndex expect."""
    return [NodeWithScore(node=_make_node(hit), score=hit.score) for hit in result.hits[:limit]]


def _make_node(hit: Hit) -> PassageNode:
    """Return a passage as a node. Its explanation is for programs and is excluded from prompts and vectors."""
    passage, metadata = hit.passage, build_metadata(hit)
    document = RelatedNodeInfo(
        node_id=hit.document.id, node_type=ObjectType.DOCUMENT, metadata=_drop_search_data(metadata)
    )
    return PassageNode(
        id_=passage.id,
        text=passage.text,
        extra_info=metadata,  # the metadata, by the alias that type checkers know
        excluded_llm_metadata_keys=[KEY],
        excluded_embed_metadata_keys=[KEY],
        start_char_idx=passage.start,
        end_char_idx=passage.end,
        relationships={NodeRelationship.SOURCE: document},
    )


def _drop_search_data(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the document's own metadata, without the additions of the search."""
    return {name: value for name, value in metadata.items() if name != KEY}


def _add_filters(where: Filter, filters: MetadataFilters) -> Filter:
    """Add LlamaIndex's filters to a filter. A filter that Waylore does not support raises an error."""
    if filters.condition not in {FilterCondition.AND, None}:
        raise ConfigError(f"filters: condition {filters.condition} is not supported; use AND")
    wanted = dict(where.metadata)
    for item in filters.filters:
        if isinstance(item, MetadataFilters):
            raise ConfigError("filters: nested filters are not supported; use a flat list")
        if item.key in wanted:
            raise ConfigError(f"filters: {item.key!r} occurs twice; use one filter with all its values")
        wanted[item.key] = _read_values(item)
    return replace(where, metadata=wanted)


def _read_values(item: MetadataFilter) -> Sequence[Scalar]:
    """Return the accepted values; a document must have one of them."""
    if isinstance(item.value, list) and item.operator in {FilterOperator.IN, FilterOperator.ANY}:
        return item.value
    if isinstance(item.value, str | int | float) and item.operator in {
        FilterOperator.EQ,
        FilterOperator.CONTAINS,
    }:
        return [item.value]
    raise ConfigError(f"filters: {item} is not supported; use == or contains with a value, in or any with a list")
