"""A LlamaIndex retriever over an open `Waylore`: in query engines, chat engines and agents, awaited or not.

It searches and nothing else: adding, forgetting and closing stay with the `Waylore` that it was given, and so does
embedding: a vector that comes with a `QueryBundle` may be another model's and is not used.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError
from waylore.integrations.metadata import KEY, metadata
from waylore.protocols import Reranker
from waylore.recipes import CHAIN, Recipe
from waylore.types.knowledge import Scalar
from waylore.types.search import EVERYTHING, Filter, Found, Hit

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
    """A passage as a node: the same however it was found, so that whoever fuses rankings knows it again."""

    @property
    def hash(self) -> str:
        """Of what is stored; LlamaIndex's own would take the explanation in."""
        return TextNode(text=self.text, metadata=_own(self.metadata)).hash


class WayloreRetriever(BaseRetriever):
    """Passages that bear on a question, best first, with path and citation in their metadata.

    `filters` are LlamaIndex's own: equality and membership, all of them to be met. `where` says the same in
    Waylore's words, and who is asking (`Filter(labels=…)`). The two add up.
    """

    def __init__(
        self,
        memory: Waylore,
        *,
        similarity_top_k: int = 10,
        method: str = CHAIN.name,
        recipe: Recipe | None = None,
        where: Filter = EVERYTHING,
        filters: MetadataFilters | None = None,
        as_of: datetime | None = None,
        reranker: Reranker | None = None,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> None:
        self._memory = memory
        self._most = similarity_top_k
        self._asked: dict[str, Any] = {
            "top_k": similarity_top_k,
            "method": method,
            "recipe": recipe,
            "where": _narrowed(where, filters) if filters else where,
            "as_of": as_of,
            "reranker": reranker,
        }
        super().__init__(callback_manager=callback_manager, verbose=verbose)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._memory.search(query_bundle.query_str, **self._asked), self._most)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._memory.asearch(query_bundle.query_str, **self._asked), self._most)


def _nodes(found: Found, most: int) -> list[NodeWithScore]:
    """The best of what was found: a caller of LlamaIndex's expects no more than he asked for."""
    return [NodeWithScore(node=_node(hit), score=hit.score) for hit in found.hits[:most]]


def _node(hit: Hit) -> PassageNode:
    """A passage; what explains it is for programs, and is kept out of prompts and vectors."""
    passage, told = hit.passage, metadata(hit)
    document = RelatedNodeInfo(node_id=hit.document.id, node_type=ObjectType.DOCUMENT, metadata=_own(told))
    return PassageNode(
        id_=passage.id,
        text=passage.text,
        extra_info=told,  # the metadata, under the alias that type checkers know
        excluded_llm_metadata_keys=[KEY],
        excluded_embed_metadata_keys=[KEY],
        start_char_idx=passage.start,
        end_char_idx=passage.end,
        relationships={NodeRelationship.SOURCE: document},
    )


def _own(told: dict[str, Any]) -> dict[str, Any]:
    """What is the document's own, without what a search says of it."""
    return {name: value for name, value in told.items() if name != KEY}


def _narrowed(where: Filter, filters: MetadataFilters) -> Filter:
    """The filter with LlamaIndex's added to it; what Waylore cannot ask for is refused, never left out."""
    if filters.condition not in {FilterCondition.AND, None}:
        raise ConfigError(f"filters joined by {filters.condition}: Waylore takes those that must all be met")
    wanted = dict(where.metadata)
    for one in filters.filters:
        if isinstance(one, MetadataFilters):
            raise ConfigError("filters within filters: Waylore takes a list of those that must all be met")
        if one.key in wanted:
            raise ConfigError(f"two filters for {one.key!r}: say it once, with all its values")
        wanted[one.key] = _values(one)
    return replace(where, metadata=wanted)


def _values(one: MetadataFilter) -> Sequence[Scalar]:
    """The values of which a document must have one."""
    if isinstance(one.value, list) and one.operator in {FilterOperator.IN, FilterOperator.ANY}:
        return one.value
    if isinstance(one.value, str | int | float) and one.operator in {
        FilterOperator.EQ,
        FilterOperator.CONTAINS,
    }:
        return [one.value]
    raise ConfigError(f"cannot filter by {one}: use == or contains with a value, in or any with a list")
