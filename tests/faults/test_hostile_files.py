"""A folder of bombs, broken files and endless lines: each is reported, none is fatal, memory is limited."""

import io
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
from docx import Document as Docx
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.folders import open_file

TESTS = Path(__file__).parents[1]
MEGABYTE = 1_000_000
MAX_MEMORY = 500 * MEGABYTE  # in addition to the memory before adding


def make_docx_bomb() -> bytes:
    """Return a DOCX whose text unpacks to a gigabyte."""
    written = io.BytesIO()
    Docx().save(written)
    bomb = io.BytesIO()
    with zipfile.ZipFile(written) as good, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as bad:
        for name in good.namelist():
            if name != "word/document.xml":
                bad.writestr(name, good.read(name))
        with bad.open("word/document.xml", "w") as part:
            for _ in range(1_000):
                part.write(b" " * MEGABYTE)
    return bomb.getvalue()


def write_long_line(path: Path, head: bytes = b"", tail: bytes = b"") -> None:
    """Write a line of 200 MB."""
    with path.open("wb") as file:
        file.write(head)
        for _ in range(200):
            file.write(b"word " * (MEGABYTE // 5))
        file.write(tail)


@pytest.mark.timeout(300)
def test_hostile_folder_is_added_within_limits(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "good.md").write_text("# Good\n\nAda met Charles Babbage in London.\n")
    (folder / "empty.md").write_bytes(b"")
    (folder / "binary.txt").write_bytes(bytes(range(256)) * 50)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\n1 0 obj\n<< /Length 99999999 >>\nstream\n")
    (folder / "not.docx").write_bytes(b"PK\x03\x04 no zip")
    (folder / "bomb.docx").write_bytes(make_docx_bomb())
    (folder / "deep.html").write_text("<div>" * 300_000 + "x")
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10 if i else "lol"}">' for i in range(12))
    (folder / "laughs.html").write_text(f"<!DOCTYPE lolz [{entities}]><p>&a11;</p>")
    (folder / "half.txt").write_bytes("half a character: é".encode()[:-1])
    (folder / "rows.jsonl").write_text('{"text": "Mara met Kofi."}\n{"text": \n')
    write_long_line(folder / "line.txt")
    write_long_line(folder / "line.csv", b"text\n")
    write_long_line(folder / "line.jsonl", b'{"text": "', b'"}\n')
    command = [sys.executable, "-m", "faults.hostile", str(tmp_path / "a.waylore"), str(folder)]
    run = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=True)
    result = json.loads(run.stdout)
    read = {uri.partition("#")[0] for uri in result["documents"]}
    skipped = {uri.partition("#")[0] for uri in result["skipped"]}
    assert read | skipped == {path.name for path in folder.iterdir()}
    assert {"good.md", "rows.jsonl"} <= read
    expected = {"empty.md", "binary.txt", "broken.pdf", "not.docx", "bomb.docx", "deep.html", "rows.jsonl"}
    assert expected | {"line.txt", "line.csv", "line.jsonl"} <= skipped
    assert all(result["skipped"].values())
    assert result["memory"] < MAX_MEMORY, f"{result['memory'] / MEGABYTE:.0f} MB"


SUFFIXES = ".md .txt .html .py .js .csv .jsonl .json .pdf .docx".split()
PIECES = st.sampled_from(
    [
        b"# A\n\n",
        b"[[",
        b"]]",
        b"(",
        b")",
        b"Ada (AB) ",
        b"also known as ",
        b"---\na: b\n---\n",
        b"<p>",
        b"</",
        b'{"text":',
        b"\xff",
        b"\x00",
        b"\n\n",
        "東京（東）".encode(),
        b"import x\n",
        b"%PDF-1.7",
        b"PK\x03\x04",
    ]
)
CONTENT = st.lists(PIECES | st.binary(max_size=20), max_size=30).map(b"".join)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(SUFFIXES), CONTENT, min_size=1, max_size=4))
def test_any_files_are_added_or_skipped(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "folder"
        folder.mkdir()
        for suffix, content in files.items():
            (folder / f"file{suffix}").write_bytes(content)
        with open_file(Path(name) / "a.waylore") as waylore:
            added = waylore.add_files(folder, root=folder)
            read = {document.uri.partition("#")[0] for document in waylore.documents()}
    skipped = {file.uri.partition("#")[0] for file in added.skipped}
    assert read | skipped == {f"file{suffix}" for suffix in files}
