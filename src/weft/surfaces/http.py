"""The HTTP service, through FastAPI: `create_app` puts routes, errors and limits together.

What a route does is in the `http_…` module of its subject; what a running service holds is in `service`, who
may call in `access`. Nothing here decides what is found.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI

from weft import __version__
from weft.surfaces import http_collections
from weft.surfaces.problems import tell_problems
from weft.surfaces.service import opened_service
from weft.surfaces.settings import Settings, load

ROUTERS = (http_collections.router,)


def create_app(settings: Settings) -> FastAPI:
    """The service of these settings; it opens its store when it starts."""
    app = FastAPI(
        title="Weft",
        version=__version__,
        summary="Memory and knowledge retrieval for agents.",
        lifespan=partial(_running, settings),
    )
    for router in ROUTERS:
        app.include_router(router)
    tell_problems(app)
    return app


def from_environment() -> FastAPI:
    """The service as the environment and the files of settings have it: what a worker process starts."""
    return create_app(load())


@asynccontextmanager
async def _running(settings: Settings, app: FastAPI) -> AsyncIterator[None]:
    """Opening and closing may take seconds, so both are done in a thread."""
    opening = opened_service(settings)
    app.state.service = await asyncio.to_thread(opening.__enter__)
    try:
        yield
    finally:
        await asyncio.to_thread(opening.__exit__, None, None, None)
