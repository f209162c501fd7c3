"""Serve the tools of an agent and the stored documents (as resources) over MCP: stdio or streamable HTTP.

`create_server` calls `agent_of` for each request to get the agent: always the same one over stdio. The engine runs
in threads, so a slow question does not block others. A service whose callers share threads uses
`create_shared_server`. An expected error is an answer that a model can read and act on. An unexpected error is
logged, and its message is not sent.

To serve MCP in another application: `create_application(create_server(agent_of), hosts=[…])` returns a Starlette
application. Add its `routes` to yours, and enter `app.router.lifespan_context(app)` in your own lifespan.
"""

import json
import logging
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from typing import Any, Protocol, TypeVar

import mcp_types as protocol
from anyio import to_thread
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from waylore import __version__
from waylore.errors import NotFound, WayloreError
from waylore.fence import to_line, to_title
from waylore.surfaces.error_kinds import find_kind
from waylore.surfaces.mcp import resources
from waylore.surfaces.tools.tools import RECALLED_RULE, TOOLS, Agent, Tool, run_tool
from waylore.types.knowledge import Document

log = logging.getLogger(__name__)
Context = ServerRequestContext[Any, Request]
AgentOf = Callable[[Request | None], Agent]
T = TypeVar("T")
INSTRUCTIONS = f"""A long-term memory: passages, and a graph of facts about people, projects and things.
Search it with memory_search before you answer a question about anything that may have been said, decided or written
down earlier, and name the document to the user. memory_graph answers which, how many, and how two things are
connected, completely. memory_profile has what holds of the user now, memory_changes what changed. Use memory_remember
for what the user says and for what will be useful later. Resources: waylore://entity/NAME has the facts of a name,
waylore://document/ID and waylore://passage/ID have stored texts.
{RECALLED_RULE}"""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
PAGE_DOCUMENTS = 100  # documents in a page of resources


class RunCall(Protocol):
    """Runs a call in a thread, for the agent of one request."""

    async def __call__(self, call: Callable[[Agent], T], /, *, is_writing: bool) -> T:
        """Run the call."""
        ...


class RunAsAgent(Protocol):
    """Runs a call in a thread, for the agent of a request (None over stdio)."""

    async def __call__(self, request: Request | None, call: Callable[[Agent], T], *, is_writing: bool) -> T:
        """Run the call."""
        ...


def create_server(agent_of: AgentOf, tools: Sequence[Tool[Any, Any]] = TOOLS) -> Server[Any]:
    """Return a server with these tools. `agent_of` returns the agent of a request (None over stdio)."""

    async def run(request: Request | None, call: Callable[[Agent], T], *, is_writing: bool) -> T:  # noqa: ARG001
        return await to_thread.run_sync(lambda: call(agent_of(request)))

    return create_shared_server(run, tools)


def create_shared_server(run: RunAsAgent, tools: Sequence[Tool[Any, Any]] = TOOLS) -> Server[Any]:
    """Return a server with these tools. `run` runs every call that needs an agent."""
    by_name = {tool.name: tool for tool in tools}
    listed = protocol.ListToolsResult(tools=[_describe(tool) for tool in tools if tool.is_listed])

    async def list_tools(_: Context, __: Any) -> protocol.ListToolsResult:
        return listed

    async def call_tool(context: Context, call: protocol.CallToolRequestParams) -> protocol.CallToolResult:
        if call.name not in by_name:
            raise MCPError(
                protocol.INVALID_PARAMS,
                f"unknown tool {call.name}; use {', '.join(tool.name for tool in listed.tools)}",
            )
        return await _call(partial(run, context.request), by_name[call.name], call.arguments or {})

    async def list_resources(context: Context, page: Any) -> protocol.ListResourcesResult:
        cursor = page.cursor if page else None
        return await _read(partial(run, context.request), lambda agent: _list_documents(agent, cursor))

    async def list_templates(_: Context, __: Any) -> protocol.ListResourceTemplatesResult:
        return protocol.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(
        context: Context, wanted: protocol.ReadResourceRequestParams
    ) -> protocol.ReadResourceResult:
        text = await _read(partial(run, context.request), lambda agent: resources.read(agent, wanted.uri))
        contents = protocol.TextResourceContents(uri=wanted.uri, text=text, mime_type="text/markdown")
        return protocol.ReadResourceResult(contents=[contents])

    return Server(
        "waylore",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def create_application(
    server: Server[Any],
    *,
    hosts: Sequence[str] | None = LOOPBACK,
    origins: Sequence[str] = (),
    path: str = "/mcp",
) -> Starlette:
    """Return the server as an ASGI application.

    hosts: names that requests may use for this machine; None if they were checked before, as `waylore serve` does.
    origins: origins of web pages that may call, besides pages of the hosts.
    path: the path of the endpoint.

    The application has no sessions: every request is complete, so any of several processes may answer it.
    """
    named = [*(hosts or ()), *(f"{host}:*" for host in hosts or ())]
    pages = [*origins, *(f"{scheme}://{host}" for scheme in ("http", "https") for host in named)]
    checks = TransportSecuritySettings(
        enable_dns_rebinding_protection=hosts is not None, allowed_hosts=named, allowed_origins=pages
    )
    app = server.streamable_http_app(
        streamable_http_path=path, stateless_http=True, json_response=True, transport_security=checks
    )
    for route in app.routes:
        if isinstance(route, Route):
            route.methods = {"POST"}  # the server sends no events, so a GET would never return
    return app


async def serve_stdio(server: Server[Any]) -> None:
    """Serve the process that started this one until it disconnects. Other output goes to stderr."""
    async with stdio_server() as (incoming, outgoing):
        with redirect_stdout(sys.stderr):
            await server.run(incoming, outgoing, server.create_initialization_options())


def _describe(tool: Tool[Any, Any]) -> protocol.Tool:
    hints = protocol.ToolAnnotations(
        read_only_hint=tool.is_reading,
        destructive_hint=tool.is_destructive,
        idempotent_hint=True,
        open_world_hint=False,
    )
    return protocol.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema if tool.has_json else None,
        annotations=hints,
    )


