"""Test that Python, command line, MCP and HTTP give the same hits, scores and explanations for one corpus.

Each surface has its own copy of the stores and gets the same questions in the same order. It opens and closes the
store for each question, so that every use is counted before the next one, as on the other surfaces.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tools.models import CACHE
from typer.testing import CliRunner

from acceptance.test_golden import QUESTIONS, WORLDS, GoldenQuestion, fill_memory
from requirements import find_model
from surfaces.agents import unfence
from surfaces.serving import open_client
from waylore import Waylore
from waylore.providers.embedders.model2vec import Model2VecEmbedder
from waylore.recipes import RECIPES
from waylore.settings.load import load
from waylore.surfaces.cli.app import app
from waylore.surfaces.mcp import server
from waylore.surfaces.tools.tools import Agent

SELECTED = list({(golden.world, golden.recipe): golden for golden in QUESTIONS}.values())  # one of each
EMBEDDING = {"provider": "model2vec", "path": str(CACHE / "potion")}

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def embedder() -> Model2VecEmbedder:
    return Model2VecEmbedder(find_model("potion"))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, embedder: Model2VecEmbedder) -> Path:
    """Write the four worlds, each into a file."""
    folder = tmp_path_factory.mktemp("worlds")
    for world in WORLDS:
        fill_memory(folder, embedder, world).close()
    return folder


@pytest.fixture
def own(stores: Path, tmp_path: Path) -> Callable[[GoldenQuestion], Path]:
    """Return the path of a world in a copy of the stores."""
    shutil.copytree(stores, tmp_path / "own")
    return lambda golden: tmp_path / "own" / f"{golden.world}.waylore"


@pytest.fixture(scope="module")
def expected(
    stores: Path, tmp_path_factory: pytest.TempPathFactory, embedder: Model2VecEmbedder
) -> list[dict[str, Any]]:
    """Return the results of Python."""
    own = tmp_path_factory.mktemp("python") / "own"
    shutil.copytree(stores, own)
    return list(search_with_python(own, embedder))


def search_with_python(own: Path, embedder: Model2VecEmbedder) -> Iterator[dict[str, Any]]:
    for golden in SELECTED:
        with Waylore.open(own / f"{golden.world}.waylore", embedder=embedder) as memory:
            found = memory.search(
                golden.question,
                top_k=golden.top_k,
                method=golden.recipe,
                where=golden.where,
                as_of=golden.as_of,
            )
            yield drop_times(found.to_dict(explain=True))


def drop_times(found: dict[str, Any]) -> dict[str, Any]:
    """Return a result without its times."""
    return {name: value for name, value in found.items() if name != "seconds"}


def test_questions_cover_all_worlds_and_recipes(expected: list[dict[str, Any]]) -> None:
    assert {golden.world for golden in SELECTED} == set(WORLDS)
    assert {golden.recipe for golden in SELECTED} == {"auto", *RECIPES} - {
        "conversation",
        "mixed",
    }  # the worlds have no turns
    assert sum(any(hit["path"] for hit in found["hits"]) for found in expected) >= 10
    assert all(found["hits"] for found in expected)


def test_command_line_gives_equal_answers(
    own: Callable[[GoldenQuestion], Path],
    expected: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in EMBEDDING.items():
        monkeypatch.setenv(f"WAYLORE_EMBEDDING_{name.upper()}", value)
    for golden, found in zip(SELECTED, expected, strict=True):
        done = CliRunner().invoke(
            app, ["search", *make_arguments(golden), "--store", str(own(golden)), "--explain", "--json"]
        )
        assert done.exit_code == 0, done.output
        assert drop_times(json.loads(done.stdout)) == found, golden.id


def make_arguments(golden: GoldenQuestion) -> list[str]:
    """Return the command-line arguments of a question."""
    values = [
        ("--where", f"{key}={one}")
        for key, value in golden.metadata.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    seen = () if golden.labels is None else golden.labels or ("",)
    labels = [("--label", label) for label in seen]
    as_of = [("--as-of", golden.as_of.isoformat())] if golden.as_of else []
    options = [("--method", golden.recipe), ("--top-k", str(golden.top_k)), *labels, *values, *as_of]
    return [golden.question, *(word for option in options for word in option)]


@pytest.mark.timeout(600)
async def test_http_gives_equal_answers(own: Callable[[GoldenQuestion], Path], expected: list[dict[str, Any]]) -> None:
    for golden, found in zip(SELECTED, expected, strict=True):
        settings = load(store=str(own(golden)), embedding=EMBEDDING, http={"rate_limit": 0})
        async with open_client(settings) as client:
            made = await client.put("/v1/collections/default", json={})
            assert made.status_code < 300, made.text
            answer = await client.post("/v1/collections/default/search", json=make_body(golden))
        assert answer.status_code == 200, answer.text
        assert drop_times(answer.json()) == found, golden.id


def make_body(golden: GoldenQuestion) -> dict[str, Any]:
    """Return the HTTP body of a question."""
    asked = {"query": golden.question, "method": golden.recipe, "top_k": golden.top_k, "explain": True}
    labels = {} if golden.labels is None else {"labels": list(golden.labels)}
    as_of = {"as_of": golden.as_of.isoformat()} if golden.as_of else {}
    return {**asked, "where": dict(golden.metadata), **labels, **as_of}


async def test_mcp_gives_equal_answers(
    own: Callable[[GoldenQuestion], Path], expected: list[dict[str, Any]], embedder: Model2VecEmbedder
) -> None:
    """Compare the questions that MCP supports: with and without the graph, with labels, without dates."""
    compared = 0
    for golden, found in zip(SELECTED, expected, strict=True):
        if golden.recipe not in {"chain", "hybrid"} or golden.as_of or golden.metadata:
            continue
        labels = None if golden.labels is None else frozenset(golden.labels)
        with Waylore.open(own(golden), embedder=embedder) as memory:
            agent = Agent(memory, labels)
            async with Client(server.create_server(lambda _, agent=agent: agent)) as client:  # type: ignore[misc]
                asked = {"query": golden.question, "max_results": golden.top_k, "max_tokens": 100_000}
                told = await client.call_tool("memory_search", {**asked, "use_graph": golden.recipe == "chain"})
        assert told.structured_content is not None
        shown = [{**hit, "text": unfence(hit["text"])} for hit in told.structured_content["hits"]]
        assert shown == [shorten_hit(hit) for hit in found["hits"]], golden.id
        assert told.structured_content["skip_reason"] == found["skip_reason"]
        assert told.structured_content["entities"] == [entity["name"] for entity in found["entities"]]
        compared += 1
    assert compared >= 3


def shorten_hit(hit: dict[str, Any]) -> dict[str, Any]:
    """Return a hit as the MCP tool shows it, with its explanation as lines."""
    return {
        "mark": hit["passage"]["id"][:8],
        "score": hit["score"],
        "title": hit["passage"]["title"] or hit["document"]["title"],
        "uri": hit["document"]["uri"],
        "text": hit["passage"]["text"],
        "path": hit["path"]["text"] if hit["path"] else "",
        "why": [
            f"{detail['value']:.4f} {detail['description']}"
            for detail in hit["explanation"]["details"]
            if not detail["description"].startswith("path: ")
        ],
        "passage_id": hit["passage"]["id"],
        "document_id": hit["document"]["id"],
    }
