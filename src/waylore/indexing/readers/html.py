"""Reads HTML with lxml as a stream of events: no tree is built, so deep nesting is refused at little cost.

Its text is what a reader sees: no scripts, no styles, white space as a browser shows it. It runs no scripts and
fetches nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from waylore.indexing.blocks import (
    Block,
    BlockKind,
    Limits,
    Link,
    Reading,
    Refused,
    Source,
    nested,
    over,
    required,
)
from waylore.indexing.encoding import decoded, storable

_KINDS: dict[str, BlockKind] = {"pre": "code", "li": "list", "dt": "list", "dd": "list", "tr": "row"}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BREAKING = {*_KINDS, *_HEADINGS} | set(
    """address article aside blockquote body caption details div dl fieldset figcaption figure footer form
    header hr html legend main nav ol option p section select summary table tbody tfoot thead ul""".split()
)
_UNSEEN = {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "textarea", "head"}
_SPACES = re.compile(r"\s+")
_STEP = 65_536


def html(source: Source) -> Iterator[Reading]:
    """An HTML file as one document."""
    written = decoded(source.content(), replace(source.limits, line=source.limits.bytes))
    page = _Page(source.limits)
    parser = required("lxml.etree").HTMLParser(target=page)
    for start in range(0, len(written), _STEP):
        parser.feed(storable(written[start : start + _STEP]))
    parser.close()
    if not page.blocks:
        raise Refused("there is no text in it")
    text, title = "".join(page.written).rstrip(), _SPACES.sub(" ", "".join(page.title)).strip()
    blocks, links = tuple(page.blocks), tuple(page.links)
    yield Reading(source.uri, title or page.first_heading or source.name, text, blocks, page.metadata, links)


class _Page:
    """What lxml tells its events to; keeps the text so far, and the block that is being written."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.written: list[str] = []
        self.length = 0
        self.title: list[str] = []
        self.first_heading = ""
        self.metadata: dict[str, str] = {}
        self.blocks: list[Block] = []
        self.links: list[Link] = []
        self._open: list[str] = []
        self._unseen = 0
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
            raise Refused(over("depth", self.limits.depth, "levels of nested tags"))
        if tag in _BREAKING:
            self._end_block(self._inside(("h1", "pre", "li", "tr")))
        self._unseen += tag in _UNSEEN
        self._preformatted += tag == "pre"
        if tag == "br":
            self.data("\n" if self._preformatted else " ")
        elif tag == "a" and attributes.get("href"):
            self._link = (self._block_length, attributes["href"])
        elif tag == "meta" and attributes.get("name", "").lower() in ("description", "author", "keywords"):
            self.metadata[attributes["name"].lower()] = storable(attributes.get("content", ""))

    def end(self, tag: str) -> None:
        if tag in _BREAKING:
            self._end_block(tag)
        elif tag in ("td", "th"):
            self.data(" ")
        elif tag == "a" and self._link:
            self._block_links.append((self._link[0], self._block_length, self._link[1]))
            self._link = None
        self._unseen -= tag in _UNSEEN
        self._preformatted -= tag == "pre"
        if self._open:
            self._open.pop()

    def data(self, text: str) -> None:
        if self._open and self._open[-1] == "title" and not self.blocks:
            self.title.append(text)
        elif not self._unseen:
            self._write(storable(text))

    def comment(self, text: str) -> None:
        """Comments are not seen."""

    def close(self) -> None:
        self._end_block("body")

    def _inside(self, tags: tuple[str, ...]) -> str:
        """The nearest open tag that says what kind of block the text so far is."""
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
            raise Refused(over("blocks", self.limits.blocks))
        if tag in _HEADINGS:
            self._headings = nested(self._path, int(tag[1]), " ".join(text.split()))
            self.first_heading = self.first_heading or self._headings[-1]
        kind: BlockKind = "heading" if tag in _HEADINGS else _KINDS.get(tag, "paragraph")
        start, end = self.length, self.length + len(text)
        self.blocks.append(Block(kind, start, end, self._headings))
        for opened, closed, target in links:
            first, last = max(opened - cut, 0), min(closed - cut, len(text))
            if first < last:
                self.links.append(Link(start + first, start + last, storable(target), text[first:last].strip()))
        self.written += [text, "\n\n"]
        self.length = end + 2
