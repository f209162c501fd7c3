"""Read PDF and DOCX files, built here from bytes: valid ones, broken ones and bombs."""

import io
import time
import zipfile
import zlib
from pathlib import Path

import docx
import pypdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waylore.indexing.blocks import Limits, ReadError, Reading, Skipped, Source
from waylore.indexing.files.formats import read
from waylore.indexing.readers.office.docx import read_docx
from waylore.indexing.readers.office.pdf import read_pdf

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def make_pdf(*pages: str, forms: tuple[bytes, ...] = ()) -> bytes:
    """Return a PDF whose pages each draw one line; forms are shared and named /F0 and so on."""
    count = len(pages)
    first_form = 4 + 2 * count
    shared = " ".join(f"/F{n} {first_form + n} 0 R" for n in range(len(forms)))
    resources = f"<< /Font << /A 3 0 R >> /XObject << {shared} >> >>"
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(count))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode(),
    ]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for n, page in enumerate(pages):
        about = f"/Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources {resources} /Contents {5 + 2 * n} 0 R"
        objects.append(f"<< {about} >>".encode())
        drawn = page.encode() if page.startswith(("/", "BT")) else f"BT /A 12 Tf 9 99 Td ({page}) Tj ET".encode()
        objects.append(make_stream(drawn))
    objects += [
        make_stream(form, f"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources {resources}") for form in forms
    ]
    written, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(written))
    return written + head + table + trailer


def draw_lines(*lines: tuple[str, int, int]) -> str:
    """Return the content of a page with these texts, each with its size and height."""
    return " ".join(f"BT /A {size} Tf 1 0 0 1 9 {height} Tm ({text}) Tj ET" for text, size, height in lines)


def make_stream(content: bytes, about: str = "") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), about.encode(), content)


def make_docx(body: str, **more: bytes) -> bytes:
    """Return a DOCX with this body; `more` are further parts."""
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    override = "".join(
        f'<Override PartName="/word/{part}.xml" ContentType="{kind}.{type_}+xml"/>'
        for part, type_ in (("document", "document.main"), ("styles", "styles"))
    )
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" ContentType='
        f'"application/vnd.openxmlformats-package.relationships+xml"/>{override}</Types>',
        "_rels/.rels": make_relation("officeDocument", "word/document.xml"),
        "word/_rels/document.xml.rels": make_relation("styles", "styles.xml"),
        "word/styles.xml": f'<w:styles xmlns:w="{WORD}">{make_style("Heading1", "heading 1")}'
        f"{make_style('Heading2', 'heading 2')}{make_style('ListBullet', 'List Bullet')}</w:styles>",
        "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        parts.update(more)
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed.getvalue()


def make_relation(kind: str, target: str) -> str:
    one = f'<Relationship Id="r1" Type="{OFFICE}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{PACKAGE}/relationships">{one}</Relationships>'


def make_style(id_: str, name: str) -> str:
    return f'<w:style w:type="paragraph" w:styleId="{id_}"><w:name w:val="{name}"/></w:style>'


def make_paragraph(text: str, style: str = "") -> str:
    about = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{about}<w:r><w:t>{text}</w:t></w:r></w:p>"


def read_content(path: Path, content: bytes, limits: Limits | None = None) -> list[Reading | Skipped]:
    path.write_bytes(content)
    return list(read(path, root=path.parent, limits=limits or Limits()))


def read_reason(path: Path, content: bytes, limits: Limits | None = None) -> str:
    [skipped] = read_content(path, content, limits)
    assert isinstance(skipped, Skipped), skipped
    return skipped.reason


def test_pdf_gives_text_of_its_pages(tmp_path: Path) -> None:
    [reading] = read_content(tmp_path / "a.pdf", make_pdf("First page.", "Second page."))
    assert isinstance(reading, Reading)
    assert reading.text == "First page.\n\nSecond page."
    assert dict(reading.metadata) == {"pages": 2}
    assert [reading.text[b.start : b.end] for b in reading.blocks] == ["First page.", "Second page."]


def test_pdf_has_headings_and_no_running_heads(tmp_path: Path) -> None:
    pages = [
        draw_lines(
            *(("The Handbook", 9, 800), (f"Chapter {name}", 24, 760), ("with two lines", 24, 732)),
            *(("First line of text,", 12, 700), ("second line.", 12, 686), ("Another paragraph", 12, 650)),
            *((f"Contents of {name} ........ 12", 12, 610), (f"Page {number}", 9, 20)),
        )
        for number, name in enumerate(["One", "Two", "Three"], start=1)
    ]
    [reading] = read_content(tmp_path / "a.pdf", make_pdf(*pages))
    assert isinstance(reading, Reading), reading
    assert reading.title == "Chapter One with two lines"
    assert [(b.kind, reading.text[b.start : b.end], b.headings) for b in reading.blocks[:4]] == [
        ("heading", "Chapter One\nwith two lines", ("Chapter One with two lines",)),
        ("paragraph", "First line of text,\nsecond line.", ("Chapter One with two lines",)),
        ("paragraph", "Another paragraph", ("Chapter One with two lines",)),
        ("paragraph", "Contents of One", ("Chapter One with two lines",)),
    ]
    assert len(reading.blocks) == 12
    assert "Handbook" not in reading.text


