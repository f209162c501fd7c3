"""Refuse requests that a foreign web page makes a browser send, before anything else handles them.

A page of another site can send requests to this machine, also to loopback, and by DNS rebinding it can read the
answers. It cannot choose the headers `Host`, `Origin` and `Sec-Fetch-Site`, nor send a body of JSON or bytes without
asking first. So these are checked for every request, with and without keys. `access` checks the rights of the
caller.
"""

import re
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from waylore.service.callers import is_loopback
from waylore.settings.sections import HttpSettings
from waylore.surfaces.http.problems import create_response

HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
BODY_TYPES = re.compile(r"application/(octet-stream|([\w.+-]+\+)?json)\s*(;|$)", re.IGNORECASE)
# Probes and scrapers of a cluster use the address of a pod. DNS rebinding uses names, never addresses.
PROBES = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics")}
PAGE = ("GET", "/")  # a link on another site may open the page, which contains no knowledge
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
MAX_SHOWN = 100  # characters of a header in a message
Refusal = tuple[int, str]  # status and message


class OriginCheck:
    """ASGI middleware that refuses foreign hosts, origins and media types, and forbids browsers to store answers."""

    def __init__(self, app: ASGIApp, settings: HttpSettings) -> None:
        self._app = app
        self._settings = settings
        self._hosts = {_strip_brackets(name.lower()) for name in (settings.host, *settings.hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if refusal := self._find_refusal(scope, Headers(scope=scope)):
            response = create_response(Request(scope), *refusal, headers={"Connection": "close"})
            await response(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _find_refusal(self, scope: Scope, headers: Headers) -> Refusal | None:
        hosts = [host.lower() for host in headers.getlist("host")]
        if len(hosts) != 1:
            return 400, "the request must have one Host header"
        is_probe = (scope["method"], scope["path"]) in PROBES
        if not self._is_own_host(hosts[0], is_probe):
            shown = hosts[0][:MAX_SHOWN]
            return 403, f"this service does not answer to {shown}; use localhost, or add the name to http.hosts"
        is_page = (scope["method"], scope["path"]) == PAGE
        if (origin := self._find_foreign_origin(hosts[0], headers)) is not None and not is_page:
            shown = origin[:MAX_SHOWN]
            return 403, f"pages of {shown} may not call this service; add their origin to http.cors_origins"
        return _check_body_type(headers) if scope["method"] == "POST" else None

    def _is_own_host(self, host: str, is_probe: bool) -> bool:
        matched = HOST.fullmatch(host)
        if matched is None:
            return False
        name = _strip_brackets(matched[1])
        parents = {f"*{name[at:]}" for at, character in enumerate(name) if character == "."}
        return is_loopback(name) or not self._hosts.isdisjoint({name, *parents}) or (is_probe and _is_address(name))

    def _find_foreign_origin(self, host: str, headers: Headers) -> str | None:
        """Return the origin of the page that sends the request, if that page may not send it; else None."""
        allowed = {f"http://{host}", f"https://{host}", *self._settings.cors_origins}
        origins = headers.getlist("origin")
        for origin in origins:
            if origin not in allowed and ("*" not in allowed or origin == "null"):
                return origin
        is_foreign = "cross-site" in headers.getlist("sec-fetch-site")
        return "another site" if is_foreign and not origins else None


def _check_body_type(headers: Headers) -> Refusal | None:
    """Refuse types that a page can send without a preflight request. A request without a body needs no type."""
    types = headers.getlist("content-type")
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if (len(types) == 1 and BODY_TYPES.match(types[0])) or not (types or has_body):
        return None
    shown = ", ".join(types)[:MAX_SHOWN] or "no media type"
    return 415, f"the body must be application/json, or application/octet-stream for an upload, got {shown}"


def _strip_brackets(name: str) -> str:
    return name.removeprefix("[").removesuffix("]")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
