"""Test the MCP server with the SDK's client in memory: tools, resources, labels and errors."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp_types import TextResourceContents
from tools.postgres.server import Server
from tools.waiting import HANG_SECONDS

from databases import make_name
from surfaces.agents import TOOLS, WORLD, call, call_wrongly, fill, get_text, parse, run_agent, unfence
from waylore import Filter, Waylore
from waylore.errors import WayloreError
from waylore.protocols import Embedder
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import CHAIN, HYBRID
from waylore.surfaces.mcp.server import create_server
from waylore.surfaces.tools import tools
from waylore.surfaces.tools.arguments import SearchDocuments
from waylore.surfaces.tools.research import ResearchResults
from waylore.surfaces.tools.tools import Agent, Tool

QUESTION = "Where does the owner of what the login needs work?"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with Waylore.open(tmp_path / "memory.waylore", embedder=HashingEmbedder(quiet=True)) as memory:
        yield fill(memory)


def client(memory: Waylore, *labels: str, may_write: bool = True, mode: str = "auto") -> Client:
    agent = Agent(memory, frozenset(labels) if labels else None, may_write)
    return Client(create_server(lambda _: agent), mode=mode)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_agent_can_search_read_add_and_forget(memory: Waylore, mode: str) -> None:
    async with client(memory, mode=mode) as agent:
        await run_agent(agent)


async def test_agent_can_use_postgres(postgres: Server) -> None:
    url, name = postgres.url, make_name("agent")
    with Waylore.open(url, collection=name, embedder=HashingEmbedder(quiet=True)) as memory:
        async with client(fill(memory)) as agent:
            await run_agent(agent)


async def test_tools_have_hints_and_schemas(memory: Waylore) -> None:
    async with client(memory) as agent:
        listed = (await agent.list_tools()).tools
    hints = {tool.name: tool.annotations for tool in listed if tool.annotations}
    assert [name for name, hint in hints.items() if hint.read_only_hint] == [
        name for name in TOOLS if name not in {"memory_remember", "memory_forget"}
    ]
    assert [name for name, hint in hints.items() if hint.destructive_hint] == ["memory_forget"]
    assert all(hint.idempotent_hint and not hint.open_world_hint for hint in hints.values())
    assert all(tool.description and tool.input_schema and tool.output_schema for tool in listed)
    assert list(listed[0].input_schema["properties"]) == [
        *("max_tokens", "query", "max_results", "use_graph", "min_graph_score", "min_similarity", "rerank"),
        *("method", "session", "since", "until", "as_of", "group_by", "explain"),
    ]


async def test_hits_equal_those_of_python(memory: Waylore) -> None:
    found = memory.search(QUESTION)
    async with client(memory) as agent:
        told = await call(agent, "memory_search", query=QUESTION, max_tokens=20_000)
    assert [(hit["passage_id"], hit["score"]) for hit in told["hits"]] == [
        (hit.passage.id, hit.score) for hit in found.hits
    ]
    assert [hit["path"] for hit in told["hits"]] == [str(hit.path or "") for hit in found.hits]
    for hit, of_python in zip(told["hits"], found.hits, strict=True):
        explained = [line.split(maxsplit=1) for line in str(of_python.explanation).splitlines()]
        assert [line.split(maxsplit=1) for line in hit["why"]] == explained[1 : 1 + len(of_python.placements)]


async def test_use_graph_false_is_hybrid_search(memory: Waylore) -> None:
    hybrid = memory.search(QUESTION, method=HYBRID, top_k=2)
    async with client(memory) as agent:
        told = await call(agent, "memory_search", query=QUESTION, max_results=2, use_graph=False)
    assert [hit["passage_id"] for hit in told["hits"]] == [hit.passage.id for hit in hybrid.hits]
    assert told["skip_reason"] == "the recipe does not use the graph"


@pytest.mark.parametrize("method", ["vector", "Keyword", "hybrid", "GRAPH", "auto", "agentic", "graph_only"])
async def test_every_method_of_python_is_accepted(memory: Waylore, method: str) -> None:
    found = memory.search(QUESTION, method=method)
    async with client(memory) as agent:
        told = await call(agent, "memory_search", query=QUESTION, method=method, max_tokens=20_000)
        assert "unknown method 'magic'" in await call_wrongly(agent, "memory_search", query="x", method="magic")
    assert [(hit["passage_id"], hit["score"]) for hit in told["hits"]] == [
        (hit.passage.id, hit.score) for hit in found.hits
    ]


async def test_search_chooses_by_default_and_names_the_reason(memory: Waylore) -> None:
    async with client(memory) as agent:
        for query, reason in (("Ada vs Byron", "hybrid: it compares"), (QUESTION, "chain: the default for documents")):
            assert (await call(agent, "memory_search", query=query))["route_reason"] == reason
        assert (await call(agent, "memory_search", query=QUESTION, method="chain"))["route_reason"] == ""


async def test_min_graph_score_drops_added_passages(memory: Waylore) -> None:
    both = memory.search(QUESTION, method=CHAIN, top_k=3)
    hybrid = {hit.passage.id for hit in memory.search(QUESTION, method=HYBRID, top_k=3).hits}
    found = {hit.passage.id for hit in both.hits}
    async with client(memory) as agent:
        for least, expected in ((0.0, found), (1.0, hybrid)):
            told = await call(agent, "memory_search", query=QUESTION, max_results=3, min_graph_score=least)
            assert {hit["passage_id"] for hit in told["hits"]} == expected
    assert found != hybrid


async def test_research_tools_have_their_own_shape(memory: Waylore) -> None:
    async with client(memory) as agent:
        result = await agent.call_tool("search", {"query": "login"})
        assert parse(get_text(result)) == result.structured_content
        found = (await call(agent, "search", query="login"))["results"]
        assert [sorted(one) for one in found] == [["id", "text", "title", "url"]] * len(found)
        assert len({one["id"] for one in found}) == len(found)
        page = await call(agent, "fetch", id=found[0]["id"])
    assert unfence(found[0]["text"]) == unfence(page["text"]) == WORLD[0][2]
    assert page == {
        "id": found[0]["id"],
        "title": "Login",
        "text": page["text"],
        "url": f"waylore://document/{found[0]['id']}",
        "metadata": {"kind": "note"},
    }


async def test_labels_limit_what_an_agent_sees(memory: Waylore) -> None:
    hidden = memory.add("Mara earns forty crowns an hour.", title="Pay", labels=["office"])
    [passage] = memory.get(hidden).passages
    async with client(memory, "crew") as agent:
        found = await call(agent, "memory_search", query="What does Mara earn?")
        assert hidden not in {hit["document_id"] for hit in found["hits"]}
        assert hidden not in {one["id"] for one in (await call(agent, "search", query="Mara earns"))["results"]}
        for id_ in (hidden, passage.id):
            assert "that you may see" in await call_wrongly(agent, "memory_get", id=id_)
            assert "that you may see" in await call_wrongly(agent, "fetch", id=id_)
            assert "that you may see" in await call_wrongly(agent, "memory_forget", documents=[id_])
        for uri in (f"waylore://document/{hidden}", f"waylore://passage/{passage.id}"):
            with pytest.raises(MCPError, match="that you may see"):
                await agent.read_resource(uri)
        listed = {resource.uri for resource in (await agent.list_resources()).resources}
        assert f"waylore://document/{hidden}" not in listed
        assert len(listed) == len(WORLD)
    assert memory.get(hidden).passages == (passage,)


async def test_forget_with_hidden_document_removes_nothing(memory: Waylore) -> None:
    hidden = memory.add("Mara earns forty crowns an hour.", labels=["office"])
    own = memory.add("The crew meets at nine.", labels=["crew"])
    async with client(memory, "crew") as agent:
        await call_wrongly(agent, "memory_forget", documents=[own, hidden])
        assert memory.get(own).document.id == own
        await call(agent, "memory_forget", documents=[own, own])
        await call_wrongly(agent, "memory_get", id=own)


async def test_added_memories_get_the_labels_of_the_agent(memory: Waylore) -> None:
    async with client(memory, "crew") as agent:
        fact = {"subject": "crew", "predicate": "meets_at", "object": "nine"}
        added = await call(agent, "memory_add", text="The crew meets at nine.", facts=[fact])
        assert added["facts"] == ["crew —meets_at→ nine"]
    told = memory.get(added["document_id"])
    assert told.document.labels == {"crew"}
    assert told.document.source == "conversation"
    assert not memory.facts("crew", where=Filter(labels=frozenset({"office"})))


async def test_read_only_agent_cannot_write(memory: Waylore) -> None:
    [document, *_] = memory.documents()
    async with client(memory, may_write=False) as agent:
        assert "read-only" in await call_wrongly(agent, "memory_add", text="The crew meets at nine.")
        assert "read-only" in await call_wrongly(agent, "memory_forget", documents=[document.id])
        await call(agent, "memory_search", query="login")
    assert memory.stats().documents == len(WORLD)


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("memory_search", {}, "query: Field required"),
        ("memory_search", {"query": ""}, "query: String should have at least 1 character"),
        ("memory_search", {"query": "  "}, "query must not be empty"),
        ("memory_search", {"query": "login", "max_results": 0}, "max_results"),
        ("memory_search", {"query": "login", "max_tokens": 3}, "max_tokens"),
        ("memory_search", {"query": "login", "limit": 3}, "memory_search: unknown argument limit; use max_results"),
        ("memory_search", {"query": ["login"]}, "query: Input should be a valid string"),
        ("memory_get", {"id": "nobody"}, "no document or passage nobody"),
        ("memory_add", {"text": "x", "facts": [{"subject": "x"}]}, "facts.0.predicate: Field required"),
        ("memory_add", {"text": "x", "source": "rumour"}, "source"),
        ("memory_forget", {"documents": []}, "documents"),
        ("memory_forget", {"documents": ["nobody"]}, "no document or passage nobody"),
    ],
)
async def test_wrong_arguments_are_reported(memory: Waylore, tool: str, arguments: dict[str, Any], says: str) -> None:
    async with client(memory) as agent:
        assert says in await call_wrongly(agent, tool, **arguments)
        await call(agent, "memory_search", query="login")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from("query id text documents facts max_tokens offset max_results source title".split())


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tool=st.sampled_from(tools.TOOLS), arguments=st.dictionaries(NAMES, ANYTHING, max_size=4))
def test_no_argument_breaks_a_tool(memory: Waylore, tool: Tool[Any, Any], arguments: Any) -> None:
    try:
        answer = tools.run_tool(tool, Agent(memory), arguments)
    except (ValueError, WayloreError):
        return
    assert answer.to_text()


async def test_unknown_tool_is_an_error(memory: Waylore) -> None:
    async with client(memory) as agent:
        with pytest.raises(MCPError, match="unknown tool memory_burn; use memory_search, memory_get"):
            await agent.call_tool("memory_burn", {})


async def test_unexpected_error_is_only_logged(memory: Waylore, caplog: pytest.LogCaptureFixture) -> None:
    def broken(agent: Agent, arguments: SearchDocuments) -> Any:
        raise RuntimeError("the password is hunter2")

    tool: Tool[Any, Any] = Tool(broken, SearchDocuments, ResearchResults, "Broken")
    async with Client(create_server(lambda _: Agent(memory), [tool])) as agent:
        assert await call_wrongly(agent, "broken", query="x") == "broken failed; the log of the server has the error"
    assert "hunter2" in caplog.text


async def test_resources_return_stored_texts(memory: Waylore) -> None:
    memory.add("TCP/IP carries the login.", facts=[("TCP/IP", "carries", "login")])
    async with client(memory) as agent:
        templates = (await agent.list_resource_templates()).resource_templates
        assert [t.uri_template for t in templates] == [
            *("waylore://entity/{name}", "waylore://document/{id}", "waylore://passage/{id}"),
        ]
        assert "TCP/IP —carries→ login" in await _text(agent, "waylore://entity/TCP%2FIP")
        found = await call(agent, "memory_search", query="fish soup", max_results=1)
        for kind in ("passage", "document"):
            assert WORLD[3][2] in await _text(agent, f"waylore://{kind}/{found['hits'][0][f'{kind}_id']}")
        for uri in (
            "waylore://entity/nobody",
            "waylore://document/none",
            "waylore://what/ever",
            "https://example.org",
        ):
            with pytest.raises(MCPError, match=r"no entity|no document|no resource"):
                await agent.read_resource(uri)


async def _text(agent: Client, uri: str) -> str:
    [content] = (await agent.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def test_documents_are_listed_in_pages(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "many.waylore", extractor=None) as many:
        ids = {many.add(f"Note {n}.", uri=f"notes/{n % 7}/{n}.md" if n % 2 else "") for n in range(230)}
        async with client(many) as agent:
            listed: list[str] = []
            page = await agent.list_resources()
            listed += [resource.uri for resource in page.resources]
            while page.next_cursor:
                page = await agent.list_resources(cursor=page.next_cursor)
                listed += [resource.uri for resource in page.resources]
            assert sorted(listed) == sorted(f"waylore://document/{id_}" for id_ in ids)
            with pytest.raises(MCPError, match="no such page"):
                await agent.list_resources(cursor="bm9uc2Vuc2U")


class Slow:
    """An embedder that waits for an event."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name = embedder.name
        self.dimension = embedder.dimension
        self.is_called, self.may_continue = threading.Event(), threading.Event()

    def embed_passages(self, texts: Any) -> Any:
        return self._embedder.embed_passages(texts)

    def embed_query(self, text: str) -> Any:
        self.is_called.set()
        assert self.may_continue.wait(HANG_SECONDS)
        return self._embedder.embed_query(text)


async def test_slow_question_does_not_block_others(tmp_path: Path) -> None:
    slow = Slow(HashingEmbedder(quiet=True))
    with Waylore.open(tmp_path / "slow.waylore", embedder=slow) as memory:
        fill(memory)
        async with client(memory) as agent, anyio.create_task_group() as others:
            others.start_soon(agent.call_tool, "memory_search", {"query": "login"})
            await anyio.to_thread.run_sync(slow.is_called.wait, HANG_SECONDS)
            assert len((await agent.list_tools()).tools) == len(TOOLS)
            assert (await call(agent, "memory_get", id=memory.documents()[0].id))["text"]
            slow.may_continue.set()
