"""Write every error as problem+json (RFC 9457), in one shape for every status.

The detail is the message of the error, which names the remedy. An unexpected error is logged with the id of its
request, and the response does not contain its message. `surfaces.error_kinds` has the status of each kind of error.
"""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_type_hints

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import ExceptionHandler

from waylore.errors import WayloreError
from waylore.service.callers import Unauthenticated
from waylore.service.shares import TooManyWaiting
from waylore.surfaces.error_kinds import describe_unknown, find_kind
from waylore.surfaces.wire import Wire

MEDIA_TYPE = "application/problem+json"
AUTHENTICATE = {"WWW-Authenticate": 'Bearer realm="waylore"'}
RETRY_SOON = {"Retry-After": "1"}
MAX_LISTED_ERRORS = 3  # number of errors of fields in the detail
TITLES = {
    400: ("bad-request", "Bad request"),
    401: ("unauthenticated", "Missing or invalid credentials"),
    403: ("forbidden", "Permission denied"),
    404: ("not-found", "Not found"),
    405: ("method-not-allowed", "Method not allowed"),
    408: ("request-timeout", "Request timed out"),
    409: ("conflict", "Conflict"),
    413: ("too-large", "Request too large"),
    415: ("unsupported-media-type", "Unsupported media type"),
    422: ("invalid", "Invalid request"),
    429: ("too-many-requests", "Too many requests"),
    500: ("internal-error", "Internal error"),
    503: ("unavailable", "Service unavailable"),
    504: ("timeout", "Timed out"),
    507: ("disk-full", "Disk nearly full"),
}  # kind and title of problems that are not errors of Waylore
log = logging.getLogger(__name__)


class FieldError(Wire):
    """An error in one field of a request."""

    field: str = Field(description="place and name of the field, such as body.query")
    message: str


class Problem(Wire):
    """An error (RFC 9457)."""

    type: str = Field(description="kind of the error, as urn:waylore:problem:KIND")
    title: str
    status: int
    detail: str = Field(description="what is wrong, and the remedy")
    request_id: str = Field(description="id of the request in the log")
    errors: list[FieldError] = Field(description="errors in single fields of the request")


def create_response(
    request: Request,
    status: int,
    detail: str,
    *,
    kind: str = "",
    title: str = "",
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return the response for a problem."""
    default_kind, default_title = TITLES.get(status, TITLES[400])
    problem = Problem(
        type=f"urn:waylore:problem:{kind or default_kind}",
        title=title or default_title,
        status=status,
        detail=detail,
        request_id=request.scope.get("state", {}).get("request_id", ""),
        errors=list(errors),
    )
    return JSONResponse(problem.model_dump(mode="json"), status, dict(headers or {}), MEDIA_TYPE)


def handle_internal_error(request: Request, error: Exception) -> JSONResponse:
    """Log an unexpected error. Its message may contain data that the caller must not see, so the response omits it."""
    log.error("request %s failed", request.state.request_id, exc_info=error)
    return create_response(request, 500, "internal error; the log of the service has it under this request_id")


def add_error_handlers(app: FastAPI) -> None:
    """Let an application write every error as a problem."""
    handlers: dict[type[Exception], ExceptionHandler] = {
        WayloreError: _handle_error,
        TooManyWaiting: _handle_too_many,
        ValueError: _handle_error,
        Unauthenticated: _handle_unauthenticated,
        RequestValidationError: _handle_invalid_request,
        HTTPException: _handle_http_error,
        TimeoutError: _handle_timeout,
        ValidationError: handle_internal_error,  # a response of ours; FastAPI checks the requests
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def _handle_error(request: Request, error: Exception) -> JSONResponse:
    kind = find_kind(error)
    if kind.status == 500:
        return handle_internal_error(request, error)
    if kind.status == 504:
        return _handle_timeout(request, error)
    headers = RETRY_SOON if kind.status == 503 else {}
    return create_response(request, kind.status, str(error), kind=kind.name, title=kind.title, headers=headers)


def _handle_too_many(request: Request, error: Exception) -> JSONResponse:
    return create_response(request, 429, str(error), headers=RETRY_SOON)


def _handle_unauthenticated(request: Request, error: Exception) -> JSONResponse:
    return create_response(request, 401, str(error), headers=AUTHENTICATE)


def _handle_invalid_request(request: Request, error: Exception) -> JSONResponse:
    details = error.errors() if isinstance(error, RequestValidationError) else []
    known = _list_body_fields(request)
    errors = [_describe(each, known) for each in details]
    shown = [_join(each) for each in errors[:MAX_LISTED_ERRORS]]
    return create_response(request, 422, "; ".join(shown), errors=errors)


def _list_body_fields(request: Request) -> Collection[str]:
    """Return the names of the fields of the body that the route of a request takes."""
    endpoint = request.scope.get("endpoint")
    body = get_type_hints(endpoint).get("body") if callable(endpoint) else None
    return body.model_fields if isinstance(body, type) and issubclass(body, BaseModel) else ()


def _describe(detail: Mapping[str, Any], known: Collection[str]) -> FieldError:
    """Describe an error without the value: it may be secret, or half of a character that JSON cannot hold."""
    place = [str(part) for part in detail["loc"]]
    message = str(detail["msg"]).removeprefix("Value error, ")
    if detail["type"] == "string_pattern_mismatch" and not str(detail["input"]).strip():
        message = "must not be empty"
    if detail["type"] == "extra_forbidden":
        is_top = len(place) == 2
        message = describe_unknown("field", place[-1], known) if is_top else f"unknown field {place[-1]}"
    return FieldError(field=_replace_surrogates(".".join(place)), message=_replace_surrogates(message))


def _join(error: FieldError) -> str:
    """Return the error as one line, which names the field once."""
    name = error.field.rpartition(".")[2]
    is_named = error.message.startswith((f"{name} ", "unknown field "))
    return error.message if is_named else f"{error.field}: {error.message}"


def _replace_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _handle_http_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        return handle_internal_error(request, error)
    if error.status_code == 404:
        return create_response(request, 404, "no route at this address; /openapi.json lists all routes")
    if error.status_code == 405:
        allowed = ", ".join(_list_methods(request))
        return create_response(request, 405, f"allowed methods: {allowed}", headers={"Allow": allowed})
    return create_response(request, error.status_code, str(error.detail), headers=error.headers)


def _list_methods(request: Request) -> list[str]:
    """Return the methods of an address. A route knows only its own; the OpenAPI document lists all of them."""
    paths = request.app.openapi()["paths"]
    matching = [path for path in paths if re.fullmatch(_to_pattern(path), request.url.path)]
    nearest = min(matching, key=lambda path: path.count("{"), default="")
    return sorted(map(str.upper, paths.get(nearest, ["get"])))


def _to_pattern(path: str) -> str:
    escaped = re.escape(path).replace(r"\{uri\}", ".+")  # an address may have slashes
    return re.sub(r"\\{.+?\\}", "[^/]+", escaped)


def _handle_timeout(request: Request, error: Exception) -> JSONResponse:
    """Report that the store does not answer if the last check failed, else that the request took too long."""
    if not request.app.state.service.probes["store"].is_ok:
        detail = f"the store does not answer: {str(error) or 'try again later'}"
        return create_response(request, 503, detail, headers=RETRY_SOON)
    detail = str(error) or "the request took longer than http.request_timeout; request less, or try again later"
    return create_response(request, 504, detail, headers=RETRY_SOON)
