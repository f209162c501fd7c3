"""Errors as HTTP tells them: problem+json (RFC 9457), one shape for every status.

The words are the error's own, which say what to do next; an error that nobody foresaw is logged under the
request's identity and told without its words. What status a kind of error has is in `kinds`.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import ExceptionHandler

from waylore.errors import WayloreError
from waylore.service.callers import Unauthenticated
from waylore.surfaces.error_kinds import kind_of
from waylore.surfaces.wire import Wire

MEDIA_TYPE = "application/problem+json"
ASK_FOR_A_KEY = {"WWW-Authenticate": 'Bearer realm="waylore"'}
TRY_LATER = {"Retry-After": "1"}
USUAL = {
    400: ("bad-request", "The request cannot be understood"),
    401: ("unauthenticated", "Nobody is known by that"),
    404: ("not-found", "There is nothing under that address"),
    405: ("method-not-allowed", "That cannot be done here"),
    408: ("too-late", "The request did not come in time"),
    409: ("conflict", "That cannot be done now"),
    413: ("too-large", "The request is too large"),
    415: ("not-read", "A body of that kind is not read here"),
    422: ("invalid", "The request makes no sense"),
    429: ("too-many-requests", "There were too many requests"),
    500: ("failed", "The service failed"),
    504: ("too-slow", "That took too long"),
}  # of problems that are no error of Waylore: the kind, and its title
log = logging.getLogger(__name__)


class Mistake(Wire):
    """One thing that is wrong with a request: where, and what."""

    at: str
    says: str


class Problem(Wire):
    """What went wrong (RFC 9457)."""

    type: str = Field(description="the kind of problem, as urn:waylore:problem:KIND")
    title: str
    status: int
    detail: str = Field(description="what to do next")
    request_id: str = Field(description="the request, as the log names it")
    errors: list[Mistake] = Field(description="what is wrong with the request, where that can be told")


def problem(
    request: Request,
    status: int,
    detail: str,
    *,
    kind: str = "",
    title: str = "",
    errors: Sequence[Mistake] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """An answer that says what went wrong."""
    usual = USUAL.get(status, USUAL[400])
    told = Problem(
        type=f"urn:waylore:problem:{kind or usual[0]}",
        title=title or usual[1],
        status=status,
        detail=detail,
        request_id=request.scope.get("state", {}).get("request_id", ""),
        errors=list(errors),
    )
    return JSONResponse(told.model_dump(mode="json"), status, dict(headers or {}), MEDIA_TYPE)


def unforeseen(request: Request, error: Exception) -> JSONResponse:
    """An error of ours: its words may hold what the caller must not see, so only the log has them."""
    log.error("request %s failed", request.state.request_id, exc_info=error)
    return problem(request, 500, "this is our mistake; the log has it under this request_id")


def tell_problems(app: FastAPI) -> None:
    """Have an application tell every error as a problem."""
    handlers: dict[type[Exception], ExceptionHandler] = {
        WayloreError: _ours,
        ValueError: _ours,
        Unauthenticated: _unauthenticated,
        RequestValidationError: _invalid,
        HTTPException: _refused,
        TimeoutError: _too_slow,
        ValidationError: unforeseen,  # of what we answer: what is asked is checked by FastAPI
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def _ours(request: Request, error: Exception) -> JSONResponse:
    kind = kind_of(error)
    if kind.status == 500:
        return unforeseen(request, error)
    headers = TRY_LATER if kind.status == 503 else {}
    return problem(request, kind.status, str(error), kind=kind.name, title=kind.title, headers=headers)


def _unauthenticated(request: Request, error: Exception) -> JSONResponse:
    return problem(request, 401, str(error), headers=ASK_FOR_A_KEY)


def _invalid(request: Request, error: Exception) -> JSONResponse:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    mistakes = [_mistake(one) for one in found]
    told = "; ".join(f"{one.at}: {one.says}" for one in mistakes[:3])
    return problem(request, 422, told, errors=mistakes)


def _mistake(found: Mapping[str, Any]) -> Mistake:
    """Without what was sent: it may be a secret, or half of a character that cannot be told."""
    return Mistake(at=_tellable(".".join(map(str, found["loc"]))), says=_tellable(str(found["msg"])))


def _tellable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _refused(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        return unforeseen(request, error)
    if error.status_code == 404:
        return problem(request, 404, "there is nothing at this address: /openapi.json lists what there is")
    if error.status_code == 405:
        allowed = ", ".join(_methods(request))
        return problem(request, 405, f"here you may {allowed}", headers={"Allow": allowed})
    return problem(request, error.status_code, str(error.detail), headers=error.headers)


def _methods(request: Request) -> list[str]:
    """What can be done at an address: a route knows only its own method, the OpenAPI document all of them."""
    paths = request.app.openapi()["paths"]
    found = [path for path in paths if re.fullmatch(_pattern(path), request.url.path)]
    nearest = min(found, key=lambda path: path.count("{"), default="")
    return sorted(map(str.upper, paths.get(nearest, ["get"])))


def _pattern(path: str) -> str:
    escaped = re.escape(path).replace(r"\{uri\}", ".+")  # an address may have slashes
    return re.sub(r"\\{.+?\\}", "[^/]+", escaped)


def _too_slow(request: Request, _: Exception) -> JSONResponse:
    return problem(
        request, 504, "this took longer than http.seconds: ask for less, or try later", headers=TRY_LATER
    )
