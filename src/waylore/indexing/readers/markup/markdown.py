"""Read Markdown with markdown-it-py: headings, paragraphs, items, terms, rows and code, with offsets into the file.

The text stays as it is written, except that HTML comments and templates of Liquid are blanked. Definitions of links are
not read, because links have their targets. Admonitions and directives of MyST are read as prose. Front matter becomes
fields and metadata (`front_matter`).
"""

import re
from bisect import bisect_left
from collections import ChainMap
from collections.abc import Iterable, Iterator, MutableMapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from waylore.indexing.blocks import (
    Block,
    BlockKind,
    Mark,
    ReadError,
    Reading,
    Source,
    describe_limit,
    has_words,
    nest_heading,
    require_library,
)
from waylore.indexing.encoding import decode_text, find_line_starts
from waylore.indexing.readers.markup.inline import MarkFinder
from waylore.indexing.readers.plain import HeadingCutter, find_paragraphs, is_long, read_parts
from waylore.indexing.readers.structure.front_matter import Head, read_head
from waylore.indexing.readers.structure.keyed import classify_item, find_field_lines
from waylore.indexing.readers.structure.logs import split_log
from waylore.indexing.readers.structure.titles import choose_title

Path: TypeAlias = list[tuple[int, str]]  # headings, each with its level
_PLUGINS = {"deflist": "deflist_plugin", "colon_fence": "colon_fence_plugin", "myst_role": "myst_role_plugin"}
_PLUGINS |= {"admon": "admon_plugin"}
_MAX_INLINE = 20_000  # maximum characters of a block that is searched for marks
_DIRECTIVE = re.compile(r"\{[\w:.+-]{1,60}\}")
_NOT_PROSE = ("code", "literalinclude", "math", "mermaid", "eval-rst", "sourcecode", "graphviz", "raw", "table")
_LANGUAGES = frozenset("r python bash sh sql julia js ojs stan rcpp".split())  # languages of chunks in R Markdown
_MAX_DIRECTIVES = 2  # the content of deeper nested directives counts as code
_OPTION = re.compile(r"(?:[ \t]*:[\w-]+:[^\r\n]*(?:\r\n?|\n|\Z))*")
_FOOTNOTE = re.compile(r"<sup>\s*\d{1,2}\s*</sup>", re.IGNORECASE)  # mark of a note to a column
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,1000}>")
_NOT_NEWLINE = re.compile(r"[^\r\n]")


class _Found(NamedTuple):
    """Blocks of a text, and spans that are not read: some are blanked, others belong to no block."""

    blocks: list[Block]
    blanked: list[tuple[int, int]]
    unread: list[tuple[int, int]]


def read_markdown(source: Source) -> Iterator[Reading]:
    """Read a Markdown file as one document, a log as several, a long file in parts that continue the headings."""
    if is_long(source):
        yield from _read_long(source)
        return
    yield from read_page(source, decode_text(source.read_bytes(), source.limits))


def read_page(source: Source, written: str) -> Iterator[Reading]:
    """Read a Markdown text as one document, or a log as several."""
    head = read_head(written)
    text, blocks = _read_blocks(written, head, source.limits.blocks, [])
    if not blocks:
        raise ReadError("it has no text")
    title = choose_title(source, head.metadata, blocks)
    yield from split_log(Reading(source.uri, title, text, blocks, head.metadata))


def _read_long(source: Source) -> Iterator[Reading]:
    path: Path = []
    head, title = Head({}, (), 0), ""
    for uri, start, part, bytes_read in read_parts(source, HeadingCutter()):
        head = Head(head.metadata, (), 0) if start else read_head(part)
        text, blocks = _read_blocks(part, head, source.limits.blocks, path)
        title = title or choose_title(source, head.metadata, blocks)
        yield Reading(uri, title, text, blocks, head.metadata, start, bytes_read)


def _read_blocks(text: str, head: Head, max_blocks: int, path: Path) -> tuple[str, tuple[Block, ...]]:
    """Return a text without comments and its blocks below a path of headings; the path is updated."""
    found = _find_blocks(text, head.end, len(text), max_blocks, path, {})
    blocks = (*head.fields, *_fill_gaps(text, head.end, found))
    shown = _blank(text, found.blanked)
    if not blocks and has_words(shown[head.end :]):  # such as definitions of links
        blocks = find_paragraphs(shown, max_blocks, head.end)
    return shown, blocks


