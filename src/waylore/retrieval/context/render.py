"""Write a search result as text for a model, within a token budget.

There are three layouts: `passages` has passages with citation marks; `graph` and `narrative` put a block of entities
and facts before them (`block`). If the question asks for a set, the text begins with it, in at most a third of the
budget. Up to 500 tokens, sentences are chosen instead of whole passages (`sentences`). The layout `passages` leaves out
the list of sources and titles that the text has, up to 1,000 tokens; the result has both.

Parts are chosen by the sum of the tokens of their lines. The whole text is counted at the end, so the budget holds for
any tokenizer, also if the tokens of two texts do not add up. The text contains only parts of the `SearchResult`, made
neutral, with the passages in a fence (`waylore.fence`). This package reads no store, calls no model and does not
summarise; long texts are cut at the end of a sentence.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, TypeAlias

from waylore.config import ContextConfig
from waylore.fence import RECALLED_NOTE, Fence, neutralize, shield, to_line, to_title
from waylore.protocols import CountTokens
from waylore.retrieval.context.block import FitsPage, Layout, count_by_line, fit_block
from waylore.retrieval.context.sentences import Part, find_sentence_ends, join_parts, order_parts
from waylore.text import count_occurrences, normalise
from waylore.types.search import Hit, SearchResult, SetAnswer

MIN_HITS, MAX_HITS, TOKENS_PER_HIT = 10, 40, 100  # how many hits fill a budget
SET_SHARE = 3  # a set takes at most this fraction of the budget: one third
PRUNED_TOKENS = 500  # up to this budget, sentences are chosen instead of whole passages
SHORT_TOKENS = 1_000  # up to this budget, nothing is said twice
MAX_MISSES = 12  # sentences in a row that do not fit, before the budget counts as used


@dataclass(frozen=True, slots=True)
class Citation:
    """A mark in the text, such as [1], and its passage."""

    mark: int
    passage_id: str
    document_id: str
    title: str = ""
    uri: str = ""


@dataclass(frozen=True, slots=True)
class RenderedContext:
    """The text for a model, its length in tokens, the passage of each citation mark, and characters left out.

    `removed` is the number of control and invisible characters that the shown passages have in the store.
    """

    text: str
    tokens: int
    sources: tuple[Citation, ...] = ()
    removed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the context as plain values, as every surface writes it in JSON."""
        sources = [asdict(citation) for citation in self.sources]
        return {"text": self.text, "tokens": self.tokens, "sources": sources, "removed": self.removed}


