"""A LangChain retriever over an open `Waylore`: in chains, in agents as a tool, awaited or not.

It searches and nothing else: adding, forgetting and closing stay with the `Waylore` that it was given.
"""

from datetime import datetime
from typing import Any

from pydantic import Field, InstanceOf

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError
from waylore.integrations.metadata import metadata
from waylore.recipes import CHAIN, Recipe
from waylore.types.search import EVERYTHING, Filter, Found

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    raise ImportError("langchain-core is not installed; run `pip install 'waylore[langchain]'`") from error

OPTIONS = ("k", "method", "recipe", "where", "as_of", "reranker")


class WayloreRetriever(BaseRetriever):
    """Passages that bear on a question, best first: at most `k`, with path and citation in their metadata.

    Whatever is set here may be set anew by a call: `retriever.invoke("…", k=3, method="hybrid")`.
    """

    memory: InstanceOf[Waylore] = Field(description="what is searched; whoever opened it closes it", repr=False)
    k: int = Field(default=10, ge=1, description="the most documents that are returned")
    method: str = Field(default=CHAIN.name, description="a recipe by name, or auto")
    recipe: InstanceOf[Recipe] | None = Field(default=None, description="a recipe of your own", repr=False)
    where: InstanceOf[Filter] = Field(default=EVERYTHING, description="what may be found")
    as_of: datetime | None = Field(default=None, description="the day whose facts count; now, if none")
    reranker: Any = Field(default=None, description="orders what was found anew", repr=False)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 (LangChain's signature)
        **options: Any,
    ) -> list[Document]:
        asked = self._asked(options)
        return _documents(self.memory.search(query, **asked), asked["top_k"])

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 (LangChain's signature)
        **options: Any,
    ) -> list[Document]:
        asked = self._asked(options)
        return _documents(await self.memory.asearch(query, **asked), asked["top_k"])

    def _asked(self, options: dict[str, Any]) -> dict[str, Any]:
        """What to search with: the retriever's own, unless the call says otherwise."""
        if unknown := options.keys() - set(OPTIONS):
            raise ConfigError(f"there is no option {', '.join(sorted(unknown))}: use {', '.join(OPTIONS)}")
        own = {name: getattr(self, name) for name in OPTIONS}
        asked = own | ({"recipe": None} if "method" in options else {}) | options
        return {"top_k": asked.pop("k"), **asked}


def _documents(found: Found, most: int) -> list[Document]:
    """The best of what was found: a caller of LangChain's expects no more than `k`, and the graph adds some."""
    return [
        Document(page_content=hit.passage.text, id=hit.passage.id, metadata=metadata(hit))
        for hit in found.hits[:most]
    ]
