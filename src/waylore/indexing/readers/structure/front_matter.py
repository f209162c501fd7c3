"""Read the lines before a text as fields: front matter between two rulers, or a header of `Key: value` lines.

Front matter is full YAML. Its scalars and lists of scalars become metadata; nested values are only fields. A header
ends at the first blank line, as in e-mail; an indented line continues the value before it.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from waylore.indexing.blocks import Block, Mark, ReadError
from waylore.indexing.encoding import make_storable
from waylore.indexing.readers.structure.yaml_tree import Mapping, Node, Scalar, Sequence, parse_yaml
from waylore.types import knowledge

MAX_CHARACTERS = 100_000
_MAX_VALUES = 5_000
_FRONT = re.compile(r"-{3,}[ \t]*(?:\r\n?|\n)(.*?)(?<=[\r\n])-{3,}[ \t]*(?:\r\n?|\n|\Z)", re.DOTALL)
_HEADER = re.compile(
    r"(?:[A-Z][\w-]{0,49}:(?:[ \t][^\r\n]{0,1000})?(?:\r\n?|\n)(?:[ \t]+\S[^\r\n]{0,1000}(?:\r\n?|\n)){0,200}){2,200}"
    r"(?=[ \t]*(?:\r\n?|\n|\Z))"
)
_FIELD = re.compile(r"^([A-Z][\w-]*):((?:.|(?:\r\n?|\n)[ \t]+(?=\S))*)", re.MULTILINE)


class Head(NamedTuple):
    """The metadata and fields before a text, and the offset of the text after them."""

    metadata: knowledge.Metadata
    fields: tuple[Block, ...]
    end: int


def read_head(text: str) -> Head:
    """Return the front matter or the header of a text; without either, nothing."""
    if match := _FRONT.match(text, 0, MAX_CHARACTERS):
        try:
            documents = parse_yaml(match[1], _MAX_VALUES)
        except ReadError:
            documents = []
        if len(documents) == 1 and isinstance(documents[0], Mapping):
            metadata = {make_storable(key.text): _to_metadata(node) for key, node in documents[0].pairs}
            fields = _add_rulers(list(_build_fields(text, match.start(1), match.end(1), documents[0])), match)
            return Head({key: value for key, value in metadata.items() if value is not None}, fields, match.end())
    return read_header(text)


def read_header(text: str) -> Head:
    """Return the header of a text; lines whose keys repeat are a dialogue or a log, not a header."""
    header = _HEADER.match(text)
    end = header.end() if header else 0
    fields, metadata = [], dict[str, knowledge.Scalar | list[knowledge.Scalar]]()
    for match in _FIELD.finditer(text, 0, end):
        if match[1] in metadata:
            return Head({}, (), 0)
        if value := " ".join(match[2].split()):
            fields.append(Block("field", match.start(), match.end(), (), match[1], ((match[1], value),)))
            metadata[match[1]] = value
    return Head(metadata, tuple(fields), end)


def _build_fields(text: str, start: int, end: int, mapping: Mapping) -> Iterator[Block]:
    """Yield a block for each key of front matter, up to the next key; its cells are the values below it."""
    firsts = [start + key.start for key, _ in mapping.pairs]
    for (key, node), first, last in zip(mapping.pairs, firsts, [*firsts[1:], end], strict=True):
        cells = tuple((make_storable(name), make_storable(value)) for name, value in list_values(key.text, node))
        if cells and text[first:last].strip():
            yield Block("field", first, first + len(text[first:last].rstrip()), (), make_storable(key.text), cells)


def _add_rulers(fields: list[Block], front: re.Match[str]) -> tuple[Block, ...]:
    """Return the fields, the first and the last with the ruler beside it, which is markup."""
    if not fields:
        return ()
    above = Mark("markup", 0, len(front[0][: front.start(1)].rstrip()))
    below = Mark("markup", front.end(1), len(front[0].rstrip()))
    fields[0] = replace(fields[0], start=0, marks=(above,))
    fields[-1] = replace(fields[-1], end=below.end, marks=(*fields[-1].marks, below))
    return tuple(fields)


def list_values(name: str, node: Node) -> Iterator[tuple[str, str]]:
    """Yield the scalars of a node, each with the keys above it joined by blanks."""
    if isinstance(node, Scalar):
        if node.text.strip():
            yield name, " ".join(node.text.split())
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from list_values(name, item)
    else:
        for key, value in node.pairs:
            yield from list_values(f"{name} {key.text}", value)


def _to_metadata(node: Node) -> knowledge.Scalar | list[knowledge.Scalar] | None:
    """Return a scalar or a list of scalars; None for an empty or a deeper nested value."""
    if isinstance(node, Scalar):
        return _parse_scalar(node) if node.text.strip() else None
    if isinstance(node, Mapping) or not node.items:
        return None
    scalars = [item for item in node.items if isinstance(item, Scalar)]
    return [_parse_scalar(item) for item in scalars] if len(scalars) == len(node.items) else None


def _parse_scalar(node: Scalar) -> knowledge.Scalar:
    text = make_storable(node.text.strip())
    if not node.is_plain:
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", text):
        return int(text)
    is_number = bool(re.fullmatch(r"-?[0-9]{1,15}\.[0-9]{1,15}", text)) and str(float(text)) == text  # not 3.10
    return float(text) if is_number else text
