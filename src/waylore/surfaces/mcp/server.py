"""The MCP server: the agent's tools, and what is stored as resources, over stdio or streamable HTTP.

`server` speaks for whoever `agent_of` says that a request comes from: one agent over stdio, the holder of a key
over HTTP. The engine works in threads, so that one slow question keeps nobody waiting. An error of ours is an
answer that a model can read and act on; one that nobody foresaw is logged, and its words stay here.

To serve it within another application: `application(server(agent_of), hosts=[…])` is a Starlette application;
add its `routes` to yours, and enter `app.router.lifespan_context(app)` within your own lifespan.
"""

import json
import logging
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any, TypeVar

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
from waylore.surfaces.error_kinds import kind_of
from waylore.surfaces.mcp import resources
from waylore.surfaces.tools.tools import TOOLS, Agent, Tool, answered
from waylore.types.knowledge import Document

log = logging.getLogger(__name__)
Asked = ServerRequestContext[Any, Request]
AgentOf = Callable[[Request | None], Agent]
T = TypeVar("T")
INSTRUCTIONS = """A memory that lasts: passages, and a graph of facts about people, projects and things.
Search it with memory_search before you answer what may have been said, decided or written down earlier, and
tell the user which document you have it from. Add with memory_add what will be worth knowing later. Resources:
waylore://entity/NAME is what is known of a name, waylore://document/ID and waylore://passage/ID are what was stored."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
PAGE = 100  # documents that are listed at once


def server(agent_of: AgentOf, tools: Sequence[Tool[Any, Any]] = TOOLS) -> Server[Any]:
    """A server with these tools, for whoever `agent_of` makes of a request (None over stdio)."""
    by_name = {tool.name: tool for tool in tools}
    listed = protocol.ListToolsResult(tools=[_described(tool) for tool in tools])

    async def list_tools(_: Asked, __: Any) -> protocol.ListToolsResult:
        return listed

    async def call_tool(asked: Asked, call: protocol.CallToolRequestParams) -> protocol.CallToolResult:
        if call.name not in by_name:
            raise MCPError(protocol.INVALID_PARAMS, f"there is no tool {call.name}: use {', '.join(by_name)}")
        return await to_thread.run_sync(
            _called, by_name[call.name], agent_of, asked.request, call.arguments or {}
        )

    async def list_resources(asked: Asked, page: Any) -> protocol.ListResourcesResult:
        cursor = page.cursor if page else None
        return await _read(lambda: _listed(agent_of(asked.request), cursor))

    async def list_templates(_: Asked, __: Any) -> protocol.ListResourceTemplatesResult:
        return protocol.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(
        asked: Asked, wanted: protocol.ReadResourceRequestParams
    ) -> protocol.ReadResourceResult:
        text = await _read(lambda: resources.read(agent_of(asked.request), wanted.uri))
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


def application(
    served: Server[Any],
    *,
    hosts: Sequence[str] | None = LOOPBACK,
    origins: Sequence[str] = (),
    path: str = "/mcp",
) -> Starlette:
    """The server as an ASGI application; requests to other `hosts`, or from web pages elsewhere, are refused.

    `hosts=None` is for whoever has found out who calls. It keeps no sessions: each request stands for itself,
    so that any process of several may answer it.
    """
    named = [*(hosts or ()), *(f"{host}:*" for host in hosts or ())]
    pages = [*origins, *(f"{scheme}://{host}" for scheme in ("http", "https") for host in named)]
    checks = TransportSecuritySettings(
        enable_dns_rebinding_protection=hosts is not None, allowed_hosts=named, allowed_origins=pages
    )
    app = served.streamable_http_app(
        streamable_http_path=path, stateless_http=True, json_response=True, transport_security=checks
    )
    for route in app.routes:
        if isinstance(route, Route):
            route.methods = {"POST"}  # a GET would wait forever for news that never come
    return app


async def over_stdio(served: Server[Any]) -> None:
    """Serve whoever started this process until he goes away; whatever others print goes to stderr."""
    async with stdio_server() as (incoming, outgoing):
        with redirect_stdout(sys.stderr):
            await served.run(incoming, outgoing, served.create_initialization_options())


def _described(tool: Tool[Any, Any]) -> protocol.Tool:
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
        input_schema=tool.takes,
        output_schema=tool.gives,
        annotations=hints,
    )


def _called(
    tool: Tool[Any, Any], agent_of: AgentOf, request: Request | None, arguments: dict[str, Any]
) -> protocol.CallToolResult:
    """What a tool answers, or what went wrong in words that a model can act on."""
    try:
        answer = answered(tool, agent_of(request), arguments)
    except (WayloreError, ValueError) as error:
        return _failed(str(error), kind_of(error).name)
    except Exception:
        log.exception("%s failed", tool.name)
        return _failed(
            f"{tool.name} failed for a reason that the server has logged", kind_of(WayloreError()).name
        )
    text = protocol.TextContent(text=answer.readable())
    return protocol.CallToolResult(content=[text], structured_content=answer.model_dump(mode="json"))


def _failed(words: str, kind: str) -> protocol.CallToolResult:
    text = protocol.TextContent(text=words)
    return protocol.CallToolResult(content=[text], is_error=True, _meta={"waylore/kind": kind})


async def _read(what: Callable[[], T]) -> T:
    """What was read in a thread; resources have no answer that says what went wrong, only errors."""
    try:
        return await to_thread.run_sync(what)
    except NotFound as error:
        raise MCPError(protocol.INVALID_PARAMS, str(error)) from error
    except (WayloreError, ValueError) as error:
        raise MCPError(protocol.INTERNAL_ERROR, str(error), {"kind": kind_of(error).name}) from error


def _listed(agent: Agent, cursor: str | None) -> protocol.ListResourcesResult:
    """A page of documents, from where the last one ended."""
    after = _after(cursor) if cursor else None
    documents = agent.memory.documents(after=after, limit=PAGE, where=agent.where)
    onward = _cursor(documents[-1]) if len(documents) == PAGE else None
    return protocol.ListResourcesResult(resources=list(map(_resource, documents)), next_cursor=onward)


def _resource(document: Document) -> protocol.Resource:
    name = document.title or document.uri or document.id
    return protocol.Resource(
        uri=f"waylore://document/{document.id}", name=name, description=document.uri, mime_type="text/markdown"
    )


def _cursor(document: Document) -> str:
    return urlsafe_b64encode(json.dumps([document.uri, document.id]).encode()).decode()


def _after(cursor: str) -> Document:
    try:
        uri, id_ = json.loads(urlsafe_b64decode(cursor))
        return Document(str(id_), uri=str(uri))
    except (ValueError, TypeError) as error:
        raise NotFound("there is no such page: take nextCursor from the page before") from error
