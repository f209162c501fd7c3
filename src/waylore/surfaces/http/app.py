"""Create the HTTP service with FastAPI: routes, error handlers, limits, health and the OpenAPI document.

The routes are in the modules of their subjects. `service` holds the running service and checks the rights of callers.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from waylore import __version__
from waylore.errors import NotFound
from waylore.service.service import Service, open_service
from waylore.settings.load import load
from waylore.settings.sections import Settings
from waylore.surfaces.explorer.assets import add_explorer
from waylore.surfaces.explorer.login import add_login
from waylore.surfaces.http import collections, documents, jobs, keys, memory, search, uploads
from waylore.surfaces.http.access import CurrentCaller, CurrentService
from waylore.surfaces.http.instrumentation import Instrumentation, add_metrics
from waylore.surfaces.http.limits import RequestLimits
from waylore.surfaces.http.mcp import add_mcp, run_mcp
from waylore.surfaces.http.origins import OriginCheck
from waylore.surfaces.http.problems import MEDIA_TYPE, add_error_handlers
from waylore.surfaces.http.responses import Liveness, Readiness
from waylore.surfaces.open import create_embedder, create_reranker, open_collection
from waylore.surfaces.telemetry.setup import configure

router = APIRouter(tags=["health"])
ROUTERS = (
    collections.router,
    documents.router,
    memory.router,
    search.router,
    uploads.router,
    jobs.router,
    keys.router,
    keys.audit_router,
    router,
)
PAGES = Path(__file__).parent / "pages"
SWAGGER_FILES = frozenset({"swagger-ui-bundle.js", "swagger-ui.css"})  # docs.html has their checksums
DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
EXPOSED_HEADERS = ("X-Request-Id", "RateLimit", "RateLimit-Policy", "Retry-After", "Idempotency-Replayed")


def create_app(settings: Settings) -> FastAPI:
    """Return the application for these settings. It opens the store when it starts."""
    app = FastAPI(
        title="Waylore",
        version=__version__,
        summary="Memory and knowledge retrieval for agents.",
        lifespan=partial(_run, settings),
        redirect_slashes=False,
        generate_unique_id_function=_name_operation,
        openapi_url=None,  # `get_openapi_document` needs a key, and FastAPI's own page loads foreign scripts
    )
    telemetry = configure(settings.telemetry)
    for each in ROUTERS:
        app.include_router(each)
    app.state.mcp = add_mcp(app, settings.mcp)
    add_explorer(app)
    add_login(app, settings.oidc)
    add_metrics(app, telemetry)
    add_error_handlers(app)
    app.openapi = partial(build_openapi, app)  # type: ignore[method-assign]  # as FastAPI's documentation has it
    if settings.http.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.http.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=EXPOSED_HEADERS,
        )
    app.add_middleware(RequestLimits, settings=settings.http)
    app.add_middleware(OriginCheck, settings=settings.http)
    app.add_middleware(Instrumentation, telemetry=telemetry)  # outermost, so that refused requests are recorded
    return app


def _name_operation(route: APIRoute) -> str:
    """Return the name of a route's function in camel case, as clients call it: addDocument."""
    first, *others = route.name.split("_")
    return first + "".join(map(str.capitalize, others))


def open_configured_service(settings: Settings) -> AbstractContextManager[Service]:
    """Return the service for these settings as a context manager."""
    embedder, reranker = create_embedder(settings.embedding), create_reranker(settings)
    return open_service(
        settings,
        embedder,
        lambda collection, observer: open_collection(
            settings, embedder=embedder, reranker=reranker, collection=collection, observer=observer
        ),
    )


def from_environment() -> FastAPI:
    """Return the application for the settings of the environment and the files; each worker process calls it."""
    return create_app(load())


@asynccontextmanager
async def _run(settings: Settings, app: FastAPI) -> AsyncIterator[None]:
    """Open and close the service in a thread, because both may take seconds."""
    opening = open_configured_service(settings)
    service = app.state.service = await asyncio.to_thread(opening.__enter__)
    sweeping = asyncio.create_task(service.keep_sweeping())
    try:
        async with service.background.run(), run_mcp(app.state.mcp):
            yield
    finally:
        sweeping.cancel()
        await asyncio.to_thread(opening.__exit__, None, None, None)


@router.get("/openapi.json", include_in_schema=False)
async def get_openapi_document(request: Request, _: CurrentCaller) -> JSONResponse:
    """Return the OpenAPI document to a caller with a key."""
    return JSONResponse(request.app.openapi())


@router.get("/docs", include_in_schema=False)
async def show_docs() -> Response:
    """Return the page that shows the OpenAPI document. It asks for the key and loads nothing from other hosts."""
    return FileResponse(PAGES / "docs.html", headers={"Content-Security-Policy": DOCS_POLICY})


@router.get("/docs/{name}", include_in_schema=False)
async def get_docs_file(name: str) -> Response:
    """Return a script or style of the page."""
    if name != "docs.js" and name not in SWAGGER_FILES:
        raise HTTPException(404)
    return FileResponse((_find_swagger() if name in SWAGGER_FILES else PAGES) / name)


def _find_swagger() -> Path:
    """Return the folder of Swagger's files, without importing their package."""
    found = find_spec("fastapi_swagger")
    if found is None or found.origin is None:
        raise NotFound("Swagger is not installed; install waylore[http] again")
    return Path(found.origin).parent / "resources"


@router.get("/healthz")
async def check_liveness() -> Liveness:
    """Return ok if the process answers. Nothing else is checked."""
    return Liveness(status="ok")


@router.get(
    "/readyz",
    responses={503: {"model": Readiness, "description": "The store or the model is unavailable."}},
)
async def check_readiness(service: CurrentService, response: Response) -> Readiness:
    """Report whether the store, the model and the OpenID provider answered a moment ago.

    Without the provider the service is ready: API keys and known tokens work.
    """
    words = dict.fromkeys(("store", "model", "provider"), "none")
    words |= {name: "ok" if probe.is_ok else "unreachable" for name, probe in service.probes.items()}
    is_ready = "unreachable" not in {words["store"], words["model"]}
    if not is_ready:
        response.status_code = 503
    return Readiness(status="ok" if is_ready else "not ready", **words)


TAGS = {
    "collections": "Collections of knowledge. A caller sees only its own.",
    "documents": "Documents: added texts, and facts that came without a text.",
    "search": "Search, context for a model, explanations, and the graph around an entity.",
    "jobs": "Background jobs: uploaded files, and work on whole collections.",
    "keys": "API keys, for administrators.",
    "audit": "What was changed, by whom and when, for administrators.",
    "health": "Liveness and readiness of the service.",
}
HEADERS = {
    "X-Request-Id": {
        "description": "Id of the request; your own if you sent one.",
        "schema": {"type": "string"},
        "required": True,
    }
}


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document; it is built once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=app.routes,
            tags=[{"name": name, "description": description} for name, description in TAGS.items()],
        )
        for operation in _list_operations(document):
            operation["summary"] = operation["summary"].capitalize()
        for status, response in _list_responses(document):
            response["headers"] = HEADERS
            if status >= 400 and _is_problem(response):
                response["content"] = {MEDIA_TYPE: response["content"]["application/json"]}
        app.openapi_schema = document
    return app.openapi_schema


def _list_responses(document: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    for operation in _list_operations(document):
        for status, response in operation["responses"].items():
            yield int(status), response


def _list_operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for operations in document["paths"].values():
        yield from operations.values()


def _is_problem(response: dict[str, Any]) -> bool:
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return bool(schema.get("$ref", "").endswith("/Problem"))
