"""What deep-research clients expect of `search` and `fetch`: their shapes, not ours, with an address to cite.

They read the JSON that stands in the text of an answer. A result is a document; its text is its best passage.
"""

from itertools import islice

from waylore.surfaces.tools.answers import TITLE, Answer, Said, read
from waylore.surfaces.tools.fit import cut
from waylore.surfaces.wire import Wire
from waylore.types.knowledge import Document
from waylore.types.search import Found, Hit

LONGEST_ADDRESS = 500


class Result(Wire):
    """A document that bears on the question, with the passage that says so."""

    id: str
    title: str
    url: str
    text: str


class Results(Answer):
    """Documents, best first."""

    results: list[Result]


class Page(Answer):
    """A document; what did not fit is told in its metadata."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


def results(found: Found, tokens: int, documents: int) -> Results:
    """The first so many documents, each with its best passage."""
    best: dict[str, Hit] = {}
    for hit in found.hits:
        best.setdefault(hit.document.id, hit)
    return Results(results=[_result(hit, tokens) for hit in islice(best.values(), documents)])


def page(what: Said, tokens: int, length: int) -> Page:
    """A document from its beginning."""
    shown = read(what, tokens, 0, length)
    known = {key: str(value) for key, value in shown.metadata.items()}
    return Page(
        id=shown.passage_id or shown.document_id,
        title=_title(what.document),
        text=shown.text,
        url=url_of(what.document),
        metadata=known | ({"left_out": shown.left_out} if shown.left_out else {}),
    )


def url_of(document: Document) -> str:
    """Where a document can be looked at: its own address, if that is one, or ours."""
    has_own = "://" in document.uri and len(document.uri) <= LONGEST_ADDRESS
    return document.uri if has_own else f"waylore://document/{document.id}"


def _result(hit: Hit, tokens: int) -> Result:
    text = cut(hit.passage.text, tokens // 2)
    return Result(id=hit.document.id, title=_title(hit.document), url=url_of(hit.document), text=text)


def _title(document: Document) -> str:
    return cut(document.title or document.uri or document.id, TITLE)
