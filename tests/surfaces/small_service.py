"""A small service with telemetry around it, served by uvicorn as a process of its own.

    python tests/surfaces/small_service.py PORT WORKERS

It has a route with a name in its path, one that fails, one within an included router, and one that is mounted.
"""

import logging
import sys

import uvicorn
from fastapi import APIRouter, FastAPI, Request
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from waylore.settings import load as settings
from waylore.surfaces.http.instrumentation import Instrumented
from waylore.surfaces.open import opened
from waylore.surfaces.telemetry.metrics import shared
from waylore.surfaces.telemetry.setup import configured


def service() -> Instrumented:
    """The service as uvicorn loads it."""
    wanted = settings.load(embedding={"provider": "hashing"})
    app, inner = FastAPI(), APIRouter()
    waylore = opened(wanted)

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
    return Instrumented(app, configured(wanted.telemetry))


if __name__ == "__main__":
    port, workers = int(sys.argv[1]), int(sys.argv[2])
    with shared():
        uvicorn.run(
            "small_service:service",
            factory=True,
            port=port,
            workers=workers,
            app_dir=str(__file__).rpartition("/")[0],
        )
