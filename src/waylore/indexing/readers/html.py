"""Read HTML with lxml as a stream of events, without building a tree, so that deep nesting costs little.

 The text is what a browser shows: without scripts and styles, with white space collapsed. The module runs no
scripts and fetches nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from waylore.indexing.blocks import (
    Block,
    BlockKind,
    Limits,
    Mark,
    ReadError,
    Reading,
    Source,
    describe_limit,
    nest_heading,
    require_library,
)
from waylore.indexing.encoding import decode_text, make_storable

_KINDS: dict[str, BlockKind] = {"pre": "code", "li": "item", "dt": "item", "dd": "item", "tr": "row"}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BREAKING = {*_KINDS, *_HEADINGS} | set(
    """address article aside blockquote body caption details div dl fieldset figcaption figure footer form
    header hr html legend main nav ol option p section select summary table tbody tfoot thead ul""".split()
)
_HIDDEN = {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "textarea", "head"}
_SPACES = re.compile(r"\s+")
_STEP_CHARACTERS = 65_536


def read_html(source: Source) -> Iterator[Reading]:
    """Read an HTML file as one document."""
    written = decode_text(source.read_bytes(), replace(source.limits, line=source.limits.bytes))
    page = _Page(source.limits)
    parser = require_library("lxml.etree").HTMLParser(target=page)
    for start in range(0, len(written), _STEP_CHARACTERS):
        parser.feed(make_storable(written[start : start + _STEP_CHARACTERS]))
    parser.close()
    if not page.blocks:
        raise ReadError("it has no text")
    text, title = "".join(page.written).rstrip(), _SPACES.sub(" ", "".join(page.title)).strip()
    yield Reading(source.uri, title or page.first_heading or source.name, text, tuple(page.blocks), page.metadata)


class _Page:
    """The target of lxml's events: collects the text, its blocks and its links."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.written: list[str] = []
        self.length = 0
        self.title: list[str] = []
        self.first_heading = ""
        self.metadata: dict[str, str] = {}
        self.blocks: list[Block] = []
        self._open: list[str] = []
        self._hidden = 0
        self._preformatted = 0
        self._block: list[str] = []
        self._block_length = 0
        self._block_links: list[tuple[int, int, str]] = []
        self._link: tuple[int, str] | None = None
        self._path: list[tuple[int, str]] = []
        self._headings: tuple[str, ...] = ()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._open.append(tag)
        if len(self._open) > self.limits.depth:
            raise ReadError(describe_limit("depth", self.limits.depth, "levels of nested tags"))
        if tag in _BREAKING:
            self._end_block(self._find_open(("h1", "pre", "li", "tr")))
        self._hidden += tag in _HIDDEN
        self._preformatted += tag == "pre"
        if tag == "br":
            self.data("\n" if self._preformatted else " ")
        elif tag == "a" and attributes.get("href"):
            self._link = (self._block_length, attributes["href"])
        elif tag == "meta" and attributes.get("name", "").lower() in ("description", "author", "keywords"):
            self.metadata[attributes["name"].lower()] = make_storable(attributes.get("content", ""))

    def end(self, tag: str) -> None:
        if tag in _BREAKING:
            self._end_block(tag)
        elif tag in ("td", "th"):
            self.data(" ")
        elif tag == "a" and self._link:
            self._block_links.append((self._link[0], self._block_length, self._link[1]))
            self._link = None
        self._hidden -= tag in _HIDDEN
        self._preformatted -= tag == "pre"
        if self._open:
            self._open.pop()

    def data(self, text: str) -> None:
        if self._open and self._open[-1] == "title" and not self.blocks:
            self.title.append(text)
        elif not self._hidden:
            self._write(make_storable(text))

    def comment(self, text: str) -> None:
        """Ignore comments."""

    def close(self) -> None:
        self._end_block("body")

    def _find_open(self, tags: tuple[str, ...]) -> str:
        """Return the nearest open tag that decides the kind of the block, or an empty string."""
        return next((tag for tag in reversed(self._open[:-1]) if tag in tags or tag in _HEADINGS), "")

    def _write(self, text: str) -> None:
        if not self._preformatted:
            text = _SPACES.sub(" ", text)
            if not self._block or self._block[-1].endswith((" ", "\n")):
                text = text.removeprefix(" ")
        if text:
            self._block.append(text)
            self._block_length += len(text)

    def _end_block(self, tag: str) -> None:
        text = "".join(self._block)
        trimmed, links = text.strip(), self._block_links
        if trimmed:
            self._add(tag, trimmed, len(text) - len(text.lstrip()), links)
        self._block, self._block_length, self._block_links = [], 0, []
        self._link = (0, self._link[1]) if self._link else None

    def _add(self, tag: str, text: str, cut: int, links: list[tuple[int, int, str]]) -> None:
        if len(self.blocks) >= self.limits.blocks:
            raise ReadError(describe_limit("blocks", self.limits.blocks))
        if tag in _HEADINGS:
            self._headings = nest_heading(self._path, int(tag[1]), " ".join(text.split()))
            self.first_heading = self.first_heading or self._headings[-1]
        kind: BlockKind = "heading" if tag in _HEADINGS else _KINDS.get(tag, "paragraph")
        start, end = self.length, self.length + len(text)
        marks = []
        for opened, closed, target in links:
            first, last = max(opened - cut, 0), min(closed - cut, len(text))
            if first < last:
                marks.append(Mark("link", start + first, start + last, make_storable(target)))
        self.blocks.append(Block(kind, start, end, self._headings, marks=tuple(marks)))
        self.written += [text, "\n\n"]
        self.length = end + 2
