"""Reads Markdown with markdown-it-py: headings, paragraphs, lists, tables and code, in the file's own text.

Only the structure of blocks is parsed; what links say is `structure`'s business. Front matter becomes metadata
where it is plain keys with scalars and lists; it is not YAML in full.
"""

from collections.abc import Iterator
from typing import Any

from weft.indexing.blocks import Block, BlockKind, Reading, Source, nested, required, without_gaps
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


def markdown(source: Source) -> Iterator[Reading]:
    """A Markdown file as one document."""
    written = decoded(source.content(), source.limits)
    metadata, body = front_matter(written)
    blocks = tuple(without_gaps(written, _blocks(written, body, source.limits.blocks), body))
    title = str(metadata.get("title") or "") or _first_heading(blocks) or source.name
    yield Reading(source.uri, title, written, blocks, metadata)


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
    for token, inner in zip(tokens, [*tokens[1:], None], strict=False):
        if token.map and token.type in _KINDS and token.map[0] >= covered:
            covered = token.map[1]
            yield _KINDS[token.type], token, " ".join(inner.content.split()) if inner else ""


def _first_heading(blocks: tuple[Block, ...]) -> str:
    return next((b.headings[-1] for b in blocks if b.kind == "heading"), "")
