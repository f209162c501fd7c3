"""The LangChain retriever passes LangChain's own suite and works in chains and agents."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.tools import create_retriever_tool
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError

from integrations.knowledge import QUESTION, open_memory
from waylore import HYBRID, Filter, Waylore
from waylore.errors import ArgumentError, ConfigError
from waylore.integrations.langchain import WayloreRetriever


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Waylore]:
    with open_memory(tmp_path_factory.mktemp("langchain")) as memory:
        yield memory


class TestLangChainsOwnSuite(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _memory(self, memory: Waylore) -> None:
        self.memory = memory

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return WayloreRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


def list_ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def test_retriever_returns_hits_with_reasons(memory: Waylore) -> None:
    documents = WayloreRetriever(memory=memory).invoke(QUESTION)
    hits = memory.search(QUESTION).hits
    assert [(d.id, d.page_content) for d in documents] == [(h.passage.id, h.passage.text) for h in hits]
    paths = [d.metadata["waylore"]["path"] for d in documents]
    assert "login —needs→ session service → this passage" in [path["text"] for path in paths if path]


async def test_async_retriever_returns_same(memory: Waylore) -> None:
    retriever = WayloreRetriever(memory=memory, k=3)
    assert await retriever.ainvoke(QUESTION) == retriever.invoke(QUESTION)
    assert list_ids(await retriever.ainvoke(QUESTION, k=1)) == list_ids(retriever.invoke(QUESTION))[:1]
    assert await retriever.abatch([QUESTION, "handbook"]) == retriever.batch([QUESTION, "handbook"])


def test_k_limits_documents_to_best(memory: Waylore) -> None:
    every = list_ids(WayloreRetriever(memory=memory).invoke(QUESTION))
    for k in (1, 2, 3):
        assert list_ids(WayloreRetriever(memory=memory, k=k).invoke(QUESTION)) == every[:k]


def test_filter_is_field_or_call_option(memory: Waylore) -> None:
    web, anyone = Filter(metadata={"team": "web"}), Filter(labels=frozenset())
    [only] = WayloreRetriever(memory=memory, where=web).invoke(QUESTION)
    assert only.metadata["team"] == "web"
    seen = WayloreRetriever(memory=memory).invoke("vault safe", where=anyone)
    assert "docs/vault.md" not in [d.metadata["source"] for d in seen]


def test_retriever_chooses_by_default(memory: Waylore) -> None:
    searches = WayloreRetriever(memory=memory).invoke("`login`")[0].metadata["waylore"]["placements"]
    assert {placement["search"] for placement in searches} == {"keyword"}


def test_retriever_accepts_method_and_recipe(memory: Waylore) -> None:
    retriever = WayloreRetriever(memory=memory, method=HYBRID)
    assert list_ids(retriever.invoke(QUESTION)) == list_ids(retriever.invoke(QUESTION, method="hybrid"))
    searches = retriever.invoke(QUESTION, method="keyword")[0].metadata["waylore"]["placements"]
    assert [placement["search"] for placement in searches] == ["keyword"]
    early = datetime(1999, 1, 1, tzinfo=UTC)
    assert retriever.invoke(QUESTION, method="chain", as_of=early)


def test_mistakes_raise_with_remedy(memory: Waylore) -> None:
    retriever = WayloreRetriever(memory=memory)
    with pytest.raises(ConfigError, match=r"unknown option top_k; use k, method"):
        retriever.invoke(QUESTION, top_k=3)
    options: tuple[dict[str, Any], ...] = ({"top_k": 3}, {"search_kwargs": {"k": 2}})
    for option in options:
        with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
            WayloreRetriever(memory=memory, **option)
    with pytest.raises(ArgumentError, match="unknown method 'semantic'"):
        retriever.invoke(QUESTION, method="semantic")
    with pytest.raises(ArgumentError, match="empty"):
        retriever.invoke(" ")


class RecordingHandler(BaseCallbackHandler):
    def __init__(self) -> None:
        self.told: list[object] = []

    def on_retriever_start(self, serialized: Any, query: str, **more: Any) -> None:
        self.told += [query, more["metadata"]["ls_retriever_name"], tuple(more["tags"])]

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **more: Any) -> None:
        self.told.append(len(documents))

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        self.told.append(type(error))


class AsyncRecordingHandler(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.told: list[int] = []

    async def on_retriever_end(self, documents: Any, *, run_id: UUID, **more: Any) -> None:
        self.told.append(len(documents))


async def test_callbacks_are_called(memory: Waylore) -> None:
    heard, awaited = RecordingHandler(), AsyncRecordingHandler()
    retriever = WayloreRetriever(memory=memory, k=2, tags=["team"])
    retriever.with_config(callbacks=[heard]).invoke(QUESTION)
    with pytest.raises(ArgumentError):
        retriever.invoke("", {"callbacks": [heard]})
    await retriever.ainvoke(QUESTION, {"callbacks": [awaited]})
    assert heard.told == [QUESTION, "waylore", ("team",), 2, "", "waylore", ("team",), ArgumentError]
    assert awaited.told == [2]


def test_chain_can_configure_k(memory: Waylore) -> None:
    k = ConfigurableField(id="k")
    retriever = WayloreRetriever(memory=memory).configurable_fields(k=k)
    chain = retriever | RunnableLambda(len)
    assert chain.with_config(configurable={"k": 1}).invoke(QUESTION) == 1
    assert chain.with_config(configurable={"k": 2}).invoke(QUESTION) == 2


async def test_agent_can_use_retriever_as_tool(memory: Waylore) -> None:
    shown = PromptTemplate.from_template("{page_content} ({source})")
    tool = create_retriever_tool(
        WayloreRetriever(memory=memory, k=1), "memory_search", "What is known.", document_prompt=shown
    )
    text = "The login needs the session service. (docs/login.md)"
    assert tool.invoke({"query": "login session"}) == text
    assert await tool.ainvoke({"query": "login session"}) == text


def test_documents_convert_to_json(memory: Waylore) -> None:
    for document in WayloreRetriever(memory=memory).invoke(QUESTION):
        assert Document.model_validate(json.loads(document.model_dump_json())) == document


def test_missing_langchain_names_extra() -> None:
    program = "import sys; sys.modules['langchain_core'] = None\nimport waylore.integrations.langchain"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'waylore[langchain]'" in done.stderr.splitlines()[-1]