def count_hits(max_tokens: int) -> int:
    """Return how many hits to search for, so that their passages fill a budget."""
    return min(max(max_tokens // TOKENS_PER_HIT, MIN_HITS), MAX_HITS)


def render_context(
    result: SearchResult, *, layout: Layout, config: ContextConfig, count: CountTokens, fence: Fence
) -> RenderedContext:
    """Return the result in a layout, in at most `config.max_tokens` tokens as `count` counts them.

    The note and the marks of the fence count too.
    """
    opening = _fit_set(result.set_answer, config, count, fence) if result.set_answer else ""
    fits_page = _make_page_check(opening, config.max_tokens, fence)
    block = _join(opening, fit_block(result, layout, config, count, fits_page))
    is_pruned = config.max_tokens <= PRUNED_TOKENS
    is_short = is_pruned or (layout == "passages" and config.max_tokens <= SHORT_TOKENS)

    def format_page(cited: _CitedTexts) -> str:
        shown = [(drop_title(citation, text) if is_short else citation, text) for citation, text in cited]
        return _format_page(block, shown, fence, include_sources=config.include_sources and not is_short)

    def fits(cited: _CitedTexts) -> bool:
        return by_line(format_page(cited)) <= config.max_tokens

    by_line, drop_title = count_by_line(count), cache(_drop_title)  # most passages stay the same from check to check
    cited = _fit_sentences(result, fits) if is_pruned else _fit_passages(result.hits, fits)
    while cited and count(format_page(cited)) > config.max_tokens:
        cited = cited[:-1]
    text = format_page(cited)
    removed = _count_removed(result.hits, [citation for citation, _ in cited])
    return RenderedContext(text, count(text), tuple(citation for citation, _ in cited), removed)


def _make_page_check(opening: str, max_tokens: int, fence: Fence) -> FitsPage:
    """Return a function that tells whether a page without passages fits, if a block follows the opening."""

    def fits(block: str, count: CountTokens) -> bool:
        return count(_format_page(_join(opening, block), (), fence, include_sources=False)) <= max_tokens

    return fits


def _fit_set(answer: SetAnswer, config: ContextConfig, count: CountTokens, fence: Fence) -> str:
    """Return the summary of a set and as many of its lines as fit into their share of the budget."""

    def write(number: int) -> str:
        left_out = len(answer.lines) - number
        note = f" ({left_out} {'lines do' if left_out > 1 else 'line does'} not fit here)" if left_out else ""
        lines = fence.enclose("\n".join(answer.lines[:number])) if number else ""
        return "\n".join(filter(None, [f"## From the graph\n{answer.summary}{note}", lines]))

    def fits(number: int) -> bool:
        return fits_page(write(number), count)

    fits_page = _make_page_check("", config.max_tokens // SET_SHARE, fence)
    number = bisect_left(range(1, len(answer.lines) + 1), True, key=lambda number: not fits(number))
    while number and not fits(number):
        number -= 1
    return write(number) if fits(number) else ""


def _join(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


# -- passages ------------------------------------------------------------------------------------------

_CitedTexts: TypeAlias = tuple[tuple[Citation, str], ...]


def _fit_sentences(result: SearchResult, fits: Callable[[_CitedTexts], bool]) -> _CitedTexts:
    """Return the sentences that fit, chosen in the order of `order_parts`, by passage."""
    texts = [_strip_lines(shield(hit.text)) for hit in result.hits]
    chosen: dict[int, list[Part]] = {}
    misses = 0
    for part in order_parts(result.query, texts, _list_names(result)):
        more = {**chosen, part.passage: [*chosen.get(part.passage, ()), part]}
        if fits(_cite_parts(result.hits, texts, more)):
            chosen, misses = more, 0
        elif (misses := misses + 1) == MAX_MISSES:
            break
    return _cite_parts(result.hits, texts, chosen)


def _list_names(result: SearchResult) -> list[list[str]]:
    """Return, for each hit, the names of the question and of the path that led to it."""
    asked = [entity.name for entity in result.entities]
    paths = [hit.path.facts if hit.path else () for hit in result.hits]
    return [[*asked, *(name for fact in facts for name in (fact.subject, fact.object))] for facts in paths]


def _cite_parts(hits: Sequence[Hit], texts: Sequence[str], chosen: Mapping[int, Sequence[Part]]) -> _CitedTexts:
    """Return the chosen parts of each passage with its mark, and what holds instead if it is superseded."""
    cited: list[tuple[Citation, str]] = []
    for number in sorted(chosen):
        hit = hits[number]
        end = shield(hit.text_with_end[len(hit.text) :])
        text = f"{join_parts(texts[number], chosen[number])}{end}"
        cited.append((_make_citation(hit, len(cited) + 1), text))
    return tuple(cited)


def _fit_passages(hits: Sequence[Hit], fits: Callable[[_CitedTexts], bool]) -> _CitedTexts:
    """Return the texts that fit, best first. The mark of a passage that does not fit goes to the next one."""
    cited: _CitedTexts = ()
    for hit in hits:
        citation, text = _make_citation(hit, len(cited) + 1), _strip_lines(shield(hit.text_with_end))
        cited = _add_text(cited, citation, text, fits)
    return cited


def _add_text(cited: _CitedTexts, citation: Citation, text: str, fits: Callable[[_CitedTexts], bool]) -> _CitedTexts:
    """Add as much of a text as fits: all of it, or up to the end of a sentence, or nothing."""

    def add_part(end: int) -> _CitedTexts:
        return (*cited, (citation, f"{text[:end]} …"))

    whole = (*cited, (citation, text)) if text else cited
    if fits(whole):
        return whole
    ends = [end for end in find_sentence_ends(text) if end < len(text)]
    count = bisect_left(ends, True, key=lambda end: not fits(add_part(end)))
    return add_part(ends[count - 1]) if count else cited


def _make_citation(hit: Hit, mark: int) -> Citation:
    return Citation(mark, hit.passage.id, hit.document.id, hit.heading, hit.document.uri)


def _drop_title(citation: Citation, text: str) -> Citation:
    """Return a citation without its title if the text has it."""
    title = normalise(citation.title)
    return replace(citation, title="") if title and count_occurrences(title, normalise(text)) else citation


def _format_page(block: str, cited: Sequence[tuple[Citation, str]], fence: Fence, *, include_sources: bool) -> str:
    """Return the note, the block, all passages in one fence, and the sources.

    Texts are shielded, so no line of theirs begins like a mark of ours.
    """
    note = RECALLED_NOTE if block or cited else ""
    heading = "## Passages" if block and cited else ""
    passages = [f"{f'[{c.mark}] {to_title(c.title)}'.rstrip()}\n{text}" for c, text in cited]
    sources = _format_sources([citation for citation, _ in cited]) if include_sources else ""
    return _join(note, block, heading, fence.wrap(_join(*passages)), sources)


def _count_removed(hits: Iterable[Hit], cited: Iterable[Citation]) -> int:
    """Return how many characters of the cited passages and their titles were removed."""
    texts = {hit.passage.id: hit.passage.text for hit in hits}
    return sum(neutralize(text).removed for c in cited for text in (c.title, texts[c.passage_id]))


def _format_sources(citations: Sequence[Citation]) -> str:
    """Return a line for each address, with the marks of all passages from there."""
    marks: dict[str, list[str]] = defaultdict(list)
    for citation in citations:
        marks[to_line(citation.uri)].append(f"[{citation.mark}]")
    lines = [f"{' '.join(of_uri)} {uri}" for uri, of_uri in marks.items() if uri]
    return "\n".join(["## Sources", *lines]) if lines else ""


def _strip_lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")
