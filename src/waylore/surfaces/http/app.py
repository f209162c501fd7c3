"""The HTTP service, through FastAPI: `create_app` puts routes, errors and limits together.

What a route does is in the `http_…` module of its subject; what a running service holds is in `http_service`,
who may call in `http_callers`. Nothing here decides what is found.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI, Response
from fastapi.openapi.utils import get_openapi
from starlette.middleware.cors import CORSMiddleware

from waylore import __version__
from waylore.service.service import Service, opened_service
from waylore.settings.load import Settings, load
from waylore.surfaces.http import collections, documents, jobs, keys, search, uploads
from waylore.surfaces.http.access import Running
from waylore.surfaces.http.instrumentation import Instrumented
from waylore.surfaces.http.limits import Guard
from waylore.surfaces.http.mcp import alive as mcp_alive
from waylore.surfaces.http.mcp import with_mcp
from waylore.surfaces.http.problems import MEDIA_TYPE, tell_problems
from waylore.surfaces.http.responses import Alive, Ready
from waylore.surfaces.open import embedder_of, opened
from waylore.surfaces.telemetry.setup import configured

router = APIRouter(tags=["health"])
ROUTERS = (
    collections.router,
    documents.router,
    search.router,
    uploads.router,
    jobs.router,
    keys.router,
    router,
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
    for each in ROUTERS:
        app.include_router(each)
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


def open_service(settings: Settings) -> AbstractContextManager[Service]:
    """Return the service of these settings, to be entered."""
    embedder = embedder_of(settings.embedding)
    return opened_service(
        settings, embedder, lambda collection: opened(settings, embedder=embedder, collection=collection)
    )


def from_environment() -> FastAPI:
    """The service as the environment and the files of settings have it: what a worker process starts."""
    return create_app(load())


@asynccontextmanager
async def _running(settings: Settings, app: FastAPI) -> AsyncIterator[None]:
    """Opening and closing may take seconds, so both are done in a thread."""
    opening = open_service(settings)
    service = app.state.service = await asyncio.to_thread(opening.__enter__)
    tidying = asyncio.create_task(service.keep_tidy())
    try:
        async with service.background.working(), mcp_alive(app.state.mcp):
            yield
    finally:
        tidying.cancel()
        await asyncio.to_thread(opening.__exit__, None, None, None)


@router.get("/healthz", operation_id="healthz")
async def alive() -> Alive:
    """Tell that the process answers; nothing else is looked at."""
    return Alive(status="ok")


@router.get(
    "/readyz",
    operation_id="readyz",
    responses={503: {"model": Ready, "description": "Something cannot be reached."}},
)
async def ready(service: Running, response: Response) -> Ready:
    """Tell whether the store answers and the model is loaded."""
    store, model = await service.reaches_store(), await service.reaches_model()
    if not (store and model):
        response.status_code = 503
    told = {True: "ok", False: "unreachable"}
    return Ready(status="ok" if store and model else "not ready", store=told[store], model=told[model])


TAGS = {
    "collections": "Bodies of knowledge; each is seen by its callers only.",
    "documents": "What was added: texts, and facts that came without one.",
    "asking": "What is known that bears on a question, and why.",
    "jobs": "What is done in the background: files that were uploaded, and whole collections.",
    "keys": "API keys, for administrators.",
    "health": "Whether the service is alive and ready.",
}
HEADERS = {
    "X-Request-Id": {
        "description": "The request's identity: yours, if you sent one.",
        "schema": {"type": "string"},
        "required": True,
    }
}


def described(app: FastAPI) -> dict[str, Any]:
    """The document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=app.routes,
            tags=[{"name": name, "description": told} for name, told in TAGS.items()],
        )
        for operation in _operations(document):
            operation["summary"] = operation["operationId"].replace("_", " ").capitalize()
        for status, response in _responses(document):
            response["headers"] = HEADERS
            if status >= 400 and _is_problem(response):
                response["content"] = {MEDIA_TYPE: response["content"]["application/json"]}
        app.openapi_schema = document
    return app.openapi_schema


def _responses(document: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    for operation in _operations(document):
        for status, response in operation["responses"].items():
            yield int(status), response


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for operations in document["paths"].values():
        yield from operations.values()


def _is_problem(response: dict[str, Any]) -> bool:
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return bool(schema.get("$ref", "").endswith("/Problem"))