@pytest.mark.parametrize(
    ("own", "title"), [("A report", "A report"), ("Microsoft Word - Draft.doc", "Big"), ("", "Big")]
)
def test_pdf_title_is_that_of_metadata_or_the_largest_text(own: str, title: str, tmp_path: Path) -> None:
    drawn = draw_lines(("Big", 20, 700), ("small text that is longer", 10, 600))
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(make_pdf(drawn)))
    writer.add_metadata({"/Title": own})
    written = io.BytesIO()
    writer.write(written)
    [reading] = read_content(tmp_path / "a.pdf", written.getvalue())
    assert isinstance(reading, Reading)
    assert reading.title == title


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_encrypted_pdf_is_skipped(algorithm: str, tmp_path: Path) -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(make_pdf("Secret.")))
    writer.encrypt("password", algorithm=algorithm)
    written = io.BytesIO()
    writer.write(written)
    assert "encrypted" in read_reason(tmp_path / "a.pdf", written.getvalue())


def test_pdf_without_text_is_skipped(tmp_path: Path) -> None:
    assert "character recognition" in read_reason(tmp_path / "a.pdf", make_pdf(""))


def test_pdf_with_too_many_pages_is_skipped(tmp_path: Path) -> None:
    assert "raise the limit `pages`" in read_reason(tmp_path / "a.pdf", make_pdf("1", "2", "3"), Limits(pages=2))


@pytest.mark.timeout(60)
def test_pdf_with_nested_forms_is_skipped(tmp_path: Path) -> None:
    forms = [f"/F{n + 1} Do ".encode() * 10 for n in range(9)]
    endless = make_pdf("/F0 Do", forms=(*forms, b"BT /A 9 Tf (ha) Tj ET"))
    assert "raise the limit `operations`" in read_reason(tmp_path / "a.pdf", endless, Limits(operations=2_000))


def test_oversized_page_is_skipped_and_others_are_read(tmp_path: Path) -> None:
    packed = zlib.compress(b"q Q " * 1_000_000)
    whole = make_pdf("Kept.", "Lost.")
    old = make_stream(b"BT /A 12 Tf 9 99 Td (Lost.) Tj ET")
    bomb = whole.replace(old, make_stream(packed, "/Filter /FlateDecode"))
    lost, reading = read_content(tmp_path / "a.pdf", bomb, Limits(unpacked_bytes=100_000))
    assert isinstance(lost, Skipped)
    assert lost.uri == "a.pdf#page=2"
    assert isinstance(reading, Reading)
    assert reading.text == "Kept."


