"""Reads Markdown with markdown-it-py: headings, paragraphs, lists, tables and code, in the file's own text.

Only the structure of blocks is parsed; what links say is `structure`'s business. Front matter becomes metadata
where it is plain keys with scalars and lists; it is not YAML in full.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

from waylore.indexing.blocks import (
    Block,
    BlockKind,
    Reading,
    Refused,
    Source,
    nested,
    required,
    without_gaps,
)
from waylore.indexing.encoding import decoded, line_starts
from waylore.indexing.readers.front_matter import front_matter
from waylore.indexing.readers.plain import BeforeAHeading, is_long, parts
from waylore.types.knowledge import Metadata

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

Path: TypeAlias = list[tuple[int, str]]  # of headings, each with its level


def markdown(source: Source) -> Iterator[Reading]:
    """A Markdown file as one document, or a long one as several, under the headings of those before."""
    if is_long(source):
        yield from _in_parts(source)
        return
    written = decoded(source.content(), source.limits)
    metadata, body = front_matter(written)
    blocks = _blocks(written, body, source.limits.blocks, [])
    if not blocks:
        raise Refused("there is no text in it but front matter")
    title = str(metadata.get("title") or "") or _first_heading(blocks) or source.name
    yield Reading(source.uri, title, written, blocks, metadata)


def _in_parts(source: Source) -> Iterator[Reading]:
    path: Path = []
    metadata: Metadata = {}
    title = ""
    for uri, start, part, reached in parts(source, BeforeAHeading()):
        own, body = ({}, 0) if start else front_matter(part)
        metadata = metadata or own
        blocks = _blocks(part, body, source.limits.blocks, path)
        title = title or str(metadata.get("title") or "") or _first_heading(blocks) or source.name
        yield Reading(uri, title, part, blocks, metadata, start=start, reached=reached)


def _blocks(written: str, body: int, most: int, path: Path) -> tuple[Block, ...]:
    """The blocks, under a path of headings which is led on."""
    return tuple(without_gaps(written, _found(written, body, most, path), body))


def _found(written: str, body: int, most: int, path: Path) -> Iterator[Block]:
    lines = line_starts(written[body:], most)
    headings = tuple(words for _, words in path)
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
