"""Notebooks, e-mail, org-mode, EPUB, PPTX and XLSX are read with their structure; broken ones are skipped."""

import io
import json
import mailbox
import zipfile
from email.message import EmailMessage
from pathlib import Path

import openpyxl
import pptx
import pytest

from unit.indexing.readers.reading import read_document, show
from waylore.indexing.files.formats import Limits, Reading, Skipped, read


def read_all(path: Path, limits: Limits | None = None) -> list[Reading | Skipped]:
    return list(read(path, root=path.parent, limits=limits or Limits()))


def test_notebook_has_text_and_code(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Study\n", "\n", "Of **iron**."]},
        {"cell_type": "code", "source": "x = '```'", "outputs": [{"text": "hidden"}]},
        {"cell_type": "raw", "source": ""},
    ]
    found = read_document(tmp_path / "a.ipynb", json.dumps({"cells": cells, "nbformat": 4}))
    assert found.title == "Study"
    assert show(found) == [("heading", "Study"), ("paragraph", "Of iron."), ("code", "```` x = '```' ````")]


def make_message(subject: str, text: str, html: str = "") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Mara <mara@example.org>", "kofi@example.org", subject
    message["Message-ID"] = f"<{len(subject)}@example.org>"
    if text:
        message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html") if text else message.set_content(html, subtype="html")
    return message


def test_message_has_fields_and_text(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.eml", make_message("Iron", "Hello.\n\nBye.\n", "<p>not read</p>").as_bytes())
    assert found.title == "Iron"
    assert found.metadata == {"From": "Mara <mara@example.org>", "To": "kofi@example.org", "Subject": "Iron"}
    assert show(found)[2:] == [("field", "Subject: Iron"), ("paragraph", "Hello."), ("paragraph", "Bye.")]
    only_html = read_document(tmp_path / "b.eml", make_message("Iron", "", "<h1>A</h1><p>Said.</p>").as_bytes())
    assert show(only_html)[3:] == [("heading", "A"), ("paragraph", "Said.")]


def test_each_message_of_a_mailbox_is_a_document(tmp_path: Path) -> None:
    box = mailbox.mbox(tmp_path / "a.mbox")
    for subject in ("One", "Three"):
        box.add(make_message(subject, f"About {subject}."))
    box.close()
    found = read_all(tmp_path / "a.mbox")
    assert [(item.uri, item.title) for item in found if isinstance(item, Reading)] == [
        ("a.mbox#message=3@example.org", "One"),
        ("a.mbox#message=5@example.org", "Three"),
    ]


ORG = """#+TITLE: Plans
Intro.

* TODO Granite                                  :rock:
:PROPERTIES:
:OWNER: Kofi Mensah
:END:
See [[https://example.org][the page]].
- Rank: first
- term :: meaning
** Parts
#+begin_src py
x = 1
#+end_src
| Name | Size |
|------+------|
| a    | 2    |
"""


def test_org_has_headings_properties_and_tables(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.org", ORG)
    assert found.title == "Plans"
    assert show(found) == [
        ("paragraph", "Intro."),
        ("heading", "TODO Granite"),
        ("field", "OWNER: Kofi Mensah"),
        ("paragraph", "See the page."),
        ("field", "Rank: first"),
        ("term", "term: meaning"),
        ("heading", "Parts"),
        ("code", "x = 1"),
        ("row", "Name | Size"),
        ("row", "a | Size: 2"),
    ]
    assert found.blocks[-1].headings == ("Granite", "Parts")
    assert [mark.target for mark in found.blocks[3].marks] == ["https://example.org"]


def make_epub(**more: bytes) -> bytes:
    parts: dict[str, str | bytes] = {
        "META-INF/container.xml": "<container><rootfiles><rootfile full-path='O/b.opf'/></rootfiles></container>",
        "O/b.opf": "<package xmlns:dc='http://purl.org/dc/elements/1.1/'><metadata><dc:title>Rocks</dc:title></metadata>"
        "<manifest><item id='a' href='a%20b.xhtml'/><item id='c' href='c.xhtml'/></manifest>"
        "<spine><itemref idref='c'/><itemref idref='a'/></spine></package>",
        "O/a b.xhtml": "<html><body><h1>Iron</h1><p>Heavy.</p></body></html>",
        "O/c.xhtml": "<html><body><p>Before.</p></body></html>",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**parts, **more}.items():
            archive.writestr(name, content)
    return packed.getvalue()


def test_each_chapter_of_a_book_is_a_document(tmp_path: Path) -> None:
    (tmp_path / "a.epub").write_bytes(make_epub())
    found = [item for item in read_all(tmp_path / "a.epub") if isinstance(item, Reading)]
    assert [(item.uri, item.title, item.text) for item in found] == [
        ("a.epub#chapter=1", "Rocks: chapter 1", "Before."),
        ("a.epub#chapter=2", "Rocks: Iron", "Iron\n\nHeavy."),
    ]


def test_slides_have_titles_tables_and_notes(tmp_path: Path) -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "Iron"
    slide.placeholders[1].text = "Owner: Mara\nheavy"
    table = slide.shapes.add_table(2, 2, 0, 0, 99, 99).table
    for at, text in enumerate(["Name", "Rank", "Kofi", "first"]):
        table.cell(at // 2, at % 2).text = text
    slide.notes_slide.notes_text_frame.text = "Say more."
    written = io.BytesIO()
    presentation.save(written)
    found = read_document(tmp_path / "a.pptx", written.getvalue())
    assert found.title == "Iron"
    assert show(found) == [
        *(("heading", "Iron"), ("field", "Owner: Mara"), ("item", "heavy"), ("row", "Name | Rank")),
        *(("row", "Kofi | Rank: first"), ("paragraph", "Say more.")),
    ]


def test_workbook_has_rows_with_columns(tmp_path: Path) -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.title = "People"
    for row in (["Name", "Rank"], [None, None], ["Kofi", 1]):
        sheet.append(row)
    written = io.BytesIO()
    workbook.save(written)
    found = read_document(tmp_path / "a.xlsx", written.getvalue())
    assert show(found) == [("heading", "People"), ("row", "Name | Rank"), ("row", "Kofi | Rank: 1")]
    assert found.blocks[-1].cells == (("Name", "Kofi"), ("Rank", "1"))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.ipynb", b"{", "not JSON"),
        ("a.ipynb", b"[]", "not a notebook"),
        ("a.ipynb", b'{"cells": []}', "no text"),
        ("a.eml", b"", "empty"),
        ("a.eml", b"\n\n", "no text"),
        ("a.mbox", b"no messages", "no messages"),
        ("a.epub", b"PK\x03\x04broken", "EPUB"),
        ("a.pptx", b"PK\x03\x04broken", "PPTX"),
        ("a.xlsx", b"PK\x03\x04broken", "XLSX"),
        ("a.epub", make_epub(**{"bomb.bin": b"\0" * 40_000_000}), "raise the limit `unpacked_bytes`"),
        ("a.pptx", make_epub(), "PPTX"),
        ("a.xlsx", make_epub(), "XLSX"),
    ],
)
def test_broken_file_is_skipped_with_reason(name: str, content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    [found] = read_all(tmp_path / name)
    assert isinstance(found, Skipped), found
    assert reason in found.reason
