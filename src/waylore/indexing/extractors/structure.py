"""Finds what a document declares rather than says: front matter, links, what source code imports and defines.

These are typed claims, with the line that declares them as their statement. The prose is what is left: front
matter cut out, links replaced by their text. Source code, known by the suffix of its address, is declaration
and has no prose. What a reader took out of the text (front matter, the fields of a row, where links of HTML
lead) comes in through `declared`. It parses no language: lines are matched, in the languages of `_CODE`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from waylore.indexing.blocks import Reading
from waylore.protocols import Extraction
from waylore.text import normalise, without_aside
from waylore.types.knowledge import Claim, Document, Metadata, Passage

CONFIDENCE = 0.9
LINKS_TO, IMPORTS, DEFINES = "links_to", "imports", "defines"
LONGEST_VALUE = 80  # characters that a value may have and still name something
LONGEST_STATEMENT = 300

_FRONT_MATTER = re.compile(r"\A\s*---[ \t]*\n(.{0,5000}?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"^([A-Za-z][\w -]*):[ \t]*(.*)$|^[ \t]+-[ \t]+(.+)$|^-[ \t]+(.+)$", re.MULTILINE)
_WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#\n]{1,200})(?:#[^\]|\n]{0,200})?(?:\|([^\]\n]{1,200}))?\]\]")
_LINK = re.compile(r"(!?)\[([^\[\]\n]{1,200})\]\(<?([^)\s>]{1,500})>?(?:\s+[\"'][^)]{0,200})?\)")
_PLAIN = re.compile(r"^(?:[\d\s.,:/TZ+-]+|true|false|yes|no|null|~)$", re.IGNORECASE)
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
    """What a passage declares, and the prose that is left of it."""

    prose: str
    claims: tuple[Claim, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


def declared(reading: Reading, document: Document, passages: Sequence[Passage]) -> list[Extraction]:
    """For each passage what the reader found besides its text; what is about all of it is with the first."""
    about = _about(document, document.title)
    claims: list[list[Claim]] = [[] for _ in passages]
    if passages:
        claims[0] += _fields(about, reading.metadata)
    for link in reading.links:
        number = next((n for n, p in enumerate(passages) if p.start <= link.start < p.end), None)
        if number is not None:
            line = _line(reading.text, link.start)
            statement = line if normalise(about) in normalise(line) else f"{about}: {line}"
            claims[number] += _claim(about, LINKS_TO, _led_to(link.text, link.target), statement)
    said = [_declared("", of_passage) for of_passage in claims]
    return [Extraction(s.claims, s.names) for s in said]


def _fields(about: str, metadata: Metadata) -> Iterator[Claim]:
    """The words among the fields of a document; numbers and truth values name nothing."""
    for key, value in metadata.items():
        for one in [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []:
            if isinstance(one, str) and one.strip() and key != "title":
                yield from _entry(about, key, one.strip())


def _entry(about: str, key: str, value: str) -> Iterator[Claim]:
    is_value = bool(_PLAIN.match(value)) or len(value) > LONGEST_VALUE
    yield from _claim(about, key, value, f"{about} {key}: {value}", is_value=is_value)


def _about(document: Document, title: str) -> str:
    path = PurePosixPath(document.uri.partition("?")[0].partition("#")[0])
    return without_aside(title).strip() or path.name.strip()


def structure(document: Document, passage: Passage) -> Structure:
    """What a passage of a document declares about what the document is about."""
    path = PurePosixPath(document.uri.partition("?")[0].partition("#")[0])
    about = _about(document, passage.title or document.title)
    if patterns := _CODE.get(path.suffix.removeprefix(".").lower()):
        return _declared("", _coded(about, passage.text, *patterns))
    head = _FRONT_MATTER.match(passage.text) if passage.position == 0 else None
    body = passage.text[head.end() :] if head else passage.text
    claims = [*(_entries(about, head[1]) if head else ()), *_links(about, body)]
    return _declared(_LINK.sub(r"\2", _WIKI_LINK.sub(_shown, body)), claims)


def _declared(prose: str, claims: Iterable[Claim]) -> Structure:
    """The claims, each once, and what they name, with its type."""
    distinct = {(c.predicate, normalise(c.object)): c for c in claims}
    names = {c.object: c.object_type for c in distinct.values() if not c.is_value}
    return Structure(prose, tuple(distinct.values()), names)


def _coded(about: str, code: str, imports: re.Pattern[str], defines: re.Pattern[str]) -> Iterator[Claim]:
    for predicate, type_, pattern in ((IMPORTS, "module", imports), (DEFINES, "code", defines)):
        for found in pattern.finditer(code):
            name = found[found.lastindex or 0]
            yield from _claim(about, predicate, name, _line(code, found.start(found.lastindex or 0)), type_)


def _entries(about: str, head: str) -> Iterator[Claim]:
    """The values of front matter by their keys; one a value of a list."""
    key = ""
    for entry in _ENTRY.finditer(head):
        key = entry[1].strip().lower() if entry[1] else key
        for value in _values(entry[2] or entry[3] or entry[4] or ""):
            if key and key != "title":
                yield from _entry(about, key, value)


def _values(written: str) -> list[str]:
    """One value, or those of `[a, b]`; a wiki link is what it leads to."""
    linked = [found[1].strip() for found in _WIKI_LINK.finditer(written)]
    if linked:
        return linked
    is_list = written.startswith("[") and written.rstrip().endswith("]")
    parts = written.strip()[1:-1].split(",") if is_list else [written]
    return [bare for part in parts if (bare := part.strip().strip("\"'"))]


def _links(about: str, text: str) -> Iterator[Claim]:
    """Wiki links by what they lead to, others by their text."""
    for found in _WIKI_LINK.finditer(text):
        yield from _claim(about, LINKS_TO, found[1].strip(), _shown_line(about, text, found.start()))
    for found in _LINK.finditer(text):
        if not found[1]:  # a picture shows, it does not lead anywhere
            yield from _claim(
                about, LINKS_TO, _led_to(found[2], found[3]), _shown_line(about, text, found.start())
            )


def _led_to(shown: str, target: str) -> str:
    """What a link names: its text, unless that says nothing, then the file that it leads to."""
    text = shown.strip("`*_ ")
    return text if text.lower() not in {"", "here", "link", "this"} else PurePosixPath(target).stem


def _claim(
    subject: str, predicate: str, name: str, statement: str, type_: str = "", *, is_value: bool = False
) -> Iterator[Claim]:
    """The claim, if it joins something to something else."""
    said = statement[:LONGEST_STATEMENT]
    if subject and name.strip() and normalise(name) != normalise(subject):
        yield Claim(subject, predicate, name, said, confidence=CONFIDENCE, object_type=type_, is_value=is_value)


def _shown_line(about: str, text: str, place: int) -> str:
    line = _LINK.sub(r"\2", _WIKI_LINK.sub(_shown, _line(text, place))).lstrip("-*+#>| ")
    return line if normalise(about) in normalise(line) else f"{about}: {line}"


def _shown(link: re.Match[str]) -> str:
    return (link[2] or link[1]).strip()


def _line(text: str, place: int) -> str:
    end = text.find("\n", place)
    return text[text.rfind("\n", 0, place) + 1 : end if end >= 0 else len(text)].strip()
