"""Every format becomes text with blocks at their offsets; an unreadable file is skipped, never raised."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waylore.errors import ArgumentError
from waylore.indexing import blocks
from waylore.indexing.blocks import Limits, Reading, Skipped
from waylore.indexing.files.formats import READERS, read
from waylore.indexing.files.processes import kill_idle


def read_one(path: Path, content: bytes | str, limits: Limits | None = None) -> Reading | Skipped:
    """Return the only document of a file with this content, or why it was skipped."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    [found] = read(path, root=path.parent, limits=limits or Limits())
    return found


def read_document(path: Path, content: bytes | str) -> Reading:
    found = read_one(path, content)
    assert isinstance(found, Reading), found
    return found


def read_reason(path: Path, content: bytes | str, limits: Limits | None = None) -> str:
    found = read_one(path, content, limits)
    assert isinstance(found, Skipped), found
    return found.reason


def get_texts(found: Reading, kind: str = "") -> list[str]:
    return [found.text[b.start : b.end] for b in found.blocks if kind in ("", b.kind)]


def test_plain_text_is_split_into_paragraphs(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a note.txt", "One.\r\nStill one.\r\n \r\n  Two.\n\n\n")
    assert (found.uri, found.title) == ("a note.txt", "a note")
    assert found.text == "One.\r\nStill one.\r\n \r\n  Two.\n\n\n"
    assert get_texts(found) == ["One.\r\nStill one.", "Two."]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_mark_decides_encoding(encoding: str, tmp_path: Path) -> None:
    assert read_document(tmp_path / "a.txt", "Żółw 亀".encode(encoding)).text == "Żółw 亀"


def test_other_encodings_are_detected(tmp_path: Path) -> None:
    expected = "Die Straße führt über die Brücke nach Köln, wo man gern schöne Lieder hört. " * 5
    assert read_document(tmp_path / "a.txt", expected.encode("cp1252")).text == expected


MARKDOWN = """---
title: Login
tags: [auth, "web"]
owners:
  - Mara
  - Kofi
draft: false
stars: 4
nested:
  deep: gone
---
Before.

# Login
Checks [passwords](pass.md "why") and [[Sessions|tokens]], not `[[code]]`.

## Setup

- one
  - inner
- two

| a | b |
|---|---|
| 1 | 2 |

```py
# not a heading [x](y)
```

[ref]: https://example.org
# Other
<https://example.org>
"""


def test_markdown_keeps_text_and_has_headings(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.md", MARKDOWN)
    assert found.text == MARKDOWN
    assert found.title == "Login"
    assert get_texts(found, "heading") == ["# Login\n", "## Setup\n", "# Other\n"]
    assert [t.strip() for t in get_texts(found, "item")] == ["- one", "- inner", "- two"]
    assert get_texts(found, "row") == ["| a | b |\n", "| 1 | 2 |\n"]
    assert get_texts(found, "code") == ["```py\n# not a heading [x](y)\n```\n"]
    paths = {b.headings for b in found.blocks}
    assert paths == {(), ("Login",), ("Login", "Setup"), ("Other",)}
    assert not any("[ref]:" in t for t in get_texts(found))


def test_markdown_front_matter_becomes_metadata(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.md", MARKDOWN)
    owners = ["Mara", "Kofi"]
    assert dict(found.metadata) == {
        "title": "Login", "tags": ["auth", "web"], "owners": owners, "draft": False, "stars": 4,
    }  # fmt: skip
    assert [block.key for block in found.blocks if block.kind == "field"] == [*found.metadata, "nested"]
    cells = {block.key: block.cells for block in found.blocks if block.kind == "field"}
    assert cells["owners"] == (("owners", "Mara"), ("owners", "Kofi"))
    assert cells["nested"] == (("nested deep", "gone"),)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_markdown_offsets_are_right_for_all_line_ends(ends: str, tmp_path: Path) -> None:
    written = ends.join(["Title", "=====", "", "Said.", "", "## Två", "Mer.", ""])
    found = read_document(tmp_path / "a.md", written)
    assert found.text == written
    assert [t.split()[0] for t in get_texts(found)] == ["Title", "Said.", "##", "Mer."]
    assert found.blocks[-1].headings == ("Title", "Två")


def test_html_gives_visible_text(tmp_path: Path) -> None:
    page = """<html><head><title>My  page</title><meta name=description content=Short><style>x{}</style></head>
    <body><script>no()</script><h1>A <b>big</b>
    one</h1><p>See <a href="b.html">the
    other</a>.<br>Now.<ul><li>one<li>two</ul><pre>a
      b</pre><table><tr><td>1<td>2</table><h2>Low</h2>tail &amp; end"""
    found = read_document(tmp_path / "a.html", page)
    assert found.title == "My page"
    assert dict(found.metadata) == {"description": "Short"}
    assert [(b.kind, found.text[b.start : b.end]) for b in found.blocks] == [
        ("heading", "A big one"),
        ("paragraph", "See the other. Now."),
        ("item", "one"),
        ("item", "two"),
        ("code", "a\n      b"),
        ("row", "1 | 2"),
        ("heading", "Low"),
        ("paragraph", "tail & end"),
    ]
    assert found.blocks[-1].headings == ("A big one", "Low")
    [strong, link] = [mark for block in found.blocks for mark in block.marks]
    assert (strong.kind, found.text[strong.start : strong.end]) == ("strong", "big")
    assert (link.target, found.text[link.start : link.end]) == ("b.html", "the other")


PYTHON = '''"""Doc."""
import os.path
from . import near
from .far import (one,
                  two)

@decorated
def first(x):
    return "é" + x

LIMIT = 1

class Box:
    """Holds."""

    size = 1

    async def open(self):
        pass

    class Lid:
        pass
'''


def test_python_has_a_block_for_each_definition(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.py", PYTHON)
    assert found.text == PYTHON
    by_path = {b.headings: found.text[b.start : b.end].strip() for b in found.blocks}
    assert by_path["first",] == '@decorated\ndef first(x):\n    return "é" + x'
    assert by_path["Box", "open"].endswith("pass")
    assert set(by_path) == {(), ("first",), ("Box",), ("Box", "open"), ("Box", "Lid")}
    assert "LIMIT = 1" in [t.strip() for t in get_texts(found)]


@pytest.mark.parametrize(
    ("name", "written", "defines"),
    [
        ("a.py", "import os\ndef broken(:\n", ["broken"]),
        ("a.ts", 'import {x} from "./x";\nexport async function go() {}\n', ["go"]),
        ("a.js", "const fs = require('fs');\nclass A {\n}\n", ["A"]),
        ("a.rs", "use std::io;\npub(crate) fn run() {}\nstruct S;\n", ["run", "S"]),
        ("a.go", "type T struct {}\nfunc (t *T) Go() {}\n", ["T", "Go"]),
        ("a.c", "#include <stdio.h>\nstruct point { int x; };\n", ["point"]),
        ("a.java", "import java.util.List;\npublic final class Main {}\n", ["Main"]),
        ("a.sql", "SELECT 1;\n", []),
    ],
)
def test_other_code_is_matched_by_patterns(name: str, written: str, defines: list[str], tmp_path: Path) -> None:
    found = read_document(tmp_path / name, written)
    assert [name for b in found.blocks for name in b.headings] == defines
    assert "".join("".join(get_texts(found)).split()) == "".join(written.split())


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", b"", "empty"),
        ("a.txt", b" \n\t", "no text"),
        ("a.txt", b"PNG\x00\x01", "zero bytes"),
        ("a.txt", b"\xff\xfea", "utf-16"),
        ("a.jsonl", b"", "empty"),
        ("a.csv", b"", "empty"),
        ("a.csv", b"a,b\n", "no rows"),
        ("a.jsonl", b"\n \n", "empty"),
        ("a.json", b"{", "not JSON"),
        ("a.html", b"<script>x</script>", "no text"),
        ("a.png", b"x", "no reader for .png"),
        ("a.pdf", b"%PDF-1.7\nbroken", "PDF"),
        ("a.docx", b"PK\x03\x04broken", "DOCX"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1", "encrypted"),
    ],
)
def test_unreadable_file_is_skipped_with_reason(name: str, content: bytes, expected: str, tmp_path: Path) -> None:
    assert expected in read_reason(tmp_path / name, content)


@pytest.mark.parametrize(
    ("name", "content", "limits", "expected"),
    [
        ("a.txt", "x" * 11, Limits(bytes=10), "raise the limit `bytes`"),
        ("a.md", "---\na:\n---\n", None, "no text"),
        ("a.md", "x" * 11, Limits(line=10), "more than 10 characters in a line"),
        ("a.jsonl", '{"text": "long enough"}', Limits(line=10), "raise the limit `line`"),
        ("a.md", "a\n\n" * 20, Limits(blocks=10), "raise the limit `blocks`"),
        ("a.py", "a\n" * 20, Limits(blocks=10), "raise the limit `blocks`"),
        ("a.txt", "a\n\n" * 20, Limits(blocks=10), "raise the limit `blocks`"),
        ("a.html", "<p>a" * 20, Limits(blocks=10), "raise the limit `blocks`"),
        ("a.html", "<div>" * 100_000, None, "levels of nested tags"),
        ("a.jsonl", '{"role": "user", "content": "hello"}\n' * 9, Limits(bytes=99), "raise the limit `bytes`"),
    ],
)
def test_file_beyond_limit_names_the_limit(
    name: str, content: str, limits: Limits | None, expected: str, tmp_path: Path
) -> None:
    assert expected in read_reason(tmp_path / name, content, limits)


IN_PARTS = (
    ".jsonl",
    ".ndjson",
    ".csv",
    ".tsv",
    *(".rst", ".org", ".mbox", ".parquet"),
    *(s for s, reader in READERS.items() if reader in (READERS[".txt"], READERS[""], READERS[".md"])),
)


@pytest.mark.parametrize("suffix", [s for s in READERS if s not in IN_PARTS])
def test_huge_file_is_skipped_before_reading(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"huge{suffix}"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    [found] = read(path)
    assert isinstance(found, Skipped)
    assert "more than 32,000,000 bytes" in found.reason


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".txt", ".md"])
def test_line_of_200_megabytes_is_not_held_in_memory(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"huge{suffix}"
    with path.open("wb") as file:
        for _ in range(200):
            file.write(b"x" * 1_000_000)
    [found] = read(path)
    assert isinstance(found, Skipped)
    assert "more than 1,000,000 characters" in found.reason


def test_irregular_and_missing_files_are_skipped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert [r.reason for r in read(tmp_path) if isinstance(r, Skipped)] == ["it is not a regular file"]
    [missing] = read(tmp_path / "none.txt")
    assert isinstance(missing, Skipped)
    assert "No such file" in missing.reason


def test_root_must_contain_the_path(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="root must be a folder"):
        list(read(tmp_path, root=tmp_path / "other"))


def test_limits_must_be_at_least_one() -> None:
    with pytest.raises(ValueError, match="pages"):
        Limits(pages=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.md", "a.html", "a.pdf", "a.docx", "a.rst"])
def test_file_is_skipped_without_its_library(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str) -> object:
        raise ImportError(module)

    monkeypatch.setattr(blocks, "import_module", missing)
    for library in ("lxml", "pypdf", "docx", "docutils"):  # for the process that reads
        (tmp_path / f"{library}.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)
    kill_idle()
    assert "pip install 'waylore[files]'" in read_reason(tmp_path / name, "text")
    kill_idle()


BOMBS = [
    *(">" * 100_000, "- " * 50_000, "[" * 100_000, "[[" * 50_000, "`" * 100_000, "<" * 100_000, "-" * 50_000),
    *("![](" * 30_000, "[a](" * 30_000, "---\n" * 20_000, "---\na:" + " " * 90_000, "(" * 9_999, "1" * 9_999),
    *("def " * 30_000, "import " * 30_000, "const " * 30_000, "<b><p>" * 20_000, "<a href=x>" * 900),
    *("|" * 50_000 + "\n" + "|-" * 50_000, '"' * 99_999, "[" * 99_999 + "]" * 99_999, '{"a":' * 50_000),
    *("x " * 60_000, "\r" * 99_999 + "x", "-" * 99_999 + "x", "not " * 30_000 + "x", "x" + ".a" * 50_000),
]


@pytest.mark.slow
@pytest.mark.parametrize("content", BOMBS, ids=range(len(BOMBS)))
@pytest.mark.timeout(60)
def test_bombs_are_read_or_skipped_in_time(content: str, tmp_path: Path) -> None:
    for suffix in (".md", ".html", ".py", ".ts", ".json", ".jsonl", ".csv", ".txt", ".rst", ".yaml", ".toml"):
        path = tmp_path / f"bomb{suffix}"
        path.write_text(content, newline="")
        assert list(read(path))


WRITTEN = [
    "# ",
    "\n",
    "\r\n",
    "\n\n",
    "```",
    "- ",
    "| ",
    "[[",
    "]]",
    "[a](b)",
    "<p>",
    "</p>",
    "<h1>",
    "<a href=x>",
]
WRITTEN += [
    "<pre>",
    "def f():\n",
    "class A:\n",
    "  ",
    "import x\n",
    "é",
    "亀",
    "😀",
    "---\n",
    "k: v\n",
    ",",
    '"',
]
WRITTEN += ['{"text": "x"}', '{"role": "u",', '"content": "y"}', "%PDF-1.4\n", "1 0 obj", "PK\x03\x04", "\x0c"]
WRITTEN += ["\u2028", "&#0;", "&#xD800;", "\x85", "x", "\\ud800"]
PARTS = st.sampled_from(WRITTEN)
CONTENT = st.binary(max_size=200) | st.lists(PARTS, max_size=30).map(lambda parts: "".join(parts).encode())


@settings(max_examples=400)
@given(suffix=st.sampled_from(sorted(READERS)), content=CONTENT)
def test_any_content_gives_right_offsets_or_is_skipped(
    suffix: str, content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"fuzzed{suffix}"
    path.write_bytes(content)
    found = list(read(path))
    assert found
    for part in found:
        if isinstance(part, Skipped):
            assert part.reason
            assert not part.reason.startswith("it cannot be read"), part.reason
        else:
            check_offsets(part)


def check_offsets(found: Reading) -> None:
    """Check that blocks are ordered and disjoint, marks lie in their block, and everything can be stored."""
    last = 0
    for block in found.blocks:
        assert last <= block.start < block.end <= len(found.text)
        assert found.text[block.start : block.end].strip()
        assert all(block.start <= mark.start < mark.end <= block.end for mark in block.marks)
        assert [mark.start for mark in block.marks] == sorted(mark.start for mark in block.marks)
        last = block.end
    json.dumps([found.text, found.title, dict(found.metadata)]).encode()
    found.text.encode()
    covered = "".join(found.text[b.start : b.end] for b in found.blocks)
    if not found.uri.endswith((".md", ".markdown", ".mdx")):  # definitions of links and directives are not read
        assert "".join(covered.split()) == "".join(found.text.split())


def test_markdown_with_only_link_definitions_is_text(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.md", "[a]: https://example.org\n")
    assert get_texts(found) == ["[a]: https://example.org"]


@pytest.mark.parametrize("name", ["searchindex.js", "style.min.css"])
def test_minified_file_is_skipped(name: str, tmp_path: Path) -> None:
    """Nobody wrote it, and its parts would be hits."""
    path = tmp_path / name
    path.write_text('Search.setIndex({"terms":{' + ",".join(f'"word{n}":{n}' for n in range(500)) + "}})")
    [found] = read(path)
    assert isinstance(found, Skipped)
    assert "minified" in found.reason
    path.write_text("function open() {\n  return 1;\n}\n" + f"const TEXT = '{'x' * 2_000}';\n")
    [found] = read(path)
    assert not isinstance(found, Skipped)


def test_python_title_is_its_import_name(tmp_path: Path) -> None:
    package = tmp_path / "src" / "box" / "lid"
    package.mkdir(parents=True)
    for place in (
        package.parent / "__init__.py",
        package / "__init__.py",
        package / "hinge.py",
        tmp_path / "run.py",
    ):
        place.write_text("import os\n")
    titles = {r.uri: r.title for r in read(tmp_path, root=tmp_path) if isinstance(r, Reading)}
    assert titles == {
        "run.py": "run.py",
        "src/box/__init__.py": "box",
        "src/box/lid/__init__.py": "box.lid",
        "src/box/lid/hinge.py": "box.lid.hinge",
    }
