"""Import the MCP memory server's file: entities with observations, relations, and the server's user."""

from pathlib import Path

import pytest

from unit.indexing.importers.imports import get_subjects, import_content, lines, list_facts, list_texts

USER = {
    "type": "entity",
    "name": "default_user",
    "entityType": "person",
    "observations": ["Likes tea", "Sings"],
}
ACME = {"type": "entity", "name": "Acme", "entityType": "company", "observations": []}
WORKS = {"type": "relation", "from": "default_user", "to": "Acme", "relationType": "works_at"}


@pytest.mark.parametrize("name", ["memory.jsonl", "memory.json"])
def test_entity_has_a_passage_for_each_observation(name: str, tmp_path: Path) -> None:
    found, skipped = import_content(tmp_path / name, lines(USER, ACME, WORKS))
    assert not skipped
    assert list_texts(found) == [
        ("default_user", ["Likes tea", "Sings"]),
        ("Acme", ["Acme: company"]),
        ("", ["default_user works at Acme"]),
    ]
    assert list_facts(found) == ["default_user —works_at→ Acme | default_user works at Acme"]
    assert get_subjects(found[0]) == {"default_user"}
    assert [(e.type, e.aliases) for e in found[0].entities] == [("person", ("user",))]
    assert {c.document.source for c in found} == {"conversation"}
    assert {f.source for c in found for f in c.facts} == {"conversation"}


def test_entity_with_more_observations_is_same_document(tmp_path: Path) -> None:
    [[before], _] = import_content(tmp_path / "a.jsonl", lines(USER))
    [[after], _] = import_content(tmp_path / "a.jsonl", lines({**USER, "observations": ["Sings", "Runs"]}))
    assert before.document.id == after.document.id
    assert {p.text for p in before.passages} & {p.text for p in after.passages} == {"Sings"}
    assert before.passages[1].id == after.passages[0].id


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"type": "entity", "entityType": "x"}, "it has no name"),
        ({"type": "relation", "from": "a", "to": "b"}, "it has no relationType"),
        ({"type": "graph"}, 'its "type" must be "entity" or "relation"'),
        ([1], 'its "type" must be "entity" or "relation"'),
        ({"type": ["entity"]}, 'its "type" must be "entity" or "relation"'),
    ],
)
def test_broken_line_is_skipped_and_next_is_read(row: object, reason: str, tmp_path: Path) -> None:
    found, skipped = import_content(tmp_path / "a.jsonl", lines(row, USER), "mcp-memory")
    assert skipped == {"#line=1": reason}
    assert [title for title, _ in list_texts(found)] == ["default_user"]