@settings(max_examples=150)
@given(at=st.integers(0, 900), noise=st.binary(max_size=12), end=st.integers(0, 900))
def test_broken_pdfs_are_read_or_skipped(
    at: int, noise: bytes, end: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = make_pdf("One.", "Two.")
    broken = (whole[:at] + noise + whole[at + len(noise) :])[: len(whole) - end % 300]
    assert read_content(tmp_path_factory.getbasetemp() / "broken.pdf", broken)


def test_docx_has_headings_lists_and_tables(tmp_path: Path) -> None:
    cells = "".join(f"<w:tc>{make_paragraph(text)}</w:tc>" for text in ("a", "b"))
    body = (
        make_paragraph("Intro.")
        + make_paragraph("One", "Heading1")
        + make_paragraph("Sub", "Heading2")
        + make_paragraph("Text.")
    )
    body += (
        make_paragraph("item", "ListBullet")
        + f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
        + make_paragraph("Two", "Heading1")
    )
    [reading] = read_content(tmp_path / "a.docx", make_docx(body))
    assert isinstance(reading, Reading), reading
    assert reading.title == "One"
    assert [(b.kind, reading.text[b.start : b.end], b.headings) for b in reading.blocks] == [
        ("paragraph", "Intro.", ()),
        ("heading", "One", ("One",)),
        ("heading", "Sub", ("One", "Sub")),
        ("paragraph", "Text.", ("One", "Sub")),
        ("item", "item", ("One", "Sub")),
        ("row", "a | b", ("One", "Sub")),
        ("heading", "Two", ("Two",)),
    ]


def test_docx_has_columns_bold_words_links_and_boxes(tmp_path: Path) -> None:
    def make_row(*texts: str) -> str:
        return f"<w:tr>{''.join(f'<w:tc>{make_paragraph(text)}</w:tc>' for text in texts)}</w:tr>"

    bold = "<w:p><w:pPr><w:pStyle w:val='ListBullet'/></w:pPr><w:r><w:rPr><w:b/></w:rPr><w:t>Vault</w:t></w:r>"
    box = f"<w:p><w:r><w:txbxContent>{make_paragraph('In a box')}</w:txbxContent></w:r></w:p>"
    body = f"{bold}<w:r><w:t> - keeps keys</w:t></w:r></w:p>{box}"
    body += f"<w:tbl>{make_row('Name', 'Rank')}{make_row('Kofi', 'first')}</w:tbl>"
    [reading] = read_content(tmp_path / "a.docx", make_docx(body))
    assert isinstance(reading, Reading), reading
    assert [(b.kind, reading.text[b.start : b.end], b.key) for b in reading.blocks] == [
        ("term", "Vault - keeps keys", "Vault"),
        ("paragraph", "In a box", ""),
        ("row", "Name | Rank", ""),
        ("row", "Kofi | Rank: first", ""),
    ]
    assert [mark.kind for mark in reading.blocks[0].marks] == ["strong"]
    assert reading.blocks[-1].cells == (("Name", "Kofi"), ("Rank", "first"))


def test_zip_bomb_with_true_size_is_skipped(tmp_path: Path) -> None:
    bomb = make_docx(make_paragraph("x"), **{"word/media.bin": b"\0" * 40_000_000})
    assert len(bomb) < 100_000
    assert "raise the limit `unpacked_bytes`" in read_reason(tmp_path / "a.docx", bomb)


def test_zip_bomb_with_false_size_is_skipped(tmp_path: Path) -> None:
    size = 3_000_000
    bomb = make_docx(make_paragraph("x"), **{"word/media.bin": b"\0" * size})
    lie = bomb.replace(size.to_bytes(4, "little"), (9).to_bytes(4, "little"))
    assert lie != bomb
    assert "DOCX" in read_reason(tmp_path / "a.docx", lie)


@pytest.mark.timeout(30)
def test_docx_with_many_empty_paragraphs_is_skipped(tmp_path: Path) -> None:
    assert "raise the limit `blocks`" in read_reason(tmp_path / "a.docx", make_docx("<w:p/>" * 4_900_000))
    assert "raise the limit `blocks`" in read_reason(tmp_path / "a.docx", make_docx("<w:p/>" * 30), Limits(blocks=20))


@pytest.mark.timeout(30)
def test_cell_of_a_billion_columns_is_read_once(tmp_path: Path) -> None:
    wide = f'<w:tc><w:tcPr><w:gridSpan w:val="1000000000"/></w:tcPr>{make_paragraph("wide")}</w:tc>'
    [reading] = read_content(
        tmp_path / "a.docx", make_docx(f"<w:tbl><w:tr>{wide}<w:tc>{make_paragraph('b')}</w:tc></w:tr></w:tbl>")
    )
    assert isinstance(reading, Reading), reading
    assert reading.text == "wide | b"


def test_xml_entities_are_not_expanded(tmp_path: Path) -> None:
    entities = '<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 20}">' for before, name in zip("abcdefg", "bcdefgh", strict=True)
    )
    body = f"<w:body>{make_paragraph('&h;')}</w:body>"
    bomb = f'<!DOCTYPE d [{entities}]><w:document xmlns:w="{WORD}">{body}</w:document>'
    [skipped] = read_content(tmp_path / "a.docx", make_docx("", **{"word/document.xml": bomb.encode()}))
    assert isinstance(skipped, Skipped)


@pytest.mark.parametrize("content", [make_docx(""), make_docx(make_paragraph(" "))])
def test_empty_docx_is_skipped(content: bytes, tmp_path: Path) -> None:
    assert read_reason(tmp_path / "a.docx", content) == "it has no text"


