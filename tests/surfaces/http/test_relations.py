"""Test the routes of questions about the graph: the same answers as from Python, as their models describe them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from surfaces.http.test_routes import NOTES
from surfaces.serving import make_settings, open_client, read_json
from waylore import Waylore
from waylore.surfaces import wire

FACTS = [
    {"subject": "Billing", "predicate": "needs", "object": "Quarry", "subject_type": "service"},
    {"subject": "Ledger", "predicate": "relies on", "object": "Billing"},
    {"subject": "Mara", "predicate": "owns", "object": "Quarry"},
]


@pytest.fixture
async def on_file(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(make_settings(tmp_path / "memory.waylore")) as made:
        yield made


async def read(client: httpx.AsyncClient, path: str, model: type[wire.Wire], **parameters: Any) -> Any:
    answer = await client.get(f"{NOTES}{path}", params=parameters)
    assert answer.status_code == 200, answer.text
    model.model_validate_json(answer.content, strict=True)
    return answer.json()


async def test_graph_is_answered_as_by_python(on_file: httpx.AsyncClient, tmp_path: Path) -> None:
    read_json(await on_file.post(f"{NOTES}/facts", json={"facts": FACTS}))
    asked = {"predicate": ["depends on"], "direction": "in", "hops": 3}
    related = await read(on_file, "/related", wire.Related, entity="quarry", **asked)
    path = await read(on_file, "/connection", wire.Connection, entity="Ledger", to="Mara")
    listed = await read(on_file, "/entities", wire.EntityList, predicate="owns", object="Quarry")
    typed = await read(on_file, "/entities", wire.EntityList, type="service")
    with Waylore.open(tmp_path / "memory.waylore") as memory:
        known = memory.related("quarry", predicates="depends on", direction="in", hops=3)
        assert (related, known.total) == (known.to_dict(), 2)
        assert path == memory.connect("Ledger", "Mara").to_dict()
        assert listed == memory.list_entities(predicate="owns", object="Quarry").to_dict()
    assert path["paths"][0]["text"] == "Ledger —relies on→ Billing —needs→ Quarry ←owns— Mara"
    assert [entity["name"] for entity in typed["entities"]] == ["Billing"]
    first = await read(on_file, "/entities", wire.EntityList, limit=2)
    rest = await read(on_file, "/entities", wire.EntityList, after=first["after"])
    assert len({each["id"] for page in (first, rest) for each in page["entities"]}) == first["total"] == 4


@pytest.mark.parametrize(
    "path",
    [
        "/related",
        "/related?entity=a&direction=up",
        "/related?entity=a&hops=7",
        "/connection?entity=a",
        "/entities?after=x",
    ],
)
async def test_wrong_questions_are_refused(on_file: httpx.AsyncClient, path: str) -> None:
    assert (await on_file.get(f"{NOTES}{path}")).status_code == 422
