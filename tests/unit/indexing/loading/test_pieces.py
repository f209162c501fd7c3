"""The pieces of a file are read as the file is, with the same addresses; other files stay whole."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from loading.loads import make_job
from waylore.indexing.blocks import Limits, Reading, Skipped, Source
from waylore.indexing.files.compare import KnownFile
from waylore.indexing.files.formats import read_source
from waylore.indexing.loading.job import Piece
from waylore.indexing.loading.pieces import split_files
from waylore.indexing.loading.sources import fetch

ROWS = st.lists(
    st.fixed_dictionaries({"text": st.text("ab é\u2028\x85", min_size=1), "n": st.integers(0, 9)}), max_size=40
)


def list_pieces(path: Path, unit_bytes: int = 100) -> list[Piece]:
    job = make_job(path, "unused", unit_bytes=unit_bytes)
    file = KnownFile(path, path.stat().st_size, (job.task.make_address(path),), {})
    return [piece for unit in split_files([file], job) for piece in unit]


def read_pieces(pieces: list[Piece]) -> list[Reading | Skipped]:
    found: list[Reading | Skipped] = []
    for piece in pieces:
        with fetch(piece) as path:
            found += read_source(Source(path, piece.key, Limits(), first_row=piece.first_row))
    return found


def read_whole(path: Path) -> list[Reading | Skipped]:
    return list(read_source(Source(path, path.name, Limits())))


@given(ROWS, st.sampled_from(["\n", "\r\n", "\n\n"]), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_pieces_of_lines_are_read_as_the_file(
    tmp_path_factory: Any, rows: list[dict[str, Any]], end: str, encoding: str
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    path.write_bytes(end.join(json.dumps(row, ensure_ascii=False) for row in rows).encode(encoding))
    pieces = list_pieces(path)
    assert [piece.is_last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert strip(read_pieces(pieces)) == strip(read_whole(path))


def strip(found: list[Reading | Skipped]) -> list[tuple[Any, ...]]:
    """Return what must be equal: not the number of bytes read so far."""
    return [
        (each.uri, each.text, each.title, each.metadata) if isinstance(each, Reading) else (each,) for each in found
    ]


def test_pieces_of_parquet_are_read_as_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = [{"title": f"Row {n}", "text": f"Text {n}. " * 20, "n": n} for n in range(1_000)]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=300)
    pieces = list_pieces(path, unit_bytes=20_000)
    assert len(pieces) > 3
    assert read_pieces(pieces) == read_whole(path)


def test_conversations_and_other_formats_stay_whole(tmp_path: Path) -> None:
    chat, note = tmp_path / "chat.jsonl", tmp_path / "note.md"
    chat.write_text("\n".join(json.dumps({"role": "user", "content": f"Message {n}."}) for n in range(50)), "utf-8")
    note.write_text("# Note\n\n" + "A sentence. " * 100, "utf-8")
    for path in (chat, note):
        [piece] = list_pieces(path)
        assert (piece.content, piece.is_last, piece.size) == (b"", True, path.stat().st_size)


def test_what_follows_a_line_that_is_too_long_is_skipped_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"text": f"Text {n}."}) for n in range(20)]
    path.write_text("\n".join([*lines, "x" * (Limits().line + 1), *lines]), "utf-8")
    *_, last = list_pieces(path)
    assert last.is_last
    assert "a line has more than" in last.skipped[0].reason


def test_file_that_vanished_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    job = make_job(path, "unused", unit_bytes=10)
    file = KnownFile(path, 100, (job.task.make_address(path),), {})
    [[piece]] = list(map(list, split_files([file], job)))
    assert "cannot be opened" in piece.skipped[0].reason


def test_small_files_share_a_unit(tmp_path: Path) -> None:
    job = make_job(tmp_path, "unused")
    files = [KnownFile(tmp_path / name, 10, (job.task.make_address(tmp_path / name),), {}) for name in ("a.md", "b.md")]
    [unit] = split_files(files, job)
    assert [piece.key for piece in unit] == ["a.md", "b.md"]
