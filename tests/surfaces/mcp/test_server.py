"""The MCP server with the SDK's own client, in memory: what an agent is told, and what it is not."""

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
from tools.postgres import Server

from databases import fresh_name
from surfaces.agents import TOOLS, WORLD, as_json, asked, filled, loop, refused, words
from waylore import Filter, Waylore
from waylore.errors import WayloreError
from waylore.protocols import Embedder
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import CHAIN, HYBRID
from waylore.surfaces.mcp.server import server
from waylore.surfaces.tools import tools
from waylore.surfaces.tools.arguments import Question
from waylore.surfaces.tools.research import Results
from waylore.surfaces.tools.tools import Agent, Tool

QUESTION = "Where does the owner of what the login needs work?"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with Waylore.open(tmp_path / "memory.waylore", embedder=HashingEmbedder(quiet=True)) as memory:
        yield filled(memory)


def client(memory: Waylore, *labels: str, may_write: bool = True, mode: str = "auto") -> Client:
    agent = Agent(memory, frozenset(labels) if labels else None, may_write)
    return Client(server(lambda _: agent), mode=mode)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agents_loop(memory: Waylore, mode: str) -> None:
    async with client(memory, mode=mode) as agent:
        await loop(agent)


async def test_an_agents_loop_on_a_server(postgres: Server) -> None:
    url, name = postgres.url, fresh_name("agent")
    with Waylore.open(url, collection=name, embedder=HashingEmbedder(quiet=True)) as memory:
        async with client(filled(memory)) as agent:
            await loop(agent)


async def test_the_list_says_what_each_tool_may_do(memory: Waylore) -> None:
    async with client(memory) as agent:
        listed = (await agent.list_tools()).tools
    hints = {tool.name: tool.annotations for tool in listed if tool.annotations}
    assert [name for name, hint in hints.items() if hint.read_only_hint] == [
        name for name in TOOLS if name not in {"memory_add", "memory_forget"}
    ]
    assert [name for name, hint in hints.items() if hint.destructive_hint] == ["memory_forget"]
    assert all(hint.idempotent_hint and not hint.open_world_hint for hint in hints.values())
    assert all(tool.description and tool.input_schema and tool.output_schema for tool in listed)
    assert list(listed[0].input_schema["properties"]) == [
        *("max_tokens", "query", "max_results", "use_graph", "min_graph_score"),
    ]


async def test_hits_are_those_of_python(memory: Waylore) -> None:
    found = memory.search(QUESTION)
    async with client(memory) as agent:
        told = await asked(agent, "memory_search", query=QUESTION, max_tokens=20_000)
    assert [(hit["passage_id"], hit["score"]) for hit in told["hits"]] == [
        (hit.passage.id, hit.score) for hit in found.hits
    ]
    assert [hit["path"] for hit in told["hits"]] == [str(hit.path or "") for hit in found.hits]
    for hit, of_python in zip(told["hits"], found.hits, strict=True):
        explained = [line.split(maxsplit=1) for line in str(of_python.explanation).splitlines()]
        assert [line.split(maxsplit=1) for line in hit["why"]] == explained[1 : 1 + len(of_python.placements)]


async def test_without_the_graph_it_is_hybrid_search(memory: Waylore) -> None:
    hybrid = memory.search(QUESTION, recipe=HYBRID, top_k=2)
    async with client(memory) as agent:
        told = await asked(agent, "memory_search", query=QUESTION, max_results=2, use_graph=False)
    assert [hit["passage_id"] for hit in told["hits"]] == [hit.passage.id for hit in hybrid.hits]
    assert told["skipped"] == "the recipe does not use the graph"


async def test_what_the_graph_adds_must_score_enough(memory: Waylore) -> None:
    both = memory.search(QUESTION, recipe=CHAIN, top_k=2)
    hybrid = {hit.passage.id for hit in memory.search(QUESTION, recipe=HYBRID, top_k=2).hits}
    added = [hit.score for hit in both.hits if hit.passage.id not in hybrid]
    between = (max(added) + min(added)) / 2
    assert min(added) < between < max(added)
    async with client(memory) as agent:
        for least in (0.0, between, 1.0):
            told = await asked(agent, "memory_search", query=QUESTION, max_results=2, min_graph_score=least)
            kept = {hit["passage_id"] for hit in told["hits"]}
            assert kept == {h.passage.id for h in both.hits if h.score >= least} | hybrid


