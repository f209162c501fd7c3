"""Import research findings (S18): papers with arXiv ids, abstracts, citations and concepts, and projects.

A file is one object with lists of papers and projects, a list of them, or one per line. A paper becomes a
document with its title and abstract; its citations, concepts and authors become facts of the abstract. The
file is read twice, because a citation by arXiv id is resolved to the title of that paper. The module fetches
nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from waylore.indexing.blocks import Skipped, Source
from waylore.indexing.importers.parts import ImportedPart, assemble_parts, make_document, make_entity
from waylore.indexing.importers.rows import (
    Fields,
    ImportRow,
    convert_rows,
    get_list,
    get_metadata,
    get_name,
    get_text,
    get_texts,
    read_json_rows,
)
from waylore.types.identity import document_id
from waylore.types.knowledge import Document, IndexedDocument, NewFact

PAPERS = ("academic_papers", "papers")
PROJECTS = ("github_projects", "projects", "repositories")
ARXIV_ID = ("arxiv_id", "arxivId", "id")
TITLE = ("title", "name", "full_name")
TEXT = ("abstract", "summary", "description", "text")
CITED = ("citations", "references", "cites", "papers")
CONCEPTS = ("concepts", "keywords", "topics")
AUTHORS = ("authors",)
URI = ("uri", "url", "html_url", "link")
USED = frozenset((*TITLE, *TEXT, *CITED, *CONCEPTS, *AUTHORS, *URI))
_ARXIV = re.compile(
    r"(?:(?:https?://)?(?:www\.)?arxiv\.org/(?:abs|pdf)/|arxiv:)?\s*"
    r"([a-z-]+(?:\.[a-z]{2})?/\d{7}|\d{4}\.\d{4,5})(?:v\d+)?(?:\.pdf)?",
    re.IGNORECASE,
)


def import_research(source: Source, template: Document) -> Iterator[IndexedDocument | Skipped]:
    """Yield a document for each paper and project."""
    titles: dict[str, str] = {}
    for row in _read_records(source):
        if isinstance(row, ImportRow) and (number := parse_arxiv_number(get_text(row.value, *ARXIV_ID))):
            titles[number] = get_text(row.value, *TITLE) or _to_arxiv_name(number)
    yield from convert_rows(_read_records(source), partial(_build_document, titles, template))


def is_finding(value: Mapping[str, Any]) -> bool:
    """Return whether an object is a paper or project, or has lists of them."""
    is_titled = any(name in value for name in (*TITLE, *ARXIV_ID))
    return any(name in value for name in (*PAPERS, *PROJECTS)) or (
        is_titled and any(name in value for name in ("abstract", "arxiv_id", "arxivId", "citations", "concepts"))
    )


def parse_arxiv_number(text: str) -> str:
    """Return the number in an arXiv id or address without its version, or an empty string."""
    match = _ARXIV.fullmatch(text)
    return match[1].lower() if match else ""


def _read_records(source: Source) -> Iterator[ImportRow | Skipped]:
    for row in read_json_rows(source):
        if isinstance(row, Skipped):
            yield row
        elif not isinstance(row.value, dict):
            yield Skipped(row.uri, "it is not a JSON object: a paper or project must be {…}")
        elif get_text(row.value, *TITLE) or not any(name in row.value for name in (*PAPERS, *PROJECTS)):
            yield row  # a record with a name cites its `papers`
        else:
            yield from (record for name in (*PAPERS, *PROJECTS) for record in _list_records(row, name))


def _list_records(row: ImportRow, name: str) -> Iterator[ImportRow | Skipped]:
    for number, value in enumerate(get_list(row.value, name), start=1):
        uri = f"{row.uri}#{name}={number}"
        yield ImportRow(uri, value) if isinstance(value, dict) else Skipped(uri, "it is not a JSON object")


def _build_document(titles: Mapping[str, str], template: Document, row: Fields) -> Iterable[IndexedDocument]:
    number = parse_arxiv_number(get_text(row, *ARXIV_ID))
    name = get_name({"title": get_text(row, *TITLE) or (number and _to_arxiv_name(number))}, "title")
    is_paper = bool(number or get_text(row, "abstract"))
    uri = get_text(row, *URI) or (f"https://arxiv.org/abs/{number}" if number else "")
    own = make_document(template, "paper" if is_paper else "project", name, title=name, uri=uri)
    document = replace(
        own,
        id=document_id(uri=uri) if uri else own.id,
        metadata=get_metadata(row, _get_used_fields(row), template.metadata),
    )
    subjects = [make_entity(name, "paper" if is_paper else "project", aliases=_get_aliases(name, number))]
    if number:  # papers in other files may cite it by number only
        subjects.append(make_entity(_to_arxiv_name(number), "paper"))
    part = ImportedPart(_build_text(name, number, row), _build_facts(name, row, titles, template))
    return [assemble_parts(document, [part], subjects)]


def _build_text(name: str, number: str, row: Fields) -> str:
    """Return the abstract, then the authors and identifiers, so that a keyword search finds them (S16)."""
    authors = ", ".join(_get_authors(row))
    identifiers = [
        _to_arxiv_name(number) if number else "",
        f"doi:{doi}" if (doi := get_text(row, "doi")) else "",
    ]
    lines = [f"Authors: {authors}" if authors else "", *(each for each in identifiers if each != name)]
    return "\n\n".join(filter(None, [get_text(row, *TEXT) or name, "\n".join(filter(None, lines))]))


def _get_authors(row: Fields) -> list[str]:
    """Return the names of the authors, which may be texts or objects."""
    rows = (author if isinstance(author, dict) else {"name": author} for author in get_list(row, *AUTHORS))
    return [name for author in rows if (name := get_text(author, "name"))]


def _build_facts(name: str, row: Fields, titles: Mapping[str, str], template: Document) -> tuple[NewFact, ...]:
    cited = (_get_cited_title(citation, titles) for citation in get_list(row, *CITED))
    objects = [
        *(("cites", other, "") for other in cited),
        *(("has_concept", concept, "concept") for concept in get_texts(row, *CONCEPTS)),
        *(("has_author", author, "person") for author in _get_authors(row)),
    ]
    return tuple(
        NewFact(name, predicate, get_name({predicate: other}, predicate), object_type=type_, source=template.source)
        for predicate, other, type_ in objects
        if other
    )


def _get_used_fields(row: Fields) -> set[str]:
    """Return the fields that are not metadata. If `citations` is a number, it is metadata."""
    return {name for name in USED if isinstance(row.get(name), str | list)}


def _get_cited_title(citation: Any, titles: Mapping[str, str]) -> str:
    """Return the title of a cited paper, or its arXiv name if the title is unknown."""
    row = citation if isinstance(citation, dict) else {"title": citation}
    number = parse_arxiv_number(get_text(row, *ARXIV_ID) or get_text(row, "title"))
    title = get_text(row, *TITLE)
    return titles.get(number) or (_to_arxiv_name(number) if number and parse_arxiv_number(title) else title)


def _to_arxiv_name(number: str) -> str:
    return f"arXiv:{number}"


def _get_aliases(name: str, number: str) -> tuple[str, ...]:
    """Return other names: the number of a paper, or the name of a project without its owner."""
    return (_to_arxiv_name(number), number) if number else (name.rpartition("/")[2],)
