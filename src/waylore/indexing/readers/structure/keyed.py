"""Recognise fields and defined terms: `Key: value`, `**Term** - what it is`.

They are items of a list, or lines of a paragraph that has only fields.
"""

import re
from collections.abc import Sequence
from typing import TypeAlias

from waylore.indexing.blocks import BlockKind, Mark

Cells: TypeAlias = tuple[tuple[str, str], ...]
_MAX_KEY_WORDS = 5
_MARKERS = "-*+•·>|\t "
_FIELD = re.compile(r"([^\W\d_][\w /()&'’.-]{0,60}?)\s*[:：]\s+\S")
_LINE = re.compile(r"\S[^\r\n]*")
_FIELD_LINE = re.compile(r"[>*_ ]{0,6}([^\W\d_][\w /()&'’.-]{0,60}?)\s*[*_]{0,2}[:：][*_]{0,2}\s+\S")
_TERM = re.compile(r"(\S.{0,80}?)\s+[-–—]\s+\S")


def find_field_lines(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the lines of a paragraph if each of them is a field, and none repeats a key."""
    lines = list(_LINE.finditer(text)) if ":" in text or "：" in text else []
    keys = [found[1].strip() for line in lines if (found := _FIELD_LINE.match(line[0]))]
    is_header = len(lines) > 1 and len(set(keys)) == len(lines)
    return [line.span() for line in lines] if is_header and all(map(_is_key, keys)) else []


def _is_key(key: str) -> bool:
    return key[0].isupper() and len(key.split()) <= _MAX_KEY_WORDS


def classify_item(text: str, marks: Sequence[Mark]) -> tuple[BlockKind, str, Cells]:
    """Return the kind, key and cells of an item; `marks` are offsets into its text."""
    start = len(text) - len(text.lstrip(_MARKERS))
    head = text[start : start + 200]
    if (field := _FIELD.match(head)) and len(field[1].split()) <= _MAX_KEY_WORDS:
        key = field[1].strip()
        return "field", key, ((key, " ".join(text[start + field.end() - 1 :].split())),)
    if (term := _TERM.match(head)) and _is_marked(term[1], text, marks):
        return "term", term[1].strip(), ()
    return "item", "", ()


def _is_marked(term: str, text: str, marks: Sequence[Mark]) -> bool:
    return any(text[mark.start : mark.end].strip() == term for mark in marks[:3])
