"""The HTTP service, through FastAPI: `create_app` puts routes, errors and limits together.

What a route does is in the `http_…` module of its subject; what a running service holds is in `http_service`,
who may call in `http_callers`. Nothing here decides what is found.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from waylore import __version__
from waylore.surfaces import (
    http_asking,
    http_collections,
    http_documents,
    http_health,
    http_jobs,
    http_keys,
    http_uploads,
)
from waylore.surfaces.http_guard import Guard
from waylore.surfaces.http_mcp import alive, with_mcp
from waylore.surfaces.http_openapi import described
from waylore.surfaces.http_problems import tell_problems
from waylore.surfaces.http_service import opened_service
from waylore.surfaces.http_telemetry import Instrumented
from waylore.surfaces.settings import Settings, load
from waylore.surfaces.telemetry import configured

ROUTERS = (
    http_collections.router,
    http_documents.router,
    http_asking.router,
    http_uploads.router,
    http_jobs.router,
    http_keys.router,
    http_health.router,
)
SHOWN = ("X-Request-Id", "RateLimit", "RateLimit-Policy", "Retry-After", "Idempotency-Replayed")


def create_app(settings: Settings) -> FastAPI:
    """The service of these settings; it opens its store when it starts."""
    app = FastAPI(
        title="Waylore",
        version=__version__,
        summary="Memory and knowledge retrieval for agents.",
        lifespan=partial(_running, settings),
        redirect_slashes=False,
    )
    for router in ROUTERS:
        app.include_router(router)
    app.state.mcp = with_mcp(app)
    tell_problems(app)
    app.openapi = partial(described, app)  # type: ignore[method-assign]  # as FastAPI's documentation has it
    if settings.http.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.http.cors,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=SHOWN,
        )
    app.add_middleware(Guard, settings=settings.http)
    app.add_middleware(Instrumented, telemetry=configured(settings.telemetry))
    return app


def from_environment() -> FastAPI:
    """The service as the environment and the files of settings have it: what a worker process starts."""
    return create_app(load())


@asynccontextmanager
async def _running(settings: Settings, app: FastAPI) -> AsyncIterator[None]:
    """Opening and closing may take seconds, so both are done in a thread."""
    opening = opened_service(settings)
    service = app.state.service = await asyncio.to_thread(opening.__enter__)
    tidying = asyncio.create_task(service.keep_tidy())
    try:
        async with service.background.working(), alive(app.state.mcp):
            yield
    finally:
        tidying.cancel()
        await asyncio.to_thread(opening.__exit__, None, None, None)
