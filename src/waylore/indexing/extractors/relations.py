"""Build facts from the structure of a page: fields, table rows, list items under a heading, and links.

The predicate is what the author wrote: the key of a field, the column of a table, the heading of a list or the words
before a link. A fact is about the subject of the page, the entry of a data file, or the first cell of its row. The
module reads blocks (`indexing.blocks`); it parses no format and reads no sentences (`extractors.facts` does).
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TypeAlias

from waylore.indexing.blocks import Block, Mark
from waylore.indexing.extractors.marked import is_anchor
from waylore.indexing.extractors.markup import MarkedSentence
from waylore.indexing.extractors.naming import is_date, is_measure
from waylore.indexing.extractors.spelling import Spelling
from waylore.names import strip_number
from waylore.text import STOP_WORDS, normalise
from waylore.types.knowledge import NewFact

CONFIDENCE = 0.9
MAX_STATEMENT_CHARACTERS = 300
MAX_PREDICATE_WORDS = 8
MAX_LEAD_WORDS = 6  # of a line that announces a list
MAX_VALUE_CHARACTERS = 60  # a longer value is not a name
MAX_OBJECT_CHARACTERS = 240
MAX_PLAIN_WORDS = 2  # of a name without a capital or a sign
MAX_PHRASE_WORDS = 4  # a longer value is a text, unless most of its words have a capital
MAX_LISTED_WORDS = 5  # of each name in a long list
MAX_ITEM_WORDS = 3  # of an item that is one name as a whole
WORDS_BEFORE_LINK = 5
_PLAIN = re.compile(r"[\W\d]*(?:[TZ][\W\d]*)?|true|false|yes|no|none|null|n/?a", re.IGNORECASE)
_ADDRESS = re.compile(r"\s*<[^<>]*>|\s*\((?:at|a)\)")
_SEPARATOR = re.compile(r",\s+(?=[A-Z@#])")
_SLUG = re.compile(r"[\W_]+")
_FOLDER_PAGES = frozenset(["index", "readme"])  # pages that stand for their folder
_AFTER_NAME = re.compile(r"\s*(?:$|[,(:;–—]|- )")
# Keys that say how a page is shown or where, not what it is about.
_PRESENTATION = frozenset("layout template permalink redirect_from sidebar_position toc weight".split())
Cells: TypeAlias = tuple[tuple[str, str], ...]
_IDLE = frozenset("a an and as at by for from in is it of on or our see that the this to via with your".split())


@dataclass(frozen=True, slots=True)
class ReadBlock:
    """A block of a passage without markup: its text on one line, its marks in it, and its sentences.

    `links` are the texts of all links of a row, also if a part of it is in another passage.
    """

    block: Block
    text: str
    marks: tuple[Mark, ...]
    sentences: Sequence[MarkedSentence]
    links: tuple[str, ...] = ()


def build_field_facts(
    subject: str, blocks: Iterable[ReadBlock], metadata: Container[str] = (), single: Container[Cells] = ()
) -> Iterator[NewFact]:
    """Yield the facts of fields, of entries in entries and of table rows.

    Fields of the head that are metadata are left out. `single` are the cells of rows that are the only one of a table.
    """
    for one in blocks:
        block = one.block
        if block.kind == "field" and (block.headings or block.key not in metadata):
            yield from _read_field(subject, one)
        elif block.kind == "heading" and block.about:
            for relation, name in block.cells:
                yield from _build_fact(block.about, relation, name, f"{block.about} {relation}: {name}")
        elif block.kind == "row" and len(block.cells) > 1:
            yield from _read_row(subject, one, is_single=block.cells in single)


def find_single_rows(blocks: Sequence[Block]) -> frozenset[Cells]:
    """Return the cells of the rows that are the only one of their table."""
    is_row = [block.kind == "row" and bool(block.cells) for block in blocks]
    around = zip([False, *is_row], is_row, [*is_row[1:], False], blocks, strict=False)
    return frozenset(block.cells for before, is_one, after, block in around if is_one and not before and not after)


def build_list_facts(
    subject: str, blocks: Iterable[ReadBlock], names: Mapping[str, str], spelling: Spelling
) -> Iterator[NewFact]:
    """Yield the facts of list items that are names, and of links to other pages."""
    lead = ""
    for one in blocks:
        if one.text.rstrip(" *").endswith(":") and len(one.text.split()) <= MAX_LEAD_WORDS:
            lead = one.text.strip(" *:")
            continue
        if one.block.kind not in {"item", "field", "term"}:
            lead = ""
        heading = _get_heading(subject, one.block, lead)
        linked = list(_read_links(subject, one, heading, spelling))
        yield from linked
        if one.block.kind == "item" and heading and not linked:
            yield from _read_item(subject, one, heading, names)


def build_value_fact(subject: str, key: str, value: str, statement: str = "") -> Iterator[NewFact]:
    """Yield the facts of a field: one for each name in a list of names, without mail addresses after them."""
    if key.lower() in _PRESENTATION:
        return
    bare = _ADDRESS.sub("", value).strip()
    parts = _SEPARATOR.split(bare)
    is_list = len(bare) <= 2 * MAX_VALUE_CHARACTERS or all(len(part.split()) <= MAX_LISTED_WORDS for part in parts)
    parts = parts if is_list and not is_measure(bare) else [bare]
    for part in parts or [value]:
        said = statement or f"{subject} {key}: {part}"
        if "://" in part or part[:1] == "/":
            continue
        yield from _build_fact(subject, key, part, said, is_value=is_plain_value(part))


def is_plain_value(value: str) -> bool:
    """Return whether a value is a number, a date, an address or a text, which name nothing."""
    words, is_long = value.split(), len(value) > MAX_VALUE_CHARACTERS
    if len(words) > MAX_PLAIN_WORDS and (value.islower() or _is_phrase(words)):
        return True
    return (
        is_long
        or is_measure(value)
        or "://" in value
        or value[:1] == "/"
        or bool(_PLAIN.fullmatch(value))
        or is_date(value)
    )


def _is_phrase(words: Sequence[str]) -> bool:
    """Return whether words are a text, because most of them begin with a small letter."""
    return len(words) > MAX_PHRASE_WORDS and 2 * sum(word[0].islower() for word in words) > len(words)


def _read_field(subject: str, one: ReadBlock) -> Iterator[NewFact]:
    """Yield the facts of a `key: value` item. A key that is code is what the value is about."""
    key, about = one.block.key, one.block.about or subject
    cells = one.block.cells or ((key, one.text.partition(":")[2].strip()),)
    statement = _make_statement(about, one)
    is_code = any(mark.kind == "code" and one.text[mark.start : mark.end] == key for mark in one.marks)
    if is_code and one.block.headings:
        value = cells[0][1]
        yield from _build_fact(
            key, strip_number(one.block.headings[-1]), value, statement, is_value=is_plain_value(value)
        )
        return
    links = [one.text[mark.start : mark.end] for mark in one.marks if mark.kind == "link"]
    for name, part in [(key, link) for link in links if not is_plain_value(link)] if links else cells:
        if len(part) <= MAX_VALUE_CHARACTERS:
            yield from build_value_fact(about, name, part, statement)


def _read_row(subject: str, one: ReadBlock, *, is_single: bool) -> Iterator[NewFact]:
    """Yield the facts of a row about its first cell; the only row of a table is about its heading."""
    columns, heading = one.block.cells, strip_number((one.block.headings or (subject,))[-1])
    first = columns[0][1]
    about = heading if is_single or is_plain_value(first) else first
    statement = _make_statement(subject, one)
    for column, cell in columns if is_single else columns[1:]:
        for line in (bare for part in cell.split("\n") if (bare := part.strip(" -?*"))):
            for value in _list_linked(line, one):
                if value != about:
                    yield from build_value_fact(about, column or "is", value, statement)


def _list_linked(cell: str, one: ReadBlock) -> list[str]:
    """Return the links of a cell that is a list of links, the link that is most of it or begins it, or the cell."""
    inside = sorted((link for link in dict.fromkeys(one.links) if link in cell), key=len, reverse=True)
    rest = cell
    for link in inside:
        rest = rest.replace(link, "")
    if len(inside) > 1 and not rest.strip(" ,;&*"):
        return sorted(inside, key=cell.index)
    return [next((each for each in inside if 2 * len(each) > len(cell) or cell.startswith(f"{each},")), cell)]


def _get_heading(subject: str, block: Block, lead: str) -> str:
    """Return the heading above a block with the line that leads its list; empty if it is the page's or a question."""
    heading = strip_number(block.headings[-1]) if block.headings else ""
    if normalise(heading) == normalise(subject) or len(block.headings) < 2:
        heading = heading if len(block.headings) > 1 or normalise(heading) != normalise(subject) else ""
    said = f"{heading}: {lead}" if heading and lead else heading or lead
    return said if len(said.split()) <= MAX_PREDICATE_WORDS and "?" not in said else ""


