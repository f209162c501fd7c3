"""A LangChain retriever over an open `Waylore`, for chains and for agents as a tool, sync and async.

It only searches: the caller adds, forgets and closes through its own `Waylore`.
"""

from datetime import datetime
from typing import Any

from pydantic import AliasChoices, ConfigDict, Field, InstanceOf

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError
from waylore.integrations.metadata import build_metadata
from waylore.recipes import AUTO, Recipe
from waylore.types.search import Filter, SearchResult

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    raise ImportError("langchain-core is not installed; run `pip install 'waylore[langchain]'`") from error

OPTIONS = ("k", "method", "where", "as_of", "reranker", "rerank", "min_similarity")


class WayloreRetriever(BaseRetriever):
    """Passages for a question, best first: at most `k`, with path and citation in their metadata.

    A call can override each field: `retriever.invoke("…", k=3, method="hybrid")`.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, populate_by_name=True)

    memory: InstanceOf[Waylore] = Field(description="The memory to search; the caller closes it", repr=False)
    k: int = Field(default=10, ge=1, description="Maximum number of documents")
    method: str | InstanceOf[Recipe] = Field(default=AUTO, description="Method by name, or a Recipe")
    where: dict[str, Any] | InstanceOf[Filter] | None = Field(
        default=None,
        validation_alias=AliasChoices("where", "filter"),
        description="Metadata that a document must have, or a Filter",
    )
    as_of: datetime | None = Field(default=None, description="Time at which facts must be valid; None means now")
    reranker: Any = Field(default=None, description="Reranker for the hits", repr=False)
    rerank: bool | None = Field(default=None, description="False reranks nothing; True needs a reranker")
    min_similarity: float | None = Field(default=None, description="Minimum cosine of a hit and the question")

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 (LangChain's signature)
        **options: Any,
    ) -> list[Document]:
        arguments = self._make_arguments(options)
        return _make_documents(self.memory.search(query, **arguments), arguments["top_k"])

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 (LangChain's signature)
        **options: Any,
    ) -> list[Document]:
        arguments = self._make_arguments(options)
        return _make_documents(await self.memory.asearch(query, **arguments), arguments["top_k"])

    def _make_arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the search: the retriever's fields, overridden by the call."""
        if unknown := options.keys() - {*OPTIONS, "filter"}:
            raise ConfigError(f"unknown option {', '.join(sorted(unknown))}; use {', '.join(OPTIONS)}")
        own = {name: getattr(self, name) for name in OPTIONS}
        arguments = own | ({"where": options.pop("filter")} if "filter" in options else {}) | options
        return {"top_k": arguments.pop("k"), **arguments}


def _make_documents(result: SearchResult, limit: int) -> list[Document]:
    """Return the best hits as documents: at most `limit`, as users of LangChain expect."""
    return [
        Document(page_content=hit.passage.text, id=hit.passage.id, metadata=build_metadata(hit))
        for hit in result.hits[:limit]
    ]
