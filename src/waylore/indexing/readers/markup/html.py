"""Read HTML with lxml as a stream of events, without building a tree, so that deep nesting costs little.

The text is what a browser shows: without scripts and styles, with white space collapsed. If a page has `main` or
`article`, only this part is read. Navigation, headers, footers, asides and forms are left out, unless nothing else has
words. Entries of a table of contents that repeat headings of the page are left out too. The module runs no scripts and
fetches nothing.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from waylore.indexing.blocks import (
    BlockKind,
    Limits,
    Mark,
    MarkKind,
    ReadError,
    Reading,
    Source,
    describe_limit,
    has_words,
    nest_heading,
    require_library,
)
from waylore.indexing.encoding import decode_text, make_storable
from waylore.indexing.readers.markup.regions import Region, find_region
from waylore.indexing.readers.structure.keyed import classify_item
from waylore.indexing.readers.structure.rendering import TextWriter, format_row
from waylore.indexing.readers.structure.titles import name_file

_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BREAKING = {"pre", "li", "dt", "dd", "tr", *_HEADINGS} | set(
    """address article aside blockquote body caption details div dl fieldset figcaption figure footer form
    header hr html legend main nav ol option p section select summary table tbody tfoot thead ul""".split()
)
_HIDDEN = {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "textarea", "head"}
_MARKS: dict[str, MarkKind] = {"code": "code", "kbd": "code", "samp": "code", "tt": "code", "b": "strong"}
_MARKS |= {"strong": "strong", "em": "emphasis", "i": "emphasis", "a": "link"}
_WITHIN_CELL = {"p", "div"}
_MAX_CELL = 500  # paragraphs of a row with at most this many characters are joined; a longer row is a layout, not data
_SITE_SIGNS = tuple("|–—-·:»")  # separators of a page's title and the name of its site
_SPACES = re.compile(r"\s+")
_STEP_CHARACTERS = 65_536


@dataclass(slots=True)
class _Piece:
    """A block of a page, with its part of the page: `place` is one of main, article, page, boilerplate."""

    kind: BlockKind
    text: str
    place: str
    level: int = 0
    key: str = ""
    cells: tuple[tuple[str, str], ...] = ()
    marks: list[Mark] = field(default_factory=list)
    is_contents: bool = False  # whether it is part of a table of contents


def read_html(source: Source) -> Iterator[Reading]:
    """Read an HTML file as one document."""
    written = decode_text(source.read_bytes(), replace(source.limits, line=source.limits.bytes))
    writer = TextWriter(source.limits.blocks)
    page = write_html(written, writer, source.limits)
    if not writer.blocks:
        raise ReadError("it has no text")
    heading = next((block.headings[-1] for block in writer.blocks if block.kind == "heading"), "")
    title = _choose_title(_SPACES.sub(" ", "".join(page.title)).strip(), heading) or name_file(source)
    yield Reading(source.uri, title, writer.text, tuple(writer.blocks), page.metadata)


def _choose_title(title: str, heading: str) -> str:
    """Return the title of a page, without the name of its site if the heading shows where the name begins."""
    is_longer = bool(heading) and title.startswith(heading) and title[len(heading) :].lstrip()[:1] in _SITE_SIGNS
    return heading if is_longer else title or heading


def write_html(text: str, writer: TextWriter, limits: Limits) -> "_Page":
    """Write the blocks of a page, and return its other parts."""
    page = _Page(limits)
    parser = require_library("lxml.etree").HTMLParser(target=page)
    for start in range(0, len(text), _STEP_CHARACTERS):
        parser.feed(make_storable(text[start : start + _STEP_CHARACTERS]))
    parser.close()
    path: list[tuple[int, str]] = []
    headings: tuple[str, ...] = ()
    for piece in _choose_pieces(page.pieces):
        if piece.level:
            headings = nest_heading(path, piece.level, " ".join(piece.text.split()))
        above = headings[:1] if piece.is_contents else headings
        writer.add(piece.kind, piece.text, above, key=piece.key, cells=piece.cells, marks=piece.marks)
    return page


def _choose_pieces(pieces: list[_Piece]) -> list[_Piece]:
    """Return the main part of a page if it is marked and has words, else everything except boilerplate."""
    pieces = _drop_contents(pieces)
    for places in (("main",), ("article",), ("main", "article", "page")):
        chosen = [piece for piece in pieces if piece.place in places]
        if any(piece.kind != "heading" and has_words(piece.text) for piece in chosen):
            return chosen
    return pieces


def _drop_contents(pieces: list[_Piece]) -> list[_Piece]:
    """Leave out entries of a table of contents that repeat headings of the page, and the title of the table."""
    headings = {" ".join(piece.text.split()) for piece in pieces if piece.level}
    repeats = [piece.is_contents and " ".join(piece.text.split()) in headings for piece in pieces]
    if not any(repeats):
        return pieces
    return [
        piece
        for piece, is_repeat in zip(pieces, repeats, strict=True)
        if not (is_repeat or (piece.is_contents and piece.kind == "paragraph"))
    ]


class _Page:
    """The target of lxml's events: collects pieces of text with their marks."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.title: list[str] = []
        self.metadata: dict[str, str] = {}
        self.pieces: list[_Piece] = []
        self._open: list[tuple[str, Region]] = []
        self._regions: Counter[Region] = Counter()
        self._hidden = self._private = self._preformatted = self._article = self._rows = 0
        self._block: list[str] = []
        self._length = 0
        self._marks: list[Mark] = []
        self._open_marks: list[tuple[str, int, str]] = []
        self._is_item = False
        self._term = ""
        self._cells: list[int] = []  # offsets of cells in the block
        self._columns: list[str] = []
        self._is_head = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if len(self._open) >= self.limits.depth:
            raise ReadError(describe_limit("depth", self.limits.depth, "levels of nested tags"))
        if tag in _BREAKING and not self._joins_cell(tag):
            self._end_block(self._find_open())
        is_inside_main = bool(self._regions["main"] or self._article)
        self._open.append((tag, find_region(tag, attributes, is_inside_main=is_inside_main)))
        self._count(*self._open[-1], step=1)
        if tag == "br":
            self.data("\n" if self._preformatted else " ")
        elif tag == "li":
            self._is_item = True
        elif tag in ("td", "th") and self._rows:
            self._cells.append(self._length)
            self._is_head = self._is_head and tag == "th"
        elif tag == "tr":
            self._cells, self._is_head = [], True
        elif tag == "table":
            self._columns = []
        elif tag in _MARKS:
            self._open_marks.append((tag, self._length, attributes.get("href", "")))
        elif tag == "meta" and attributes.get("name", "").lower() in ("description", "author"):
            self.metadata[attributes["name"].lower()] = make_storable(attributes.get("content", ""))

    def end(self, tag: str) -> None:
        if tag in _BREAKING and not self._joins_cell(tag):
            self._end_block(tag)
            self._end_terms(tag)
        elif tag in ("td", "th") or tag in _WITHIN_CELL:
            self.data(" ")
        elif tag in _MARKS:
            self._close_mark(tag)
        if self._open:
            self._count(*self._open.pop(), step=-1)

    def data(self, text: str) -> None:
        if self._open and self._open[-1][0] == "title" and not self.pieces:
            self.title.append(text)
        elif not self._hidden:
            is_private = self._private and text.strip()  # recorded in each piece, because some pieces are not read
            self._write(make_storable(f"<private>{text}</private>" if is_private else text))

    def comment(self, text: str) -> None:
        """Ignore comments."""

    def close(self) -> None:
        self._end_block("body")
        self._end_terms()

    def _count(self, tag: str, region: Region, *, step: int) -> None:
        """Count the begin or end of a tag; the text between them is inside of the tag."""
        self._hidden += step * (tag in _HIDDEN)
        self._private += step * (tag == "private")
        self._preformatted += step * (tag == "pre")
        self._rows += step * (tag == "tr")
        self._article += step * (tag == "article")
        self._regions[region] += step

    def _joins_cell(self, tag: str) -> bool:
        return bool(self._rows) and tag in _WITHIN_CELL and self._length <= _MAX_CELL

    def _find_open(self) -> str:
        """Return the nearest open tag that decides the kind of the block, or an empty string."""
        kinds = {"pre", "li", "tr", "dt", "dd", *_HEADINGS}
        return next((tag for tag, *_ in reversed(self._open) if tag in kinds), "")

    def _write(self, text: str) -> None:
        if not self._preformatted:
            text = _SPACES.sub(" ", text)
            if not self._block or self._block[-1].endswith((" ", "\n")):
                text = text.removeprefix(" ")
        if text:
            self._block.append(text)
            self._length += len(text)

    def _close_mark(self, tag: str) -> None:
        for number in range(len(self._open_marks) - 1, max(len(self._open_marks) - 4, -1), -1):
            opened, start, target = self._open_marks[number]
            if opened == tag:
                del self._open_marks[number]
                if start < self._length and (target or tag != "a"):
                    self._marks.append(Mark(_MARKS[tag], start, self._length, make_storable(target)))
                return

    def _end_block(self, tag: str) -> None:
        text = "".join(self._block)
        if trimmed := text.strip():
            cut = len(text) - len(text.lstrip())
            moved = (replace(m, start=m.start - cut, end=min(m.end - cut, len(trimmed))) for m in self._marks)
            self._add(tag, trimmed, [mark for mark in moved if 0 <= mark.start < mark.end], text)
        self._block, self._length, self._marks, self._cells = [], 0, [], []
        self._open_marks = [(opened, 0, target) for opened, _, target in self._open_marks]

    def _add(self, tag: str, text: str, marks: list[Mark], written: str) -> None:
        if len(self.pieces) >= self.limits.blocks:
            raise ReadError(describe_limit("blocks", self.limits.blocks))
        is_contents = self._regions["contents"] > 0
        piece = _Piece("paragraph", text, self._get_place(), marks=marks, is_contents=is_contents)
        if tag in _HEADINGS:
            piece.kind, piece.level, piece.text = "heading", int(tag[1]), text.rstrip(" ¶#") or text
            piece.marks = [mark for mark in marks if mark.end <= len(piece.text)]
        elif tag == "pre":
            piece.kind = "code"
        elif tag == "tr" and self._cells:
            self._set_cells(piece, written)
        elif tag == "dt" and is_contents:
            piece.kind = "item"
        elif tag == "dt":
            self._term = f"{self._term}, {text}" if self._term else text
            return
        else:
            self._set_kind(piece, tag)
        self.pieces.append(piece)

    def _get_place(self) -> str:
        if self._regions["boilerplate"]:
            return "boilerplate"
        return "main" if self._regions["main"] else "article" if self._article else "page"

    def _set_kind(self, piece: _Piece, tag: str) -> None:
        """Make a piece the description of the term before it, or an item, if it is one."""
        parent = self._find_open()
        if self._term and parent == "dd":
            by = len(self._term) + 2
            piece.kind, piece.key, piece.text = "term", self._term, f"{self._term}: {piece.text}"
            piece.marks = [replace(mark, start=mark.start + by, end=mark.end + by) for mark in piece.marks]
            self._term = ""
        elif self._is_item and "li" in (tag, parent):
            piece.kind, piece.key, piece.cells = classify_item(piece.text, piece.marks)
            self._is_item = False

    def _end_terms(self, tag: str = "dl") -> None:
        """Add a term that has no description, at the end of its list."""
        if tag == "dl" and self._term:
            self.pieces.append(_Piece("term", self._term, self._get_place(), key=self._term))
            self._term = ""

    def _set_cells(self, piece: _Piece, written: str) -> None:
        ends = [*self._cells[1:], len(written)]
        shown = [written[start:end].strip() for start, end in zip(self._cells, ends, strict=True)]
        if not self._columns and not self._is_head and sum(map(bool, shown)) < 2:
            return  # a table used for layout
        piece.kind = "row"
        if self._is_head and not self._columns:
            self._columns = shown
            piece.text, piece.marks = " | ".join(shown), []
            return
        columns = self._columns if len(self._columns) == len(shown) else [""] * len(shown)
        piece.cells = tuple(zip(columns, shown, strict=True))
        text = format_row(piece.cells)
        piece.marks = _move_marks(piece.marks, piece.text, text)
        piece.text = text


def _move_marks(marks: list[Mark], before: str, after: str) -> list[Mark]:
    """Return the marks of a row at their places in its new text; marks that are not found again are left out."""
    moved, at = [], 0
    for mark in marks:
        place = after.find(before[mark.start : mark.end], at)
        if place >= 0:
            moved.append(replace(mark, start=place, end=place + mark.end - mark.start))
            at = place
    return moved
