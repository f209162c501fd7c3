"""Test the reranker of the settings: every surface uses it, gives the same order, and can do without it."""

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from typer.testing import CliRunner

from surfaces.serving import open_client
from unit.providers.cross_encoder import write_cross_encoder
from unit.providers.loopback import Script, fail_with, score_text, serve
from waylore import SearchResult, Waylore
from waylore.errors import ArgumentError, ConfigError, ModelUnavailable
from waylore.integrations.langchain import WayloreRetriever
from waylore.providers.rerankers.fastembed import FastReranker
from waylore.settings.load import load
from waylore.surfaces.cli.app import app
from waylore.surfaces.mcp.server import create_server
from waylore.surfaces.open import check_providers, open_collection
from waylore.surfaces.tools.tools import Agent

QUESTION = "Who keeps the lighthouse of Kiel?"
TEXTS = (
    "Kiel: a lighthouse.",
    "Nils keeps bees.",
    "The lighthouse of Kiel is old; the harbour of Kiel is older than the lighthouse, and the town is the oldest.",
    "Rain is expected in the evening.",
    "In the winter Ada keeps the keys of the lighthouse, and Nils keeps the boats.",
)
NO_RERANKER = "set search.reranker in waylore.toml"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cross_encoder(tmp_path_factory.mktemp("models") / "overlap", [QUESTION, *TEXTS])


@pytest.fixture
def server() -> Iterator[Script]:
    with serve() as script:
        yield script
        gc.collect()  # a reranker that the settings create closes its connections when it is collected


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the texts into a file of a folder without settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    with Waylore.open("m.waylore") as memory:
        for text in TEXTS:
            memory.add(text)
    return Path("m.waylore")


@pytest.fixture(params=["fastembed", "endpoint"])
def settings(request: pytest.FixtureRequest, weights: Path, server: Script) -> dict[str, Any]:
    """Return the settings of a reranker."""
    own = {"path": str(weights)} if request.param == "fastembed" else {"base_url": server.url, "model": "rank-model"}
    return {"search": {"reranker": request.param}, "reranking": own}