def _read_item(subject: str, one: ReadBlock, heading: str, names: Mapping[str, str]) -> Iterator[NewFact]:
    """Yield the fact of an item that is a name, is short and has one, or begins with one."""
    text = one.text.strip(" .;,")
    named = [name for name in names if name in text]
    if text in names or (named and len(text.split()) <= MAX_ITEM_WORDS):
        first = text
    else:
        first = max((name for name in named if _leads(name, text)), key=len, default="")
    yield from _build_fact(subject, heading, first, _make_statement(subject, one))


def _leads(name: str, text: str) -> bool:
    """Return whether a text begins with a name, and a sign or nothing follows."""
    return text.startswith(name) and _AFTER_NAME.match(text, len(name)) is not None


def _read_links(subject: str, one: ReadBlock, heading: str, spelling: Spelling) -> Iterator[NewFact]:
    """Yield the facts of links to other pages of the folder: by the heading of their list, or the words before."""
    for mark in one.marks:
        if mark.kind != "link" or not _is_page(mark.target):
            continue
        shown = one.text[mark.start : mark.end]
        is_wiki = mark.target.startswith("[[")
        before = heading if one.block.kind in {"item", "row", "term"} else ""
        predicate = before or _get_words_before(one.text[: mark.start])
        if is_wiki:
            yield from _build_fact(subject, predicate, mark.target.strip("[]"), _make_statement(subject, one))
        elif predicate:
            name = _name_target(shown, mark.target, spelling)
            yield from _build_fact(subject, predicate, name, _make_statement(subject, one))