async def test_research_clients_get_their_shape(memory: Waylore) -> None:
    async with client(memory) as agent:
        result = await agent.call_tool("search", {"query": "login"})
        assert as_json(words(result)) == result.structured_content
        found = (await asked(agent, "search", query="login"))["results"]
        assert [sorted(one) for one in found] == [["id", "text", "title", "url"]] * len(found)
        assert len({one["id"] for one in found}) == len(found)
        page = await asked(agent, "fetch", id=found[0]["id"])
    assert page == {
        "id": found[0]["id"],
        "title": "Login",
        "text": WORLD[0][2],
        "url": f"waylore://document/{found[0]['id']}",
        "metadata": {"kind": "note"},
    }


async def test_an_agent_sees_and_forgets_only_what_its_labels_let_it(memory: Waylore) -> None:
    hidden = memory.add("Mara earns forty crowns an hour.", title="Pay", labels=["office"])
    [passage] = memory.get(hidden).passages
    async with client(memory, "crew") as agent:
        found = await asked(agent, "memory_search", query="What does Mara earn?")
        assert hidden not in {hit["document_id"] for hit in found["hits"]}
        assert hidden not in {
            one["id"] for one in (await asked(agent, "search", query="Mara earns"))["results"]
        }
        for id_ in (hidden, passage.id):
            assert "that you may see" in await refused(agent, "memory_get", id=id_)
            assert "that you may see" in await refused(agent, "fetch", id=id_)
            assert "that you may see" in await refused(agent, "memory_forget", documents=[id_])
        for uri in (f"waylore://document/{hidden}", f"waylore://passage/{passage.id}"):
            with pytest.raises(MCPError, match="that you may see"):
                await agent.read_resource(uri)
        listed = {resource.uri for resource in (await agent.list_resources()).resources}
        assert f"waylore://document/{hidden}" not in listed
        assert len(listed) == len(WORLD)
    assert memory.get(hidden).passages == (passage,)


async def test_a_document_that_may_not_be_seen_keeps_all_from_being_forgotten(memory: Waylore) -> None:
    hidden = memory.add("Mara earns forty crowns an hour.", labels=["office"])
    own = memory.add("The crew meets at nine.", labels=["crew"])
    async with client(memory, "crew") as agent:
        await refused(agent, "memory_forget", documents=[own, hidden])
        assert memory.get(own).document.id == own
        await asked(agent, "memory_forget", documents=[own, own])
        await refused(agent, "memory_get", id=own)


async def test_what_an_agent_adds_has_its_labels(memory: Waylore) -> None:
    async with client(memory, "crew") as agent:
        fact = {"subject": "crew", "predicate": "meets_at", "object": "nine"}
        added = await asked(agent, "memory_add", text="The crew meets at nine.", facts=[fact])
        assert added["facts"] == ["crew —meets_at→ nine"]
    told = memory.get(added["document_id"])
    assert told.document.labels == {"crew"}
    assert told.document.source == "conversation"
    assert not memory.facts("crew", where=Filter(labels=frozenset({"office"})))


async def test_who_may_only_read_is_told_so(memory: Waylore) -> None:
    [document, *_] = memory.documents()
    async with client(memory, may_write=False) as agent:
        assert "read-only" in await refused(agent, "memory_add", text="The crew meets at nine.")
        assert "read-only" in await refused(agent, "memory_forget", documents=[document.id])
        await asked(agent, "memory_search", query="login")
    assert memory.stats().documents == len(WORLD)


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("memory_search", {}, "query: Field required"),
        ("memory_search", {"query": ""}, "query: String should have at least 1 character"),
        ("memory_search", {"query": "  "}, "the question is empty"),
        ("memory_search", {"query": "login", "max_results": 0}, "max_results"),
        ("memory_search", {"query": "login", "max_tokens": 3}, "max_tokens"),
        ("memory_search", {"query": "login", "depth": 3}, "depth: Extra inputs"),
        ("memory_search", {"query": ["login"]}, "query: Input should be a valid string"),
        ("memory_get", {"id": "nobody"}, "no document or passage nobody"),
        ("memory_add", {"text": "x", "facts": [{"subject": "x"}]}, "facts.0.predicate: Field required"),
        ("memory_add", {"text": "x", "source": "rumour"}, "source"),
        ("memory_forget", {"documents": []}, "documents"),
        ("memory_forget", {"documents": ["nobody"]}, "no document nobody"),
    ],
)
async def test_what_is_asked_wrongly_is_told_and_does_no_harm(
    memory: Waylore, tool: str, arguments: dict[str, Any], says: str
) -> None:
    async with client(memory) as agent:
        assert says in await refused(agent, tool, **arguments)
        await asked(agent, "memory_search", query="login")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from("query id text documents facts max_tokens offset max_results source title".split())


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tool=st.sampled_from(tools.TOOLS), arguments=st.dictionaries(NAMES, ANYTHING, max_size=4))
def test_nothing_that_is_asked_breaks_a_tool(memory: Waylore, tool: Tool[Any, Any], arguments: Any) -> None:
    try:
        answer = tools.answered(tool, Agent(memory), arguments)
    except (ValueError, WayloreError):
        return
    assert answer.readable()


