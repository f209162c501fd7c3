"""Who calls, as routes ask for it: parameters that give the caller, or a collection that the caller may use.

`Reading`, `Writing` and `Governing` are collections with a caller of that scope; `Administrator` is a caller
who may administer. The order of refusals is: unknown (401), too many requests (429), no such collection (404),
too small a scope (403).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import ceil
from typing import Annotated, TypeVar
from urllib.parse import urlsplit

from fastapi import Depends, Path, Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.exceptions import HTTPException

from waylore.engine import Waylore
from waylore.errors import Forbidden
from waylore.store.registry import Scope
from waylore.surfaces.http_callers import ANYONE, NAME, Caller, Unauthenticated, is_loopback, require
from waylore.surfaces.http_service import Service

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
