"""Run a small service with telemetry, by uvicorn in a process of its own.

    python tests/surfaces/small_service.py PORT WORKERS

It has a route with a name in its path, one that fails, one in an included router, and one in a mounted application.
"""

import logging
import sys

import uvicorn
from fastapi import APIRouter, FastAPI, Request
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from waylore.settings import load as settings
from waylore.surfaces.cli.serve import STARTUP_SECONDS
from waylore.surfaces.http.instrumentation import Instrumentation, add_metrics
from waylore.surfaces.open import open_collection
from waylore.surfaces.telemetry.metrics import share_metrics
from waylore.surfaces.telemetry.setup import configure


def create_service() -> Instrumentation:
    """Return the service for uvicorn."""
    wanted = settings.load(embedding={"provider": "hashing"})
    app, inner = FastAPI(), APIRouter()
    waylore = open_collection(wanted)

    @inner.get("/collections/{name}/search")
    def search(name: str, q: str, request: Request) -> dict[str, object]:
        logging.getLogger("waylore").info("searching with password=hunter2")
        return {"hits": len(waylore.search(q).hits), "request": request.state.request_id}

    @app.get("/fails")
    def fails() -> None:
        raise RuntimeError("postgresql://user:hunter2@host/db is gone")

    async def mounted(_: object) -> PlainTextResponse:
        return PlainTextResponse("here")

    app.include_router(inner, prefix="/v1")
    app.mount("/mcp", Starlette(routes=[Route("/{session}", mounted)]))
    telemetry = configure(wanted.telemetry)
    add_metrics(app, telemetry)
    return Instrumentation(app, telemetry)


if __name__ == "__main__":
    port, workers = int(sys.argv[1]), int(sys.argv[2])
    with share_metrics():
        uvicorn.run(
            "small_service:create_service",
            factory=True,
            port=port,
            workers=workers,
            timeout_worker_healthcheck=STARTUP_SECONDS,
            app_dir=str(__file__).rpartition("/")[0],
        )
