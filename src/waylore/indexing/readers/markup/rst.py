"""Read reStructuredText with docutils: titles, sections, fields, lists, terms, tables, roles and directives.

Only docutils' tree is built: no file is opened, no writer runs, and raw content is left out. Unknown roles and
directives, such as those of Sphinx, are read generically: the text of a role, and the argument and content of a
directive, with its options as fields. The text consists of the blocks without markup. A file that docutils cannot read
is read as plain text.
"""

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, Parser, directives, states
from docutils.parsers.rst.languages import en

from waylore.indexing.blocks import BlockKind, Mark, MarkKind, ReadError, Reading, Source
from waylore.indexing.encoding import decode_text
from waylore.indexing.readers.plain import is_long, read_text
from waylore.indexing.readers.structure.front_matter import read_head
from waylore.indexing.readers.structure.keyed import Cells, classify_item
from waylore.indexing.readers.structure.logs import split_log
from waylore.indexing.readers.structure.rendering import TextWriter, format_row
from waylore.indexing.readers.structure.titles import choose_title

_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "report_level": 5,
    "halt_level": 5,
    "syntax_highlight": "none",
}
_DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]{1,99}\|[ \t]+)?([\w.:+-]{1,60}?)::(?:\s|$)", re.MULTILINE)
_MAX_DIRECTIVES = 1_000
_MAX_LINE = 10_000  # docutils' own limit
_CODE = ("code-block", "literalinclude", "math", "ipython", "prompt", "doctest", "testcode", "graphviz", "mermaid")
_LOOKS = (
    "class",
    "name",
    "maxdepth",
    "language",
    "lines",
    "linenos",
    "emphasize-lines",
    "width",
    "height",
    "align",
    "start-after",
    "end-before",
    "start-at",
    "end-at",
    "dedent",
    "columns",
    "widths",
    "header-rows",
)  # options for the layout of a page
_MARKS: dict[str, MarkKind] = {"literal": "code", "strong": "strong", "emphasis": "emphasis", "reference": "link"}
_UNSEEN = (nodes.comment, nodes.system_message, nodes.substitution_definition, nodes.meta, nodes.image, nodes.pending)


def read_rst(source: Source) -> Iterator[Reading]:
    """Read a file as one document; a long one is read as plain text in parts."""
    if is_long(source):
        yield from read_text(source)
        return
    text = decode_text(source.read_bytes(), source.limits)
    head = read_head(text)
    writer = TextWriter(source.limits.blocks)
    for field in head.fields:
        writer.add("field", " ".join(text[field.start : field.end].split()), key=field.key, cells=field.cells)
    try:
        tree = _parse(text[head.end :])
        _TreeReader(writer).add(tree, (), is_item=False)
    except ReadError:
        raise
    except Exception:  # noqa: BLE001 (docutils may raise anything for a broken file, RecursionError too)
        yield from read_text(source)
        return
    if not writer.blocks:
        yield from read_text(source)
        return
    blocks = tuple(writer.blocks)
    title = choose_title(source, head.metadata, blocks)
    yield from split_log(Reading(source.uri, title, writer.text, blocks, head.metadata))


def _parse(text: str) -> nodes.document:
    """Return docutils' tree of a text, after registering the directives that docutils does not know.

    Raise ValueError if a line is too long: docutils takes quadratic time for some lines.
    """
    if len(max(text.splitlines(), key=len, default="")) > _MAX_LINE:
        raise ValueError(f"a line has more than {_MAX_LINE:,} characters")
    unknown = {name.lower() for name in _DIRECTIVE.findall(text)} - en.directives.keys()
    for name in sorted(unknown)[:_MAX_DIRECTIVES]:
        directives.register_directive(name, _AnyDirective)
    return publish_doctree(text, parser=Parser(inliner=_make_inliner()), settings_overrides=_SETTINGS)


class _AnyOptions(dict[str, Any]):
    """The options of a directive: any name, with its text."""

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, _: str) -> Any:
        return directives.unchanged


