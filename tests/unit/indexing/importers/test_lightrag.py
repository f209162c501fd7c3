"""LightRAG's custom graph: chunks are documents, entities and relationships are told where they come from."""

import json
from pathlib import Path
from typing import Any

import pytest

from unit.indexing.importers.imports import facts, imported, texts

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
def test_a_graph_becomes_documents(indent: int | None, tmp_path: Path) -> None:
    found, refusals = imported(tmp_path / "kg.json", json.dumps(GRAPH, indent=indent))
    assert not refusals
    assert texts(found) == [
        ("Alice", ["A researcher"]),
        ("Bergen", ["Bergen: city"]),
        ("", ["It moved"]),
        ("a.txt", ["Alice works at TechCorp."]),
        ("", ["QuantumX was built by Alice."]),
        ("", ["TechCorp was founded in Oslo."]),
    ]
    assert facts(found) == [
        "TechCorp —related_to→ Bergen | It moved",
        "Alice —builds→ QuantumX | QuantumX was built by Alice.",
    ]
    assert [(f.weight, f.statement) for c in found for f in c.facts][1] == (10.0, "Alice built QuantumX")


def test_entities_are_mentioned_in_their_chunks(tmp_path: Path) -> None:
    found, _ = imported(tmp_path / "kg.json", json.dumps(GRAPH))
    named = {p.text: {e.name for e in c.entities} for c in found for p in c.passages}
    assert named["Alice works at TechCorp."] == {"Alice", "TechCorp"}
    assert named["TechCorp was founded in Oslo."] == {"TechCorp"}
    assert [c.document.metadata for c in found if c.document.title == "a.txt"] == [
        {"source_id": "doc-1", "file_path": "a.txt", "page": 3, "by": "test"}
    ]


def test_a_grown_graph_adds_what_is_new(tmp_path: Path) -> None:
    before, _ = imported(tmp_path / "kg.json", json.dumps(GRAPH))
    chunk = {"content": "Bergen rains.", "source_id": "doc-1"}
    after, _ = imported(tmp_path / "kg.json", json.dumps({**GRAPH, "chunks": [*GRAPH["chunks"], chunk]}))
    known = {(c.document.id, c.digest) for c in before}
    assert [texts([c])[0][1] for c in after if (c.document.id, c.digest) not in known] == [["Bergen rains."]]


def test_bad_parts_are_refused_in_their_place(tmp_path: Path) -> None:
    broken = {
        "chunks": [{"source_id": "doc-1"}, "text", {"content": "Fine."}],
        "entities": [{"entity_type": "person"}],
        "relationships": [{"src_id": "a"}, {"src_id": "a", "tgt_id": "b", "weight": "much"}, None],
    }
    found, refusals = imported(tmp_path / "kg.json", json.dumps(broken))
    assert texts(found) == [("", ["Fine."])]
    assert refusals == {
        "#line=1#chunks=1": "it has no content",
        "#line=1#chunks=2": "it is not a JSON object",
        "#line=1#entities=1": "it has no entity_name",
        "#line=1#relationships=1": "it has no tgt_id",
        "#line=1#relationships=2": "could not convert string to float: 'much'",
        "#line=1#relationships=3": "it is not a JSON object",
    }


@pytest.mark.parametrize("content", ["[]", "3", '{"chunks": 4}', "{", ""])
def test_what_is_no_graph_is_refused(content: str, tmp_path: Path) -> None:
    found, refusals = imported(tmp_path / "kg.json", content, "lightrag")
    assert not found
    assert refusals or content == "[]"
