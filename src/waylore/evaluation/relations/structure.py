"""Make questions from the structure of files, with separate parsers.

The parsers read the records of data files, the header fields of proposals, the front matter of pages and the rows of
tables. A question asks for the value of one record, or for all records with a value. It belongs to the first file that
states an answer. The measured rules read the same files, but their code is not used here.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from waylore.evaluation.relations.questions import Answer, Direction, SetQuestion, choose_split, group_answers
from waylore.indexing.blocks import require_library
from waylore.text import normalise

MAX_SIMILAR = 10  # maximum questions of a split with the same predicate and direction in one folder
MIN_HAVING = 2  # records with a value, for a question that asks for them
MAX_CHARACTERS = 60  # maximum characters of a name
MAX_WORDS = 5  # maximum words of a value in a question for its records
HEADER_KEYS = "Author Sponsor PEP-Delegate BDFL-Delegate Status Requires Replaces Superseded-By".split()
REFERENCES = frozenset("Requires Replaces Superseded-By".split())
PAGE_KEYS = ("owner_slack", "section", "parent")
_HEADER = re.compile(r"^([A-Z][\w-]*): *(.*(?:\n[ \t]+.*)*)$", re.MULTILINE)
_MAIL = re.compile(r"\s*<[^<>]*>|\s*\([^()]*(?:@| at )[^()]*\)")
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_ROW = re.compile(r"^\s*\|?(.+\|.*?)\|?\s*$")
_RULE = re.compile(r"^[\s|:-]+$")
_LINK = re.compile(r"\[([^\[\]]+)\](?:\([^()]*\)|\[[^\[\]]*\])")
_LINK_FIRST = re.compile(_LINK.pattern + r"(?:, .*|$)")
_MARKUP = re.compile(r"[*`]|\\(?=\W)|<sup>.*?</sup>")
_LINE_BREAK = re.compile(r"<br ?/?>")
_LISTED = re.compile(r"[,;:] ")  # a cell that may be a list or a sentence
_DAY = re.compile(r"\d.*|(?:mon|tues|wednes|thurs|fri|satur|sun)day\b.*", re.IGNORECASE)
_NOT_NAME = re.compile(r"[\W\d]*|.*://.*|/.*|true|false|yes|no|none|tbd|n/a", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A data file with records: the key of their names, keys of values, and keys of lists of records."""

    name: str
    named_by: str
    values: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()


RECORD_FILES = (
    RecordFile("repos.yml", "repo_name", values=("team", "alerts_team", "type", "production_hosted_on")),
    RecordFile("sigs.yaml", "name", values=("company",), entries=("chairs", "tech_leads", "subprojects")),
)


@dataclass(frozen=True, slots=True)
class Stated:
    """A relation that a file states."""

    file: str
    subject: str
    predicate: str
    object: Answer


def make_questions(folder: Path, files: Path) -> tuple[SetQuestion, ...]:
    """Return questions about the structure of the files of a folder, the same at every call."""
    read = (each for file in sorted(files.rglob("*")) if file.is_file() for each in _read_file(file, files))
    stated = [each for each in read if normalise(each.subject) != normalise(each.object[0])]
    found = [*_ask(folder.name, stated, "out"), *_ask(folder.name, stated, "in")]
    return tuple(_choose(found))


def _choose(questions: Iterable[SetQuestion]) -> Iterator[SetQuestion]:
    """Yield some of the questions of each split, predicate and direction."""

    def get_kind(question: SetQuestion) -> tuple[str, str, str]:
        return question.split, question.predicate, question.direction

    for _, similar in groupby(sorted(questions, key=lambda each: (get_kind(each), each.order)), key=get_kind):
        yield from list(similar)[:MAX_SIMILAR]


def _ask(folder: str, stated: Sequence[Stated], direction: Direction) -> Iterator[SetQuestion]:
    """Yield a question for each subject, or for each object that several subjects have."""
    groups: dict[tuple[str, str], list[Stated]] = defaultdict(list)
    for each in stated:
        groups[normalise(each.subject if direction == "out" else each.object[0]), each.predicate].append(each)
    known: dict[tuple[str, str], list[Answer]] = defaultdict(list)  # also with other spellings of the predicate
    for (entity, predicate), members in groups.items():
        names = [each.object if direction == "out" else (each.subject,) for each in members]
        known[entity, normalise(predicate)] += names
    for (key, predicate), members in groups.items():
        entity = members[0].subject if direction == "out" else members[0].object[0]
        answers = group_answers(known[key, normalise(predicate)])
        if direction == "out" or (len(answers) >= MIN_HAVING and len(entity.split()) <= MAX_WORDS):
            file = min(each.file for each in members)
            yield SetQuestion(folder, file, choose_split(file), entity, predicate, direction, answers)


def _read_file(file: Path, root: Path) -> Iterator[Stated]:
    path, name = file.relative_to(root).as_posix(), file.name
    records = next((each for each in RECORD_FILES if each.name == name), None)
    if records:
        yield from _read_records(path, file.read_text("utf-8"), records)
    elif file.suffix == ".rst":
        yield from _read_header(path, file.read_text("utf-8"))
    elif file.suffix == ".md":
        text = file.read_text("utf-8", "replace").replace("\r\n", "\n")
        yield from (*_read_front_matter(path, text), *_read_tables(path, text))


