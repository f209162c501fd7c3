"""Recognise fields and defined terms among the items of a list: `Key: value`, `**Term** - what it is`."""

import re
from collections.abc import Sequence
from typing import TypeAlias

from waylore.indexing.blocks import BlockKind, Mark

Cells: TypeAlias = tuple[tuple[str, str], ...]
_MAX_KEY_WORDS = 5
_MARKERS = "-*+•·>|\t "
_FIELD = re.compile(r"([^\W\d_][\w /()&'’.-]{0,60}?)\s*[:：]\s+\S")
_TERM = re.compile(r"(\S.{0,80}?)\s+[-–—]\s+\S")


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