async def test_a_tool_that_is_not_there(memory: Waylore) -> None:
    async with client(memory) as agent:
        with pytest.raises(MCPError, match="there is no tool memory_burn: use memory_search, memory_get"):
            await agent.call_tool("memory_burn", {})


async def test_what_nobody_foresaw_stays_in_the_log(memory: Waylore, caplog: pytest.LogCaptureFixture) -> None:
    def broken(agent: Agent, asked: Question) -> Any:
        raise RuntimeError("the password is hunter2")

    tool: Tool[Any, Any] = Tool(broken, Question, Results, "Broken")
    async with Client(server(lambda _: Agent(memory), [tool])) as agent:
        assert (
            await refused(agent, "broken", query="x") == "broken failed for a reason that the server has logged"
        )
    assert "hunter2" in caplog.text


async def test_resources_are_what_is_stored(memory: Waylore) -> None:
    memory.add("TCP/IP carries the login.", facts=[("TCP/IP", "carries", "login")])
    async with client(memory) as agent:
        templates = (await agent.list_resource_templates()).resource_templates
        assert [t.uri_template for t in templates] == [
            *("waylore://entity/{name}", "waylore://document/{id}", "waylore://passage/{id}"),
        ]
        assert "TCP/IP —carries→ login" in await _text(agent, "waylore://entity/TCP%2FIP")
        found = await asked(agent, "memory_search", query="fish soup", max_results=1)
        for kind in ("passage", "document"):
            assert WORLD[3][2] in await _text(agent, f"waylore://{kind}/{found['hits'][0][f'{kind}_id']}")
        for uri in (
            "waylore://entity/nobody",
            "waylore://document/none",
            "waylore://what/ever",
            "https://example.org",
        ):
            with pytest.raises(MCPError, match=r"nothing|no document"):
                await agent.read_resource(uri)


async def _text(agent: Client, uri: str) -> str:
    [content] = (await agent.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def test_documents_are_listed_page_by_page(tmp_path: Path) -> None:
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
            with pytest.raises(MCPError, match="there is no such page"):
                await agent.list_resources(cursor="bm9uc2Vuc2U")


class Slow:
    """An embedder that waits until it is told to go on."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name = embedder.name
        self.dimension = embedder.dimension
        self.asked, self.go_on = threading.Event(), threading.Event()

    def embed_passages(self, texts: Any) -> Any:
        return self._embedder.embed_passages(texts)

    def embed_query(self, text: str) -> Any:
        self.asked.set()
        assert self.go_on.wait(20)
        return self._embedder.embed_query(text)


async def test_a_slow_question_keeps_nobody_waiting(tmp_path: Path) -> None:
    slow = Slow(HashingEmbedder(quiet=True))
    with Waylore.open(tmp_path / "slow.waylore", embedder=slow) as memory:
        filled(memory)
        async with client(memory) as agent, anyio.create_task_group() as others:
            others.start_soon(agent.call_tool, "memory_search", {"query": "login"})
            await anyio.to_thread.run_sync(slow.asked.wait, 20)
            assert len((await agent.list_tools()).tools) == len(TOOLS)
            assert (await asked(agent, "memory_get", id=memory.documents()[0].id))["text"]
            slow.go_on.set()