# -- records ---------------------------------------------------------------------------------------------


def _read_records(path: str, text: str, kind: RecordFile) -> Iterator[Stated]:
    for record in _list_records(_parse_yaml(text), kind.named_by):
        yield from _read_record(path, record, kind)


def _read_record(path: str, record: Mapping[str, Any], kind: RecordFile) -> Iterator[Stated]:
    """Yield the values of a record, and its entries with their values."""
    name = str(record[kind.named_by])
    for key in kind.values:
        yield from (Stated(path, name, key, (value,)) for value in _list_names(_find_value(record, key)))
    for key in kind.entries:
        for entry in _list_records(_find_value(record, key), kind.named_by):
            yield Stated(path, name, key, (str(entry[kind.named_by]),))
            yield from _read_record(path, entry, kind)


def _parse_yaml(text: str) -> Any:
    yaml = require_library("yaml")
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _list_records(parsed: Any, named_by: str) -> Iterator[Mapping[str, Any]]:
    """Yield the records of a list, or of the lists of a mapping."""
    lists = parsed.values() if isinstance(parsed, dict) else [parsed]
    for items in (each for each in lists if isinstance(each, list)):
        yield from (item for item in items if isinstance(item, dict) and named_by in item)


def _find_value(record: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key in a record, or in a mapping in it."""
    if key in record:
        return record[key]
    inner = (_find_value(value, key) for value in record.values() if isinstance(value, dict))
    return next((value for value in inner if value is not None), None)


def _list_names(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [each.strip() for each in values if isinstance(each, str) and _is_name(each)]


def _is_name(text: str) -> bool:
    bare = text.strip()
    return 0 < len(bare) <= MAX_CHARACTERS and "\n" not in bare and not _NOT_NAME.fullmatch(bare)


# -- headers and front matter ------------------------------------------------------------------------------


def _read_header(path: str, text: str) -> Iterator[Stated]:
    """Yield the fields of a numbered proposal, such as `PEP: 440`; they are about its name."""
    fields = dict(_HEADER.findall(text.partition("\n\n")[0]))
    series, number = next(iter(fields.items()), ("", ""))
    if not (series.isupper() and number.strip().isdecimal()):
        return
    name = f"{series} {int(number)}"
    for key in HEADER_KEYS:
        for part in _MAIL.sub("", fields.get(key, "")).replace("\n", " ").split(","):
            value = " ".join(part.split())
            if key in REFERENCES and value.isdecimal():
                yield Stated(path, name, key, (f"{series} {int(value)}", value))
            elif value:
                yield Stated(path, name, key, (value,))


def _read_front_matter(path: str, text: str) -> Iterator[Stated]:
    found = _FRONT_MATTER.match(text)
    head = _parse_yaml(found[1]) if found else None
    if isinstance(head, dict) and isinstance(head.get("title"), str):
        for key in PAGE_KEYS:
            yield from (Stated(path, head["title"], key, (value,)) for value in _list_names(head.get(key)))


# -- tables ------------------------------------------------------------------------------------------------


def _read_tables(path: str, text: str) -> Iterator[Stated]:
    """Yield the cells of tables whose first column has a name in each row."""
    for table in _list_tables(text.split("\n")):
        head, *rows = ([_list_parts(cell) for cell in row] for row in table)
        firsts = [row[0][0] for row in rows if row[0]]
        if len(set(firsts)) < max(len(rows), 2) or not all(map(_is_name, firsts)) or any(map(_DAY.match, firsts)):
            continue
        for first, row in zip(firsts, rows, strict=True):
            for column, cell in zip(head[1:], row[1:], strict=False):
                if column and all(_is_name(part) and not _LISTED.search(part) for part in cell):
                    yield from (Stated(path, first, " ".join(column), (part,)) for part in cell)


def _list_tables(lines: Sequence[str]) -> Iterator[list[list[str]]]:
    """Yield the rows of each table as cells, the row of column names first."""
    place = 1
    while place < len(lines):
        if _RULE.match(lines[place]) and "-" in lines[place] and "|" in lines[place] and _ROW.match(lines[place - 1]):
            end = place + 1
            while end < len(lines) and _ROW.match(lines[end]):
                end += 1
            rows = [lines[place - 1], *lines[place + 1 : end]]
            yield [[cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))] for row in rows]
            place = end
        place += 1


def _list_parts(cell: str) -> list[str]:
    """Return the lines or links of a cell without markup. Text after a link and a comma is dropped.

    Return nothing if the cell is empty, or if another line has a link and further text.
    """
    if not _LINK.sub("", cell).strip(" ,"):
        return [found[1] for found in _LINK.finditer(_MARKUP.sub("", cell))]
    found = [" ".join(_MARKUP.sub("", part).split()) for part in _LINE_BREAK.split(cell)]
    named = [_LINK_FIRST.sub(r"\1", part) for part in found if part]
    return [] if any(map(_LINK.search, named)) else named
