"""Read Markdown with markdown-it-py: headings, paragraphs, lists, tables and code, with offsets into the file.

Only the structure of blocks is parsed; `extractors.structure` reads the links. Front matter with plain keys,
scalars and lists becomes metadata; other YAML is not read.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

from waylore.indexing.blocks import (
    Block,
    BlockKind,
    ReadError,
    Reading,
    Source,
    fill_gaps,
    nest_heading,
    require_library,
)
from waylore.indexing.encoding import decode_text, find_line_starts
from waylore.indexing.readers.front_matter import read_front_matter
from waylore.indexing.readers.plain import HeadingCutter, is_long, read_parts
from waylore.types.knowledge import Metadata

_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "blockquote_open": "paragraph",
    "html_block": "paragraph",
    "list_item_open": "item",
    "tr_open": "row",
    "fence": "code",
    "code_block": "code",
}

Path: TypeAlias = list[tuple[int, str]]  # headings, each with its level


def read_markdown(source: Source) -> Iterator[Reading]:
    """Read a Markdown file as one document, or a long file in parts that continue the headings before them."""
    if is_long(source):
        yield from _read_long(source)
        return
    text = decode_text(source.read_bytes(), source.limits)
    metadata, body = read_front_matter(text)
    blocks = _read_blocks(text, body, source.limits.blocks, [])
    if not blocks:
        raise ReadError("it has no text besides front matter")
    title = str(metadata.get("title") or "") or _find_title(blocks) or source.name
    yield Reading(source.uri, title, text, blocks, metadata)


def _read_long(source: Source) -> Iterator[Reading]:
    path: Path = []
    metadata: Metadata = {}
    title = ""
    for uri, start, part, bytes_read in read_parts(source, HeadingCutter()):
        own, body = ({}, 0) if start else read_front_matter(part)
        metadata = metadata or own
        blocks = _read_blocks(part, body, source.limits.blocks, path)
        title = title or str(metadata.get("title") or "") or _find_title(blocks) or source.name
        yield Reading(uri, title, part, blocks, metadata, start=start, bytes_read=bytes_read)


def _read_blocks(text: str, body: int, max_blocks: int, path: Path) -> tuple[Block, ...]:
    """Return the blocks of a text below a path of headings; the path is updated."""
    return tuple(fill_gaps(text, _find_blocks(text, body, max_blocks, path), body))


def _find_blocks(text: str, body: int, max_blocks: int, path: Path) -> Iterator[Block]:
    lines = find_line_starts(text[body:], max_blocks)
    headings = tuple(words for _, words in path)
    for kind, token, words in _parse_pieces(text[body:]):
        start, end = (body + lines[min(line, len(lines) - 1)] for line in token.map)
        if kind == "heading":
            headings = nest_heading(path, int(token.tag[1:]), words)
        if text[start:end].strip():
            yield Block(kind, start, end, headings)


def _parse_pieces(body: str) -> Iterator[tuple[BlockKind, Any, str]]:
    """Yield the outermost tokens that are blocks, with their text: items and rows, not lists and tables."""
    parser = require_library("markdown_it").MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
    tokens = parser.parse(body)
    covered = 0
    for token, inner in zip(tokens, [*tokens[1:], None], strict=False):
        if token.map and token.type in _KINDS and token.map[0] >= covered:
            covered = token.map[1]
            yield _KINDS[token.type], token, " ".join(inner.content.split()) if inner else ""


def _find_title(blocks: tuple[Block, ...]) -> str:
    return next((b.headings[-1] for b in blocks if b.kind == "heading"), "")
