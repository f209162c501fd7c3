"""Routes that write their JSON themselves: what they write fits the OpenAPI document, and is written once."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from surfaces.serving import make_settings, open_client, read_json
from waylore.surfaces import wire
from waylore.surfaces.http.responses import DocumentPage, Facts, Insight, write_json

NOTES = "/v1/collections/default"
QUESTION = {"query": "Who can help with the login?"}
DOCUMENTS: list[dict[str, Any]] = [
    {
        "text": "The login needs the session service.",
        "uri": "login.md",
        "facts": [{"subject": "login", "predicate": "needs", "object": "session service", "valid_from": "2025-05-01"}],
    },
    {
        "text": "Mara looks after tokens.",
        "title": "Mara",
        "metadata": {"team": "core", "year": 2026, "share": 0.5, "is_new": True, "tags": ["a", "b"]},
        "labels": ["staff", "ops"],
        "facts": [["Mara", "owns", "session service"]],
    },
]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(make_settings(tmp_path / "memory.waylore")) as made:
        for document in DOCUMENTS:
            read_json(await made.post(f"{NOTES}/documents", json=document))
        yield made


async def check_schema(client: httpx.AsyncClient, route: str, answer: httpx.Response, model: type[wire.Wire]) -> Any:
    """Check an answer against the model that is the schema of its route, and return its JSON."""
    document = read_json(await client.get("/openapi.json"))
    operation = document["paths"][f"/v1/collections/{{collection}}{route}"][answer.request.method.lower()]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": f"#/components/schemas/{model.__name__}"}
    assert answer.headers["content-type"] == "application/json"
    read = read_json(answer)
    assert model.model_validate_json(answer.content, strict=True).model_dump(mode="json") == read
    return read


@pytest.mark.parametrize("body", [QUESTION, QUESTION | {"explain": True}], ids=["plain", "explained"])
async def test_search_fits_its_schema(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    found = await check_schema(client, "/search", await client.post(f"{NOTES}/search", json=body), wire.SearchResult)
    assert any(hit["path"] and hit["path"]["steps"] for hit in found["hits"])
    assert all((hit["explanation"] is not None) == body.get("explain", False) for hit in found["hits"])


async def test_explain_fits_its_schema(client: httpx.AsyncClient) -> None:
    found = read_json(await client.post(f"{NOTES}/search", json=QUESTION | {"explain": True}))
    body = QUESTION | {"passage": found["hits"][0]["passage"]["id"]}
    answer = await client.post(f"{NOTES}/explain", json=body)
    explained = await check_schema(client, "/explain", answer, wire.SearchResult)
    assert explained["hits"] == found["hits"][:1]


async def test_context_fits_its_schema(client: httpx.AsyncClient) -> None:
    answer = await client.post(f"{NOTES}/context", json=QUESTION)
    made = await check_schema(client, "/context", answer, wire.Context)
    assert len(made["sources"]) == 2


@pytest.mark.parametrize("path", ["/search", "/context"])
async def test_only_search_takes_explain(client: httpx.AsyncClient, path: str) -> None:
    done = await client.post(f"{NOTES}{path}", json=QUESTION | {"explain": True})
    assert done.status_code == (200 if path == "/search" else 422)


@pytest.mark.parametrize(
    ("path", "parameters", "model"),
    [
        ("/documents", {}, DocumentPage),
        ("/documents", {"limit": 1}, DocumentPage),
        ("/facts", {"entity": "login"}, Facts),
        ("/related", {"entity": "login", "hops": 2}, wire.Related),
        ("/stats", {}, wire.Statistics),
        ("/insight", {}, Insight),
    ],
)
async def test_reading_route_fits_its_schema(
    client: httpx.AsyncClient, path: str, parameters: dict[str, Any], model: type[wire.Wire]
) -> None:
    read = await check_schema(client, path, await client.get(f"{NOTES}{path}", params=parameters), model)
    assert next(iter(read.values()))


async def test_document_fits_its_schema(client: httpx.AsyncClient) -> None:
    for document in read_json(await client.get(f"{NOTES}/documents"))["documents"]:
        answer = await client.get(f"{NOTES}/documents/{document['id']}")
        read = await check_schema(client, "/documents/{document}", answer, wire.IndexedDocument)
        assert (read["document"], len(read["facts"])) == (document, 1)


@pytest.mark.parametrize(
    "value",
    [
        *("ä – 𝔘", 'a "quote"\n\u2028', 0.1 + 0.2, 1e-7, 2**53, -0.0, True, None, {}, []),
        *(10**30, "\ud800"),  # which `orjson` refuses, and an import may have
    ],
)
def test_json_is_read_as_it_was(value: object) -> None:
    assert json.loads(write_json({"value": value})) == {"value": value}
