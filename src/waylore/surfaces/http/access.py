"""Authenticate the caller of a request and give routes their collection, as FastAPI dependencies.

`ReadAccess`, `WriteAccess` and `AdminAccess` are a collection and a caller with that scope; `AdminCaller` is a caller
with the scope admin. Errors come in this order: unknown caller (401), too many requests (429), no such collection
(404), scope too small (403). The module also replays responses for idempotency keys. The routes are in the modules of
their subjects.
"""

import asyncio
import hmac
import logging
import re
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from typing import Annotated, Any, TypeVar
from uuid import uuid4

from fastapi import APIRouter, Depends, Header, Path, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.exceptions import HTTPException

from waylore.deadline import Deadline
from waylore.engine.waylore import Waylore
from waylore.errors import WayloreError
from waylore.service.callers import (
    ANYONE,
    COLLECTION_NAME_PATTERN,
    Caller,
    Unauthenticated,
    require,
)
from waylore.service.registry.protocol import CachedResponse, IdempotencyKey, Registry, Scope
from waylore.service.service import Service
from waylore.service.shares import SERVICE
from waylore.store.receipts import get_request_id, record_as
from waylore.surfaces.http.problems import RETRY_SOON
from waylore.surfaces.http.responses import COMMON_STATUSES, describe_problems
from waylore.types.results import Receipt

log = logging.getLogger(__name__)
BEARER = HTTPBearer(auto_error=False, description="An API key (`waylore_…`), or a token of the OpenID provider.")
HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, description="An API key (`waylore_…`).")
SCHEMES = [Security(BEARER), Security(HEADER)]  # only for the OpenAPI document; `get_caller` reads the headers
CollectionName = Annotated[
    str, Path(pattern=COLLECTION_NAME_PATTERN, description="Name of a collection.", examples=["default"])
]
T = TypeVar("T")


def get_service(request: Request) -> Service:
    """Return the running service."""
    service: Service = request.app.state.service
    return service


async def get_caller(request: Request) -> Caller:
    """Return the caller; authenticate and count the request if this is the first call for it."""
    known: Caller | None = getattr(request.state, "caller", None)
    if known is None:
        known = request.state.caller = await _authenticate(request)
        _count_request(request, known.id)
    return known


async def _authenticate(request: Request) -> Caller:
    service, address = get_service(request), request.client.host if request.client else ""
    if not service.settings.http.auth:
        return ANYONE
    try:
        return await service.authenticate(_read_token(request), address)
    except Unauthenticated:
        _count_request(request, f"address:{address}")
        raise


def _read_token(request: Request) -> str:
    """Return the token of the caller. A request with two tokens is refused, because one of them may be wrong."""
    tokens = [*request.headers.getlist("authorization"), *request.headers.getlist("x-api-key")]
    if len(tokens) > 1:
        raise Unauthenticated("the request has two credentials; send one header, Authorization or X-API-Key")
    if not tokens:
        raise Unauthenticated
    scheme, _, token = tokens[0].partition(" ")
    if "authorization" in request.headers:
        return token.strip() if scheme.lower() == "bearer" else ""
    return tokens[0]


def _count_request(request: Request, caller: str) -> None:
    """Raise 429 if the caller has no requests left; `limits` adds the rate headers to every response."""
    rates = get_service(request).rate_limiter
    taken = rates.count_request(caller)
    if rates.limit:
        request.state.rate = {
            "RateLimit-Policy": f'"default";q={rates.limit};w={rates.window:.0f}',
            "RateLimit": f'"default";r={taken.remaining};t={ceil(taken.seconds)}',
        }
    if not taken.is_allowed:
        wait = str(ceil(taken.seconds))
        message = f"more than {rates.limit} requests per minute; try again in {wait} s"
        raise HTTPException(429, message, {"Retry-After": wait})


CurrentService = Annotated[Service, Depends(get_service)]
CurrentCaller = Annotated[Caller, Depends(get_caller)]


def require_admin(caller: CurrentCaller) -> Caller:
    """Return the caller if it has the scope admin."""
    require(caller, "admin")
    return caller


AdminCaller = Annotated[Caller, Depends(require_admin)]


@dataclass(frozen=True, slots=True)
class CollectionAccess:
    """A collection and a caller who may use it."""

    service: Service
    caller: Caller
    collection: str

    async def run(self, call: Callable[[Waylore], T]) -> T:
        """Run a call that reads the collection in a thread, as the caller."""
        return await self.service.run_on_collection(self.caller.author, self.collection, call)

    async def write(self, call: Callable[[Waylore], T]) -> T:
        """Run a call that writes to the collection in a thread, as the caller."""
        return await self.service.run_on_collection(self.caller.author, self.collection, call, is_writing=True)

    async def forget(self, call: Callable[[Waylore], Receipt]) -> Receipt:
        """Run a call that removes documents, and store its receipt under the id of the request, or a new one."""
        with record_as(get_request_id() or uuid4().hex):
            return await self.write(call)


def _require_scope(scope: Scope) -> Callable[[Service, Caller, str], Awaitable[CollectionAccess]]:
    async def get_access(
        service: CurrentService, caller: CurrentCaller, collection: CollectionName
    ) -> CollectionAccess:
        find = service.get_cached_collection if scope == "read" else service.get_collection
        known = await find(caller, collection)
        require(caller, scope)
        return CollectionAccess(service, caller, known.name)

    return get_access


