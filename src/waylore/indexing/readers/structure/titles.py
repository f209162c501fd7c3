"""Choose the title of a page from its head, its headings and its address, so that each page has a distinct title.

A heading that is a date or a version names an entry of a log, not the page.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from waylore.indexing.blocks import Block, Source
from waylore.indexing.encoding import make_storable

_MAX_BLOCKS_ABOVE = 4  # a heading below more text than badges and a motto belongs to a section
_MAX_HEAD_BLOCKS = 200
_FOLDER_FILES = frozenset(("readme", "index", "_index", "__init__", "contents", "default"))
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = (
    rf"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?\s+)?"
    rf"(?:\d{{4}}[-/.]\d{{1,2}}(?:[-/.]\d{{1,2}})?|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}"
    rf"|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?(?:\s+\d{{4}})?|\d{{1,2}}\.?\s+{_MONTH}(?:\s+\d{{4}})?|{_MONTH}\s+\d{{4}})"
)
_VERSION = r"(?:version\s+|release\s+|v)?\d{1,4}(?:\.\d{1,4}){1,3}(?:[-.]?(?:a|b|rc|alpha|beta|dev|post)[-.]?\d{0,3})?"
_DATED = re.compile(rf"\W{{0,3}}(?:{_DAY}|{_VERSION}|unreleased)(?=\W|$)", re.IGNORECASE)


def is_dated(heading: str) -> bool:
    """Return whether a heading begins with a date or a version."""
    return bool(_DATED.match(heading))


def choose_title(source: Source, head: Mapping[str, object], blocks: tuple[Block, ...]) -> str:
    """Return the title of a page: from its front matter, its first heading, or its file.

    A heading counts if it is at the top and not dated.
    """
    return get_own_title(head) or find_heading_title(blocks) or name_file(source)


def get_own_title(head: Mapping[str, object]) -> str:
    """Return the title that the head of a page has, or an empty string.

    If the head begins with a number, it is part of the title: `PEP 464: Removal of the mirrors`.
    """
    own = {key.lower(): value for key, value in head.items()}
    named = (own.get(key) for key in ("title", "name", "subject"))
    title = next((make_storable(value).strip() for value in named if isinstance(value, str) and value.strip()), "")
    key, value = next(iter(head.items()), ("", ""))
    is_number = key.isupper() and isinstance(value, str) and value.isdecimal()
    return f"{key} {value}: {title}" if title and is_number else title


def find_heading_title(blocks: tuple[Block, ...]) -> str:
    """Return the heading that is the title of a page, or an empty string."""
    body = [block for block in blocks[: _MAX_HEAD_BLOCKS + 1] if block.kind != "field"]
    first = next((block for block in body[:_MAX_BLOCKS_ABOVE] if block.kind == "heading"), None)
    if first is None or not first.headings or is_dated(first.headings[-1]):
        return ""
    return first.headings[-1]


def name_file(source: Source) -> str:
    """Return the name of a file with the folder above it; a README or index is named after its folder."""
    path = PurePosixPath(source.uri)
    folder = path.parent.name if path.parent.name not in ("", "/", "..") else ""
    if folder and path.stem.lower() in _FOLDER_FILES:
        return folder
    return f"{folder} / {source.name}" if folder else source.name
