"""Serve MCP at `/mcp` of the HTTP service: the tools of an agent, for callers with an API key.

A key with one collection is an agent of that collection. A key with several names one by `/mcp?collection=NAME`, or
uses the collection of the settings. The labels of the key limit what the agent sees, and its memories get these labels.
The scope of the key decides whether the agent may write. The tools are in `surfaces.tools`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from waylore.service.callers import Caller
from waylore.service.registry.protocol import ALL_COLLECTIONS, SCOPES
from waylore.service.service import Service
from waylore.settings.sections import McpSettings
from waylore.surfaces.http.access import CollectionAccess, get_caller, get_service
from waylore.surfaces.mcp.server import create_application, create_shared_server
from waylore.surfaces.tools.tools import Agent, choose_tools

PATH = "/mcp"
T = TypeVar("T")


class AgentRoute:
    """Serves MCP to the agent of a request's key."""

    def __init__(self, protocol: ASGIApp) -> None:
        self._protocol = protocol

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authenticate the caller, find its collection, and let the tools answer."""
        request = Request(scope, receive, send)
        service, caller = get_service(request), await get_caller(request)
        collection = await service.get_cached_collection(caller, _choose_collection(request, service, caller))
        request.state.access = CollectionAccess(service, caller, collection.name)
        await self._protocol(scope, receive, send)


def add_mcp(app: FastAPI, settings: McpSettings) -> Starlette:
    """Add the route to a service. The lifespan of the returned application must run as long as the service."""
    server = create_shared_server(_run_as_agent, choose_tools(settings))
    inner = create_application(server, hosts=None)  # `OriginCheck` runs before it
    app.router.routes.append(Route(PATH, AgentRoute(inner), methods=["POST"]))
    return inner


@asynccontextmanager
async def run_mcp(inner: Starlette) -> AsyncIterator[None]:
    """Run the lifespan of the protocol in its own task, because the task that enters it must leave it."""
    has_started, must_end = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with inner.router.lifespan_context(inner):
            has_started.set()
            await must_end.wait()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(live())
        await has_started.wait()
        try:
            yield
        finally:
            must_end.set()


def _choose_collection(request: Request, service: Service, caller: Caller) -> str:
    """Return the collection named in the request, else the only one of the key, else the one of the settings."""
    named = request.query_params.get("collection", "")
    only = next(iter(caller.collections)) if len(caller.collections) == 1 else ALL_COLLECTIONS
    return named or (only if only != ALL_COLLECTIONS else service.settings.collection)


async def _run_as_agent(request: Request | None, call: Callable[[Agent], T], *, is_writing: bool) -> T:
    """Run a call in the threads that all callers share, as the routes do."""
    assert request is not None  # noqa: S101 (over HTTP there is always a request)
    access: CollectionAccess = request.state.access
    may_write = SCOPES.index(access.caller.scope) >= SCOPES.index("write")
    run = access.write if is_writing and may_write else access.run
    return await run(lambda memory: call(Agent(memory, may_write=may_write)))
