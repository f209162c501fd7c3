"""Test the page in a real Chromium against a real service: what it shows, to whom, and that nothing leaves."""

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acceptance.test_golden import fill_memory
from databases import create_database
from surfaces.commands import notes, process
from surfaces.explorer.browsing import EXPLORER, find_page, run_browser
from surfaces.explorer.test_serving import explore
from surfaces.serving import Served, create_token, start_service
from waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import METHODS

WORLD = "systems"
HASHING = {"WAYLORE_EMBEDDING_PROVIDER": "hashing"}
QUESTIONS: list[dict[str, str]] = [
    {"q": "Who is the boss of the people behind pilotboat?"},
    {"q": "Which team is lanternfish owned by?", "as_of": "2023-01-01"},
    {"q": "What soup is there on Wednesdays?", "method": "hybrid", "top_k": "3"},
    {"q": "What happened to the bookings in quayside in November?", "labels": "security"},
    {"q": "What should I do step by step when tidegate forgets who is logged in?", "method": "neighbourhood"},
]
OPTIONS = {"method": "--method", "top_k": "--top-k", "as_of": "--as-of", "labels": "--label"}
HIDDEN = {
    "question": "What happened to the bookings in quayside in November?",
    "uri": "sys/inc-377",
    "words": "INC-377",
}


MERGED = ("Skipper Vik", "Hanne Vik")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Path]]:
    folder = tmp_path_factory.mktemp("explorer")
    embedder, (name, other) = HashingEmbedder(quiet=True), MERGED
    fill_memory(folder, embedder, WORLD).close()
    with Waylore.open(folder / f"{WORLD}.waylore", embedder=embedder) as memory:  # on another day
        memory.add(f"{name} is {other}.", uri="sys/zz-names", facts=[(name, "same_as", other)])
    shutil.copy(folder / f"{WORLD}.waylore", folder / "copy.waylore")
    with start_service(folder / f"{WORLD}.waylore", folder) as running:
        yield running, folder


def print_json(folder: Path, *arguments: str) -> Any:
    """Return what a command prints on a copy of the store."""
    done = process(folder, *arguments, "--store", "copy.waylore", "--json", **HASHING)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def search(folder: Path, values: dict[str, str]) -> Any:
    """Return what `waylore search --json` prints."""
    given = [part for name, option in OPTIONS.items() if name in values for part in (option, values[name])]
    return print_json(folder, "search", values["q"], *given)


@pytest.mark.timeout(1_200)
def test_ask_shows_what_the_command_line_prints(served: tuple[Served, Path], tmp_path: Path) -> None:
    running, folder = served
    questions = [{"values": values, "expected": search(folder, values)} for values in QUESTIONS]
    assert sum(hit["path"] is not None for each in questions for hit in each["expected"]["hits"]) > 5
    limited = create_token(folder / f"{WORLD}.waylore", scope="read", labels=[])
    scene = {"url": running.url, "key": running.token, "limited_key": limited, "hidden": HIDDEN}
    run_browser("ask", {**scene, "questions": questions}, tmp_path)


@pytest.mark.timeout(1_200)
def test_documents_are_listed_added_and_forgotten(served: tuple[Served, Path], tmp_path: Path) -> None:
    running, folder = served
    limited = create_token(folder / f"{WORLD}.waylore", scope="read", labels=[])
    with Waylore.open(folder / "copy.waylore") as memory:
        documents = list(memory.documents(limit=1_000))
    scene = {
        "url": running.url,
        "key": running.token,
        "limited_key": limited,
        "all": [document.uri for document in documents],
        "visible": [document.uri for document in documents if not document.labels],
    }
    assert 10 < len(scene["visible"]) < len(scene["all"]) <= 50
    run_browser("documents", scene, tmp_path)


@pytest.mark.timeout(1_200)
def test_graph_shows_what_the_command_line_prints(served: tuple[Served, Path], tmp_path: Path) -> None:
    running, folder = served
    limited = create_token(folder / f"{WORLD}.waylore", scope="read", labels=[])
    scene = {
        "url": running.url,
        "key": running.token,
        "limited_key": limited,
        "related": print_json(folder, "related", "lanternfish", "--hops", "2", "--limit", "300"),
        "connection": print_json(folder, "connect", "quayside", "Hanne Vik"),
        "merged": MERGED,
        "hidden": "INC-377",
    }
    run_browser("graph", scene, tmp_path)


@pytest.mark.full
@pytest.mark.timeout(1_200)
def test_insight_shows_what_the_command_line_prints(served: tuple[Served, Path], tmp_path: Path) -> None:
    running, folder = served
    known, report = print_json(folder, "stats"), make_report(tmp_path)
    with running.client() as asked:
        for method in ("keyword", "neighbourhood"):
            question = {"query": "Which team is lanternfish owned by?", "method": method}
            assert asked.post("/v1/collections/default/search", json=question).status_code == 200
        seen = asked.get("/v1/collections/default/insight").json()
    assert len(known["growth"]) > 1
    with Waylore.open(folder / "copy.waylore") as memory:
        visible = sum(not document.labels for document in memory.documents(limit=1_000))
    scene = {
        "url": running.url,
        "key": running.token,
        "limited_key": create_token(folder / f"{WORLD}.waylore", scope="read", labels=[]),
        "statistics": known,
        "growth": known["growth"],
        "visible": visible,
        "gate": seen["gate"],
        "report": report,
        "methods": list(dict.fromkeys(row["method"] for row in json.loads(report)["rows"])),
    }
    run_browser("insight", scene, tmp_path)


