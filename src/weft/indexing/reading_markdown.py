"""Reads Markdown with markdown-it-py: headings, paragraphs, lists, tables and code, in the file's own text.

Only the structure of blocks is parsed; links are found by their pattern, because offsets into the original are
wanted, which no Markdown parser keeps for inline text. Front matter becomes metadata where it is plain keys
with scalars and lists; it is not YAML in full.
"""

import re
from collections.abc import Iterator
from typing import Any

from weft.indexing.blocks import Block, BlockKind, Link, Reading, Source, nested, required, without_gaps
from weft.indexing.decoding import decoded, line_starts
from weft.indexing.front_matter import front_matter

_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "blockquote_open": "paragraph",
    "html_block": "paragraph",
    "list_item_open": "list",
    "tr_open": "row",
    "fence": "code",
    "code_block": "code",
}
# Bounded, so that a line of a million brackets takes no longer than any other.
_LINK = re.compile(
    r"\[\[(?P<wiki>[^\[\]|\r\n]{1,300})(?:\|(?P<said>[^\[\]\r\n]{1,300}))?\]\]"
    r"|\[(?P<text>[^\[\]\r\n]{0,300})\]\((?P<target>[^\s()<>]{1,2000})(?:\s[^()\r\n]{0,300})?\)"
    r"|<(?P<auto>https?://[^\s<>]{1,2000})>"
)
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)[^`\r\n]{1,500}\1(?!`)")


def markdown(source: Source) -> Iterator[Reading]:
    """A Markdown file as one document."""
    written = decoded(source.content(), source.limits)
    metadata, body = front_matter(written)
    blocks = tuple(without_gaps(written, _blocks(written, body, source.limits.blocks), body))
    title = str(metadata.get("title") or "") or _first_heading(blocks) or source.name
    yield Reading(source.uri, title, written, blocks, metadata, tuple(_links(written, blocks)))


def _blocks(written: str, body: int, most: int) -> Iterator[Block]:
    lines = line_starts(written[body:], most)
    path: list[tuple[int, str]] = []
    headings: tuple[str, ...] = ()
    for kind, token, words in _pieces(written[body:]):
        start, end = (body + lines[min(line, len(lines) - 1)] for line in token.map)
        if kind == "heading":
            headings = nested(path, int(token.tag[1:]), words)
        if written[start:end].strip():
            yield Block(kind, start, end, headings)


def _pieces(body: str) -> Iterator[tuple[BlockKind, Any, str]]:
    """The outermost tokens that are blocks (items and rows, not lists and tables), and the words in each."""
    parser = required("markdown_it").MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
    tokens = parser.parse(body)
    covered = 0
    for token, inner in zip(tokens, [*tokens[1:], None], strict=True):
        if token.map and token.type in _KINDS and token.map[0] >= covered:
            covered = token.map[1]
            yield _KINDS[token.type], token, " ".join(inner.content.split()) if inner else ""


def _first_heading(blocks: tuple[Block, ...]) -> str:
    return next((b.headings[-1] for b in blocks if b.kind == "heading"), "")


def _links(written: str, blocks: tuple[Block, ...]) -> Iterator[Link]:
    for block in blocks:
        if block.kind == "code":
            continue
        quoted = {
            at for span in _CODE_SPAN.finditer(written, block.start, block.end) for at in range(*span.span())
        }
        for found in _LINK.finditer(written, block.start, block.end):
            if found.start() not in quoted:
                yield _link(found)


def _link(found: re.Match[str]) -> Link:
    wiki, said, text, target, auto = (found[name] for name in ("wiki", "said", "text", "target", "auto"))
    if wiki is not None:
        return Link(*found.span(), wiki.strip(), (said or wiki).strip(), "wiki")
    return Link(*found.span(), target or auto, text if text is not None else auto)
