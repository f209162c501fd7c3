"""Who calls, as routes ask for it: parameters that give the caller, or a collection that the caller may use.

`Reading`, `Writing` and `Governing` are collections with a caller of that scope; `Administrator` is a caller
who may administer. The order of refusals is: unknown (401), too many requests (429), no such collection (404),
too small a scope (403).
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Header, Path, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.exceptions import HTTPException

from waylore.engine.waylore import Waylore
from waylore.errors import Forbidden
from waylore.service.callers import ANYONE, NAME, Caller, Unauthenticated, is_loopback, require
from waylore.service.registry.protocol import Claimed, Kept, Scope
from waylore.service.service import Service
from waylore.surfaces.http.problems import TRY_LATER
from waylore.surfaces.http.responses import OF_ALL, problems

BEARER = HTTPBearer(
    auto_error=False, description="An API key (`waylore_…`), or a token of the OpenID provider."
)
HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, description="An API key (`waylore_…`).")
SCHEMES = [Security(BEARER), Security(HEADER)]  # for the OpenAPI document alone: `caller_of` reads the headers
CollectionName = Annotated[str, Path(pattern=NAME, description="A collection's name.", examples=["default"])]
T = TypeVar("T")


def service_of(request: Request) -> Service:
    """The service that runs."""
    service: Service = request.app.state.service
    return service


async def caller_of(request: Request) -> Caller:
    """Who calls; found out, and counted, once a request."""
    known: Caller | None = getattr(request.state, "caller", None)
    if known is None:
        known = request.state.caller = await _caller(request)
        _count(request, known.id)
    return known


async def _caller(request: Request) -> Caller:
    service = service_of(request)
    if not service.settings.http.auth:
        _require_near(request)
        return ANYONE
    try:
        return await service.known(_token(request))
    except Unauthenticated:
        _count(request, f"address:{request.client.host if request.client else ''}")
        raise


def _require_near(request: Request) -> None:
    """Where nobody is asked, a page that has its name lead to this machine (DNS rebinding) must not get in."""
    name = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    if "." in name and not is_loopback(name):
        raise Forbidden(f"this service asks for no key and does not answer to {name}: call it localhost")


def _token(request: Request) -> str:
    """What the caller shows; who shows two things, of which one may be wrong, is not believed either."""
    given = [*request.headers.getlist("authorization"), *request.headers.getlist("x-api-key")]
    if len(given) != 1:
        raise Unauthenticated
    kind, _, token = given[0].partition(" ")
    if "authorization" in request.headers:
        return token.strip() if kind.lower() == "bearer" else ""
    return given[0]


def _count(request: Request, who: str) -> None:
    """Refuse one request too many; `http_guard` tells the figures with every answer."""
    rates = service_of(request).rates
    taken = rates.take(who)
    if rates.most:
        request.state.rate = {
            "RateLimit-Policy": f'"default";q={rates.most};w={rates.window:.0f}',
            "RateLimit": f'"default";r={taken.left};t={ceil(taken.seconds)}',
        }
    if not taken.is_allowed:
        wait = str(ceil(taken.seconds))
        raise HTTPException(
            429, f"no more than {rates.most} requests a minute: wait {wait} s", {"Retry-After": wait}
        )


Running = Annotated[Service, Depends(service_of)]
Known = Annotated[Caller, Depends(caller_of)]


def administrator(caller: Known) -> Caller:
    """A caller who may administer."""
    require(caller, "admin")
    return caller


Administrator = Annotated[Caller, Depends(administrator)]


@dataclass(frozen=True, slots=True)
class Desk:
    """A collection, and who stands before it."""

    service: Service
    caller: Caller
    collection: str

    async def ask(self, verb: Callable[[Waylore], T]) -> T:
        """What the collection answers."""
        return await self.service.ask(self.collection, verb)


def _desk(scope: Scope) -> Callable[[Service, Caller, str], Awaitable[Desk]]:
    async def desk(service: Running, caller: Known, collection: CollectionName) -> Desk:
        find = service.collection_of_late if scope == "read" else service.collection
        found = await find(caller, collection)
        require(caller, scope)
        return Desk(service, caller, found.name)

    return desk


Reading = Annotated[Desk, Depends(_desk("read"))]
Writing = Annotated[Desk, Depends(_desk("write"))]
Governing = Annotated[Desk, Depends(_desk("admin"))]

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
