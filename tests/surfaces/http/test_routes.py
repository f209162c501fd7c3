"""Test that the routes return what the library returns, on SQLite and PostgreSQL, and how errors look."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from databases import create_database
from surfaces.serving import create_client, create_token, make_settings, open_client, read_json, start_app
from waylore import Waylore
from waylore.cells import admin
from waylore.cells.open import create_catalogue
from waylore.errors import NotFound
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import choose_recipe
from waylore.surfaces.http.responses import make_cursor, read_cursor

NOTES = "/v1/collections/default"
LOGIN = {
    "text": "The login needs the session service.",
    "uri": "login.md",
    "facts": [{"subject": "login", "predicate": "needs", "object": "session service"}],
}
MARA = {
    "text": "Mara looks after tokens.",
    "title": "Mara",
    "uri": "mara.md",
    "metadata": {"team": "core", "year": 2026, "tags": ["a", "b"]},
    "facts": [{"subject": "Mara", "predicate": "owns", "object": "session service"}],
}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return create_database() if request.param == "postgres" else str(tmp_path / "memory.waylore")


@pytest.fixture
async def asked(store: str) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(make_settings(store)) as made:
        yield made


@pytest.fixture
async def on_file(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(make_settings(tmp_path / "memory.waylore")) as made:
        yield made


async def add(asked: httpx.AsyncClient, *documents: dict[str, Any], to: str = NOTES) -> list[str]:
    return [read_json(await asked.post(f"{to}/documents", json=one))["id"] for one in documents]


async def test_search_equals_that_of_python(store: str, asked: httpx.AsyncClient) -> None:
    await add(asked, LOGIN, MARA)
    question = {"query": "Who can help with the login?", "method": "chain"}
    found = read_json(await asked.post(f"{NOTES}/search", json=question))
    with Waylore.open(store, embedder=HashingEmbedder(quiet=True)) as memory:
        same = memory.search("Who can help with the login?", method="chain").to_dict()
    for one, other in zip(found.pop("hits"), same.pop("hits"), strict=True):
        assert one["score"] == pytest.approx(other["score"], abs=1e-4)
        for part in ("passage", "document", "path"):
            assert one[part] == other[part]
    assert found | {"seconds": {}} == same | {"seconds": {}}


@pytest.mark.parametrize("method", ["vector", "Keyword", "hybrid", "GRAPH", "auto", "agentic", "graph_only"])
async def test_every_method_of_python_is_accepted(on_file: httpx.AsyncClient, method: str) -> None:
    question = "Who can help with the login?"
    found = read_json(await on_file.post(f"{NOTES}/search", json={"query": question, "method": method}))
    assert found["recipe"] == choose_recipe(method, question)[0].name


async def test_search_chooses_by_default_and_names_the_reason(on_file: httpx.AsyncClient) -> None:
    await add(on_file, LOGIN)
    for query, reason in (
        ("login vs logout", "hybrid: it compares"),
        ("the login", "chain: the default for documents"),
    ):
        assert read_json(await on_file.post(f"{NOTES}/search", json={"query": query}))["route_reason"] == reason


async def test_context_cites_passages_within_budget(on_file: httpx.AsyncClient) -> None:
    await add(on_file, LOGIN, MARA)
    question = {"query": "Who can help with the login?", "layout": "passages", "max_tokens": 200}
    made = read_json(await on_file.post(f"{NOTES}/context", json=question))
    assert made["tokens"] <= 200
    assert [source["uri"] for source in made["sources"]] == ["login.md", "mara.md"]


async def test_explain_returns_one_hit(on_file: httpx.AsyncClient) -> None:
    await add(on_file, LOGIN, MARA)
    question = {"query": "Who can help with the login?"}
    found = read_json(await on_file.post(f"{NOTES}/search", json=question | {"explain": True}))
    second = found["hits"][1]
    explained = read_json(await on_file.post(f"{NOTES}/explain", json=question | {"passage": second["passage"]["id"]}))
    assert [hit["passage"]["text"] for hit in found["hits"]] == [LOGIN["text"], MARA["text"]]
    assert explained["hits"][0]["path"]["text"] == "login —needs→ session service → this passage"
    assert explained["hits"] == [second]
    missing = await on_file.post(f"{NOTES}/explain", json=question | {"passage": "0" * 32})
    assert missing.status_code == 404


async def test_search_filters_and_facts_have_dates(asked: httpx.AsyncClient) -> None:
    await add(asked, LOGIN, MARA)
    only = {"query": "session service login tokens", "where": {"team": "core", "tags": "b"}}
    found = read_json(await asked.post(f"{NOTES}/search", json=only))
    assert [hit["document"]["uri"] for hit in found["hits"]] == ["mara.md"]
    assert found["hits"][0]["document"]["metadata"] == MARA["metadata"]
    fact = {"subject": "Mara", "predicate": "works_at", "object": "Acme", "valid_to": "2025-01-01T00:00:00Z"}
    read_json(await asked.post(f"{NOTES}/facts", json={"facts": [fact]}))
    dates = ("2024-06-01T00:00:00Z", 1), ("2025-06-01T00:00:00Z", 0), ("2024-06-01", 1), ("2025-06-01T08:00", 0)
    for when, many in dates:
        facts = read_json(await asked.get(f"{NOTES}/facts", params={"entity": "Mara", "as_of": when}))["facts"]
        assert len([fact for fact in facts if fact["predicate"] == "works_at"]) == many


async def test_related_facts_are_a_tree(asked: httpx.AsyncClient) -> None:
    await add(asked, LOGIN, MARA)
    around = read_json(await asked.get(f"{NOTES}/related", params={"entity": "login", "hops": 2}))
    [needs] = around["facts"]
    assert (needs["predicate"], needs["entity"]["name"]) == ("needs", "session service")
    assert (needs["source"], needs["confidence"], needs["status"]) == ("file", 1.0, "confirmed")
    assert [(branch["is_forward"], branch["entity"]["name"]) for branch in needs["branches"]] == [(False, "Mara")]
    nothing = read_json(await asked.get(f"{NOTES}/related", params={"entity": "AC/DC?"}))
    assert (nothing["entities"], nothing["similar"], nothing["facts"]) == ([], [], [])


async def test_unknown_name_has_no_facts_and_routes_lead_to_others(asked: httpx.AsyncClient) -> None:
    """T95: a list of nothing is empty, `/related` names similar entities, and `/entities` lists all."""
    await add(asked, LOGIN, MARA, {"text": "Ida Berg met Ida Holm. Ida Berg sails.", "title": "People"})
    assert read_json(await asked.get(f"{NOTES}/facts", params={"entity": "Ida"})) == {"facts": []}
    around = read_json(await asked.get(f"{NOTES}/related", params={"entity": "Ida"}))
    assert (around["entities"], [each["name"] for each in around["similar"]]) == ([], ["Ida Berg", "Ida Holm"])
    listed = read_json(await asked.get(f"{NOTES}/entities"))["entities"]
    assert {"Ida Berg", "Ida Holm", "Mara", "login"} <= {each["name"] for each in listed}


async def test_forget_returns_receipt_that_verifies(asked: httpx.AsyncClient) -> None:
    login, mara = await add(asked, LOGIN, MARA)
    assert read_json(await asked.get(f"{NOTES}/documents/{login}"))["document"]["uri"] == "login.md"
    receipt = read_json(await asked.delete(f"{NOTES}/documents/{login}"))
    assert receipt["documents"] == [login]
    assert read_json(await asked.post(f"{NOTES}/receipts/verify", json=receipt)) == {"left": []}
    assert (await asked.get(f"{NOTES}/documents/{login}")).status_code == 404
    assert (await asked.delete(f"{NOTES}/documents/{login}")).status_code == 404
    gone = read_json(await asked.post(f"{NOTES}/documents/forget", json={"documents": [login, mara]}))
    assert gone["documents"] == [mara]
    assert read_json(await asked.get(f"{NOTES}/stats"))["documents"] == 0


async def test_export_can_be_imported(store: str, asked: httpx.AsyncClient, tmp_path: Path) -> None:
    await add(asked, *({"text": f"Note {n} of the login.", "uri": f"{n}.md"} for n in range(150)))
    async with asked.stream("GET", f"{NOTES}/export") as answer:
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        lines = [line async for line in answer.aiter_lines()]
    assert len(lines) == 151
    path = tmp_path / "export.jsonl"
    path.write_text("\n".join(lines))
    with Waylore.open(tmp_path / "other.waylore") as other:
        assert other.import_(path).documents == 150
    with Waylore.open(store) as memory:
        memory.export(tmp_path / "same.jsonl")
    assert (tmp_path / "same.jsonl").read_text().splitlines() == lines


async def test_collections_can_be_created_and_deleted(asked: httpx.AsyncClient) -> None:
    made = await asked.put("/v1/collections/acme", json={"description": "for Acme"})
    again = await asked.put("/v1/collections/acme", json={"description": "for all of Acme"})
    assert (made.status_code, again.status_code) == (201, 200)
    assert read_json(again)["created"] == read_json(made)["created"]
    await add(asked, LOGIN, to="/v1/collections/acme")
    listed = read_json(await asked.get("/v1/collections"))["collections"]
    assert [(one["name"], one["description"]) for one in listed] == [
        ("acme", "for all of Acme"),
        ("default", ""),
    ]
    assert read_json(await asked.get(f"{NOTES}/stats"))["documents"] == 0
    assert (await asked.delete("/v1/collections/acme")).status_code == 204
    assert (await asked.get("/v1/collections/acme")).status_code == 404
    read_json(await asked.put("/v1/collections/acme", json={}))
    assert read_json(await asked.get("/v1/collections/acme/stats"))["documents"] == 0


async def test_collections_of_several_cells_are_served(tmp_path: Path) -> None:
    with closing(create_catalogue(str(tmp_path / "catalogue.waylore"))) as catalogue:
        for name in ("east", "west"):
            admin.add_cell(catalogue, name, str(tmp_path / f"{name}.waylore"))
    async with open_client(make_settings(f"cells+sqlite:///{tmp_path / 'catalogue.waylore'}")) as asked:
        for name in ("acme", "other"):
            read_json(await asked.put(f"/v1/collections/{name}", json={}))
            await add(asked, {"text": f"The login of {name}."}, to=f"/v1/collections/{name}")
            found = read_json(await asked.post(f"/v1/collections/{name}/search", json={"query": "login"}))
            assert [hit["passage"]["text"] for hit in found["hits"]] == [f"The login of {name}."]
        assert (await asked.delete("/v1/collections/acme")).status_code == 204


# -- pages ---------------------------------------------------------------------------------------------


async def pages(asked: httpx.AsyncClient, limit: int) -> AsyncIterator[list[str]]:
    cursor: dict[str, str] = {}
    while True:
        page = read_json(await asked.get(f"{NOTES}/documents", params={"limit": limit, **cursor}))
        yield [document["uri"] for document in page["documents"]]
        if page["next"] is None:
            return
        cursor = {"cursor": page["next"]}


async def test_last_page_that_is_full_has_no_next(asked: httpx.AsyncClient) -> None:
    await add(asked, *({"text": f"Note {n}.", "uri": f"{n}"} for n in range(4)))
    assert [page async for page in pages(asked, 2)] == [["0", "1"], ["2", "3"]]


async def test_collection_is_created_without_a_body(asked: httpx.AsyncClient) -> None:
    assert (await asked.put("/v1/collections/acme")).status_code == 201
    assert (await asked.put("/v1/collections/acme", content=b"{}")).status_code == 415


async def test_pages_are_stable_while_documents_change(asked: httpx.AsyncClient) -> None:
    ids = await add(asked, *({"text": f"Note {n}.", "uri": f"{n:02}"} for n in range(0, 20, 2)))
    shown: list[str] = []
    async for page in pages(asked, 3):
        shown.extend(page)
        if len(shown) == 3:  # what was shown goes, something comes before, and something after
            await asked.delete(f"{NOTES}/documents/{ids[0]}")
            await asked.delete(f"{NOTES}/documents/{ids[2]}")
            await add(asked, {"text": "Early.", "uri": "01"}, {"text": "Late.", "uri": "11"})
    assert shown == ["00", "02", "04", "06", "08", "10", "11", "12", "14", "16", "18"]


async def test_collections_and_keys_have_pages(asked: httpx.AsyncClient) -> None:
    for name in "abcde":
        read_json(await asked.put(f"/v1/collections/{name}", json={}))
        read_json(await asked.post("/v1/keys", json={"name": name, "collections": [name]}))
    for path, what, expected in (
        ("/v1/collections", "collections", ["a", "b", "c", "d", "default", "e"]),
        ("/v1/keys", "keys", ["a test", "a", "b", "c", "d", "e"]),
    ):
        shown: list[str] = []
        page: dict[str, Any] = {"next": ""}
        while page["next"] is not None:
            after = {"cursor": page["next"]} if page["next"] else {}
            page = read_json(await asked.get(path, params={"limit": 2, **after}))
            assert len(page[what]) <= 2
            shown += [one["name"] for one in page[what]]
        assert shown == expected


async def test_cursor_holds_for_one_list(on_file: httpx.AsyncClient) -> None:
    await add(on_file, *({"text": f"Note {n}.", "uri": f"a/{n}"} for n in range(3)))
    page = read_json(await on_file.get(f"{NOTES}/documents", params={"limit": 2, "under": "a/"}))
    read_json(await on_file.put("/v1/collections/other", json={}))
    for path, under in ((NOTES, ""), (NOTES, "a"), ("/v1/collections/other", "a/")):
        asked = {"cursor": page["next"], "under": under}
        assert (await on_file.get(f"{path}/documents", params=asked)).status_code == 404


@given(st.binary(min_size=1), st.text(), st.tuples(st.text(), st.text()), st.data())
def test_cursor_is_signed(secret: bytes, of: str, last: tuple[str, str], data: st.DataObject) -> None:
    made = make_cursor(secret, of, last)
    assert read_cursor(secret, of, made) == last
    at = data.draw(st.integers(0, len(made) - 1))
    changed = made[:at] + data.draw(st.sampled_from("Ab0-_")) + made[at + 1 :]
    try:
        assert read_cursor(secret, of, changed) == last  # the last sign has bits that say nothing
    except NotFound:
        assert changed != made


# -- what goes wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("GET", "/nowhere", {}, 404),
        ("GET", "/v1/collections/default/", {}, 404),
        ("GET", "/v1/collections/unknown/stats", {}, 404),
        ("GET", "/v1/collections/..%2F/stats", {}, 404),
        ("PATCH", "/v1/keys", {}, 405),
        ("POST", f"{NOTES}/search", {"content": b"{}", "headers": {"content-type": "text/plain"}}, 415),
        ("POST", f"{NOTES}/search", {"content": b"{}"}, 415),
        ("POST", f"{NOTES}/search", {"content": b"{", "headers": {"content-type": "application/json"}}, 422),
        ("POST", f"{NOTES}/search", {"json": {"query": " "}}, 422),
        ("POST", f"{NOTES}/search", {"json": {"query": "x", "unknown": 1}}, 422),
        ("POST", f"{NOTES}/documents", {"json": {"text": "a\x00b"}}, 422),
        ("POST", f"{NOTES}/documents", {"json": {"text": "x" * 1_000_001}}, 422),
        ("POST", f"{NOTES}/facts", {"json": {"facts": [["x" * 1_000, "is", "y" * 1_000]] * 600}}, 422),
        ("POST", f"{NOTES}/facts", {"json": {"facts": [["x", "is", "y"]] * 600, "metadata": {"a": "x" * 9_000}}}, 422),
        ("POST", f"{NOTES}/documents", {"json": {"text": "x", "metadata": {"a": {"b": 1}}}}, 422),
        ("GET", f"{NOTES}/documents/xyz", {}, 404),
        ("DELETE", f"{NOTES}/documents/xyz", {}, 404),
        ("GET", f"{NOTES}/jobs/xyz", {}, 404),
        ("DELETE", "/v1/keys/xyz", {}, 404),
        ("GET", f"{NOTES}/documents?limit=0", {}, 422),
    ],
)
async def test_errors_are_problems(
    on_file: httpx.AsyncClient, method: str, path: str, options: dict[str, Any], status: int
) -> None:
    done = await on_file.request(method, path, **options)
    assert done.status_code == status, done.text
    assert done.headers["content-type"] == "application/problem+json"
    said = done.json()
    assert set(said) == {"type", "title", "status", "detail", "request_id", "errors"}
    assert said["status"] == status
    assert said["request_id"] == done.headers["x-request-id"]
    assert said["detail"]


@pytest.mark.parametrize(
    ("route", "body", "field", "message"),
    [
        ("search", {"query": "x", "limit": 5}, "body.limit", "unknown field limit; use top_k"),
        ("search", {"query": "x", "filters": {}}, "body.filters", "unknown field filters; use where"),
        ("search", {"query": "x", "metadata": {}}, "body.metadata", "unknown field metadata; use where"),
        ("context", {"query": "x", "style": "graph"}, "body.style", "unknown field style; use layout"),
        ("search", {"query": "x", "recipe": "chain"}, "body.recipe", "unknown field recipe; use method"),
        ("documents/forget", {"ids": []}, "body.ids", "unknown field ids; use documents"),
    ],
)
async def test_unknown_field_names_the_right_one(
    on_file: httpx.AsyncClient, route: str, body: dict[str, Any], field: str, message: str
) -> None:
    problem = (await on_file.post(f"{NOTES}/{route}", json=body)).json()
    assert (problem["status"], problem["title"]) == (422, "Invalid request")
    assert {"field": field, "message": message} in problem["errors"]
    assert message in problem["detail"]


async def test_blank_question_is_refused_in_words(on_file: httpx.AsyncClient) -> None:
    answer = await on_file.post(f"{NOTES}/search", json={"query": " "})
    assert answer.status_code == 422
    assert answer.json()["detail"] == "body.query: must not be empty"


async def test_wrong_date_names_the_field(on_file: httpx.AsyncClient) -> None:
    done = await on_file.post(f"{NOTES}/search", json={"query": "x", "as_of": "yesterday"})
    assert done.status_code == 422
    assert done.json()["detail"].startswith("as_of must be a date such as 2026-01-31")


async def test_facts_may_be_triples(on_file: httpx.AsyncClient) -> None:
    facts = [["Mara", "owns", "login"], {"subject": "Mara", "predicate": "likes", "object": "tea"}]
    assert len(read_json(await on_file.post(f"{NOTES}/facts", json={"facts": facts}))["ids"]) == 2
    known = read_json(await on_file.get(f"{NOTES}/facts", params={"entity": "Mara"}))["facts"]
    assert {(fact["predicate"], fact["object"]) for fact in known} == {("owns", "login"), ("likes", "tea")}
    wrong = await on_file.post(f"{NOTES}/facts", json={"facts": [["Mara", "owns"]]})
    assert wrong.status_code == 422


async def test_documents_are_forgotten_by_address(on_file: httpx.AsyncClient) -> None:
    login, mara = await add(on_file, LOGIN, MARA)
    body = {"documents": ["login.md", mara, "nowhere.md"]}
    receipt = read_json(await on_file.post(f"{NOTES}/documents/forget", json=body))
    assert set(receipt["documents"]) == {login, mara}
    assert receipt["missing"] == ["nowhere.md"]


async def test_settings_are_the_defaults_of_a_search(tmp_path: Path) -> None:
    search = {"method": "keyword", "top_k": 1}
    async with open_client(make_settings(tmp_path / "memory.waylore", search=search)) as asked:
        await add(asked, LOGIN, MARA)
        found = read_json(await asked.post(f"{NOTES}/search", json={"query": "session service tokens"}))
        assert (found["recipe"], len(found["hits"])) == ("keyword", 1)
        body = {"query": "session service tokens", "method": "hybrid", "top_k": 2}
        found = read_json(await asked.post(f"{NOTES}/search", json=body))
        assert (found["recipe"], len(found["hits"])) == ("hybrid", 2)


async def test_lone_surrogate_is_refused(on_file: httpx.AsyncClient) -> None:
    body = b'{"text": "\\ud800", "metadata": {"\\udfff": "\\ud800"}}'
    done = await on_file.post(f"{NOTES}/documents", content=body, headers={"content-type": "application/json"})
    assert done.status_code == 422


async def test_allow_header_lists_all_methods(on_file: httpx.AsyncClient) -> None:
    for path, methods in (("", "GET, POST"), ("/forget", "POST"), (f"/{'0' * 32}", "DELETE, GET")):
        done = await on_file.request("PATCH", f"{NOTES}/documents{path}")
        assert done.headers["allow"] == methods


async def test_valid_request_id_is_kept(on_file: httpx.AsyncClient) -> None:
    done = await on_file.get("/healthz", headers={"X-Request-Id": "mine-1"})
    assert done.headers["x-request-id"] == "mine-1"
    done = await on_file.get("/healthz", headers={"X-Request-Id": "<script>"})
    assert len(done.headers["x-request-id"]) == 32


async def test_unexpected_error_hides_its_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    of = make_settings(tmp_path / "memory.waylore")
    async with start_app(of) as app, create_client(app, create_token(of.store)) as asked:

        @app.get("/broken")
        def broken() -> None:
            raise RuntimeError("a secret")

        done = await asked.get("/broken", headers={"X-Request-Id": "mine-2"})
    assert done.status_code == 500
    assert done.headers["content-type"] == "application/problem+json"
    assert "secret" not in done.text
    assert "mine-2" in caplog.text
    assert "a secret" in caplog.text


async def test_readiness_names_no_model_if_none_is_set(tmp_path: Path) -> None:
    of = make_settings(tmp_path / "memory.waylore", embedding={"provider": "none"})
    async with start_app(of) as app, create_client(app) as asked:
        ready = {"status": "ok", "store": "ok", "model": "none", "provider": "none"}
        assert read_json(await asked.get("/readyz")) == ready


async def test_readiness_reports_closed_store(tmp_path: Path) -> None:
    of = make_settings(tmp_path / "memory.waylore")
    async with start_app(of) as app, create_client(app, create_token(of.store)) as asked:
        ready = {"status": "ok", "store": "ok", "model": "ok", "provider": "none"}
        assert read_json(await asked.get("/readyz")) == ready
        app.state.service.registry.close()
        deadline = time.monotonic() + 30
        while (gone := await asked.get("/readyz")).status_code == 200 and time.monotonic() < deadline:
            await asyncio.sleep(0.1)  # until the store is checked again
        assert (gone.status_code, gone.json()["store"]) == (503, "unreachable")
        assert read_json(await asked.get("/healthz")) == {"status": "ok"}


async def test_cors_allows_configured_origins(tmp_path: Path) -> None:
    of = make_settings(tmp_path / "memory.waylore", http={"cors_origins": ["https://app.example"]})
    ask = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    async with open_client(of) as asked:
        allowed = await asked.options(f"{NOTES}/search", headers={"Origin": "https://app.example", **ask})
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        refused = await asked.options(f"{NOTES}/search", headers={"Origin": "https://evil.example", **ask})
        assert "access-control-allow-origin" not in refused.headers


# -- every parameter -----------------------------------------------------------------------------------

HOSTILE: list[Any] = [
    *("", " ", "\x00", "\n", "\ud800", "’; DROP TABLE documents; --", "../../etc/passwd", "%00", "*", "%"),
    *("a" * 100_000, "𝔘" * 5_000, "\u202e\u200b", "{{7*7}}", "${x}", "NaN", "-1", "1e999", "9" * 400, "null"),
    *(
        -1,
        0,
        2**63,
        10**30,
        1.5,
        float("nan"),
        float("inf"),
        True,
        None,
        [],
        {},
        [[]],
        {"a": {"b": []}},
        [None],
    ),
]


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


@examples(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
async def test_no_parameter_value_causes_internal_error(on_file: httpx.AsyncClient, data: st.DataObject) -> None:
    document = read_json(await on_file.get("/openapi.json"))
    method, path, operation = data.draw(st.sampled_from(operations(document)))
    hostile = st.sampled_from(HOSTILE) | st.text() | st.integers() | st.floats()
    query: dict[str, Any] = {}
    headers = {"content-type": "application/json"}
    for parameter in operation.get("parameters", []):
        value = data.draw(hostile)
        if parameter["in"] == "path":
            known = "default" if parameter["name"] == "collection" else "0" * 32
            path = path.replace(f"{{{parameter['name']}}}", data.draw(st.just(known) | st.just(quoted(value))))
        elif parameter["in"] == "query":
            query[parameter["name"]] = str(value)[:1_000].encode("utf-8", "replace")  # quoted, the client takes no more
        else:
            headers[parameter["name"]] = str(value).encode("ascii", "replace").decode().replace("\x00", "")[:500]
    body = None
    content = operation.get("requestBody", {}).get("content", {})
    if "application/octet-stream" in content:
        body = json.dumps(data.draw(hostile))
    if "application/json" in content:
        schema = content["application/json"]["schema"]
        properties = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"]
        body = json.dumps({name: data.draw(hostile) for name in properties if data.draw(st.booleans())})
    done = await on_file.request(method, path, params=query, headers=headers, content=body)
    assert done.status_code < 500, done.text
    assert done.status_code < 400 or done.headers["content-type"] == "application/problem+json"


def quoted(value: Any) -> str:
    """Return a value as one segment of a path."""
    return "".join(f"%{byte:02x}" for byte in str(value)[:300].encode("utf-8", "surrogatepass"))
