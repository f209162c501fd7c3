"""Imports research findings (S18): papers with arXiv ids, abstracts, citations and concepts, and projects.

A file is one object with lists of papers and projects, a list of them, or a line for each. A paper is a
document with its title and its abstract; what it cites, its concepts and its authors are facts that the
abstract supports. The file is read twice, because a citation by arXiv id is told by the title of the paper that
has it. Nothing is fetched.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from waylore.indexing.blocks import Refusal, Source
from waylore.indexing.importers.parts import Part, assembled, entity, framed
from waylore.indexing.importers.rows import (
    Fields,
    Row,
    each,
    json_rows,
    listed,
    name_in,
    rest_of,
    said,
    texts_in,
)
from waylore.types.identity import document_id
from waylore.types.knowledge import Claim, Contribution, Document

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


def findings(source: Source, frame: Document) -> Iterator[Contribution | Refusal]:
    """Each paper and each project as a document."""
    titles: dict[str, str] = {}
    for row in _records(source):
        if isinstance(row, Row) and (number := arxiv_number(said(row.value, *ARXIV_ID))):
            titles[number] = said(row.value, *TITLE) or _cited_as(number)
    yield from each(_records(source), partial(_finding, titles, frame))


def is_finding(value: Mapping[str, Any]) -> bool:
    """Whether an object is what is imported here: lists of papers or projects, or one of them."""
    is_titled = any(name in value for name in (*TITLE, *ARXIV_ID))
    return any(name in value for name in (*PAPERS, *PROJECTS)) or (
        is_titled
        and any(name in value for name in ("abstract", "arxiv_id", "arxivId", "citations", "concepts"))
    )


def arxiv_number(text: str) -> str:
    """The number in an arXiv id or address, less its version; nothing where there is none."""
    found = _ARXIV.fullmatch(text)
    return found[1].lower() if found else ""


def _records(source: Source) -> Iterator[Row | Refusal]:
    for row in json_rows(source):
        if isinstance(row, Refusal):
            yield row
        elif not isinstance(row.value, dict):
            yield Refusal(row.uri, "it is not a JSON object: a paper or project must be {…}")
        elif said(row.value, *TITLE) or not any(name in row.value for name in (*PAPERS, *PROJECTS)):
            yield row  # the `papers` of something with a name are what it cites
        else:
            yield from (found for name in (*PAPERS, *PROJECTS) for found in _listed(row, name))


def _listed(row: Row, name: str) -> Iterator[Row | Refusal]:
    for number, value in enumerate(listed(row.value, name), start=1):
        uri = f"{row.uri}#{name}={number}"
        yield Row(uri, value) if isinstance(value, dict) else Refusal(uri, "it is not a JSON object")


def _finding(titles: Mapping[str, str], frame: Document, row: Fields) -> Iterable[Contribution]:
    number = arxiv_number(said(row, *ARXIV_ID))
    name = name_in({"title": said(row, *TITLE) or (number and _cited_as(number))}, "title")
    is_paper = bool(number or said(row, "abstract"))
    uri = said(row, *URI) or (f"https://arxiv.org/abs/{number}" if number else "")
    own = framed(frame, "paper" if is_paper else "project", name, title=name, uri=uri)
    document = replace(
        own,
        id=document_id(uri=uri) if uri else own.id,
        metadata=rest_of(row, _used(row), frame.metadata),
    )
    about = [entity(name, "paper" if is_paper else "project", aliases=_aliases(name, number))]
    if number:  # papers that cite it by its number, in files that do not have its title, lead here too
        about.append(entity(_cited_as(number), "paper"))
    return [assembled(document, [Part(said(row, *TEXT) or name, _claims(name, row, titles, frame))], about)]


def _claims(name: str, row: Fields, titles: Mapping[str, str], frame: Document) -> tuple[Claim, ...]:
    cited = (_cited(citation, titles) for citation in listed(row, *CITED))
    authors = (
        said(a, "name") if isinstance(a, dict) else said({"name": a}, "name") for a in listed(row, *AUTHORS)
    )
    told = [
        *(("cites", other, "") for other in cited),
        *(("has_concept", concept, "concept") for concept in texts_in(row, *CONCEPTS)),
        *(("has_author", author, "person") for author in authors),
    ]
    return tuple(
        Claim(name, predicate, name_in({predicate: other}, predicate), object_type=type_, source=frame.source)
        for predicate, other, type_ in told
        if other
    )


def _used(row: Fields) -> set[str]:
    """What of a row is told otherwise; `citations` may be a count, which is not."""
    return {name for name in USED if isinstance(row.get(name), str | list)}


def _cited(citation: Any, titles: Mapping[str, str]) -> str:
    """The title of what is cited, by its number where the title is not known."""
    row = citation if isinstance(citation, dict) else {"title": citation}
    number = arxiv_number(said(row, *ARXIV_ID) or said(row, "title"))
    title = said(row, *TITLE)
    return titles.get(number) or (_cited_as(number) if number and arxiv_number(title) else title)


def _cited_as(number: str) -> str:
    return f"arXiv:{number}"


def _aliases(name: str, number: str) -> tuple[str, ...]:
    """A paper goes by its number too, a project by its name without its owner's."""
    return (_cited_as(number), number) if number else (name.rpartition("/")[2],)
