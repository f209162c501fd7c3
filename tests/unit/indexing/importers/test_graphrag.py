"""Import GraphRAG's tables with their old and new names and columns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unit.indexing.importers.imports import get_subjects, import_content, list_facts, list_texts
from waylore.indexing.blocks import Limits

WHOLE = "  Scrooge knew Marley. Marley was dead. London was cold."
UNITS: list[dict[str, Any]] = [
    {"id": "u1", "text": "Scrooge knew Marley. Marley was dead.", "document_ids": ["d1"]},
    {"id": "u2", "text": "Marley was dead. London was cold.", "document_ids": ["d1"]},
    {"id": "u3", "text": "A note without a document.", "document_ids": None},
]
NEW: dict[str, list[dict[str, Any]]] = {
    "documents": [{"id": "d1", "title": "carol.txt", "text": WHOLE, "text_unit_ids": ["u1", "u2"]}],
    "text_units": UNITS,
    "entities": [
        {"title": "SCROOGE", "type": "PERSON", "description": "A miser", "text_unit_ids": ["u1"], "degree": 1},
        {"title": "MARLEY", "type": "", "description": "", "text_unit_ids": ["u1", "u2"], "degree": 1},
        {"title": "CRATCHIT", "type": "PERSON", "description": None, "text_unit_ids": ["gone"], "degree": 0},
    ],
    "relationships": [
        {"source": "SCROOGE", "target": "MARLEY", "description": "They were partners", "weight": 14.0,
         "text_unit_ids": ["u1", "u2"]},
        {"source": "SCROOGE", "target": "CRATCHIT", "description": "He pays him little", "weight": 0.2,
         "text_unit_ids": []},
    ],
    "community_reports": [
        {"title": "The firm", "summary": "Short.", "full_content": "# The firm\n\nLong.", "level": 1,
         "community": 4}
    ],
}  # fmt: skip


def rename(row: Mapping[str, Any], **names: str) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in row.items()}


OLD = {
    **NEW,
    "documents": [rename(row, text="raw_content") for row in NEW["documents"]],
    "entities": [rename(row, title="name") for row in NEW["entities"]],
}
NEWEST = {**NEW, "text_units": [{**u, "document_id": (u["document_ids"] or [None])[0]} for u in UNITS]}
for unit in NEWEST["text_units"]:
    del unit["document_ids"]


def write_output(folder: Path, tables: Mapping[str, list[dict[str, Any]]], name: str = "{}.parquet") -> Path:
    """Write a folder as GraphRAG does."""
    folder.mkdir(parents=True)
    for table, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / name.format(table))
    return folder


@pytest.mark.parametrize(
    ("tables", "name", "place"),
    [
        (NEW, "{}.parquet", "."),
        (NEWEST, "{}.parquet", "output"),
        (OLD, "create_final_{}.parquet", "output/20240801-101010/artifacts"),
    ],
)
def test_tables_become_documents(tables: dict[str, Any], name: str, place: str, tmp_path: Path) -> None:
    write_output(tmp_path / "run" / place, tables, name)
    found, skipped = import_content(tmp_path / "run")
    assert not skipped
    assert list_texts(found) == [
        ("SCROOGE", ["A miser"]),
        ("CRATCHIT", ["CRATCHIT: person"]),
        ("", ["He pays him little"]),
        ("carol.txt", [UNITS[0]["text"], UNITS[1]["text"]]),
        ("", ["A note without a document."]),
        ("The firm", ["# The firm\n\nLong."]),
    ]
    assert list_facts(found) == [
        "SCROOGE —related_to→ CRATCHIT | He pays him little",
        f"SCROOGE —related_to→ MARLEY | {UNITS[0]['text']}",
        f"SCROOGE —related_to→ MARLEY | {UNITS[1]['text']}",
    ]
    assert [(f.weight, f.statement) for c in found for f in c.facts] == [
        (1.0, "He pays him little"),
        (7.0, "They were partners"),
        (7.0, "They were partners"),
    ]


def test_passages_have_offsets_in_the_document(tmp_path: Path) -> None:
    found, _ = import_content(write_output(tmp_path / "run", NEW))
    [carol] = [c for c in found if c.document.title == "carol.txt"]
    assert [(WHOLE[p.start : p.end] == p.text, p.position) for p in carol.passages] == [(True, 0), (True, 1)]
    names = {e.id: e.name for e in carol.entities}
    place = {p.id: p.position for p in carol.passages}
    mentions = sorted((names[m.entity_id], place[m.passage_id], m.count) for m in carol.mentions)
    assert mentions == [("MARLEY", 0, 2), ("MARLEY", 1, 1), ("SCROOGE", 0, 1), ("SCROOGE", 1, 1)]


def test_descriptions_and_reports_are_distinct(tmp_path: Path) -> None:
    found, _ = import_content(write_output(tmp_path / "run", NEW))
    assert get_subjects(found[0]) == {"SCROOGE"}
    assert [(e.type, e.description) for e in found[0].entities] == [("person", "A miser")]
    assert found[-1].document.metadata == {"level": 1, "community": 4, "by": "test"}


def test_graph_without_texts_is_imported(tmp_path: Path) -> None:
    found, skipped = import_content(write_output(tmp_path / "run", {"relationships": NEW["relationships"]}))
    assert not skipped
    assert [fact.split(" | ")[1] for fact in list_facts(found)] == ["They were partners", "He pays him little"]


def test_one_table_imports_the_others_beside_it(tmp_path: Path) -> None:
    found, _ = import_content(write_output(tmp_path / "run", NEW) / "entities.parquet")
    assert len(found) == 6


def test_broken_table_is_skipped_and_others_are_read(tmp_path: Path) -> None:
    folder = write_output(tmp_path / "run", NEW)
    (folder / "entities.parquet").write_bytes(b"PAR1 and then nothing")
    whole = (folder / "text_units.parquet").read_bytes()
    (folder / "text_units.parquet").write_bytes(whole[:40] + b"\xff" * 40 + whole[80:])
    found, skipped = import_content(folder)
    assert sorted(skipped) == ["/entities.parquet", "/text_units.parquet"]
    assert all("cannot be read" in reason for reason in skipped.values())
    assert "The firm" in [title for title, _ in list_texts(found)]


def test_broken_rows_are_skipped_with_row_number(tmp_path: Path) -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        "text_units": [{"id": "u1", "text": ""}, {"id": None, "text": "x"}],
        "entities": [{"title": None}, {"title": "A"}],
        "relationships": [
            {"source": "A", "target": "B", "weight": float("nan")},
            {"source": "A", "target": None},
        ],
        "documents": [{"id": "d", "title": "empty"}],
        "community_reports": [{"title": "nothing"}],
    }
    found, skipped = import_content(write_output(tmp_path / "run", tables))
    assert list_texts(found) == [("A", ["A"])]
    assert skipped == {
        "/text_units.parquet#row=1": "it has no text",
        "/text_units.parquet#row=2": "it has no id",
        "/entities.parquet#row=1": "it has no title",
        "/relationships.parquet#row=1": "weight must be a number from 1 to 10, got nan",
        "/relationships.parquet#row=2": "it has no target",
        "/documents.parquet#row=1": "it has neither text units nor a text",
        "/community_reports.parquet#row=1": "it has no content",
    }


def test_too_large_tables_are_skipped(tmp_path: Path) -> None:
    found, skipped = import_content(write_output(tmp_path / "run", NEW), limits=Limits(bytes=100))
    assert not found
    assert "raise the limit `bytes`" in skipped[""]
