"""A scripted agent and its memory: the same calls over every transport."""

import json
import re
from typing import Any

import jsonschema_rs
from mcp import Client
from mcp_types import CallToolResult, TextContent

from waylore import Waylore
from waylore.surfaces.tools import tools

WORLD = [
    ("Login", "docs/login.md", "The login needs the session service.", ("login", "needs", "session service")),
    ("Rota", "docs/rota.md", "Mara owns the session service.", ("Mara", "owns", "session service")),
    ("Offices", "docs/offices.md", "Mara works in Bergen, by the harbour.", ("Mara", "works_in", "Bergen")),
    ("Menu", "docs/menu.md", "The canteen serves fish soup on Fridays.", ("canteen", "serves", "fish soup")),
]
READING = ["memory_search", "memory_get", "memory_profile", "memory_changes", "memory_graph"]
TOOLS = [*READING, "memory_remember", "memory_forget"]
UNLISTED = {tool.name: tool.output_schema for tool in tools.TOOLS if not tool.is_listed}


def fill(memory: Waylore) -> Waylore:
    """Add the notes of a small company to a memory."""
    for title, uri, text, fact in WORLD:
        memory.add(text, title=title, uri=uri, facts=[fact], metadata={"kind": "note"})
    return memory


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool. Check that the answer is no error and fits its schema, and return it."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, get_text(result)
    listed = {listed.name: listed.output_schema for listed in (await client.list_tools()).tools}
    schemas = {**listed, **UNLISTED}
    jsonschema_rs.validate(schemas[tool] or {}, result.structured_content)
    assert get_text(result)
    return result.structured_content


async def call_wrongly(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that must fail, and return its error."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    return get_text(result)


def get_text(result: CallToolResult) -> str:
    """Return the text of an answer."""
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def run_agent(client: Client, memory: str = "Bo takes over the session service in May.") -> None:
    """List the tools, search, read, add a memory, find it, forget it by its mark, and check that it is gone."""
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
    found = await call(client, "memory_search", query="Where does the owner of what the login needs work?")
    reached = {hit["title"]: hit for hit in found["hits"]}
    assert "—" in reached["Rota"]["path"]
    read = await call(client, "memory_get", id=reached["Rota"]["mark"])
    assert (read["passage_id"], read["document_id"]) == (reached["Rota"]["passage_id"], reached["Rota"]["document_id"])
    assert unfence(read["text"]) == "Mara owns the session service."
    added = await call(client, "memory_add", text=memory, title="Handover")
    found = await call(client, "memory_search", query=memory)
    assert found["hits"][0]["document_id"] == added["document_id"]
    gone = await call(client, "memory_forget", documents=[found["hits"][0]["mark"]])
    assert gone["receipt"]["documents"] == [added["document_id"]]
    found = await call(client, "memory_search", query=memory)
    assert added["document_id"] not in {hit["document_id"] for hit in found["hits"]}
    assert "no document or passage" in await call_wrongly(client, "memory_get", id=added["document_id"])


def unfence(text: str) -> str:
    """Return a recalled text without the marks of its fence, which must be there."""
    fenced = re.fullmatch(r"<<recalled ([a-z]+)\n(.*)\n\1>>", text, re.DOTALL)
    assert fenced, text
    return fenced[2]


def parse(text: str) -> Any:
    """Parse a text as JSON."""
    return json.loads(text)
