"""Extract declarations of a document: front matter, links, and imports and definitions of source code.

 Each declaration becomes a typed fact with its line as the statement. The prose of a passage is its text
without front matter, with links replaced by their text. Source code, recognised by the suffix of its address,
has no prose. Metadata and links that a reader took out of the text (front matter, fields of a row, targets of
HTML links) are read by `extract_declared`. The module parses no language: it matches lines, in the languages
of `_CODE`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import PurePosixPath

from waylore.indexing.blocks import Block, Reading
from waylore.indexing.extractors.markup import cut_block, read_block
from waylore.indexing.extractors.relations import (
    ReadBlock,
    build_field_facts,
    build_value_fact,
    find_single_rows,
    name_page,
)
from waylore.names import get_subject
from waylore.protocols import Extraction
from waylore.text import normalise, strip_parentheses
from waylore.types.knowledge import Document, Metadata, NewFact, Passage

CONFIDENCE = 0.9
IMPORTS, DEFINES = "imports", "defines"
MAX_VALUE_CHARACTERS = 80  # a longer value is not a name
MAX_STATEMENT_CHARACTERS = 300

_FRONT_MATTER = re.compile(r"\A\s*---[ \t]*\n(.{0,5000}?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"^([A-Za-z][\w -]*):[ \t]*(.*)$|^[ \t]+-[ \t]+(.+)$|^-[ \t]+(.+)$", re.MULTILINE)
_WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#\n]{1,200})(?:#[^\]|\n]{0,200})?(?:\|([^\]\n]{1,200}))?\]\]")
_LINK = re.compile(r"(!?)\[([^\[\]\n]{1,200})\]\(<?([^)\s>]{1,500})>?(?:\s+[\"'][^)]{0,200})?\)")
_PLAIN = re.compile(r"^(?:[\d\s.,:/TZ+-]+|true|false|yes|no|null|~)$", re.IGNORECASE)
_REFERENCE = re.compile(
    r"requires?|replace|supersede|obsolete|update|amend|extend|depends|see[- ]also|related|refers", re.IGNORECASE
)  # keys of references to pages of the same series
_NUMBERS = re.compile(r"\d{1,6}(?:[, ]+\d{1,6})*")
_PYTHON = (
    r"^[ \t]*(?:from\s+([\w.]+)\s+import\b|import\s+([\w.]+))",
    r"^[ \t]*(?:async\s+def|def|class)\s+(\w+)",
)
_SCRIPT = (
    r"^[ \t]*(?:import|export)\b[^'\"\n]{0,300}\bfrom\s*['\"]([^'\"]+)['\"]|^[ \t]*import\s*['\"]([^'\"]+)['\"]"
    r"|\brequire\(\s*['\"]([^'\"]+)['\"]\s*\)",
    r"^[ \t]*(?:export\s+)?(?:default\s+)?(?:abstract\s+)?(?:async\s+)?"
    r"(?:function\*?|class|interface|type|enum)\s+(\w+)|^(?:export\s+)?const\s+(\w+)\s*=\s*(?:async\s*)?\(",
)
_JAVA = (
    r"^[ \t]*(?:import|using)\s+(?:static\s+)?([\w.]+)",
    r"^[ \t]*(?:\w+[ \t]+){0,6}(?:class|interface|enum|record|object|fun)\s+(\w+)",
)
_C = (
    r"^[ \t]*#[ \t]*include\s*[<\"]([^>\"]+)[>\"]",
    r"^[ \t]*(?:typedef\s+)?(?:struct|class|enum|union)\s+(\w+)\s*[{:]"
    r"|^\w[\w \t*&:]{0,100}?\b(\w+)\([^;{}]{0,300}\)\s*\{",
)
_GO = (
    r"^(?:import[ \t]+(?:\w{1,50}[ \t]+)?|[ \t]+(?:[\w.]{1,50}[ \t]+)?)\"([\w./-]+)\"[ \t]*$",
    r"^(?:func\s+(?:\([^)]*\)\s*)?|type\s+)(\w+)",
)
_RUST = (
    r"^[ \t]*(?:pub\s+)?(?:use|mod)\s+([\w:]+)",
    r"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?(?:async\s+)?(?:unsafe\s+)?(?:fn|struct|enum|trait)\s+(\w+)",
)
_RUBY = (
    r"^[ \t]*require(?:_relative)?\s*\(?['\"]([^'\"]+)['\"]",
    r"^[ \t]*(?:def|class|module)\s+(?:self\.)?(\w+)",
)
_CODE: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    suffix: (re.compile(imports, re.MULTILINE), re.compile(defines, re.MULTILINE))
    for suffixes, (imports, defines) in {
        "py pyi": _PYTHON,
        "js jsx mjs cjs ts tsx": _SCRIPT,
        "java kt scala cs": _JAVA,
        "c h cc cpp cxx hpp": _C,
        "go": _GO,
        "rs": _RUST,
        "rb": _RUBY,
    }.items()
    for suffix in suffixes.split()
}


@dataclass(frozen=True, slots=True)
class Structure:
    """The declared facts and names of a passage, and its remaining text: with markup, and as prose without links."""

    prose: str
    facts: tuple[NewFact, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    body: str = ""


def extract_declared(reading: Reading, document: Document, passages: Sequence[Passage]) -> list[Extraction]:
    """Return for each passage the declarations in its fields and tables.

    Metadata belongs to the whole document and is listed with the first passage.
    """
    subject = _get_subject(document, document.title)
    found, single = [], find_single_rows(reading.blocks)
    for number, blocks in enumerate(read_passages(reading, passages)):
        facts = [*(_read_metadata(subject, reading.metadata) if not number else ())]
        structure = _build_structure("", [*facts, *build_field_facts(subject, blocks, reading.metadata, single)])
        aliases = {} if number else _get_aliases(subject, document)
        names = {**structure.names, **dict.fromkeys(aliases, "")}
        found.append(Extraction(structure.facts, names, aliases=aliases))
    return found


def _get_aliases(subject: str, document: Document) -> dict[str, tuple[str, ...]]:
    """Return other names of a page: its title with what stands in parentheses, and its file's name.

    Links use the name of a file if it has several words.
    """
    name = name_page(document.uri)
    is_other = name and normalise(subject) != name.lower() and not is_source_code(document)
    file = [name] if is_other and not document.uri.count("#") else []
    title = [document.title] if "(" in document.title and strip_parentheses(document.title) == subject else []
    return {subject: (*title, *file)} if subject and (title or file) else {}


def _read_metadata(subject: str, metadata: Metadata) -> Iterator[NewFact]:
    """Yield a fact for each text in the metadata; numbers and booleans name nothing."""
    for key, value in metadata.items():
        for one in [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []:
            if isinstance(one, str) and one.strip() and f"{key} {one}" != subject:
                yield from build_value_fact(subject, key, _name_numbers(subject, key, one.strip()))


def _name_numbers(subject: str, key: str, value: str) -> str:
    """Return a value with the names of the pages that it refers to by number: `Replaces: 386` in PEP 440 is PEP 386."""
    series, _, number = subject.rpartition(" ")
    if not (series.isupper() and number.isdecimal() and _REFERENCE.match(key) and _NUMBERS.fullmatch(value)):
        return value
    return ", ".join(f"{series} {int(each)}" for each in value.replace(",", " ").split())


def _get_subject(document: Document, title: str) -> str:
    path = PurePosixPath(document.uri.partition("?")[0].partition("#")[0])
    return get_subject(title) or path.name.strip()


def read_passages(reading: Reading, passages: Sequence[Passage]) -> Iterator[list[ReadBlock]]:
    """Yield the blocks of each passage without markup; of a block in two passages each has its part."""
    ends = [block.end for block in reading.blocks]
    for passage in passages:
        start, end = passage.start - reading.start, passage.end - reading.start
        found = []
        for block in islice(reading.blocks, bisect_right(ends, start), None):
            if block.start >= end:
                break
            marks = tuple(mark for mark in block.marks if start <= mark.start and mark.end <= end)
            part = replace(block, start=max(block.start, start), end=min(block.end, end), marks=marks)
            read = read_block(reading, part)
            sentences = () if block.kind == "code" else cut_block(read)
            links = tuple(_list_links(reading, block)) if block.kind == "row" else ()
            found.append(ReadBlock(part, read.text, read.marks, sentences, links))
        yield found


def _list_links(reading: Reading, block: Block) -> Iterator[str]:
    """Yield the texts of the links of a block."""
    read = read_block(reading, block)
    yield from (read.text[mark.start : mark.end] for mark in read.marks if mark.kind == "link")


def is_source_code(document: Document) -> bool:
    """Return whether a document is source code, by the suffix of its address."""
    path = PurePosixPath(document.uri.partition("?")[0].partition("#")[0])
    return path.suffix.removeprefix(".").lower() in _CODE


def extract_structure(document: Document, passage: Passage) -> Structure:
    """Return the declarations of a passage about the subject of its document."""
    path = PurePosixPath(document.uri.partition("?")[0].partition("#")[0])
    subject = _get_subject(document, passage.title or document.title)
    if patterns := _CODE.get(path.suffix.removeprefix(".").lower()):
        return _build_structure("", _read_code(subject, passage.text, *patterns))
    head = _FRONT_MATTER.match(passage.text) if passage.position == 0 else None
    body = passage.text[head.end() :] if head else passage.text
    facts = [*(_read_front_matter(subject, head[1]) if head else ()), *_read_links(subject, body)]
    return replace(_build_structure(_LINK.sub(r"\2", _WIKI_LINK.sub(_get_link_text, body)), facts), body=body)


def _build_structure(prose: str, facts: Iterable[NewFact]) -> Structure:
    """Return each fact once, with the names and types of the objects."""
    distinct = {(normalise(c.subject), c.predicate, normalise(c.object)): c for c in facts}
    names = {c.object: c.object_type for c in distinct.values() if not c.is_value}
    return Structure(prose, tuple(distinct.values()), names)


def _read_code(subject: str, code: str, imports: re.Pattern[str], defines: re.Pattern[str]) -> Iterator[NewFact]:
    for predicate, type_, pattern in ((IMPORTS, "module", imports), (DEFINES, "code", defines)):
        for match in pattern.finditer(code):
            name = match[match.lastindex or 0]
            yield from _build_fact(subject, predicate, name, _get_line(code, match.start(match.lastindex or 0)), type_)


def _read_front_matter(subject: str, head: str) -> Iterator[NewFact]:
    """Yield a fact for each value of front matter; a list gives one fact for each item."""
    key = ""
    for entry in _ENTRY.finditer(head):
        key = entry[1].strip().lower() if entry[1] else key
        for value in _split_values(entry[2] or entry[3] or entry[4] or ""):
            if key and key != "title":
                yield from build_value_fact(subject, key, value)


def _split_values(written: str) -> list[str]:
    """Return one value, or the items of `[a, b]`; a wiki link is replaced by its target."""
    linked = [match[1].strip() for match in _WIKI_LINK.finditer(written)]
    if linked:
        return linked
    is_list = written.startswith("[") and written.rstrip().endswith("]")
    parts = written.strip()[1:-1].split(",") if is_list else [written]
    return [bare for part in parts if (bare := part.strip().strip("\"'"))]


def _read_links(subject: str, text: str) -> Iterator[NewFact]:
    """Yield a pair for each link: wiki links by their target, others by their text."""
    for match in _WIKI_LINK.finditer(text):
        yield from _build_fact(subject, "", match[1].strip(), _make_statement(subject, text, match.start()))
    for match in _LINK.finditer(text):
        if not match[1]:  # an image is not a link
            name = _get_link_name(match[2], match[3])
            yield from _build_fact(subject, "", name, _make_statement(subject, text, match.start()))


def _get_link_name(shown: str, target: str) -> str:
    """Return the text of a link, or the name of its target if the text says nothing."""
    text = shown.strip("`*_ ")
    return text if text.lower() not in {"", "here", "link", "this"} else PurePosixPath(target).stem


def _build_fact(
    subject: str, predicate: str, name: str, statement: str, type_: str = "", *, is_value: bool = False
) -> Iterator[NewFact]:
    """Yield the fact, unless its subject or object is missing or both are the same."""
    if subject and name.strip() and normalise(name) != normalise(subject):
        yield NewFact(
            subject,
            predicate,
            name,
            statement[:MAX_STATEMENT_CHARACTERS],
            confidence=CONFIDENCE,
            object_type=type_,
            is_value=is_value,
            is_pair=not predicate,
        )


def _make_statement(subject: str, text: str, place: int) -> str:
    line = _LINK.sub(r"\2", _WIKI_LINK.sub(_get_link_text, _get_line(text, place))).lstrip("-*+#>| ")
    return line if normalise(subject) in normalise(line) else f"{subject}: {line}"


def _get_link_text(link: re.Match[str]) -> str:
    return (link[2] or link[1]).strip()


def _get_line(text: str, place: int) -> str:
    end = text.find("\n", place)
    return text[text.rfind("\n", 0, place) + 1 : end if end >= 0 else len(text)].strip()
