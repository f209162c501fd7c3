"""Serve MCP at `/mcp` of the HTTP service: the tools of an agent, for callers with an API key.

A key with one collection is an agent of that collection. A key with several names one by `/mcp?collection=NAME`,
or uses the collection of the settings. The labels of the key limit what the agent sees, and its memories get these
labels. The scope of the key decides whether the agent may write. What the tools do is in `surfaces.tools`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from waylore.service.callers import Caller
from waylore.service.registry.protocol import ALL_COLLECTIONS, SCOPES
from waylore.service.service import Service
from waylore.surfaces.http.access import get_caller, get_service
from waylore.surfaces.mcp.server import create_application, create_server
from waylore.surfaces.tools.tools import Agent

PATH = "/mcp"


class AgentRoute:
    """Serves MCP to the agent of the key of a request."""

    def __init__(self, protocol: ASGIApp) -> None:
        self._protocol = protocol

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authenticate the caller, borrow its collection while the request runs, and let the tools answer."""
        request = Request(scope, receive, send)
        service, caller = get_service(request), await get_caller(request)
        collection = await service.get_cached_collection(caller, _choose_collection(request, service, caller))
        borrowed = service.collections.borrow(collection.name, caller.author)
        memory = await asyncio.to_thread(borrowed.__enter__)
        try:
            may_write = SCOPES.index(caller.scope) >= SCOPES.index("write")
            request.state.agent = Agent(memory, may_write=may_write)
            await self._protocol(scope, receive, send)
        finally:
            await asyncio.to_thread(borrowed.__exit__, None, None, None)


def add_mcp(app: FastAPI) -> Starlette:
    """Add the route to a service. The lifespan of the returned application must run as long as the service."""
    inner = create_application(create_server(_get_agent), hosts=None)  # `OriginCheck` stands before it
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
    """Return the collection that the request names, else the only one of the key, else that of the settings."""
    named = request.query_params.get("collection", "")
    only = next(iter(caller.collections)) if len(caller.collections) == 1 else ALL_COLLECTIONS
    return named or (only if only != ALL_COLLECTIONS else service.settings.collection)


def _get_agent(request: Request | None) -> Agent:
    assert request is not None  # noqa: S101 (over HTTP there is always a request)
    agent: Agent = request.state.agent
    return agent