async def _call(run: RunCall, tool: Tool[Any, Any], arguments: dict[str, Any]) -> protocol.CallToolResult:
    """Run a tool and return its answer, or an error that a model can act on."""
    try:
        return await run(lambda agent: _answer(tool, agent, arguments), is_writing=not tool.is_reading)
    except (WayloreError, ValueError) as error:
        return _make_error(str(error), find_kind(error).name)
    except Exception:
        log.exception("%s failed", tool.name)
        message = f"{tool.name} failed; the log of the server has the error"
        return _make_error(message, find_kind(WayloreError()).name)


def _answer(tool: Tool[Any, Any], agent: Agent, arguments: dict[str, Any]) -> protocol.CallToolResult:
    answer = run_tool(tool, agent, arguments)
    text = protocol.TextContent(text=answer.to_text())
    data = answer.model_dump(mode="json") if tool.has_json else None
    return protocol.CallToolResult(content=[text], structured_content=data)


def _make_error(message: str, kind: str) -> protocol.CallToolResult:
    text = protocol.TextContent(text=message)
    return protocol.CallToolResult(content=[text], is_error=True, _meta={"waylore/kind": kind})


async def _read(run: RunCall, call: Callable[[Agent], T]) -> T:
    """Read for an agent. Resources have no error answers, so an error becomes an MCPError."""
    try:
        return await run(call, is_writing=False)
    except NotFound as error:
        raise MCPError(protocol.INVALID_PARAMS, str(error)) from error
    except (WayloreError, ValueError) as error:
        raise MCPError(protocol.INTERNAL_ERROR, str(error), {"kind": find_kind(error).name}) from error


def _list_documents(agent: Agent, cursor: str | None) -> protocol.ListResourcesResult:
    """Return the page of documents after a cursor."""
    after = _read_cursor(cursor) if cursor else None
    documents = agent.memory.documents(after=after, limit=PAGE_DOCUMENTS)
    more = _make_cursor(documents[-1]) if len(documents) == PAGE_DOCUMENTS else None
    return protocol.ListResourcesResult(resources=list(map(_make_resource, documents)), next_cursor=more)


def _make_resource(document: Document) -> protocol.Resource:
    name, address = to_title(document.title or document.uri) or document.id, to_line(document.uri)
    return protocol.Resource(
        uri=f"waylore://document/{document.id}", name=name, description=address, mime_type="text/markdown"
    )


def _make_cursor(document: Document) -> str:
    return urlsafe_b64encode(json.dumps([document.uri, document.id]).encode()).decode()


def _read_cursor(cursor: str) -> Document:
    try:
        uri, id_ = json.loads(urlsafe_b64decode(cursor))
        return Document(str(id_), uri=str(uri))
    except (ValueError, TypeError) as error:
        raise NotFound("no such page; use nextCursor of the previous page") from error