def _name_target(shown: str, target: str, spelling: Spelling) -> str:
    """Return the name of the page that a link leads to: its file name if the text is a part of that, else the text."""
    page = name_page(target)
    if page and set(normalise(strip_number(shown)).split()) - STOP_WORDS < set(page.lower().split()):
        return page
    return strip_number(shown) if is_anchor(shown, target, spelling) else ""


def name_page(address: str) -> str:
    """Return the file name in an address as words, or an empty string if it has only one.

    A page has it as another name of its subject, so links join it in whatever order the pages are added.
    """
    path = PurePosixPath(address.partition("#")[0].partition("?")[0])
    stem = path.name.partition(".")[0]
    words = _SLUG.sub(" ", path.parent.name if stem.lower() in _FOLDER_PAGES else stem).split()
    return " ".join(words) if len(words) > 1 else ""


def _is_page(target: str) -> bool:
    """Return whether a link leads to another page of the folder."""
    path = target.partition("#")[0].partition("?")[0]
    return bool(path) and "://" not in path and not path.startswith(("mailto:", "data:"))


def _get_words_before(text: str) -> str:
    """Return the last words before a link, from the first one that says something."""
    words = re.split(r"[.,;:!?(]", text)[-1].split()[-WORDS_BEFORE_LINK:]
    while words and words[0].lower() in _IDLE:
        words = words[1:]
    return " ".join(words)


def _make_statement(subject: str, one: ReadBlock) -> str:
    """Return the text of a block after its headings and the subject of its page."""
    path = dict.fromkeys(filter(None, (subject, *map(strip_number, one.block.headings[-2:]))))
    above = [part for part, _ in pairwise([*path, ""]) if normalise(part) not in normalise(one.text)]
    return ": ".join([*above, one.text])[:MAX_STATEMENT_CHARACTERS]


def _build_fact(
    subject: str, predicate: str, name: str, statement: str, *, is_value: bool = False
) -> Iterator[NewFact]:
    """Yield the fact, or a pair without a predicate, unless a part says nothing or both ends are the same."""
    about, said, of = (" ".join(part.split()).strip(" *`,;:") for part in (subject, predicate, name))
    parts = (about, said, of) if predicate else (about, of)
    if not all(map(normalise, parts)) or len(of) > MAX_OBJECT_CHARACTERS or normalise(about) == normalise(of):
        return
    yield NewFact(
        about,
        said,
        of,
        statement,
        confidence=CONFIDENCE,
        object_type="term" if of.islower() and not is_value else "",  # a plain word, which questions use otherwise too
        is_value=is_value,
        is_pair=not predicate,
    )
