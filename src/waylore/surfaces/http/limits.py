"""What surrounds every request: a limit on its size, and an answer whatever happens.

A body that is larger than it may be is refused as soon as that is known, whether or not its length was told
before; one that stops coming is given up, and so is a caller who does not read the answer. Uploads have limits
of their own and pass. An error that nobody foresaw becomes a problem like all others, and the log has it.
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

from waylore.settings.load import load
from waylore.settings.sections import Http
from waylore.surfaces.http.problems import problem, unforeseen

UPLOADS = re.compile(r"/v1/collections/[^/]+/uploads(/|$)")
log = logging.getLogger(__name__)
CLOSE = {"Connection": "close"}  # the rest of the body is not read


class Unread(Exception):
    """The caller does not read its answer, or too slowly; the connection is closed."""


class Guard:
    """An application around another."""

    def __init__(self, app: ASGIApp, settings: Http) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        asked = Headers(scope=scope)
        has_begun = False

        async def marked(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                MutableHeaders(scope=message).update(_told(scope, message["status"]))
            await self._sent(send, message)

        try:
            if self._is_too_large(scope, asked):
                raise self._too_large()
            await self._app(scope, self._limited(scope, receive), marked)
        except HTTPException as refused:
            request = Request(scope)
            await problem(request, refused.status_code, refused.detail, headers=refused.headers)(
                scope, receive, marked
            )
        except Unread:
            log.info("request %s: the caller does not read the answer", state["request_id"])
        except Exception as error:
            if has_begun:
                raise
            await unforeseen(Request(scope), error)(scope, receive, marked)

    async def _sent(self, send: Send, message: Message) -> None:
        try:
            async with asyncio.timeout(self._settings.stall):
                await send(message)
        except TimeoutError as error:
            raise Unread from error

    def _is_too_large(self, scope: Scope, asked: Headers) -> bool:
        told = asked.get("content-length", "")
        return told.isdigit() and int(told[:20]) > self._settings.max_body and not UPLOADS.match(scope["path"])

    def _too_large(self) -> HTTPException:
        most = self._settings.max_body
        return HTTPException(
            413, f"a request may have {most} bytes (http.max_body): upload a file instead", CLOSE
        )

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        if UPLOADS.match(scope["path"]):
            return receive
        read, is_whole = 0, False

        async def limited() -> Message:
            nonlocal read, is_whole
            if is_whole:  # what comes after the body is the caller leaving
                return await receive()
            try:
                async with asyncio.timeout(self._settings.stall):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, "the body stopped coming: send it again, faster", CLOSE) from error
            read += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if read > self._settings.max_body:
                raise self._too_large()
            return message

        return limited


def _told(scope: Scope, status: int) -> dict[str, str]:
    """What every answer says of its request; the rest of an upload that is refused is not read."""
    is_refused = status >= 400 and UPLOADS.match(scope["path"])
    return {**scope["state"].get("rate", {}), **(CLOSE if is_refused else {})}


@cache
def _stall() -> float:
    """As the process reads it: uvicorn makes connections, and tells them nothing of ours."""
    return load().http.stall


class Impatient(H11Protocol):
    """HTTP over one connection, which must be of use."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to watch."""
        super().connection_made(transport)
        self._last, self._since = self.cycle, self.loop.time()
        self._watch = self.loop.call_later(_stall() / 2, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """There is nothing left to watch."""
        self._watch.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        now = self.loop.time()
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, whatever uvicorn says
        is_idle = self.transport.is_closing() or cycle is None or cycle.response_complete
        if not is_idle or self.cycle is not self._last:
            self._last, self._since = self.cycle, now
        if now - self._since > _stall():
            self.transport.abort()
        else:
            self._watch = self.loop.call_later(_stall() / 2, self._look)