def _blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace spans by blanks of the same length, so that offsets stay."""
    pieces, last = [], 0
    for start, end in sorted(spans):
        if end > last:
            pieces += [text[last:start], _NOT_NEWLINE.sub(" ", text[max(start, last) : end])]
            last = end
    return "".join([*pieces, text[last:]])


def _fill_gaps(text: str, start: int, found: _Found) -> Iterator[Block]:
    """Yield the blocks, and a paragraph for any other text with words between them."""
    spans: list[tuple[int, int, Block | None]] = [(each.start, each.end, each) for each in found.blocks]
    spans += [(first, last, None) for first, last in found.unread]
    headings: tuple[str, ...] = ()
    for first, last, block in [*sorted(spans, key=lambda span: span[:2]), (len(text), len(text), None)]:
        if start < first and has_words(text[start:first]):
            yield Block("paragraph", start, first, headings)
        if block is not None and first >= start:
            yield block
            headings = block.headings
        start = max(start, last)


def _get_parser() -> Any:
    return _make_parser(require_library("markdown_it"))


@cache
def _make_parser(library: Any) -> Any:
    """Return a parser of blocks. Inline texts are parsed one by one later, if they are not too long."""
    parser = library.MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
    for module, name in _PLUGINS.items():
        getattr(require_library(f"mdit_py_plugins.{module}"), name)(parser)
    return parser


def _find_blocks(
    text: str, start: int, end: int, max_blocks: int, path: Path, references: MutableMapping[str, Any], depth: int = 0
) -> _Found:
    body = text[start:end]
    own: dict[str, Any] = {}
    environment = {"references": ChainMap(own, references)}
    tokens = _get_parser().parse(body, environment)
    lines = [start + line for line in find_line_starts(body, max_blocks)]
    finder = _BlockFinder(text, lines, path, environment, max_blocks, depth)
    finder.add_tokens(tokens)
    finder.found.unread.extend(finder.locate(definition["map"]) for definition in own.values())
    return finder.found


def _is_prose(token: Any) -> bool:
    """Return whether a fence is a directive whose content is Markdown, as `{note}` and unlike `{code-block}`."""
    directive = _DIRECTIVE.match(token.info)
    name = directive[0][1:-1] if directive else ""
    is_code = name.startswith(_NOT_PROSE) or name in _LANGUAGES
    return token.type == "colon_fence" or bool(name and not is_code)


class _BlockFinder:
    """Makes blocks of the tokens of a text, whose lines begin at given offsets."""

    def __init__(
        self, text: str, lines: list[int], path: Path, environment: dict[str, Any], max_blocks: int, depth: int
    ) -> None:
        self.found = _Found([], [], [])
        self._text, self._lines, self._path = text, lines, path
        self._environment, self._max_blocks, self._depth = environment, max_blocks, depth
        self._headings = tuple(words for _, words in path)
        self._items: list[bool] = []  # for each open item, whether its first paragraph has not come yet
        self._columns: list[str] = []
        self._is_head = False
        self._term: tuple[int, str] | None = None

    def locate(self, lines: list[int]) -> tuple[int, int]:
        """Return the offsets of some lines."""
        last = len(self._lines) - 1
        return self._lines[min(lines[0], last)], self._lines[min(lines[1], last)]

    def add_tokens(self, tokens: list[Any]) -> None:
        """Add the blocks of all tokens."""
        for number, token in enumerate(tokens):
            match token.type:
                case "heading_open" | "paragraph_open" | "dt_open":
                    self._add_inline(token, tokens[number + 1])
                case "admonition_title_open":
                    self._add_argument(tokens[number + 1].content, *self.locate(token.map))
                case "tr_open":
                    self._add_row(token, tokens, number + 1)
                case "fence" | "colon_fence" | "code_block":
                    self._add_code(token)
                case "html_block":
                    self._add_html(token)
                case _:
                    self._note_parent(token.type)

    def _note_parent(self, kind: str) -> None:
        """Record the begin or end of an item, a list of terms or a part of a table."""
        if kind == "list_item_open":
            self._items.append(True)
        elif kind == "list_item_close":
            self._items.pop()
        elif kind == "dl_close":
            self._term = None
        elif kind in ("thead_open", "tbody_open"):
            self._is_head = kind == "thead_open"
        elif kind == "table_open":
            self._columns = []

    def _add(self, kind: BlockKind, start: int, end: int, marks: tuple[Mark, ...] = (), **more: Any) -> None:
        if len(self.found.blocks) >= self._max_blocks:
            raise ReadError(describe_limit("blocks", self._max_blocks))
        if self._text[start:end].strip():
            self.found.blocks.append(Block(kind, start, end, self._headings, marks=marks, **more))

    def _parse_inline(
        self, start: int, end: int, contents: list[str], *, is_row: bool = False
    ) -> tuple[tuple[Mark, ...], list[str]]:
        """Return the marks between two offsets, and the visible text of each content."""
        if end - start > _MAX_INLINE:
            return (), [" ".join(content.split()) for content in contents]
        finder, shown, parser = MarkFinder(self._text, start, end, is_row=is_row), [], _get_parser()
        for content in contents:
            tokens: list[Any] = []
            parser.inline.parse(content, parser, self._environment, tokens)
            finder.words.clear()
            finder.add_tokens(tokens)
            shown.append(finder.plain)
        self.found.blanked.extend(finder.removed)
        return finder.finish(), shown

    def _add_inline(self, token: Any, inner: Any) -> None:
        start, end = self.locate([token.map[0], max(token.map[1], token.map[0] + 1)])
        marks, [words] = self._parse_inline(start, end, [inner.content])
        if token.type == "heading_open":
            self._headings = nest_heading(self._path, int(token.tag[1:]), words)
            self._add("heading", start, end, marks)
        elif token.type == "dt_open":
            self._term = (start, words)
        elif self._term is not None:
            self._add("term", self._term[0], end, marks, key=self._term[1])
            self._term = None
        elif self._items and self._items[-1]:
            self._items[-1] = False
            self._add_item(start, end, marks)
        else:
            self._add_paragraph(start, end, marks)

    def _add_paragraph(self, start: int, end: int, marks: tuple[Mark, ...]) -> None:
        """Add a paragraph, or each of its lines if they are fields."""
        lines = find_field_lines(self._text[start:end])
        for first, last in lines:
            inside = tuple(mark for mark in marks if start + first <= mark.start and mark.end <= start + last)
            self._add_item(start + first, start + last, inside)
        if not lines:
            self._add("paragraph", start, end, marks)

    def _add_item(self, start: int, end: int, marks: tuple[Mark, ...]) -> None:
        plain, moved = Reading("", "", self._text, ()).strip_markup(Block("item", start, end, marks=marks))
        kind, key, cells = classify_item(plain, moved)
        self._add(kind, start, end, marks, key=key, cells=cells)

    def _add_row(self, token: Any, tokens: list[Any], number: int) -> None:
        """Add a row whose cells are the tokens from a number on."""
        start, end = self.locate(token.map)
        inner = []
        while tokens[number].type != "tr_close":
            inner += [tokens[number].content] if tokens[number].type == "inline" else []
            number += 1
        if self._is_head:
            inner = [_FOOTNOTE.sub("", cell) for cell in inner]
        marks, shown = self._parse_inline(start, end, inner, is_row=True)
        self._columns = shown if self._is_head else self._columns
        cells = () if self._is_head else tuple(zip(self._columns, shown, strict=False))
        self._add("row", start, end, marks, cells=cells)

    def _add_code(self, token: Any) -> None:
        """Add a block of code, or the content of a directive that is prose."""
        start, end = self.locate(token.map)
        if token.level or self._depth > _MAX_DIRECTIVES or not _is_prose(token):
            self._add("code", start, end)
            return
        inner, last = self.locate([token.map[0] + 1, token.map[1]])
        closing = self._lines[max(bisect_left(self._lines, last) - 1, 0)]
        last = last if self._text[closing:last].strip().strip(token.markup[:1]) else closing
        self._add_argument(token.info.strip().partition("}" if "}" in token.info else " ")[2].strip(), start, inner)
        options = _OPTION.match(self._text, inner, last)
        first = options.end() if options else inner
        self.found.unread.extend([(inner, first), (last, end)])
        if first < last:
            self._add_nested(first, last)

    def _add_argument(self, argument: str, start: int, end: int) -> None:
        """Add the argument of a directive, or the title of an admonition; the rest of its line is not read."""
        at = self._text.find(argument, start, end) if argument else -1
        if at >= 0:
            self._add("paragraph", at, at + len(argument))
            self.found.unread.append((start, at))
        self.found.unread.append((at + len(argument) if at >= 0 else start, end))

    def _add_nested(self, start: int, end: int) -> None:
        found = _find_blocks(
            self._text, start, end, self._max_blocks, self._path, self._environment["references"], self._depth + 1
        )
        self._headings = tuple(words for _, words in self._path)
        self.found.blocks.extend(found.blocks)
        self.found.blanked.extend(found.blanked)
        self.found.unread.extend(found.unread)

    def _add_html(self, token: Any) -> None:
        start, end = self.locate(token.map)
        comments = [(start + m.start(), start + m.end()) for m in _COMMENT.finditer(self._text[start:end])]
        self.found.blanked.extend(comments)
        tags = [Mark("markup", start + m.start(), start + m.end()) for m in _TAG.finditer(self._text[start:end])]
        shown = _TAG.sub(" ", _COMMENT.sub(" ", self._text[start:end]))
        if shown.strip():
            self._add("paragraph", start, end, tuple(tags))
        else:
            self.found.unread.append((start, end))
