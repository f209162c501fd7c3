"""Import exports of mem0 and Zep: memories and messages as turns, edges as facts with their interval."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from unit.indexing.importers.imports import FRAME, import_content, lines, list_facts
from waylore.indexing.blocks import Skipped
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.indexing.importers.dispatch import read
from waylore.types.knowledge import IndexedDocument

MEMORY = {
    "id": "5f2c",
    "memory": "Is allergic to peanuts",
    "hash": "0",
    "metadata": {"topic": "food", "nested": {"a": 1}},
    "created_at": "2026-03-08T10:00:00-08:00",
    "updated_at": "2026-03-09T10:00:00-08:00",
    "user_id": "ann",
    "agent_id": "cook",
    "run_id": "monday",
    "role": "user",
    "expiration_date": "2027-01-01",
}
MESSAGE = {"uuid": "m1", "role": "user", "name": "Mara", "content": "I moved.", "created_at": "2026-03-08T10:00:00Z"}
EDGE = {
    "uuid": "e1",
    "fact": "Mara lives in Oslo",
    "name": "LIVES_IN",
    "source_node_uuid": "n1",
    "target_node_uuid": "n2",
    "created_at": "2026-01-11T00:00:00Z",
    "valid_at": "2026-01-10T00:00:00Z",
    "invalid_at": "2026-03-10T00:00:00Z",
    "expired_at": "2026-03-12T00:00:00Z",
    "episodes": ["x"],
}
NODES = [{"uuid": "n1", "name": "Mara", "labels": ["Person"]}, {"uuid": "n2", "name": "Oslo"}]


def import_one(path: Path, value: Any) -> IndexedDocument:
    [document], skipped = import_content(path, json.dumps(value))
    assert not skipped
    return document


@pytest.mark.parametrize("shape", [MEMORY, [MEMORY], {"results": [MEMORY]}, {"count": 1, "memories": [MEMORY]}])
def test_memory_is_a_turn_of_its_scope(shape: Any, tmp_path: Path) -> None:
    made = import_one(tmp_path / "a.json", shape)
    document, [passage] = made.document, made.passages
    assert (document.user, document.agent, document.session) == ("ann", "cook", "monday")
    assert document.metadata == {"topic": "food", "expiration_date": "2027-01-01", "by": "test"}
    assert document.labels == FRAME.labels
    assert (passage.text, passage.role, passage.speaker) == ("Is allergic to peanuts", "user", "ann")
    assert str(document.at) == "2026-03-08 18:00:00+00:00"


def test_changed_memory_is_the_same_document(tmp_path: Path) -> None:
    before = import_one(tmp_path / "a.json", MEMORY)
    after = import_one(tmp_path / "a.json", {**MEMORY, "memory": "Is allergic to nuts"})
    assert before.document.id == after.document.id
    assert before.digest != after.digest
    other = import_one(tmp_path / "a.json", {**MEMORY, "user_id": "ben"})
    assert other.document.id != before.document.id


def test_memory_without_a_time_has_none(tmp_path: Path) -> None:
    rows = {**MEMORY, "created_at": None, "run_id": None}
    first, second = (import_one(tmp_path / "a.json", rows) for _ in range(2))
    assert first.document.at is None
    assert first.digest == second.digest


def test_thread_is_a_session_of_its_user(tmp_path: Path) -> None:
    answer = {"uuid": "m2", "role": "assistant", "content": "Where to?", "created_at": "2026-03-08T10:01:00Z"}
    tool = {"uuid": "m3", "role": "tool", "content": "{}"}
    thread = {"messages": [MESSAGE, answer, tool], "user_id": "mara", "total_count": 3}
    found, skipped = import_content(tmp_path / "thread-1.json", json.dumps(thread))
    assert not skipped
    assert {(d.document.user, d.document.session) for d in found} == {("mara", "thread-1")}
    assert [(d.passages[0].speaker, d.passages[0].role) for d in found] == [
        ("Mara", "user"),
        ("assistant", "assistant"),
    ]
    assert found[0].passages[0].position < found[1].passages[0].position
    named = import_one(tmp_path / "b.json", {"messages": [MESSAGE], "thread_id": "t9"})
    assert (named.document.user, named.document.session) == ("", "t9")
    [line], _ = import_content(tmp_path / "c.jsonl", lines({**MESSAGE, "thread_id": "t9", "user_id": "mara"}))
    assert (line.document.user, line.document.session) == ("mara", "t9")


def test_edge_is_a_fact_with_its_interval(tmp_path: Path) -> None:
    made = import_one(tmp_path / "a.json", {"edges": [EDGE], "nodes": NODES, "user_id": "mara"})
    [fact] = made.facts
    assert list_facts([made]) == ["Mara —lives_in→ Oslo | Mara lives in Oslo"]
    assert (str(fact.valid_from)[:10], str(fact.valid_to)[:10]) == ("2026-01-10", "2026-03-10")
    assert (made.document.user, str(made.document.at)[:10]) == ("mara", "2026-01-11")
    expired = {**EDGE, "invalid_at": None, "source_node_name": "Mara", "target_node_name": "Oslo"}
    ended = import_one(tmp_path / "a.json", [expired])
    assert str(ended.facts[0].valid_to)[:10] == "2026-03-12"


def test_edge_that_was_invalidated_replaces_its_earlier_version(tmp_path: Path) -> None:
    graph = {"nodes": NODES, "user_id": "mara"}
    before = import_one(tmp_path / "a.json", {**graph, "edges": [{**EDGE, "invalid_at": None, "expired_at": None}]})
    after = import_one(tmp_path / "a.json", {**graph, "edges": [EDGE]})
    assert before.document.id == after.document.id
    assert before.facts[0].valid_to is None


def test_text_of_an_edge_without_names_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([EDGE]))
    [made] = read(tmp_path / "a.json", "auto", FRAME, extractor=RuleExtractor())[1]
    assert isinstance(made, IndexedDocument)
    assert {entity.name for entity in made.entities} >= {"Mara", "Oslo"}


def test_rows_of_other_users_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([MEMORY, {**MEMORY, "user_id": "ben"}, {**MEMORY, "user_id": None}]))
    first, other, third = read(tmp_path / "a.json", "auto", replace(FRAME, user="ann"))[1]
    assert isinstance(other, Skipped)
    assert other.reason == "it belongs to the user 'ben'"
    users = [each.document.user for each in (first, third) if isinstance(each, IndexedDocument)]
    assert users == ["ann", "ann"]


@pytest.mark.parametrize(
    ("format_", "row", "reason"),
    [
        ("mem0", {"id": "1"}, "it has no memories"),
        ("mem0", {**MEMORY, "memory": " "}, "it has no memory"),
        ("mem0", {**MEMORY, "created_at": "yesterday"}, "its created_at 'yesterday' is not a date"),
        ("mem0", 7, "it is not a JSON object"),
        ("zep", {"users": []}, "it has neither messages nor edges"),
        ("zep", {**MESSAGE, "content": ""}, "content must not be empty"),
        (
            "zep",
            {**EDGE, "valid_at": "2027-01-01", "source_node_name": "a", "target_node_name": "b"},
            "valid_from must",
        ),
        ("zep", [1], "it is neither a message nor an edge"),
    ],
)
def test_broken_row_is_skipped_and_next_is_read(format_: str, row: object, reason: str, tmp_path: Path) -> None:
    good = MEMORY if format_ == "mem0" else MESSAGE
    [found], skipped = import_content(tmp_path / "a.jsonl", lines(row, good), format_)
    assert reason in skipped["#line=1"]
    assert found.passages[0].role == "user"
