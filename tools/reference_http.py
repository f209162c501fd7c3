"""The page of the reference about HTTP, from the OpenAPI document: every route, what it takes and answers.

`http` is a page of `tools.reference`, which writes it.
"""

from collections.abc import Iterator
from typing import Any

from waylore.settings.load import Settings
from waylore.surfaces.http.app import TAGS, create_app

HEAD = """# HTTP

<!-- Written by `python -m tools.reference`: change the code, not this page. -->

Every route of `waylore serve`. The whole of it, with every field and limit, is `/openapi.json` of a running
service; how it is used is in [serve it over HTTP](../how-to/serve.md)."""


def http() -> str:
    """The page."""
    document = create_app(Settings.model_construct()).openapi()
    parts = [HEAD]
    for tag, about in TAGS.items():
        rows = list(_rows(document, tag))
        if rows:
            parts += [
                f"## {tag.capitalize()}",
                about,
                "\n".join(["| | | takes | answers |", "|---|---|---|---|", *rows]),
            ]
    return "\n\n".join(parts) + "\n"


def _rows(document: dict[str, Any], tag: str) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if operation["tags"][-1] == tag:
                route = f"`{method.upper()} {path}`"
                yield f"| {route} | {operation['description']} | {_takes(operation)} | {_answers(operation)} |"


def _takes(operation: dict[str, Any]) -> str:
    asked = [f"`{p['name']}`" for p in operation.get("parameters", []) if p["in"] == "query"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    return ", ".join([*([_name(body)] if body else []), *asked])


def _answers(operation: dict[str, Any]) -> str:
    status, answer = next((s, a) for s, a in operation["responses"].items() if int(s) < 300)
    content = answer.get("content", {})
    kind = next(iter(content), "")
    return f"{status} {_name(content[kind].get('schema', {})) or kind}".strip() if kind else status


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]
