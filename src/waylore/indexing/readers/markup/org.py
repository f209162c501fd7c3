"""Read org-mode with orgparse: headings, properties, lists, tables and code.

The text consists of the blocks without markup. A file that orgparse cannot read is read as plain text.
"""

import re
from collections.abc import Iterator
from typing import Any

from waylore.indexing.blocks import Mark, ReadError, Reading, Source, nest_heading, require_library
from waylore.indexing.encoding import decode_text
from waylore.indexing.readers.plain import is_long, read_text
from waylore.indexing.readers.structure.keyed import classify_item
from waylore.indexing.readers.structure.logs import split_log
from waylore.indexing.readers.structure.rendering import TextWriter, format_row
from waylore.indexing.readers.structure.titles import find_heading_title, name_file

_ITEM = re.compile(r"\s*(?:[-+]|\d+[.)])\s+(?:\[[ X-]\]\s+)?")
_TERM = re.compile(r"(.{1,100}?)\s+::\s+(\S.*)", re.DOTALL)
_LINK = re.compile(r"\[\[([^\[\]]{1,1000})\](?:\[([^\[\]]{1,1000})\])?\]")
_RULER = re.compile(r"\s*\|[-+|]*\s*$")
_KEYWORD = re.compile(r"\s*#\+(\w+):[ \t]*(.*)$")


def read_org(source: Source) -> Iterator[Reading]:
    """Read a file as one document, or a log as several; a long file is read as plain text in parts."""
    if is_long(source):
        yield from read_text(source)
        return
    library = require_library("orgparse")
    text = decode_text(source.read_bytes(), source.limits)
    writer = _OrgWriter(source.limits.blocks)
    try:
        writer.add_nodes(library.loads(text))
    except ReadError:
        raise
    except Exception:  # noqa: BLE001 (a broken date or drawer may raise anything)
        writer.blocks.clear()
    if not writer.blocks:
        yield from read_text(source)
        return
    blocks = tuple(writer.blocks)
    title = writer.title or find_heading_title(blocks) or name_file(source)
    yield from split_log(Reading(source.uri, title, writer.text, blocks))


class _OrgWriter(TextWriter):
    """Writes the nodes of a tree."""

    def __init__(self, max_blocks: int) -> None:
        super().__init__(max_blocks)
        self.title = ""
        self._headings: tuple[str, ...] = ()
        self._paragraph: list[str] = []
        self._columns: list[str] = []

    def add_nodes(self, root: Any) -> None:
        """Write the root and all nodes below it, in order."""
        path: list[tuple[int, str]] = []
        for node in root:
            if node.level:
                self._headings = nest_heading(path, node.level, node.heading)
                self.add("heading", " ".join(filter(None, [node.todo, node.heading])), self._headings)
            for key, value in node.properties.items():
                self.add("field", f"{key}: {value}", self._headings, key=key, cells=((key, str(value)),))
            self._add_body(node.get_body(format="raw"))

    def _add_body(self, body: str) -> None:
        """Add the text below a heading: code between its marks, and everything else line by line."""
        code: list[str] | None = None
        for line in [*body.splitlines(), ""]:
            mark = line.strip().lower()
            if code is None and mark.startswith(("#+begin_src", "#+begin_example")):
                self._end_paragraph()
                code = []
            elif code is None:
                self._add_line(line, mark)
            elif mark.startswith("#+end_"):
                self.add("code", "\n".join(code), self._headings)
                code = None
            else:
                code.append(line)
        self.add("code", "\n".join(code or ()), self._headings)

    def _add_line(self, line: str, mark: str) -> None:
        """Add a line of text to its paragraph, or a line that is a block by itself."""
        self._columns = self._columns if mark.startswith("|") else []
        if mark and not _ITEM.match(line) and not mark.startswith(("#", "|", ":")):
            self._paragraph.append(line)
            return
        self._end_paragraph()
        if mark.startswith("|"):
            self._add_row(line)
        elif _ITEM.match(line):
            self._add_item(line)
        elif keyword := _KEYWORD.match(line):
            self._add_keyword(keyword[1], keyword[2].strip())

    def _end_paragraph(self) -> None:
        text, marks = _show_links(" ".join(" ".join(self._paragraph).split()))
        self.add("paragraph", text, self._headings, marks=marks)
        self._paragraph = []

    def _add_keyword(self, key: str, value: str) -> None:
        if key.lower() == "title":
            self.title = value
        elif value and not key.lower().startswith(("begin_", "end_", "options", "startup")):
            self.add("field", f"{key}: {value}", self._headings, key=key, cells=((key, value),))

    def _add_item(self, line: str) -> None:
        text, marks = _show_links(_ITEM.sub("", line, count=1).strip())
        if term := _TERM.match(text):
            self.add("term", f"{term[1]}: {term[2]}", self._headings, key=term[1])
            return
        kind, key, cells = classify_item(text, marks)
        self.add(kind, text, self._headings, key=key, cells=cells, marks=marks)

    def _add_row(self, line: str) -> None:
        """Add a row of a table; the first names the columns."""
        if _RULER.match(line):
            return
        cells = [" ".join(_show_links(cell.strip())[0].split()) for cell in line.strip().strip("|").split("|")]
        if not self._columns:
            self.add("row", " | ".join(cells), self._headings)
            self._columns = cells
            return
        names = self._columns if len(self._columns) == len(cells) else [""] * len(cells)
        pairs = list(zip(names, cells, strict=True))
        self.add("row", format_row(pairs), self._headings, cells=pairs)


def _show_links(text: str) -> tuple[str, list[Mark]]:
    """Return a text with links replaced by their words, and the links as marks."""
    pieces, marks, last, length = list[str](), list[Mark](), 0, 0
    for match in _LINK.finditer(text):
        before, shown = text[last : match.start()], match[2] or match[1]
        pieces += [before, shown]
        start = length + len(before)
        length = start + len(shown)
        marks.append(Mark("link", start, length, match[1]))
        last = match.end()
    return "".join([*pieces, text[last:]]), marks
