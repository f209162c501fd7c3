"""A long text is read in parts that join to the text; a file that grows keeps all parts but the last."""

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.indexing.blocks import Limits, Reading, Skipped
from waylore.indexing.chunking import split_into_passages
from waylore.indexing.files.formats import read
from waylore.indexing.readers import plain
from waylore.types.identity import document_id
from waylore.types.knowledge import Document

LONG = Limits(split_bytes=1)
LINES = st.lists(
    st.sampled_from(["", " ", "One line.", "# Top", "## Below", "```", "```py", "~~~", "long " * 20, "żółw 亀"])
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "PART_CHARACTERS", 40)


def read_file(name: str, content: str) -> list[Reading]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content.encode())
        found = list(read(path, root=folder, limits=LONG))
    assert all(isinstance(part, Reading) for part in found), found
    return [part for part in found if isinstance(part, Reading)]


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
@given(lines=LINES, end=ENDS)
def test_parts_join_to_the_text(name: str, lines: list[str], end: str) -> None:
    content = end.join(["begin", *lines])
    found = read_file(name, content)
    for part in found:
        assert content[part.start :].startswith(part.text)
        assert "\r" not in part.text[-1:] or not content[part.start + len(part.text) :].startswith("\n")
        document = Document(document_id(uri=part.uri), uri=part.uri)
        for passage in split_into_passages(part, document):
            assert content[passage.start : passage.end] == passage.text
    gaps = [content[a.start + len(a.text) : b.start] for a, b in pairwise(found)]
    assert not "".join(gaps).strip()
    assert not content[found[-1].start + len(found[-1].text) :].strip()
    assert [p.bytes_read for p in found] == sorted(p.bytes_read for p in found)


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
@given(lines=LINES, more=LINES)
def test_growing_file_keeps_all_parts_but_the_last(name: str, lines: list[str], more: list[str]) -> None:
    before = "\n".join(["begin", *lines])
    old, new = read_file(name, before), read_file(name, "\n".join([before, *more]))
    assert [(p.uri, p.text) for p in old[:-1]] == [(p.uri, p.text) for p in new[: len(old) - 1]]


def test_markdown_parts_begin_at_headings_and_keep_the_path() -> None:
    sections = [f"## Part {n}\n\nSaid in {n}, a sentence.\n\n" for n in range(5)]
    found = read_file("a.md", "---\ntitle: All\n---\n# Book\n\n" + "".join(sections))
    assert all(part.text.startswith("## ") for part in found[1:])
    assert {part.title for part in found} == {"All"}
    assert {part.blocks[-1].headings[0] for part in found} == {"Book"}


def test_markdown_parts_avoid_cutting_code_blocks() -> None:
    code = "```\n# no heading\n\nx = 1\n```\n"
    found = read_file("a.md", f"Some words here, enough.\n\n{code}\nAnd more words, enough for a part.\n")
    assert [part.text.count("```") % 2 for part in found] == [0] * len(found)


@pytest.mark.slow
def test_invalid_bytes_end_a_long_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"line\n" * 300_000 + b"\xff\xfe broken")
    *parts, skipped = read(path, root=tmp_path, limits=LONG)
    assert isinstance(skipped, Skipped)
    assert "not text in utf-8 to its end" in skipped.reason
    assert len(parts) > 1_000


def test_too_long_line_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("short\n" + "x" * 10_000)
    *_, skipped = read(path, root=tmp_path, limits=Limits(split_bytes=1, line=200))
    assert isinstance(skipped, Skipped)
    assert "more than 200 characters in a line" in skipped.reason
