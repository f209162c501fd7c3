"""Build the page of HTTP routes from the OpenAPI document, with the request and response of each route.

It does not write the page; `tools.reference` does.
"""

from collections.abc import Iterator
from typing import Any

from waylore.settings.sections import Settings
from waylore.surfaces.http.app import TAGS, create_app

HEAD = """# HTTP

<!-- Written by `python -m tools.reference`: change the code, not this page. -->

All routes of `waylore serve`. `/openapi.json` of a running service also describes every field and limit. For
examples see [serve collections over HTTP](../how-to/serve.md)."""


def build_http_page() -> str:
    """Build the page."""
    document = create_app(Settings.model_construct()).openapi()
    parts = [HEAD]
    for tag, about in TAGS.items():
        rows = list(_format_rows(document, tag))
        if rows:
            parts += [
                f"## {tag.capitalize()}",
                about,
                "\n".join(["| Route | | Request | Response |", "|---|---|---|---|", *rows]),
            ]
    return "\n\n".join(parts) + "\n"


def _format_rows(document: dict[str, Any], tag: str) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if operation["tags"][-1] == tag:
                route = f"`{method.upper()} {path}`"
                request, response = _format_request(operation), _format_response(operation)
                yield f"| {route} | {operation['description']} | {request} | {response} |"


def _format_request(operation: dict[str, Any]) -> str:
    parameters = [f"`{p['name']}`" for p in operation.get("parameters", []) if p["in"] == "query"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    return ", ".join([*([_get_schema_name(body)] if body else []), *parameters])


def _format_response(operation: dict[str, Any]) -> str:
    status, answer = next((s, a) for s, a in operation["responses"].items() if int(s) < 300)
    content = answer.get("content", {})
    kind = next(iter(content), "")
    return f"{status} {_get_schema_name(content[kind].get('schema', {})) or kind}".strip() if kind else status


def _get_schema_name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]
