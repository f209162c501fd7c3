"""Read rows and conversations: a document for each row, a turn for each message; broken lines are skipped."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from waylore.indexing.blocks import Reading, Skipped
from waylore.indexing.files.formats import read


def read_content(path: Path, content: str | bytes) -> list[Reading | Skipped]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read(path, root=path.parent))


def read_documents(path: Path, content: str | bytes) -> list[Reading]:
    every = read_content(path, content)
    assert all(isinstance(r, Reading) for r in every), every
    return [r for r in every if isinstance(r, Reading)]


def test_each_json_line_becomes_a_document(tmp_path: Path) -> None:
    lines = '{"title": "A", "text": "One.\\n\\nTwo.", "year": 2024, "tags": ["x"], "deep": {"a": 1}}'
    lines += '\n\n{"kind": "b", "n": 1}'
    first, second = read_documents(tmp_path / "a.jsonl", lines)
    assert (first.uri, first.title, first.text) == ("a.jsonl#line=1", "A", "One.\n\nTwo.")
    assert dict(first.metadata) == {"year": 2024, "tags": ["x"]}
    assert len(first.blocks) == 2
    assert (second.uri, second.title, second.text) == ("a.jsonl#line=3", "a", "kind: b\nn: 1")


def test_broken_lines_are_skipped_and_others_are_read(tmp_path: Path) -> None:
    nested = "[" * 100_000
    every = read_content(
        tmp_path / "a.jsonl", f'{{"text": "One"}}\n{{broken\n[1]\n{nested}\n{{}}\n{{"text": "\\ud800\\u0000"}}'
    )
    reasons = {r.uri[8:]: r.reason for r in every if isinstance(r, Skipped)}
    assert sorted(reasons) == ["line=2", "line=3", "line=4", "line=5"]
    assert reasons["line=5"] == "it has no text"
    assert [r.text for r in every if isinstance(r, Reading)] == ["One", "\ufffd\ufffd"]


def test_file_with_many_broken_lines_is_skipped(tmp_path: Path) -> None:
    every = read_content(tmp_path / "a.jsonl", "broken\n" * 1_000)
    assert len(every) == 101
    assert isinstance(every[-1], Skipped)
    assert "more than 100 lines" in every[-1].reason


@pytest.mark.parametrize(("name", "comma"), [("a.csv", ","), ("a.tsv", "\t")])
def test_each_table_row_becomes_a_document(name: str, comma: str, tmp_path: Path) -> None:
    table = f'name{comma}city\r\nMara{comma}"Oslo\n(east)"\r\nKofi{comma}\r\n'
    first, second = read_documents(tmp_path / name, b"\xef\xbb\xbf" + table.encode())
    assert (first.uri, first.title, first.text) == (f"{name}#row=2", "Mara", "name: Mara\ncity: Oslo\n(east)")
    assert (second.text, dict(first.metadata)) == ("name: Kofi", {"city": "Oslo\n(east)"})
    assert first.blocks[0].kind == "row"


def test_column_of_distinct_names_names_the_rows(tmp_path: Path) -> None:
    """T84: of a ballot, each row is a voter, and the candidates are not facts about the file."""
    first, second = read_documents(tmp_path / "ballots.csv", "round,voter,Ada Young,Bo Stone\n1,v1,2,3\n1,v2,5,0\n")
    assert [first.title, second.title] == ["v1 (ballots)", "v2 (ballots)"]
    assert dict(second.metadata) == {"round": "1", "Ada Young": "5", "Bo Stone": "0"}
    assert second.text == "round: 1\nvoter: v2\nAda Young: 5\nBo Stone: 0"


def test_table_without_column_names_keeps_its_first_row(tmp_path: Path) -> None:
    """T84: a number above numbers is a value, so the first row is one too."""
    rows = read_documents(tmp_path / "staff.csv", "Mara Lind,Platform,2021\nKofi Mensah,Storage,2022\n")
    assert [(row.uri, row.title, row.text, dict(row.metadata)) for row in rows] == [
        ("staff.csv#row=1", "Mara Lind (staff)", "Mara Lind, Platform, 2021", {}),
        ("staff.csv#row=2", "Kofi Mensah (staff)", "Kofi Mensah, Storage, 2022", {}),
    ]


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("Granite,Harbour\nOpal,Harbour\nBeryl,Quay\n", 3),  # the column repeats what the first row has
        ("Mara Lind,mara@example.org\nKofi Mensah,kofi@example.org\n", 2),
        ("花岗岩,港口\n翡翠,港口\n", 2),
        ("service,team\nGranite,Harbour\nOpal,Harbour\n", 2),
        ("name,mail\nMara Lind,mara@example.org\n", 1),
        ("service,team\nGranite,Harbour\nservice,team\nOpal,Quay\n", 3),  # the head again
    ],
)
def test_first_row_of_words_is_kept_if_it_has_values(table: str, rows: int, tmp_path: Path) -> None:
    assert len(read_documents(tmp_path / "a.csv", table)) == rows


@pytest.mark.parametrize("names", ["country,2019,2020,2021", "country,2021,2020", "country,1st,2nd", ",a,b"])
def test_years_in_order_and_words_name_columns(names: str, tmp_path: Path) -> None:
    row, *_ = read_documents(tmp_path / "a.csv", f"{names}\nNorway,5,6,7\nGhana,8,9,1\n")
    assert row.title == "Norway (a)"
    assert row.text.splitlines()[1] == f"{names.split(',')[1]}: 5"


def test_unclosed_field_ends_the_table(tmp_path: Path) -> None:
    reading, skipped = read_content(tmp_path / "a.csv", 'a\nfirst\n"' + "x\n" * 100_000)
    assert isinstance(reading, Reading)
    assert isinstance(skipped, Skipped)
    assert "from line" in skipped.reason


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
def test_conversation_has_a_block_for_each_turn(name: str, content: str, tmp_path: Path) -> None:
    [found] = read_documents(tmp_path / name, content)
    turns = [found.text[b.start : b.end] for b in found.blocks]
    assert turns == ["system: Be brief.", "mara: Where?", "assistant: find({})", "assistant: In Oslo."]
    assert {b.kind for b in found.blocks} == {"turn"}
    assert dict(found.metadata) == {"turns": 4}


def test_other_json_is_read_as_fields(tmp_path: Path) -> None:
    [found] = read_documents(tmp_path / "a.json", '{"a": [1]}')
    assert found.text == "a: 1"


def test_conversation_with_broken_line_is_skipped(tmp_path: Path) -> None:
    [skipped] = read_content(tmp_path / "a.jsonl", '{"role": "user", "content": "Hi"}\n{"text": "?"}')
    assert isinstance(skipped, Skipped)
    assert "line 2 is not a message" in skipped.reason


def test_each_row_of_parquet_becomes_a_document(tmp_path: Path) -> None:
    rows = [
        {"title": "A", "text": "One.", "day": date(2024, 5, 1), "price": Decimal("1.50"), "photo": b"x", "n": 1},
        {"title": "B", "text": "Two.", "day": None, "price": None, "photo": None, "n": 2},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    first, second = read_documents(tmp_path / "a.parquet", (tmp_path / "a.parquet").read_bytes())
    assert (first.uri, first.title, first.text) == ("a.parquet#row=1", "A", "One.")
    assert dict(first.metadata) == {"day": "2024-05-01", "price": "1.50", "n": 1}
    assert (second.uri, dict(second.metadata)) == ("a.parquet#row=2", {"n": 2})


def test_parquet_without_rows_is_empty(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "a.parquet")
    [found] = read_content(tmp_path / "a.parquet", (tmp_path / "a.parquet").read_bytes())
    assert isinstance(found, Skipped)
    assert found.is_empty
