"""Limit the size and the time of requests, and close connections that stall.

A request has one deadline, from its first byte to the last of the response: authentication, body and work are
within it. A route may restart it: an export has more time, a stream of events has no limit. A body that is too
large is refused as soon as this is known, with or without a declared length. A body that stops arriving is refused,
and a client that does not read the response is disconnected. Uploads have their own limits in `service.spool`. An
unexpected error becomes a problem like all others, and the log has it.
"""

import asyncio
import logging
import re
from functools import cache

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from waylore.deadline import Deadline
from waylore.settings.load import load
from waylore.settings.sections import HttpSettings
from waylore.surfaces.error_kinds import find_kind
from waylore.surfaces.http.problems import RETRY_SOON, create_response, handle_internal_error

UPLOADS = re.compile(r"/v1/collections/[^/]+/uploads(/|$)")
log = logging.getLogger(__name__)
CLOSE = {"Connection": "close"}  # the rest of the body is not read
LOOK_SECONDS = 1.0  # interval of checks of a deadline that was restarted, or that a commit delays
COMMIT_SECONDS = 10.0  # a request waits this long after the deadline for its commit


class SlowReader(Exception):
    """The client reads the response too slowly; the connection is closed."""


class RequestTimer:
    """Ends a request at its deadline, and reports why it was late."""

    def __init__(self, seconds: float) -> None:
        self.deadline = Deadline(seconds)
        self.is_receiving = False  # the body of the request
        self._seconds = seconds

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application. Raise HTTPException if it does not end in time."""
        try:
            async with asyncio.timeout(None) as ends:
                self._look_later(self._seconds, ends)
                try:
                    with self.deadline.activate():
                        await app(scope, receive, send)
                finally:
                    self._next_look.cancel()
        except TimeoutError as error:
            if not ends.expired():
                raise
            raise self._make_error() from error

    def _look_later(self, seconds: float, ends: asyncio.Timeout) -> None:
        self._next_look = asyncio.get_running_loop().call_later(seconds, self._look, ends)

    def _look(self, ends: asyncio.Timeout) -> None:
        """End the request if its time is up, else check again later: it may have been restarted, or is committing."""
        remaining = self.deadline.remaining
        if self.deadline.expire() or remaining < -COMMIT_SECONDS:
            ends.reschedule(asyncio.get_running_loop().time())
        else:
            self._look_later(min(max(remaining, 0.01), LOOK_SECONDS), ends)

    def _make_error(self) -> HTTPException:
        if self.is_receiving:
            return HTTPException(408, "the body arrived too slowly; send it again, faster", CLOSE)
        if not self.deadline.is_over:  # the work could not be ended
            return HTTPException(503, "the commit takes too long; repeat the request later", RETRY_SOON)
        error = self.deadline.make_error()
        return HTTPException(find_kind(error).status, f"{error} (http.request_timeout)", RETRY_SOON)


class RequestLimits:
    """ASGI middleware that enforces the limits and adds the rate headers."""

    def __init__(self, app: ASGIApp, settings: HttpSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request within the limits."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        timer, has_begun = RequestTimer(self._settings.request_timeout), False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                MutableHeaders(scope=message).update(_make_headers(scope, message["status"]))
            await self._send_in_time(send, message)

        try:
            if self._is_too_large(scope, Headers(scope=scope)):
                raise self._make_too_large_error()
            await timer.run(self._app, scope, self._limit_body(scope, receive, timer), send_with_headers)
        except HTTPException as error:
            if has_begun:  # the connection is closed, because the response is not complete
                log.info("request %s: %s", state["request_id"], error.detail)
                return
            response = create_response(Request(scope), error.status_code, error.detail, headers=error.headers)
            await response(scope, receive, send_with_headers)
        except SlowReader:
            log.info("request %s: the client does not read the response", state["request_id"])
        except Exception as error:
            if has_begun:
                raise
            await handle_internal_error(Request(scope), error)(scope, receive, send_with_headers)

    async def _send_in_time(self, send: Send, message: Message) -> None:
        try:
            async with asyncio.timeout(self._settings.idle_timeout):
                await send(message)
        except TimeoutError as error:
            raise SlowReader from error

    def _is_too_large(self, scope: Scope, headers: Headers) -> bool:
        length = headers.get("content-length", "")
        if not length.isdigit() or UPLOADS.match(scope["path"]):
            return False
        return int(length[:20]) > self._settings.max_body_bytes

    def _make_too_large_error(self) -> HTTPException:
        limit = self._settings.max_body_bytes
        message = f"the request is larger than {limit} bytes (http.max_body_bytes); upload a file instead"
        return HTTPException(413, message, CLOSE)

    def _limit_body(self, scope: Scope, receive: Receive, timer: RequestTimer) -> Receive:
        if UPLOADS.match(scope["path"]):
            return receive
        received, is_complete = 0, False

        async def receive_in_time() -> Message:
            nonlocal received, is_complete
            if is_complete:  # the next message is the disconnection of the client, which may come late
                return await receive()
            timer.is_receiving = True
            try:
                async with asyncio.timeout(self._settings.idle_timeout):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, "the body stopped arriving; send it again, faster", CLOSE) from error
            timer.is_receiving = False
            received += len(message.get("body", b""))
            is_complete = not message.get("more_body", False)
            if received > self._settings.max_body_bytes:
                raise self._make_too_large_error()
            return message

        return receive_in_time


def _make_headers(scope: Scope, status: int) -> dict[str, str]:
    """Return the rate headers, and for a refused upload the header that closes the connection."""
    is_refused = status >= 400 and UPLOADS.match(scope["path"])
    return {**scope["state"].get("rate", {}), **(CLOSE if is_refused else {})}


@cache
def _read_idle_timeout() -> float:
    """Return the setting as this process reads it, because uvicorn passes no settings to its protocols."""
    return load().http.idle_timeout


class IdleTimeoutProtocol(H11Protocol):
    """HTTP on one connection. The connection is closed if it sends no complete request in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Start the timer."""
        super().connection_made(transport)
        self.last_cycle, self.idle_since = self.cycle, self.loop.time()
        self.idle_timer = self.loop.call_later(_read_idle_timeout() / 2, self.close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self.idle_timer.cancel()
        super().connection_lost(exc)

    def close_if_idle(self) -> None:
        """Close the connection if no request was handled for too long, else start the timer again."""
        now = self.loop.time()
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, despite the type in uvicorn
        is_idle = self.transport.is_closing() or cycle is None or cycle.response_complete
        if not is_idle or self.cycle is not self.last_cycle:
            self.last_cycle, self.idle_since = self.cycle, now
        if now - self.idle_since > _read_idle_timeout():
            self.transport.abort()
        else:
            self.idle_timer = self.loop.call_later(_read_idle_timeout() / 2, self.close_if_idle)
