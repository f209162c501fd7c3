"""Give every HTTP request an id, and record its span, its time by route and a log line; serve `/metrics`.

`Instrumentation` wraps the whole service, so that refused requests are recorded too. A route is recorded by its
template, never by its path, because a path may hold names and questions. A `traceparent` header is continued.
Without telemetry a request still gets its id (`X-Request-Id`). `/metrics` is open to every client that can reach the
port: it has numbers and no content.
"""

import asyncio
import logging
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waylore.surfaces.telemetry.setup import Telemetry

log = logging.getLogger(__name__)
HEADER = "X-Request-Id"
ID_PATTERN = re.compile(r"[\w.:-]{1,100}", re.ASCII)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
METRICS = "/metrics"


def add_metrics(app: Starlette, telemetry: Telemetry | None) -> None:
    """Add the route `/metrics` to an application, if metrics are collected. Its requests are not recorded."""
    metrics = telemetry.metrics if telemetry else None
    if metrics is None:
        return

    async def expose(request: Request) -> Response:
        text, content_type = await asyncio.to_thread(metrics.expose, request.headers.get("accept", ""))
        return Response(text, headers={"Content-Type": content_type})

    app.router.routes.append(Route(METRICS, expose, methods=["GET"]))


class Instrumentation:
    """ASGI middleware that records requests; `scope["state"]["request_id"]` is the id of the request."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry | None) -> None:
        self.app = app
        self._telemetry = telemetry
        mounts = (route for route in getattr(app, "routes", ()) if isinstance(route, Mount))
        self._mounts = {mount.path for mount in mounts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or the lifespan of the application."""
        if scope["type"] == "lifespan":
            await self._run_lifespan(scope, receive, send)
        elif scope["type"] != "http":
            await self.app(scope, receive, send)
        else:
            await self._handle_request(scope, receive, send)

    async def _run_lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def flush_and_send(message: Message) -> None:
            if self._telemetry and message["type"].startswith("lifespan.shutdown"):
                await asyncio.to_thread(self._telemetry.flush)
            await send(message)

        await self.app(scope, receive, flush_and_send)

    async def _handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = ObservedRequest(scope, self._telemetry)
        scope.setdefault("state", {})["request_id"] = request.id
        scope["fastapi.telemetry"] = None  # FastAPI's own spans hold the path and the query

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = str(message["status"])
                MutableHeaders(scope=message)[HEADER] = request.id
            await send(message)

        with request.observe(self._mounts):
            await self.app(scope, receive, send_with_id)


class ObservedRequest:
    """One request with its id, and its status when the response has started."""

    def __init__(self, scope: Scope, telemetry: Telemetry | None) -> None:
        sent = Headers(scope=scope).get(HEADER, "")
        self.id = sent if ID_PATTERN.fullmatch(sent) else uuid4().hex
        self.status = "none"  # until the response starts
        self._scope = scope
        self._root = scope.get("root_path", "")
        self._telemetry = telemetry
        self._method = scope["method"] if scope["method"] in METHODS else "_OTHER"

    @contextmanager
    def observe(self, mounts: set[str]) -> Iterator[None]:
        """Record the span, the metrics and the log line of the request."""
        if self._telemetry is None or self._scope["path"] == METRICS:
            yield
            return
        started = time.perf_counter()
        with ExitStack() as stack:
            self._enter(stack, self._telemetry, mounts)
            try:
                yield
            finally:
                seconds = time.perf_counter() - started
                labels = {"method": self._method, "route": self.get_route(mounts), "status": self.status}
                if self._telemetry.metrics:
                    self._telemetry.metrics.record_request(**labels, seconds=seconds)
                level = logging.ERROR if self.status.startswith("5") else logging.INFO
                log.log(level, "request", extra={**labels, "seconds": round(seconds, 6)})

    def get_route(self, mounts: set[str]) -> str:
        """Return the template of the route after the path of its mount; `unmatched` if there is none."""
        below = self._scope.get("root_path", "").removeprefix(self._root)
        mounted = below if below in mounts else ""
        included = self._scope.get("fastapi", {}).get("effective_route_context")
        route = included or self._scope.get("route")
        template = getattr(route, "path_format", "") if not isinstance(route, Mount) else ""
        return mounted + template or "unmatched"

    def _enter(self, stack: ExitStack, telemetry: Telemetry, mounts: set[str]) -> None:
        from waylore.surfaces.telemetry import logs, spans  # noqa: PLC0415 (they need the extra telemetry)

        stack.enter_context(logs.bind_request(self.id))
        if telemetry.metrics:
            stack.enter_context(telemetry.metrics.count_in_flight())
        if telemetry.spans:
            span = stack.enter_context(telemetry.spans.observe_request(self._method, dict(Headers(scope=self._scope))))
            span.set_attribute("waylore.request.id", self.id)

            def finish() -> None:
                spans.finish_request(span, self._method, self.get_route(mounts), self.status)

            stack.callback(finish)
