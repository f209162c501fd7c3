"""Build the answers of `search` and `fetch` in the shapes that deep-research clients expect.

These clients read the JSON in the text of an answer and cite the address of each document. A result is a document
with its best passage. They hand the texts to a model one by one, so each of them is fenced.
"""

from itertools import islice

from waylore.fence import Fence, shield, to_line, to_title
from waylore.surfaces.tools.answers import TITLE_TOKENS, StoredText, ToolAnswer, make_read_answer
from waylore.surfaces.tools.fit import shorten
from waylore.surfaces.wire import Wire
from waylore.types.knowledge import Document
from waylore.types.search import Hit, SearchResult

MAX_ADDRESS_LENGTH = 500


class ResearchResult(Wire):
    """A document and the text of its best passage."""

    id: str
    title: str
    url: str
    text: str


class ResearchResults(ToolAnswer):
    """Documents, best first."""

    results: list[ResearchResult]


class FetchedPage(ToolAnswer):
    """A document; `left_out` in its metadata reports what did not fit."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


def make_results(result: SearchResult, tokens: int, fence: Fence, documents: int) -> ResearchResults:
    """Return the first documents of a search, each with its best passage."""
    best: dict[str, Hit] = {}
    for hit in result.hits:
        best.setdefault(hit.document.id, hit)
    return ResearchResults(results=[_make_result(hit, tokens, fence) for hit in islice(best.values(), documents)])


def make_page(stored: StoredText, tokens: int, fence: Fence, length: int) -> FetchedPage:
    """Return the first `length` characters of a document."""
    shown = make_read_answer(stored, tokens, fence, 0, length)
    metadata = {key: str(value) for key, value in shown.metadata.items()}
    return FetchedPage(
        id=shown.passage_id or shown.document_id,
        title=_get_title(stored.document),
        text=shown.text,
        url=get_url(stored.document),
        metadata=metadata | ({"left_out": shown.left_out} if shown.left_out else {}),
    )


def get_url(document: Document) -> str:
    """Return the address of a document if it is a URL, else the address of its MCP resource."""
    address = to_line(document.uri)
    has_url = "://" in address and len(address) <= MAX_ADDRESS_LENGTH
    return address if has_url else f"waylore://document/{document.id}"


def _make_result(hit: Hit, tokens: int, fence: Fence) -> ResearchResult:
    text = fence.enclose(shorten(shield(hit.passage.text), tokens // 2))
    return ResearchResult(id=hit.document.id, title=_get_title(hit.document), url=get_url(hit.document), text=text)


def _get_title(document: Document) -> str:
    return shorten(to_title(document.title or document.uri) or document.id, TITLE_TOKENS)
