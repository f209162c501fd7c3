"""Rows and conversations: a document for each row, a turn for each message, a refusal for each broken line."""

import json
from pathlib import Path

import pytest

from waylore.indexing.blocks import Reading, Refusal
from waylore.indexing.files.formats import read


def found(path: Path, content: str | bytes) -> list[Reading | Refusal]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read(path, root=path.parent))


def readings(path: Path, content: str | bytes) -> list[Reading]:
    every = found(path, content)
    assert all(isinstance(r, Reading) for r in every), every
    return [r for r in every if isinstance(r, Reading)]


def test_each_line_of_json_is_a_document(tmp_path: Path) -> None:
    lines = '{"title": "A", "text": "One.\\n\\nTwo.", "year": 2024, "tags": ["x"], "deep": {"a": 1}}'
    lines += '\n\n{"kind": "b", "n": 1}'
    first, second = readings(tmp_path / "a.jsonl", lines)
    assert (first.uri, first.title, first.text) == ("a.jsonl#line=1", "A", "One.\n\nTwo.")
    assert dict(first.metadata) == {"year": 2024, "tags": ["x"]}
    assert len(first.blocks) == 2
    assert (second.uri, second.title, second.text) == ("a.jsonl#line=3", "a", "kind: b\nn: 1")


def test_broken_lines_are_reported_and_the_others_read(tmp_path: Path) -> None:
    nested = "[" * 100_000
    every = found(
        tmp_path / "a.jsonl", f'{{"text": "One"}}\n{{broken\n[1]\n{nested}\n{{}}\n{{"text": "\\ud800\\u0000"}}'
    )
    reasons = {r.uri[8:]: r.reason for r in every if isinstance(r, Refusal)}
    assert sorted(reasons) == ["line=2", "line=3", "line=4", "line=5"]
    assert reasons["line=5"] == "there is no text in it"
    assert [r.text for r in every if isinstance(r, Reading)] == ["One", "\ufffd\ufffd"]


def test_a_file_of_broken_lines_is_given_up(tmp_path: Path) -> None:
    every = found(tmp_path / "a.jsonl", "broken\n" * 1_000)
    assert len(every) == 101
    assert isinstance(every[-1], Refusal)
    assert "more than 100 lines" in every[-1].reason


@pytest.mark.parametrize(("name", "comma"), [("a.csv", ","), ("a.tsv", "\t")])
def test_each_row_of_a_table_is_a_document(name: str, comma: str, tmp_path: Path) -> None:
    table = f'name{comma}city\r\nMara{comma}"Oslo\n(east)"\r\nKofi{comma}\r\n'
    first, second = readings(tmp_path / name, b"\xef\xbb\xbf" + table.encode())
    assert (first.uri, first.title, first.text) == (f"{name}#row=2", "Mara", "name: Mara\ncity: Oslo\n(east)")
    assert (second.text, dict(first.metadata)) == ("name: Kofi", {"city": "Oslo\n(east)"})
    assert first.blocks[0].kind == "row"


def test_a_field_that_never_ends_stops_the_table(tmp_path: Path) -> None:
    kept, refusal = found(tmp_path / "a.csv", 'a\nfirst\n"' + "x\n" * 100_000)
    assert isinstance(kept, Reading)
    assert isinstance(refusal, Refusal)
    assert "from line" in refusal.reason


MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "name": "mara", "content": [{"type": "text", "text": "Where?"}, {"type": "image_url"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "find", "arguments": "{}"}}]},
    {"role": "tool", "content": ""},
    {"role": "assistant", "content": "In Oslo."},
]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps(MESSAGES)),
        ("a.json", json.dumps({"messages": MESSAGES})),
        ("a.jsonl", json.dumps({"messages": MESSAGES})),
        ("a.jsonl", "\n".join(map(json.dumps, MESSAGES))),
    ],
)
def test_conversations_are_turns(name: str, content: str, tmp_path: Path) -> None:
    [found] = readings(tmp_path / name, content)
    turns = [found.text[b.start : b.end] for b in found.blocks]
    assert turns == ["system: Be brief.", "mara: Where?", "assistant: find({})", "assistant: In Oslo."]
    assert {b.kind for b in found.blocks} == {"turn"}
    assert dict(found.metadata) == {"turns": 4}


def test_other_json_is_its_own_text(tmp_path: Path) -> None:
    [found] = readings(tmp_path / "a.json", '{"a": [1]}')
    assert found.text == '{"a": [1]}'


def test_a_conversation_that_breaks_off_is_refused(tmp_path: Path) -> None:
    [refusal] = found(tmp_path / "a.jsonl", '{"role": "user", "content": "Hi"}\n{"text": "?"}')
    assert isinstance(refusal, Refusal)
    assert "line 2 is no message" in refusal.reason