@settings(max_examples=100)
@given(at=st.integers(0, 2_000), noise=st.binary(max_size=12))
def test_broken_docx_are_read_or_skipped(at: int, noise: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    whole = make_docx(make_paragraph("One") + make_paragraph("Two", "Heading1"))
    broken = whole[:at] + noise + whole[at + len(noise) :]
    assert read_content(tmp_path_factory.getbasetemp() / "broken.docx", broken)


# -- one budget for a file -----------------------------------------------------------------------------

DRAWN = b"BT /A 12 Tf 9 99 Td (Here.) Tj ET"


def make_shared_pdf(content: bytes, pages: int) -> bytes:
    """Return a PDF whose pages all draw the same packed stream."""
    single = make_pdf(*["x"] * pages).replace(b"/Contents 7 0 R", b"/Contents 5 0 R")
    for number in range(1, pages):
        single = single.replace(b"/Contents %d 0 R" % (5 + 2 * number), b"/Contents 5 0 R")
    old = make_stream(b"BT /A 12 Tf 9 99 Td (x) Tj ET")
    return single.replace(old, make_stream(zlib.compress(content), "/Filter /FlateDecode"), 1)


def read_here(path: Path, content: bytes, limits: Limits | None = None) -> tuple[Reading, float]:
    """Return a file as this process reads it, and the processor time in seconds."""
    path.write_bytes(content)
    reader = read_pdf if path.suffix == ".pdf" else read_docx
    before = time.process_time()
    [reading] = reader(Source(path, path.name, limits or Limits()))
    assert isinstance(reading, Reading)
    return reading, time.process_time() - before


def test_stream_of_blanks_costs_little_on_every_page(tmp_path: Path) -> None:
    """Go through 20 MB of blanks once: before, each page took 2.6 s."""
    reading, seconds = read_here(tmp_path / "a.pdf", make_shared_pdf(b" " * 20_000_000 + DRAWN, 300))
    assert reading.text == "\n\n".join(["Here."] * 300)
    assert seconds < 30


@pytest.mark.slow
def test_streams_of_all_pages_share_one_budget(tmp_path: Path) -> None:
    content = make_shared_pdf(b"q Q " * 10_000 + DRAWN, 4)
    assert read_here(tmp_path / "a.pdf", content, Limits(unpacked_bytes=170_000))[0].metadata == {"pages": 4}
    with pytest.raises(ReadError, match="unpacked_bytes"):
        read_here(tmp_path / "a.pdf", content, Limits(unpacked_bytes=150_000))


def test_stream_that_cannot_be_unpacked_is_unpacked_once(tmp_path: Path) -> None:
    bomb = make_shared_pdf(b"q Q " * 5_000_000, 300)
    path = tmp_path / "a.pdf"
    path.write_bytes(bomb)
    before = time.process_time()
    with pytest.raises(ReadError, match="no text"):
        list(read_pdf(Source(path, "a.pdf", Limits(unpacked_bytes=10_000_000))))
    assert time.process_time() - before < 30


def test_blanks_and_lines_between_operations_do_not_matter(tmp_path: Path) -> None:
    spread = DRAWN.replace(b" Tf ", b" Tf" + b" \n" * 500).replace(
        b" Td ", b" Td % a comment" + b" " * 500 + b"(no) Tj\n"
    )
    assert read_here(tmp_path / "a.pdf", make_shared_pdf(spread, 2))[0].text == "Here.\n\nHere."
    (tmp_path / "b.pdf").write_bytes(make_pdf("two  words"))
    assert read_here(tmp_path / "b.pdf", make_pdf("a" + " " * 40 + "b"))[0].text == "a" + " " * 40 + "b"


@pytest.mark.slow
def test_docx_with_many_paragraphs_costs_little(tmp_path: Path) -> None:
    """Look up each style once: before, a paragraph took 1.4 ms or more, and these 98 seconds."""
    reading, seconds = read_here(tmp_path / "a.docx", make_docx(make_paragraph("a", "Heading1") * 70_000))
    assert len(reading.blocks) == 70_000
    assert reading.blocks[-1].kind == "heading"
    assert seconds < 15


def test_paragraph_of_docx_reads_like_python_docx(tmp_path: Path) -> None:
    run = "<w:t>a</w:t><w:tab/><w:t> b </w:t><w:br/><w:br w:type='page'/><w:cr/><w:noBreakHyphen/><w:sym/><w:t/>"
    link = f"<w:hyperlink><w:r>{run}</w:r></w:hyperlink>"
    body = f"<w:p><w:r><w:rPr><w:b/></w:rPr>{run}</w:r>{link}<w:ins><w:r><w:t>new</w:t></w:r></w:ins></w:p>"
    content = make_docx(body + make_paragraph("Last", "Unknown") + make_paragraph("Item", "ListBullet"))
    [first, *_] = docx.Document(io.BytesIO(content)).paragraphs
    reading, _ = read_here(tmp_path / "a.docx", content)
    assert reading.text.split("\n\n", 1)[0] == first.text.split("\n\n", 1)[0]
    assert first.text.strip() in reading.text
    assert [block.kind for block in reading.blocks] == ["paragraph", "paragraph", "item"]
