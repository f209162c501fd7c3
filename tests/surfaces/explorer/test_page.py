"""Test the page in a real Chromium against a real service: what it shows, to whom, and that nothing leaves."""

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from acceptance.test_golden import fill_memory
from surfaces.commands import process
from surfaces.explorer.browsing import EXPLORER, find_page, run_browser
from surfaces.explorer.test_serving import explore
from surfaces.serving import Served, create_token, start_service
from waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import METHODS
from waylore.service.keys import make_key
from waylore.service.registry.open import open_registry

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


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Path]]:
    folder = tmp_path_factory.mktemp("explorer")
    fill_memory(folder, HashingEmbedder(quiet=True), WORLD).close()
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
        "hidden": "INC-377",
    }
    run_browser("graph", scene, tmp_path)


SAID = {
    "mara": [
        ("2024-03-01", "I live in Turku and work at Corvane Robotics."),
        ("2024-09-05", "My favourite tea is rooibos."),
        ("2025-05-02", "I moved to Aarhus. I live in Aarhus now."),
    ],
    "jo": [("2025-01-01", "I live in Porto.")],
}


@pytest.mark.timeout(1_200)
def test_memory_shows_what_the_command_line_prints(tmp_path: Path) -> None:
    store = tmp_path / "copy.waylore"
    with Waylore.open(store) as memory:
        for user, turns in SAID.items():
            for day, said in turns:
                memory.remember([{"role": "user", "content": said, "at": day}], user=user, session=day)
    made, of_jo = make_key("jo", user="jo")
    with closing(open_registry(str(store))) as registry:
        registry.set_key(made)
    scene = {
        "other_key": of_jo,
        "profile": print_json(tmp_path, "profile", "mara"),
        "changes": print_json(tmp_path, "changes", "--user", "mara"),
    }
    with start_service(store, tmp_path, WAYLORE_EMBEDDING_PROVIDER="none") as running:
        run_browser("memory", {**scene, "url": running.url, "key": running.token}, tmp_path)


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
