"""Test what the Insight view is served, by the rights of the caller, and the routes for merged names."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from databases import create_database
from surfaces.serving import create_client, create_token, make_settings, read_json, start_app
from waylore.service.activity import BOUNDS
from waylore.surfaces.http.responses import Insight, MergeList

NOTES = "/v1/collections/default"
TEXTS: tuple[dict[str, Any], ...] = (
    {"text": "The login needs the session service.", "uri": "a.md"},
    {"text": "The vault opens at nine.", "uri": "b.md", "labels": ["red"]},
    {"text": "I live in Turku.", "uri": "c.md", "user": "mara"},
)
KEYS: dict[str, dict[str, Any]] = {
    "admin": {},
    "reader": {"scope": "read"},
    "red": {"scope": "read", "labels": ["red"]},
    "blue": {"scope": "admin", "labels": ["blue"]},
    "mara": {"scope": "read", "user": "mara"},
    "jo": {"scope": "read", "user": "jo"},
}


async def read_insight(client: httpx.AsyncClient) -> Insight:
    return Insight.model_validate(read_json(await client.get(f"{NOTES}/insight")))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return create_database() if request.param == "postgres" else str(tmp_path / "memory.waylore")


async def test_caller_sees_counts_of_what_it_may_read(store: str) -> None:
    seen: dict[str, Insight] = {}
    async with start_app(make_settings(store)) as app:
        async with create_client(app, create_token(store)) as admin:
            for body in TEXTS:
                read_json(await admin.post(f"{NOTES}/documents", json=body))
            read_json(await admin.post(f"{NOTES}/search", json={"query": "Who opens the vault?"}))
        for name, rights in KEYS.items():
            async with create_client(app, create_token(store, **rights)) as client:
                seen[name] = await read_insight(client)
    counts = {name: sum(day.documents for day in each.growth) for name, each in seen.items()}
    assert counts == {"admin": 3, "reader": 3, "red": 2, "blue": 1, "mara": 3, "jo": 2}
    assert [name for name, each in seen.items() if each.statistics] == ["admin", "reader"]
    assert [name for name, each in seen.items() if each.gate is not None] == ["admin", "reader"]
    assert [name for name, each in seen.items() if each.stages is not None] == ["admin"]


async def test_searches_are_counted_by_decision_and_by_time_of_each_stage(tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "memory.waylore")
    async with start_app(settings) as app, create_client(app, create_token(settings.store)) as admin:
        read_json(await admin.post(f"{NOTES}/documents", json=TEXTS[0]))
        for method in ("keyword", "hybrid"):
            read_json(await admin.post(f"{NOTES}/search", json={"query": "login", "method": method}))
        insight = await read_insight(admin)
        assert insight.gate == {"unused": 2}
        stages = {each.stage: each.counts for each in insight.stages or ()}
        assert sum(stages["keyword"]) == 2
        assert {len(counts) for counts in stages.values()} == {len(BOUNDS) + 1}
        read_json(await admin.put("/v1/collections/other", json={}))
        assert (await read_json_of(admin, "/v1/collections/other/insight"))["gate"] == {}


async def read_json_of(client: httpx.AsyncClient, path: str) -> Any:
    return read_json(await client.get(path))


async def test_deleted_collection_leaves_no_counts(tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "memory.waylore")
    async with start_app(settings) as app, create_client(app, create_token(settings.store)) as admin:
        here = "/v1/collections/acme"
        for _ in range(2):
            read_json(await admin.put(here, json={}))
            assert (await read_json_of(admin, f"{here}/insight"))["gate"] == {}
            read_json(await admin.post(f"{here}/search", json={"query": "login", "method": "keyword"}))
            assert (await admin.delete(here)).status_code == 204


async def test_names_are_separated_and_the_document_undoes_it(tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "memory.waylore")
    fact = {"subject": "WHO", "predicate": "same_as", "object": "World Health Organization"}
    async with start_app(settings) as app, create_client(app, create_token(settings.store)) as admin:
        read_json(await admin.post(f"{NOTES}/facts", json={"facts": [fact]}))

        async def list_others() -> list[str]:
            found = MergeList.model_validate(await read_json_of(admin, f"{NOTES}/merges?entity=WHO"))
            return [merge.other.name for merge in found.merges if merge.is_same]

        assert await list_others() == ["World Health Organization"]
        pair = {"name": "WHO", "other": "World Health Organization"}
        made = read_json(await admin.post(f"{NOTES}/names/distinct", json=pair))
        assert await list_others() == []
        assert len((await read_json_of(admin, f"{NOTES}/related?entity=WHO"))["entities"]) == 1
        read_json(await admin.delete(f"{NOTES}/documents/{made['id']}"))
        assert await list_others() == ["World Health Organization"]
        once = await admin.post(f"{NOTES}/names/distinct", json={"name": "WHO", "other": "who"})
        assert once.status_code == 422
        async with create_client(app, create_token(settings.store, scope="read")) as reader:
            assert (await reader.post(f"{NOTES}/names/distinct", json=pair)).status_code == 403
