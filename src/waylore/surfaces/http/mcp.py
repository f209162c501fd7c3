"""MCP at `/mcp` of the HTTP service: the agent's tools for whoever holds a key.

A key that opens one collection is an agent's of that collection; one that opens more says which by
`/mcp?collection=NAME`, or means the one that the settings name. The key's labels are what the agent sees and
what its memories get, its scope says whether it may add and forget. What the tools do is in `tools`.
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
from waylore.service.registry.protocol import EVERY, SCOPES
from waylore.service.service import Service
from waylore.surfaces.http.access import caller_of, service_of
from waylore.surfaces.mcp.server import application, server
from waylore.surfaces.tools.tools import Agent

PATH = "/mcp"


class AgentsDesk:
    """Answers MCP for the holder of the key that a request shows."""

    def __init__(self, protocol: ASGIApp) -> None:
        self._protocol = protocol

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find out who calls, open what is theirs for as long as the answer takes, and let the tools answer."""
        request = Request(scope, receive, send)
        service, caller = service_of(request), await caller_of(request)
        found = await service.collection_of_late(caller, _collection(request, service, caller))
        lent = service.collections.lent(found.name)
        memory = await asyncio.to_thread(lent.__enter__)
        try:
            may_write = SCOPES.index(caller.scope) >= SCOPES.index("write")
            request.state.agent = Agent(memory, caller.labels, may_write=may_write)
            await self._protocol(scope, receive, send)
        finally:
            await asyncio.to_thread(lent.__exit__, None, None, None)


def with_mcp(app: FastAPI) -> Starlette:
    """Add the route to a service; what is returned must live as long as the service (its lifespan)."""
    inner = application(server(lambda request: request.state.agent if request else _nobody()), hosts=None)
    app.router.routes.append(Route(PATH, AgentsDesk(inner), methods=["POST"]))
    return inner


@asynccontextmanager
async def alive(inner: Starlette) -> AsyncIterator[None]:
    """The protocol's own lifespan, in a task of its own: it must be left by the task that entered it."""
    is_up, is_over = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with inner.router.lifespan_context(inner):
            is_up.set()
            await is_over.wait()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(live())
        await is_up.wait()
        try:
            yield
        finally:
            is_over.set()


def _collection(request: Request, service: Service, caller: Caller) -> str:
    """The collection that is meant: the one named, else the only one of the key, else the settings' own."""
    named = request.query_params.get("collection", "")
    only = next(iter(caller.collections)) if len(caller.collections) == 1 else EVERY
    return named or (only if only != EVERY else service.settings.collection)


def _nobody() -> Agent:
    raise AssertionError("over HTTP there is always a request")
