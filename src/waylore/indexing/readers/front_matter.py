"""Read front matter as metadata: `key: value` lines between two `---` at the top of a file.

 Scalars, `[a, b]` and lists of `- item` lines are read; values that are nested deeper are left out. This is
not a YAML parser: it knows no aliases and no tags, so that a small file cannot expand into a large one.
"""

import re
from collections.abc import Iterator

from waylore.types.knowledge import Metadata, Scalar

_FRONT = re.compile(r"---[ \t]*(?:\r\n?|\n)(.*?)(?<=[\r\n])---[ \t]*(?:\r\n?|\n|\Z)", re.DOTALL)
_PAIR = re.compile(r"([A-Za-z_][\w .-]{0,99}):(?:[ \t]+(.*)|[ \t]*)$")
_ITEM = re.compile(r"\s*-[ \t]+(\S.*)$")
_MAX_CHARACTERS = 100_000


def read_front_matter(text: str) -> tuple[Metadata, int]:
    """Return the metadata of the front matter, and the offset of the text after it."""
    match = _FRONT.match(text, 0, _MAX_CHARACTERS)
    if match is None:
        return {}, 0
    return dict(_read_pairs(match[1])), match.end()


def _read_pairs(lines: str) -> Iterator[tuple[str, Scalar | list[Scalar]]]:
    open_key, items = "", list[Scalar]()
    for line in lines.splitlines():
        if open_key and (item := _ITEM.match(line)):
            items.append(_parse_scalar(item[1]))
        elif pair := _PAIR.match(line):
            if items:
                yield open_key, items
            open_key, items = ("", []) if pair[2] else (pair[1].strip(), [])
            if pair[2]:
                yield pair[1].strip(), _parse_value(pair[2].strip())
    if items:
        yield open_key, items


def _parse_value(text: str) -> Scalar | list[Scalar]:
    if text.startswith("[") and text.endswith("]"):
        return [_parse_scalar(part) for part in text[1:-1].split(",") if part.strip()]
    return _parse_scalar(text)


def _parse_scalar(text: str) -> Scalar:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", text):
        return int(text)
    if re.fullmatch(r"-?[0-9]{1,15}\.[0-9]{1,15}", text):
        return float(text)
    return text
