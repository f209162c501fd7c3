"""What every route of `/v1` does before its own work: know the caller, read the body in time, answer in time.

A route with `ONCE` among its dependencies honours `Idempotency-Key`: the same key and the same request give the
same answer, without the work being done again.
"""

import asyncio
import re
import time
from collections.abc import Callable, Coroutine
from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from waylore.store.registry import Claimed, Kept
from waylore.surfaces.http_access import SCHEMES, caller_of, service_of
from waylore.surfaces.http_answers import OF_ALL, problems
from waylore.surfaces.http_callers import Caller
from waylore.surfaces.http_problems import TRY_LATER

WORD = r"^[!-~]{1,255}$"
KEPT_SECONDS = 86_400.0  # for which an answer can be asked for again
JSON = re.compile(r"application/([\w.+-]+\+)?json\s*(;|$)", re.IGNORECASE)
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def once(
    idempotency_key: Annotated[
        str | None,
        Header(
            pattern=WORD, description="A word of your own; sent again with the same request, it is done once."
        ),
    ] = None,
) -> None:
    """Documents the header; the route itself reads it."""


ONCE = Depends(once)


class Route(APIRoute):
    """A route of a known caller, within the limits of the service."""

    def get_route_handler(self) -> Handler:
        """The route's own work, with what comes before it."""
        handle = super().get_route_handler()
        if any(dependency.dependency is once for dependency in self.dependencies):
            handle = _done_once(handle)

        async def handled(request: Request) -> Response:
            await caller_of(request)
            seconds = service_of(request).settings.http.seconds
            if self.body_field is not None:
                await _read(request, seconds)
            async with asyncio.timeout(seconds):
                return await handle(request)

        return handled


def router_of(tag: str, prefix: str) -> APIRouter:
    """The routes of a subject: of known callers, with the problems that all of them may have."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=Route,
        dependencies=SCHEMES,
        responses=problems(*OF_ALL),
    )


async def _read(request: Request, seconds: float) -> None:
    """Read the body, if it is one that can be understood."""
    media_type = request.headers.get("content-type", "")
    if not JSON.match(media_type):
        raise HTTPException(415, f"the body must be application/json, not {media_type or 'of no type'}")
    try:
        async with asyncio.timeout(seconds):
            await request.body()
    except TimeoutError as error:
        raise HTTPException(408, "the body came too slowly: send it again, faster") from error


def _done_once(handle: Handler) -> Handler:
    async def handled(request: Request) -> Response:
        word = request.headers.get("idempotency-key", "")
        if not re.fullmatch(WORD, word):
            return await handle(request)
        return await _claimed(request, handle, await _claim(request, word))

    return handled


async def _claim(request: Request, word: str) -> Claimed:
    caller: Caller = await caller_of(request)
    asked = sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode())
    asked.update(await request.body())
    return Claimed(caller.id, word, asked.hexdigest())


async def _claimed(request: Request, handle: Handler, claimed: Claimed) -> Response:
    service, now = service_of(request), time.time()
    longest = now + 2 * service.settings.http.seconds  # then whoever did it must have died
    known = await service.look(lambda registry: registry.claim(claimed, now=now, until=longest))
    if known is not None:
        return _again(known, claimed)
    try:
        response = await handle(request)
    except BaseException:
        await service.look(lambda registry: registry.release(claimed))
        raise
    answer = Kept(claimed.digest, response.status_code, bytes(response.body), response.media_type or "")
    await service.look(lambda registry: registry.keep(claimed, answer, until=time.time() + KEPT_SECONDS))
    return response


def _again(known: Kept, claimed: Claimed) -> Response:
    """The answer that was given before, if this is the same request and it is done."""
    if known.digest != claimed.digest:
        raise HTTPException(422, "this Idempotency-Key came with another request before: use a new one")
    if not known.status:
        raise HTTPException(409, "the same request is being done: ask again in a second", TRY_LATER)
    return Response(known.body, known.status, {"Idempotency-Replayed": "true"}, known.media_type)
