"""Hostile files: small ones that are expensive to read."""

import io
import zipfile
import zlib
from collections.abc import Sequence

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
DRAWN = b"BT /A 12 Tf 9 99 Td (Here.) Tj ET "


def make_pdf(content: bytes, pages: int = 1, forms: Sequence[bytes] = (), unicode_map: bytes = b"") -> bytes:
    """Return a PDF whose pages all draw the same packed stream; forms are named /F0 and so on."""
    first_form = 6 + pages
    named = b" ".join(b"/F%d %d 0 R" % (number, first_form + number) for number in range(len(forms)))
    resources = b"<< /Font << /A 3 0 R >> /XObject << %s >> >>" % named
    kids = b" ".join(b"%d 0 R" % (6 + number) for number in range(pages))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources %s /Contents 4 0 R >>" % resources
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources " + resources
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, pages),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 5 0 R >>",
        _make_stream(content),
        _make_stream(unicode_map),
        *[page] * pages,
        *(_make_stream(each, form) for each in forms),
    ]
    return _join_objects(objects)


def _make_stream(content: bytes, about: bytes = b"") -> bytes:
    packed = zlib.compress(content)
    return b"<< /Length %d /Filter /FlateDecode %s >>\nstream\n%s\nendstream" % (len(packed), about, packed)


def _join_objects(objects: Sequence[bytes]) -> bytes:
    written, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, start=1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n" % count
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (count, len(written))
    return bytes(written) + head + table + trailer


def make_nested_forms() -> bytes:
    """Return a PDF whose page draws ten forms, each of which draws ten others, nine levels deep."""
    return make_pdf(b"/F0 Do", forms=[*(b"/F%d Do " % (n + 1) * 10 for n in range(9)), DRAWN])


def make_unicode_map() -> bytes:
    """Return a PDF whose font maps a range of four billion characters."""
    return make_pdf(DRAWN, unicode_map=b"1 beginbfrange\n<00000000> <FFFFFFFF> <0000>\nendbfrange\n" * 1_000)


def make_docx(body: str, head: str = "") -> bytes:
    """Return a DOCX with this body; `head` comes before it, such as a document type."""
    override = f'<Override PartName="/word/document.xml" ContentType="{MAIN}"/>'
    rels = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    relation = f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="word/document.xml"/>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">{rels}{override}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{relation}</Relationships>',
        "word/document.xml": f'{head}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed.getvalue()


def make_paragraph(text: str) -> str:
    """Return a paragraph of a DOCX."""
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def make_entities(start: str = "lol") -> str:
    """Return a document type with entities that expand to a billion words."""
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else start}">' for n in range(10))
    return f"<!DOCTYPE w:document [{entities}]>"
