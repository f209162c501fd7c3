"""Let people sign in to the page with the OpenID provider of the service: the authorization code flow with PKCE.

The page makes a secret word, sends the browser to the provider with its hash, and gets a code back (RFC 7636). It hands
code and word to `/login`, and the service exchanges them for a token, because the policy of the page lets it call no
other host. The service keeps no token. The page has it until its tab is closed, as it has a key. Without
`oidc.client_id` there is no login, and people paste a token.
"""

import asyncio
from time import monotonic
from typing import Any

import httpx
from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from waylore.errors import StoreUnavailable
from waylore.service.callers import Unauthenticated
from waylore.service.provider_keys import FETCH_SECONDS, REFRESH_SECONDS, check_address, describe_provider
from waylore.service.service import Service
from waylore.settings.sections import OidcSettings
from waylore.surfaces.wire import Wire

MAX_BYTES = 20_000  # of a request


class LoginBody(Wire):
    """What the page has after the provider sent the browser back: the code, its secret word and its own address."""

    code: str = Field(min_length=1, max_length=5_000)
    verifier: str = Field(min_length=43, max_length=128)
    address: str = Field(min_length=1, max_length=2_000)


class ProviderLogin:
    """The addresses of a provider for signing in, which are read again after some minutes."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self._lock = asyncio.Lock()
        self._described: dict[str, Any] = {}
        self._read_at = float("-inf")

    @property
    def is_used(self) -> bool:
        """Whether the settings name a provider and the id of this service there."""
        return bool(self._settings.issuer and self._settings.client_id)

    async def find_address(self, name: str) -> str:
        """Return an address of the provider. Raise StoreUnavailable if it does not answer, or has none."""
        async with self._lock:
            if monotonic() - self._read_at > REFRESH_SECONDS:
                self._described = await self._describe()
                self._read_at = monotonic()
        found = self._described.get(name)
        if not isinstance(found, str):
            raise StoreUnavailable(f"the OpenID provider {self._settings.issuer} has no {name}; sign in with a key")
        check_address(self._settings.issuer, found, name)
        return found

    async def _describe(self) -> dict[str, Any]:
        try:
            async with asyncio.timeout(FETCH_SECONDS), httpx.AsyncClient(timeout=FETCH_SECONDS) as client:
                return await describe_provider(client, self._settings.issuer)
        except (httpx.HTTPError, TimeoutError, ValueError, OSError) as error:
            raise self._make_silent_error() from error

    async def exchange(self, body: LoginBody) -> list[str]:
        """Exchange a code for the tokens of its user. Raise HTTPException if the provider refuses it."""
        address = await self.find_address("token_endpoint")
        sent = {
            "grant_type": "authorization_code",
            "client_id": self._settings.client_id,
            "code": body.code,
            "code_verifier": body.verifier,
            "redirect_uri": body.address,
        }
        try:
            async with asyncio.timeout(FETCH_SECONDS), httpx.AsyncClient(timeout=FETCH_SECONDS) as client:
                answer = await client.post(address, data=sent)
                given = answer.json()
        except (httpx.HTTPError, TimeoutError, ValueError, OSError) as error:
            raise self._make_silent_error() from error
        tokens = [given.get(name) for name in ("access_token", "id_token")] if isinstance(given, dict) else []
        if answer.is_error or not any(tokens):
            raise HTTPException(401, "the OpenID provider did not accept this login; sign in again")
        return [token for token in tokens if isinstance(token, str) and token]

    def _make_silent_error(self) -> StoreUnavailable:
        return StoreUnavailable(f"the OpenID provider {self._settings.issuer} does not answer; try again")


def add_login(app: Starlette, settings: OidcSettings) -> None:
    """Add the route that says where people sign in, and the one that exchanges a code for a token."""
    login = ProviderLogin(settings)

    async def describe_login(_: Request) -> Response:
        if not login.is_used:
            return JSONResponse({"address": "", "client_id": "", "issuer": ""})
        address = await login.find_address("authorization_endpoint")
        return JSONResponse({"address": address, "client_id": settings.client_id, "issuer": settings.issuer})

    async def exchange_code(request: Request) -> Response:
        if not login.is_used:
            raise HTTPException(404)
        _count(request)
        tokens = await login.exchange(_read_body(await request.body()))
        return JSONResponse({"token": await _choose_token(request.app.state.service, tokens)})

    app.router.routes.append(Route("/login", describe_login, methods=["GET"]))
    app.router.routes.append(Route("/login", exchange_code, methods=["POST"]))


def _count(request: Request) -> None:
    """Raise 429 if this address has no requests left, because a login has no caller yet."""
    service: Service = request.app.state.service
    address = request.client.host if request.client else ""
    if not service.rate_limiter.count_request(f"address:{address}").is_allowed:
        raise HTTPException(429, "too many logins from this address; try again in a minute")


def _read_body(body: bytes) -> LoginBody:
    try:
        return LoginBody.model_validate_json(body[:MAX_BYTES])
    except ValidationError as error:
        raise HTTPException(422, "a login has code, verifier and address; open the page again") from error


async def _choose_token(service: Service, tokens: list[str]) -> str:
    """Return the first token that the service accepts: that for access, or that of the identity."""
    refusal = Unauthenticated()
    for token in tokens:
        try:
            await service.authenticate(token)
        except Unauthenticated as error:
            refusal = error
        else:
            return token
    raise refusal