class _AnyDirective(Directive):
    """A directive that docutils does not know: its argument, options and content as they are."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOptions()

    def run(self) -> list[nodes.Node]:
        """Return the argument as a paragraph, and the content parsed, or as code."""
        inside = nodes.container()
        if self.name == "toctree":
            inside += [_build_link(line.strip()) for line in self.content if line.strip()]
            return [inside]
        if self.arguments and self.name not in _CODE:
            inline, _ = self.state.inline_text(self.arguments[0], self.lineno)
            inside += nodes.paragraph("", "", *inline)
        inside += [_build_field(name, value) for name, value in self.options.items() if value and name not in _LOOKS]
        if self.name in _CODE:
            inside += nodes.literal_block(text="\n".join(self.content))
        else:
            self.state.nested_parse(self.content, self.content_offset, inside)
        return [inside]


def _build_field(name: str, value: str) -> nodes.field:
    return nodes.field("", nodes.field_name("", name), nodes.field_body("", nodes.paragraph("", value)))


def _build_link(line: str) -> nodes.paragraph:
    shown, _, target = line.partition(" <")
    target = target.rstrip(">") or shown
    return nodes.paragraph("", "", nodes.reference("", shown, refuri=target))


def _make_inliner() -> states.Inliner:
    """Return an inliner that reads unknown roles, and references to PEPs and RFCs, as text with a mark."""
    inliner = states.Inliner()
    read_known = inliner.interpreted

    def read_role(rawsource: str, text: str, role: str, lineno: int) -> Any:
        name = role.lower()
        if not name or (name in en.roles and name not in ("pep", "rfc", "pep-reference", "rfc-reference", "raw")):
            return read_known(rawsource, text, role, lineno)
        shown, _, target = nodes.unescape(text).partition(" <")
        if name in ("pep", "rfc") and not target:
            shown = f"{name.upper()} {shown}"
        elif not target:
            shown = shown.removeprefix("~").removeprefix("!")
        return [nodes.inline(rawsource, shown, classes=["role"], names=[role], refuri=target.rstrip(">"))], []

    vars(inliner)["interpreted"] = read_role  # not in a subclass, because docutils reads attributes of the class itself
    return inliner


class _TreeReader:
    """Adds the blocks of a tree to a writer."""

    def __init__(self, writer: TextWriter) -> None:
        self._writer = writer

    def add(self, parent: nodes.Element, path: tuple[str, ...], *, is_item: bool) -> None:
        """Add the blocks below a node, under a path of headings."""
        for child in parent.children:
            if isinstance(child, nodes.title):
                text, marks = _render(child)
                path = (*path, text)
                self._writer.add("heading", text, path, marks=marks)
            elif isinstance(child, nodes.Element) and not isinstance(child, _UNSEEN):
                self._add_node(child, path, is_item=is_item)

    def _add_node(self, node: nodes.Element, path: tuple[str, ...], *, is_item: bool) -> None:
        if isinstance(node, nodes.literal_block | nodes.doctest_block | nodes.math_block):
            self._writer.add("code", node.astext(), path)
        elif isinstance(node, nodes.TextElement):
            self._add_text(node, path, is_item=is_item)
        elif isinstance(node, nodes.field):
            self._add_field(node, path)
        elif isinstance(node, nodes.definition_list_item):
            self._add_term(node, path)
        elif isinstance(node, nodes.table):
            self._add_table(node, path)
        elif isinstance(node, nodes.list_item):
            self._add_item(node, path)
        elif not (isinstance(node, nodes.topic) and "contents" in node["classes"]):
            self.add(node, path, is_item=is_item)

    def _add_text(self, node: nodes.Element, path: tuple[str, ...], *, is_item: bool, prefix: str = "") -> None:
        text, marks = _render(node)
        kind: BlockKind = "paragraph"
        key, cells = "", Cells()
        if is_item:
            kind, key, cells = classify_item(text, marks)
        elif isinstance(node.parent, nodes.docinfo):
            kind, key = "field", node.tagname
            cells, text, marks = ((key, text),), f"{key}: {text}", []
        self._writer.add(kind, prefix + text, path, key=key, cells=cells, marks=_shift(marks, len(prefix)))

    def _add_item(self, item: nodes.list_item, path: tuple[str, ...]) -> None:
        """Add an item with its sign; everything after its first paragraph becomes separate blocks."""
        numbered = isinstance(item.parent, nodes.enumerated_list)
        sign = f"{item.parent.index(item) + 1}. " if numbered else "- "
        first, *others = item.children or [nodes.paragraph()]
        if isinstance(first, nodes.paragraph):
            self._add_text(first, path, is_item=True, prefix=sign)
        else:
            others = [first, *others]
        rest = nodes.container()
        rest.children = others
        self.add(rest, path, is_item=False)

    def _add_field(self, node: nodes.field, path: tuple[str, ...]) -> None:
        name, body = (child for child in node.children if isinstance(child, nodes.Element))
        key, (value, marks) = name.astext(), _render(body)
        prefix = f"{key}: "
        self._writer.add(
            "field", prefix + value, path, key=key, cells=((key, value),), marks=_shift(marks, len(prefix))
        )

    def _add_term(self, node: nodes.definition_list_item, path: tuple[str, ...]) -> None:
        terms = [_render(child) for child in node.children if isinstance(child, nodes.term)]
        bodies = [child for child in node.children if isinstance(child, nodes.definition)]
        key = ", ".join(text for text, _ in terms)
        first, *others = [child for body in bodies for child in body.children] or [nodes.paragraph()]
        if not isinstance(first, nodes.paragraph):
            first, others = nodes.paragraph(), [first, *others]
        text, marks = _render(first)
        all_marks = [*(terms[0][1] if len(terms) == 1 else ()), *_shift(marks, len(key) + 2)]
        self._writer.add("term", f"{key}: {text}" if text else key, path, key=key, marks=all_marks)
        rest = nodes.container()
        rest.children = others
        self.add(rest, path, is_item=False)

    def _add_table(self, table: nodes.table, path: tuple[str, ...]) -> None:
        columns = [_render(entry)[0] for head in table.findall(nodes.thead) for entry in head.findall(nodes.entry)]
        for title in table.children:
            if isinstance(title, nodes.title):
                self._writer.add("paragraph", title.astext(), path)
        for body in table.findall(nodes.tbody):
            for row in body.children:
                rendered = [_render(entry) for entry in row.children if isinstance(entry, nodes.entry)]
                names = columns if len(columns) == len(rendered) else [""] * len(rendered)
                self._add_row(list(zip(names, rendered, strict=True)), path)

    def _add_row(self, rendered: list[tuple[str, tuple[str, list[Mark]]]], path: tuple[str, ...]) -> None:
        cells = [(column, text) for column, (text, _) in rendered]
        if not any(text for _, text in cells):
            return
        text, marks, at = format_row(cells), list[Mark](), 0
        for _, (cell, inner) in rendered:
            place = text.find(cell, at) if cell else -1
            if place >= 0:
                marks += _shift(inner, place)
                at = place + len(cell)
        self._writer.add("row", text, path, cells=cells, marks=marks)


def _shift(marks: list[Mark], by: int) -> list[Mark]:
    return [Mark(mark.kind, mark.start + by, mark.end + by, mark.target) for mark in marks]


def _render(node: nodes.Element) -> tuple[str, list[Mark]]:
    """Return the text of a node in one line, and its marks."""
    renderer = _InlineRenderer()
    renderer.add(node)
    text = "".join(renderer.pieces)
    return text.rstrip(), [mark for mark in renderer.marks if mark.start < mark.end <= len(text.rstrip())]


class _InlineRenderer:
    """Collects text without line ends, and marks at their offsets."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.marks: list[Mark] = []
        self._length = 0

    def add(self, parent: nodes.Element) -> None:
        """Add the text below a node."""
        for child in parent.children:
            if isinstance(child, nodes.Text):
                self._write(child.astext())
            elif isinstance(child, nodes.Element) and not isinstance(child, _UNSEEN):
                start = self._length
                self.add(child)
                if not isinstance(child, nodes.TextElement) or isinstance(child, nodes.paragraph):
                    self._write(" ")
                self._mark(child, start)

    def _write(self, text: str) -> None:
        text = re.sub(r"\s+", " ", text)
        if not self.pieces or self.pieces[-1].endswith(" "):
            text = text.lstrip()
        if text:
            self.pieces.append(text)
            self._length += len(text)

    def _mark(self, node: nodes.Element, start: int) -> None:
        names = node.get("names") or [""]
        if isinstance(node, nodes.inline) and "role" in node["classes"]:
            self.marks.append(Mark("role", start, self._length, names[0]))
            if target := node.get("refuri"):
                self.marks.append(Mark("link", start, self._length, target))
        elif kind := _MARKS.get(node.tagname):
            self.marks.append(Mark(kind, start, self._length, node.get("refuri", "")))
