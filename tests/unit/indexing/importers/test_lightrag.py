"""Import LightRAG's custom graph: chunks become documents with their entities and relationships."""

import json
from pathlib import Path
from typing import Any

import pytest

from unit.indexing.importers.imports import import_content, list_facts, list_texts

GRAPH: dict[str, list[Any]] = {
    "chunks": [
        {"content": "Alice works at TechCorp.", "source_id": "doc-1", "file_path": "a.txt", "page": 3},
        {"content": "QuantumX was built by Alice.", "source_id": "doc-1", "chunk_order_index": 1},
        {"content": "TechCorp was founded in Oslo.", "source_id": "doc-2"},
    ],
    "entities": [
        {"entity_name": "Alice", "entity_type": "person", "description": "A researcher", "source_id": "doc-1"},
        {"entity_name": "TechCorp", "entity_type": "UNKNOWN", "source_id": "doc-1<SEP>doc-2"},
        {"entity_name": "Bergen", "entity_type": "city", "source_id": "nowhere"},
    ],
    "relationships": [
        {"src_id": "Alice", "tgt_id": "QuantumX", "description": "Alice built QuantumX",
         "keywords": "builds, makes", "weight": 12, "source_id": "doc-1"},
        {"src_id": "TechCorp", "tgt_id": "Bergen", "description": "It moved", "keywords": "",
         "source_id": "UNKNOWN"},
    ],
}  # fmt: skip


@pytest.mark.parametrize("indent", [None, 1])
def test_graph_becomes_documents(indent: int | None, tmp_path: Path) -> None:
    found, skipped = import_content(tmp_path / "kg.json", json.dumps(GRAPH, indent=indent))
    assert not skipped
    assert list_texts(found) == [
        ("Alice", ["A researcher"]),
        ("Bergen", ["Bergen: city"]),
        ("", ["It moved"]),
        ("a.txt", ["Alice works at TechCorp."]),
        ("", ["QuantumX was built by Alice."]),
        ("", ["TechCorp was founded in Oslo."]),
    ]
    assert list_facts(found) == [
        "TechCorp —related_to→ Bergen | It moved",
        "Alice —builds→ QuantumX | QuantumX was built by Alice.",
    ]
    assert [(f.weight, f.statement) for c in found for f in c.facts][1] == (10.0, "Alice built QuantumX")


def test_entities_are_mentioned_in_their_chunks(tmp_path: Path) -> None:
    found, _ = import_content(tmp_path / "kg.json", json.dumps(GRAPH))
    named = {p.text: {e.name for e in c.entities} for c in found for p in c.passages}
    assert named["Alice works at TechCorp."] == {"Alice", "TechCorp"}
    assert named["TechCorp was founded in Oslo."] == {"TechCorp"}
    assert [c.document.metadata for c in found if c.document.title == "a.txt"] == [
        {"source_id": "doc-1", "file_path": "a.txt", "page": 3, "by": "test"}
    ]


def test_grown_graph_adds_new_documents(tmp_path: Path) -> None:
    before, _ = import_content(tmp_path / "kg.json", json.dumps(GRAPH))
    chunk = {"content": "Bergen rains.", "source_id": "doc-1"}
    after, _ = import_content(tmp_path / "kg.json", json.dumps({**GRAPH, "chunks": [*GRAPH["chunks"], chunk]}))
    known = {(c.document.id, c.digest) for c in before}
    assert [list_texts([c])[0][1] for c in after if (c.document.id, c.digest) not in known] == [["Bergen rains."]]


def test_broken_items_are_skipped_with_their_place(tmp_path: Path) -> None:
    broken = {
        "chunks": [{"source_id": "doc-1"}, "text", {"content": "Fine."}],
        "entities": [{"entity_type": "person"}],
        "relationships": [{"src_id": "a"}, {"src_id": "a", "tgt_id": "b", "weight": "much"}, None],
    }
    found, skipped = import_content(tmp_path / "kg.json", json.dumps(broken))
    assert list_texts(found) == [("", ["Fine."])]
    assert skipped == {
        "#line=1#chunks=1": "it has no content",
        "#line=1#chunks=2": "it is not a JSON object",
        "#line=1#entities=1": "it has no entity_name",
        "#line=1#relationships=1": "it has no tgt_id",
        "#line=1#relationships=2": "could not convert string to float: 'much'",
        "#line=1#relationships=3": "it is not a JSON object",
    }


@pytest.mark.parametrize("content", ["[]", "3", '{"chunks": 4}', "{", ""])
def test_other_json_is_skipped(content: str, tmp_path: Path) -> None:
    found, skipped = import_content(tmp_path / "kg.json", content, "lightrag")
    assert not found
    assert skipped or content == "[]"
