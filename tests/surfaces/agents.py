"""A scripted agent, and what it is asked about: the same loop over every transport."""

import json
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from mcp import Client
from mcp_types import CallToolResult, TextContent

from waylore import Waylore

WORLD = [
    ("Login", "docs/login.md", "The login needs the session service.", ("login", "needs", "session service")),
    ("Rota", "docs/rota.md", "Mara owns the session service.", ("Mara", "owns", "session service")),
    ("Offices", "docs/offices.md", "Mara works in Bergen, by the harbour.", ("Mara", "works_in", "Bergen")),
    ("Menu", "docs/menu.md", "The canteen serves fish soup on Fridays.", ("canteen", "serves", "fish soup")),
]
TOOLS = ["memory_search", "memory_get", "memory_add", "memory_forget", "search", "fetch"]


def filled(memory: Waylore) -> Waylore:
    """A memory of a small company."""
    for title, uri, text, fact in WORLD:
        memory.add(text, title=title, uri=uri, facts=[fact], metadata={"kind": "note"})
    return memory


async def asked(client: Client, tool: str, **arguments: Any) -> Any:
    """What a tool answers: without an error, as its schema says, and the same in both of its forms."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, words(result)
    schemas = {listed.name: listed.output_schema for listed in (await client.list_tools()).tools}
    Draft202012Validator(schemas[tool] or {}).validate(result.structured_content)
    assert words(result)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The words of a tool that could not answer."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    return words(result)


def words(result: CallToolResult) -> str:
    """The text of an answer."""
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def loop(client: Client, told: str = "Bo takes over the session service in May.") -> None:
    """List the tools, search, read, add a memory, find it, forget it, not find it."""
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
    found = await asked(client, "memory_search", query="Where does the owner of what the login needs work?")
    reached = {hit["title"]: hit for hit in found["hits"]}
    assert "—" in reached["Rota"]["path"]
    read = await asked(client, "memory_get", id=reached["Rota"]["passage_id"])
    assert read["text"] == "Mara owns the session service."
    added = await asked(client, "memory_add", text=told, title="Handover")
    found = await asked(client, "memory_search", query=told)
    assert found["hits"][0]["document_id"] == added["document_id"]
    gone = await asked(client, "memory_forget", documents=[added["document_id"]])
    assert gone["receipt"]["documents"] == [added["document_id"]]
    found = await asked(client, "memory_search", query=told)
    assert added["document_id"] not in {hit["document_id"] for hit in found["hits"]}
    assert "no document or passage" in await refused(client, "memory_get", id=added["document_id"])


def as_json(text: str) -> Any:
    """What a text says as JSON."""
    return json.loads(text)
