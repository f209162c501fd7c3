"""What happens around an HTTP request: its identity, a span, its time by route, a line in the log, `/metrics`.

`Instrumented` goes around the whole service, so that also what authentication refused is seen. A route is told
by its template, never by the path, which may hold names and questions. A `traceparent` that comes with a
request is gone on with. Without telemetry a request still gets its identity (`X-Request-Id`). It knows no route
of the service but `/metrics`, which is open to whoever reaches the port: it tells numbers, and no content.
"""

import asyncio
import logging
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waylore.surfaces.telemetry.setup import Telemetry

log = logging.getLogger(__name__)
HEADER = "X-Request-Id"
GIVEN = re.compile(r"[\w.:-]{1,100}", re.ASCII)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
METRICS = ("GET", "/metrics")


class Instrumented:
    """An ASGI application, watched; `scope["state"]["request_id"]` is what the request is called."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry | None) -> None:
        self.app = app
        self._telemetry = telemetry
        mounts = (route for route in getattr(app, "routes", ()) if isinstance(route, Mount))
        self._mounts = {mount.path for mount in mounts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI wants it."""
        if scope["type"] == "lifespan":
            await self._alive(scope, receive, send)
        elif scope["type"] != "http":
            await self.app(scope, receive, send)
        elif self._telemetry and self._telemetry.metrics and (scope["method"], scope["path"]) == METRICS:
            accepted = Headers(scope=scope).get("accept", "")
            told, content_type = await asyncio.to_thread(self._telemetry.metrics.exposition, accepted)
            await Response(told, headers={"Content-Type": content_type})(scope, receive, send)
        else:
            await self._request(scope, receive, send)

    async def _alive(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def flushing(message: Message) -> None:
            if self._telemetry and message["type"].startswith("lifespan.shutdown"):
                await asyncio.to_thread(self._telemetry.flush)
            await send(message)

        await self.app(scope, receive, flushing)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, self._telemetry)
        scope.setdefault("state", {})["request_id"] = request.id
        scope["fastapi.telemetry"] = None  # FastAPI's own spans hold the path and what was asked

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = str(message["status"])
                MutableHeaders(scope=message)[HEADER] = request.id
            await send(message)

        with request.watched(self._mounts):
            await self.app(scope, receive, noting)


class Request:
    """One request: what it is called, and what became of it."""

    def __init__(self, scope: Scope, telemetry: Telemetry | None) -> None:
        given = Headers(scope=scope).get(HEADER, "")
        self.id = given if GIVEN.fullmatch(given) else uuid4().hex
        self.status = "none"  # until an answer begins
        self._scope = scope
        self._root = scope.get("root_path", "")
        self._telemetry = telemetry
        self._method = scope["method"] if scope["method"] in METHODS else "_OTHER"

    @contextmanager
    def watched(self, mounts: set[str]) -> Iterator[None]:
        """While it is answered."""
        if self._telemetry is None:
            yield
            return
        began = time.perf_counter()
        with ExitStack() as watching:
            self._enter(watching, self._telemetry, mounts)
            try:
                yield
            finally:
                seconds = time.perf_counter() - began
                known = {"method": self._method, "route": self.route(mounts), "status": self.status}
                if self._telemetry.metrics:
                    self._telemetry.metrics.request(**known, seconds=seconds)
                level = logging.ERROR if self.status.startswith("5") else logging.INFO
                log.log(level, "request", extra={**known, "seconds": round(seconds, 6)})

    def route(self, mounts: set[str]) -> str:
        """The template of the route, below the path of what is mounted; `unmatched` if there is none."""
        below = self._scope.get("root_path", "").removeprefix(self._root)
        mounted = below if below in mounts else ""
        included = self._scope.get("fastapi", {}).get("effective_route_context")
        route = included or self._scope.get("route")
        template = getattr(route, "path_format", "") if not isinstance(route, Mount) else ""
        return mounted + template or "unmatched"

    def _enter(self, watching: ExitStack, telemetry: Telemetry, mounts: set[str]) -> None:
        from waylore.surfaces.telemetry import logs, spans  # noqa: PLC0415 (there is telemetry)

        watching.enter_context(logs.of_request(self.id))
        if telemetry.metrics:
            watching.enter_context(telemetry.metrics.in_flight())
        if telemetry.spans:
            span = watching.enter_context(
                telemetry.spans.request(self._method, dict(Headers(scope=self._scope)))
            )
            span.set_attribute("waylore.request.id", self.id)

            def told() -> None:
                spans.answered(span, self._method, self.route(mounts), self.status)

            watching.callback(told)