def make_report(folder: Path) -> str:
    """Return the JSON that `waylore eval` writes for a folder of notes and its questions."""
    asked = [("Who leads Mara?", "mara.md"), ("Where are tokens kept?", "login.md")]
    lines = [json.dumps({"question": question, "gold": [{"path": path}]}) for question, path in asked]
    (folder / "questions.jsonl").write_text("\n".join(lines), "utf-8")
    options = ("--questions", "questions.jsonl", "--embedder", "hashing", "--json", "report.json")
    done = process(folder, "eval", str(notes(folder)), *options)
    assert done.returncode == 0, done.stderr
    return (folder / "report.json").read_text("utf-8")


SAID = {
    "mara": [
        ("2024-03-01", "I live in Turku and work at Corvane Robotics."),
        ("2024-09-05", "My favourite tea is rooibos."),
        ("2025-05-02", "I moved to Aarhus. I live in Aarhus now."),
    ],
    "jo": [("2025-01-01", "I live in Porto.")],
}


def remember(memory: Waylore) -> None:
    """Remember what the users said."""
    for user, turns in SAID.items():
        for day, said in turns:
            memory.remember([{"role": "user", "content": said, "at": day}], user=user, session=day)


@pytest.mark.full
@pytest.mark.timeout(1_200)
def test_memory_shows_what_the_command_line_prints(tmp_path: Path) -> None:
    store = tmp_path / "copy.waylore"
    with Waylore.open(store) as memory:
        remember(memory)
    scene = {
        "other_key": create_token(store, user="jo"),
        "profile": print_json(tmp_path, "profile", "mara"),
        "changes": print_json(tmp_path, "changes", "--user", "mara"),
    }
    with start_service(store, tmp_path, WAYLORE_EMBEDDING_PROVIDER="none") as running:
        run_browser("memory", {**scene, "url": running.url, "key": running.token}, tmp_path)


VIEWS: list[dict[str, Any]] = [
    {"name": "ask", "values": {"q": HIDDEN["question"]}, "ready": "article.card", "secret": HIDDEN["words"]},
    {"name": "graph", "values": {"entity": "quayside", "hops": "2"}, "ready": ".told h2", "secret": HIDDEN["words"]},
    {"name": "documents", "values": {}, "ready": ".list li", "secret": HIDDEN["uri"]},
    {"name": "memory", "values": {"user": "mara"}, "ready": ".memory h2", "secret": "Aarhus"},
    {"name": "insight", "values": {}, "ready": ".sizes dd", "secret": "Vectors are of"},
]


@pytest.mark.full  # the page asks the same service, whatever the store is
@pytest.mark.timeout(1_200)
def test_every_view_on_postgresql(tmp_path: Path) -> None:
    """A full key in a wide light page, a limited key in a narrow dark one; the other tests use a file."""
    store, embedder = create_database(), HashingEmbedder(quiet=True)
    with fill_memory(tmp_path, embedder, WORLD) as memory:
        memory.export(tmp_path / "world.jsonl")
    with Waylore.open(store, embedder=embedder) as memory:
        memory.import_(tmp_path / "world.jsonl")
        remember(memory)
    limited = create_token(store, scope="read", labels=[], user="jo")
    with start_service(store, tmp_path) as running:
        scene = {"url": running.url, "key": running.token, "limited_key": limited, "views": VIEWS}
        run_browser("views", scene, tmp_path)


@pytest.mark.timeout(1_200)
def test_address_of_explore_opens_the_page_once(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "notes.waylore") as memory:
        memory.add("The canteen serves soup.", title="Canteen")
    with explore(tmp_path, "notes.waylore") as (_, url, ticket):
        run_browser("ticket", {"url": url, "address": f"{url}/#ticket={ticket}&collection=default"}, tmp_path)


def test_page_is_small_and_names_no_other_host() -> None:
    files = [path for path in find_page().rglob("*") if path.is_file()]
    compressed = sum(len(gzip.compress(path.read_bytes())) for path in files)
    assert 10_000 < compressed < 400_000
    index = (find_page() / "index.html").read_text("utf-8")
    assert re.findall(r"<script(?![^>]*src=)|<style|style=|\son\w+=|https?://", index) == []


def test_page_offers_every_method() -> None:
    source = (EXPLORER / "src" / "ask" / "question.ts").read_text("utf-8")
    offered = set(re.findall(r'^  \["(\w+)", "', source, re.MULTILINE))
    assert offered == {*METHODS} - {"graph", "agentic", "specified"}  # other names of the same


def test_lock_file_names_no_host() -> None:
    lock = json.loads((EXPLORER / "package-lock.json").read_text("utf-8"))
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]
    assert "omit-lockfile-registry-resolved=true" in (EXPLORER / ".npmrc").read_text("utf-8")
