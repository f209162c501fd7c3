"""The metadata of a hit is plain JSON, equal to that of the other surfaces, and hides nothing."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from integrations.knowledge import QUESTION, open_memory
from waylore import Waylore
from waylore.integrations.metadata import build_metadata
from waylore.surfaces import wire


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Waylore]:
    with open_memory(tmp_path_factory.mktemp("hits")) as memory:
        yield memory


def test_metadata_equals_wire_model(memory: Waylore) -> None:
    hits = memory.search(QUESTION).hits
    assert any(hit.path and hit.path.steps for hit in hits)
    for hit in hits:
        told = build_metadata(hit)["waylore"]
        same = hit.to_dict()
        wire.Hit.model_validate({key: value for key, value in same.items() if key != "facts"})
        for key in ("score", "placements", "path", "facts"):
            assert told[key] == same[key]
        ids = [step["fact_id"] for step in told["path"]["steps"]] if told["path"] else []
        assert [fact["id"] for fact in told["facts"]] == ids
        passage, document = same["passage"], same["document"]
        assert told["citation"] == {
            "document_id": document["id"],
            "passage_id": passage["id"],
            "title": document["title"],
            "uri": document["uri"],
            "headings": passage["headings"],
            "start": passage["start"],
            "end": passage["end"],
            "recorded_at": document["recorded_at"],
        }


def test_metadata_is_plain_json(memory: Waylore) -> None:
    for hit in memory.search(QUESTION).hits:
        told = build_metadata(hit)
        assert json.loads(json.dumps(told)) == told


def test_own_metadata_is_at_top(memory: Waylore) -> None:
    told = {hit.document.uri: build_metadata(hit) for hit in memory.search(QUESTION).hits}
    login, mara = told["docs/login.md"], told[""]
    assert (login["team"], login["tags"], login["year"]) == ("web", ["auth", "ui"], 2024)
    assert (login["title"], login["source"]) == ("Login", "docs/login.md")
    assert mara["source"] == mara["waylore"]["citation"]["document_id"]


def test_own_title_and_source_stay(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "own.waylore") as memory:
        memory.add("A heron.", title="ours", uri="a.md", metadata={"title": "theirs", "source": "shelf 4"})
        told = build_metadata(memory.search("heron").hits[0])
        assert (told["title"], told["source"]) == ("theirs", "shelf 4")
        assert (told["waylore"]["citation"]["title"], told["waylore"]["citation"]["uri"]) == ("ours", "a.md")