@pytest.fixture
def variables(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the reranker by variables of the environment, as for a command."""
    for section, values in settings.items():
        for name, value in values.items():
            monkeypatch.setenv(f"WAYLORE_{section}_{name}".upper(), value)


def list_hits(result: SearchResult) -> list[tuple[str, float]]:
    return [(hit.text, hit.score) for hit in result]


def run(*arguments: str) -> Any:
    done = CliRunner().invoke(app, [*arguments, "--store", "m.waylore", "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def read_hits(found: dict[str, Any]) -> list[tuple[str, float]]:
    return [(hit["passage"]["text"], hit["score"]) for hit in found["hits"]]


@pytest.fixture
def plain(store: Path) -> list[tuple[str, float]]:
    with Waylore.open(store) as memory:
        return list_hits(memory.search(QUESTION, record_use=False))


@pytest.fixture
def expected(store: Path, weights: Path, plain: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the order of the cross-encoder, which the server has too, as Python gives it."""
    with Waylore.open(store, reranker=FastReranker(path=weights)) as memory:
        found = list_hits(memory.search(QUESTION, record_use=False))
    assert sorted(text for text, _ in found) == sorted(text for text, _ in plain)
    assert [text for text, _ in found] != [text for text, _ in plain]
    assert [score for _, score in found] == sorted((score_text(QUESTION, text) for text, _ in found), reverse=True)
    return found


def test_python_uses_it(
    store: Path, settings: dict[str, Any], expected: list[tuple[str, float]], plain: list[tuple[str, float]]
) -> None:
    with open_collection(load(store=str(store), **settings)) as memory:
        assert list_hits(memory.search(QUESTION)) == expected
        assert list_hits(memory.search(QUESTION, rerank=True)) == expected
        assert list_hits(memory.search(QUESTION, rerank=False)) == plain
        found = WayloreRetriever(memory=memory).invoke(QUESTION)
        assert [each.page_content for each in found] == [text for text, _ in expected]
        left = WayloreRetriever(memory=memory, rerank=False).invoke(QUESTION)
        assert [each.page_content for each in left] == [text for text, _ in plain]


@pytest.mark.usefixtures("variables")
def test_command_line_uses_it(expected: list[tuple[str, float]], plain: list[tuple[str, float]]) -> None:
    assert read_hits(run("search", QUESTION)) == expected
    assert read_hits(run("search", QUESTION, "--method", "keyword", "--rerank"))[0] == expected[0]
    assert read_hits(run("search", QUESTION, "--no-rerank")) == plain
    explained = run("explain", QUESTION, "1")["result"]["hits"][0]
    shares = {each["search"]: each["share"] for each in explained["placements"]}
    assert explained["passage"]["text"] == expected[0][0]
    assert shares["reranker"] == expected[0][1]
    assert {share for name, share in shares.items() if name != "reranker"} == {0}
    tree = CliRunner().invoke(app, ["explain", QUESTION, "1", "--store", "m.waylore"])
    assert "reranker" in tree.stdout


async def test_http_uses_it(
    store: Path, settings: dict[str, Any], expected: list[tuple[str, float]], plain: list[tuple[str, float]]
) -> None:
    async with open_client(load(store=str(store), http={"rate_limit": 0}, **settings)) as client:
        await client.put("/v1/collections/default", json={})
        for body, hits in (({}, expected), ({"rerank": True}, expected), ({"rerank": False}, plain)):
            answer = await client.post("/v1/collections/default/search", json={"query": QUESTION, **body})
            assert read_hits(answer.json()) == hits, body


async def test_mcp_uses_it(
    store: Path, settings: dict[str, Any], expected: list[tuple[str, float]], plain: list[tuple[str, float]]
) -> None:
    with open_collection(load(store=str(store), **settings)) as memory:
        async with Client(create_server(lambda _: Agent(memory))) as client:
            for given, hits in (({}, expected), ({"rerank": True}, expected), ({"rerank": False}, plain)):
                told = await client.call_tool("memory_search", {"query": QUESTION, "explain": True, **given})
                assert told.structured_content is not None
                assert [hit["score"] for hit in told.structured_content["hits"]] == [score for _, score in hits], given


# -- without a reranker, and with a broken one ---------------------------------------------------------


async def test_true_without_a_reranker_names_the_setting(store: Path) -> None:
    with Waylore.open(store) as memory:
        with pytest.raises(ArgumentError, match=NO_RERANKER):
            memory.search(QUESTION, rerank=True)
        async with Client(create_server(lambda _: Agent(memory))) as client:
            told = await client.call_tool("memory_search", {"query": QUESTION, "rerank": True})
            assert told.is_error
            assert NO_RERANKER in str(told.content)
    done = CliRunner().invoke(app, ["search", QUESTION, "--rerank", "--store", str(store)])
    assert done.exit_code == 2
    assert NO_RERANKER in done.stderr
    async with open_client(load(store=str(store))) as client:
        await client.put("/v1/collections/default", json={})
        answer = await client.post("/v1/collections/default/search", json={"query": QUESTION, "rerank": True})
    assert answer.status_code == 422
    assert NO_RERANKER in answer.text


@pytest.mark.usefixtures("plain")
def test_failed_server_leaves_the_order_and_is_reported(
    server: Script, plain: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("SEARCH_RERANKER", "endpoint"), ("RERANKING_MODEL", "m"), ("RERANKING_BASE_URL", server.url)):
        monkeypatch.setenv(f"WAYLORE_{name}", value)
    monkeypatch.setenv("WAYLORE_RERANKING_API_KEY", "sk-very-secret")
    server.faults.append(fail_with(401, "sk-very-secret is wrong"))
    found = run("search", QUESTION)
    assert read_hits(found) == plain
    assert len(found["missing"]) == 2  # with the line about the embedder
    assert "reranker: m at" in found["missing"][-1]
    assert "401: [api_key] is wrong" in found["missing"][-1]
    server.faults.append(fail_with(401, "no"))
    people = CliRunner().invoke(app, ["search", QUESTION, "--store", "m.waylore"])
    assert "reranker" in people.output


def test_wrong_settings_raise(store: Path, tmp_path: Path) -> None:
    def open_with(**reranking: str) -> None:
        open_collection(load(store=str(store), search={"reranker": "endpoint"}, reranking=reranking))

    with pytest.raises(ConfigError, match=r"reranking\.base_url is empty"):
        open_with(model="m")
    with pytest.raises(ConfigError, match=r"reranking\.model is empty"):
        open_with(base_url="http://localhost:1")
    with pytest.raises(ConfigError, match="must begin with http"):
        open_with(model="m", base_url="localhost:1")
    wrong = load(store=str(store), search={"reranker": "nothing"})
    for check in (open_collection, check_providers):
        with pytest.raises(ConfigError, match=r"search\.reranker must be one of fastembed, endpoint, got 'nothing'"):
            check(wrong)
    with pytest.raises(ModelUnavailable, match=r"one \.onnx file"):
        open_collection(
            load(store=str(store), search={"reranker": "fastembed"}, reranking={"path": str(tmp_path / "no")})
        )


def test_commands_without_a_search_need_no_reranker(
    plain: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYLORE_SEARCH_RERANKER", "nothing")
    assert len(run("list")) == len(TEXTS)
    assert read_hits(run("search", QUESTION, "--no-rerank")) == plain


@pytest.mark.usefixtures("variables", "store")
def test_doctor_tries_it(settings: dict[str, Any]) -> None:
    checks = {each["subject"]: each for each in run_doctor()}
    name = settings["reranking"].get("model", "Xenova/ms-marco-MiniLM-L-6-v2")
    assert (checks["reranker"]["state"], checks["reranker"]["message"]) == ("good", name)


@pytest.mark.usefixtures("store")
def test_doctor_reports_a_broken_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "reranker" not in {each["subject"] for each in run_doctor()}
    monkeypatch.setenv("WAYLORE_SEARCH_RERANKER", "endpoint")
    [found] = [each for each in run_doctor() if each["subject"] == "reranker"]
    assert found["state"] == "wrong"
    assert "[reranking]" in found["remedy"]


def run_doctor() -> list[dict[str, str]]:
    done = CliRunner().invoke(app, ["doctor", "--store", "m.waylore", "--json"])
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found