ReadAccess = Annotated[CollectionAccess, Depends(_require_scope("read"))]
WriteAccess = Annotated[CollectionAccess, Depends(_require_scope("write"))]
AdminAccess = Annotated[CollectionAccess, Depends(_require_scope("admin"))]

IDEMPOTENCY_KEY_PATTERN = r"^[!-~]{1,255}$"
REPLAY_SECONDS = 86_400.0  # time for which a response can be repeated
APART_SECONDS = 10.0  # time limit of a call on the registry after the work
APART_WAIT_SECONDS = 1.0  # the response waits this long for such a call
APART: set[asyncio.Task[None]] = set()  # running calls of this kind
JSON = re.compile(r"application/([\w.+-]+\+)?json\s*(;|$)", re.IGNORECASE)
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def describe_idempotency_key(
    idempotency_key: Annotated[
        str | None,
        Header(
            pattern=IDEMPOTENCY_KEY_PATTERN,
            description="A word of your own. The same request with the same word runs once.",
        ),
    ] = None,
) -> None:
    """Add the header to the OpenAPI document. `Route` reads it."""


IDEMPOTENT = Depends(describe_idempotency_key)


class Route(APIRoute):
    """A route that authenticates its caller."""

    def get_route_handler(self) -> Handler:
        """Return the handler of the route, after authentication."""
        handle = super().get_route_handler()
        if any(dependency.dependency is describe_idempotency_key for dependency in self.dependencies):
            handle = _run_once(handle)

        async def handle_authenticated(request: Request) -> Response:
            await get_caller(request)
            if self.body_field is not None:
                await _read_body(request)
            return await handle(request)

        return handle_authenticated


def create_router(tag: str, prefix: str) -> APIRouter:
    """Return a router for the routes of a subject, with their common error responses."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=Route,
        dependencies=SCHEMES,
        responses=describe_problems(*COMMON_STATUSES),
    )


async def _read_body(request: Request) -> None:
    media_type = request.headers.get("content-type", "")
    if not JSON.match(media_type) and (media_type or await request.body()):
        raise HTTPException(415, f"the body must be application/json, got {media_type or 'no media type'}")
    await request.body()


def _run_once(handle: Handler) -> Handler:
    async def handle_once(request: Request) -> Response:
        word = request.headers.get("idempotency-key", "")
        if not re.fullmatch(IDEMPOTENCY_KEY_PATTERN, word):
            return await handle(request)
        return await _handle_or_replay(request, handle, await _make_key(request, word))

    return handle_once


async def _make_key(request: Request, word: str) -> IdempotencyKey:
    caller: Caller = await get_caller(request)
    digest = sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode())
    digest.update(await request.body())
    return IdempotencyKey(caller.id, word, digest.hexdigest())


async def _handle_or_replay(request: Request, handle: Handler, key: IdempotencyKey) -> Response:
    service, now = get_service(request), time.time()
    # Until then the process that runs it may have died; if it lives, the record of its write counts.
    until = now + 2 * service.settings.http.request_timeout
    known = await service.run_on_registry(
        key.caller, lambda registry: registry.claim(key, now=now, until=until), is_writing=True
    )
    if known is not None:
        return _replay(known, key)
    try:
        with record_as(_make_request_id(key, service.secret)):
            response = await handle(request)
    except BaseException:  # a thread may still work, but it can no longer commit
        await _run_apart(service, lambda registry: registry.release(key))
        raise
    answer = CachedResponse(key.digest, response.status_code, bytes(response.body), response.media_type or "")
    end = time.time() + REPLAY_SECONDS
    await _run_apart(service, lambda registry: registry.store_response(key, answer, until=end))
    return response


def _make_request_id(key: IdempotencyKey, secret: bytes) -> str:
    """Return the id of a request. Only the service can compute it, because it is also the id of the receipt."""
    text = "\n".join((key.caller, key.word, key.digest))
    return hmac.digest(secret, text.encode(), "sha256")[:16].hex()


async def _run_apart(service: Service, call: Callable[[Registry], None]) -> None:
    """Run a call on the registry without the deadline of the request, and wait for it briefly.

    If it fails, the claim expires. The request is still not repeated, because the store has a record of its write.
    """

    async def run() -> None:
        with Deadline(APART_SECONDS).activate():
            try:
                await service.run_on_registry(SERVICE, call, is_writing=True)
            except WayloreError as error:
                log.warning("a response for an Idempotency-Key cannot be stored: %s", error)

    task = asyncio.create_task(run())
    APART.add(task)
    task.add_done_callback(APART.discard)
    await asyncio.wait({task}, timeout=APART_WAIT_SECONDS)


def _replay(known: CachedResponse, key: IdempotencyKey) -> Response:
    """Return the earlier response, if the request is the same and has finished."""
    if known.digest != key.digest:
        raise HTTPException(422, "this Idempotency-Key was used with another request; use a new one")
    if not known.status:
        raise HTTPException(409, "the same request is running; try again in a second", RETRY_SOON)
    return Response(known.body, known.status, {"Idempotency-Replayed": "true"}, known.media_type)
