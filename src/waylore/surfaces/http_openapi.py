"""The OpenAPI document of the service: what FastAPI makes of the routes, and what it cannot know.

Problems have a media type of their own, and every answer has the request's identity among its headers.
"""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from waylore.surfaces.http_problems import MEDIA_TYPE

TAGS = {
    "collections": "Bodies of knowledge; each is seen by its callers only.",
    "documents": "What was added: texts, and facts that came without one.",
    "asking": "What is known that bears on a question, and why.",
    "jobs": "What is done in the background: files that were uploaded, and whole collections.",
    "keys": "API keys, for administrators.",
    "health": "Whether the service is alive and ready.",
}
HEADERS = {
    "X-Request-Id": {
        "description": "The request's identity: yours, if you sent one.",
        "schema": {"type": "string"},
        "required": True,
    }
}


def described(app: FastAPI) -> dict[str, Any]:
    """The document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=app.routes,
            tags=[{"name": name, "description": told} for name, told in TAGS.items()],
        )
        for operation in _operations(document):
            operation["summary"] = operation["operationId"].replace("_", " ").capitalize()
        for status, response in _responses(document):
            response["headers"] = HEADERS
            if status >= 400 and _is_problem(response):
                response["content"] = {MEDIA_TYPE: response["content"]["application/json"]}
        app.openapi_schema = document
    return app.openapi_schema


def _responses(document: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    for operation in _operations(document):
        for status, response in operation["responses"].items():
            yield int(status), response


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for operations in document["paths"].values():
        yield from operations.values()


def _is_problem(response: dict[str, Any]) -> bool:
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return bool(schema.get("$ref", "").endswith("/Problem"))
