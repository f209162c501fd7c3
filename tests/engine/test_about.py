"""Find and remove what documents say about a name: as if they had never said it."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waylore import Waylore
from waylore.errors import ArgumentError, ModelMismatch
from waylore.indexing.redaction import MARK
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import IndexedDocument

EMBEDDER = HashingEmbedder(64, quiet=True)
PEOPLE = ("Mara Lind", "Olek", "Ida Voss", "Zoë")
THINGS = ("Platform", "Login", "Quarry")
VERBS = ("leads", "uses", "left")


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        yield memory


def test_documents_are_found_with_their_statements(memory: Waylore) -> None:
    text = "Platform owns Login. Mara Lind leads Platform. Olek left.\n\n- Login: mara  LIND\n- Quarry: Olek"
    memory.add(text, uri="teams.md")
    memory.add("Olek uses Quarry.", uri="olek.md")
    memory.add("Amara Lindgren paints.", uri="other.md")
    memory.add("Minutes of the week.", uri="notes/mara-lind.md")
    memory.add("Nothing here.", uri="titled.md", title="Notes of Mara Lind")
    found = {each.document.uri: each for each in memory.find_about("Mara Lind")}
    assert found.keys() == {"teams.md", "notes/mara-lind.md", "titled.md"}
    assert found["teams.md"].statements == ("Mara Lind leads Platform.", "- Login: mara  LIND")
    assert [each.is_bound for each in found.values()] == [True, False, False]


def test_statements_are_removed(memory: Waylore, tmp_path: Path) -> None:
    text = "Platform owns Login. Mara Lind leads Platform, and Quarry.\nOlek uses Login."
    memory.add(text, uri="teams.md", metadata={"author": "Mara Lind", "tags": ["mara lind", "teams"]})
    memory.add("Mara Lind paints.", uri="art.md")
    [teams, _] = sorted(memory.find_about("Mara Lind"), key=lambda each: each.document.uri, reverse=True)
    receipt = memory.remove_statements("Mara Lind", documents=[teams.document.id])
    indexed = memory.get(teams.document.id)
    assert [p.text for p in indexed.passages] == [f"Platform owns Login. {MARK}\nOlek uses Login."]
    assert indexed.document.metadata == {"tags": ["teams"]}
    assert "Quarry" not in {entity.name for entity in indexed.entities}
    assert {(f.subject, f.object) for f in indexed.facts} == {("Olek", "Login")}
    assert len(receipt.passages) == 1
    assert [each.document.uri for each in memory.find_about("Mara Lind")] == ["art.md"]
    assert memory.verify_forgotten(receipt) == ()
    memory.forget("art.md")
    memory.close()
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith("-shm"))
    assert b"leads Platform, and" not in stored
    assert b"Mara" not in stored


def test_bound_documents_and_other_models_are_refused(memory: Waylore, tmp_path: Path) -> None:
    memory.add("Minutes.", uri="mara-lind.md")
    [found] = memory.find_about(["Mara Lind", "Olek"])
    with pytest.raises(ArgumentError, match=r"forget mara-lind\.md"):
        memory.remove_statements("Mara Lind", documents=found.document.id)
    with Waylore.open(tmp_path / "a.waylore") as other, pytest.raises(ModelMismatch, match="open it with that model"):
        other.remove_statements("Mara Lind", documents=found.document.id)


@st.composite
def documents(draw: st.DrawFn) -> list[list[tuple[str, str, str]]]:
    triple = st.tuples(st.sampled_from(PEOPLE), st.sampled_from(VERBS), st.sampled_from(THINGS))
    return draw(st.lists(st.lists(triple, min_size=1, max_size=4, unique=True), min_size=1, max_size=4))


def add_all(memory: Waylore, told: list[list[tuple[str, str, str]]], without: str = "") -> None:
    """Add documents; with marks in place of the sentences that have a name."""
    for number, triples in enumerate(told):
        sentences = {f"{' '.join(triple)}.": triple for triple in triples}
        facts = [
            {"subject": subject, "predicate": verb, "object": thing, "statement": sentence}
            for sentence, (subject, verb, thing) in sentences.items()
            if not without or without not in sentence
        ]
        said = " ".join(MARK if without and without in sentence else sentence for sentence in sentences)
        memory.add(said, uri=f"{number}.md", facts=facts)


@settings(max_examples=25)
@given(told=documents(), name=st.sampled_from((*PEOPLE, *THINGS)))
def test_removed_statements_were_never_there(
    tmp_path_factory: pytest.TempPathFactory, told: list[list[tuple[str, str, str]]], name: str
) -> None:
    folder = tmp_path_factory.mktemp("about")
    with Waylore.open(folder / "a.waylore", embedder=EMBEDDER, extractor=None) as memory:
        add_all(memory, told)
        found = memory.find_about(name)
        if found:
            receipt = memory.remove_statements(name, documents=[each.document.id for each in found])
            assert memory.verify_forgotten(receipt) == ()
        assert memory.find_about(name) == ()
    with Waylore.open(folder / "b.waylore", embedder=EMBEDDER, extractor=None) as memory:
        add_all(memory, told, without=name)
    assert read_digests(folder / "a.waylore") == read_digests(folder / "b.waylore")


def read_digests(path: Path) -> dict[str, str]:
    """Return the digest of each document without the places of passages in the original, which stay."""
    with closing(SqliteStore(path)) as store:
        return {indexed.document.id: drop_places(indexed).digest for indexed in store.export()}


def drop_places(indexed: IndexedDocument) -> IndexedDocument:
    return replace(indexed, passages=tuple(replace(passage, start=0, end=0) for passage in indexed.passages))
