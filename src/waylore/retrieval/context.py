"""Write a search result as text for a model, within a token budget.

There are three layouts: `passages` has passages with citation marks; `graph` and `narrative` put a block of
entities and facts before them. If the question asks for a set, the text begins with it, in at most a third of the
budget. Parts are chosen by the sum of the tokens of their lines. The whole text is
counted at the end, so the budget holds for any tokenizer, also if the tokens of two texts do not add up. The
text contains only parts of the `SearchResult`, made neutral, with each passage in a fence (`waylore.fence`).
This module reads no store, calls no model and does not summarise; long texts are cut at the end of a sentence.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from waylore.config import ContextConfig
from waylore.fence import RECALLED_NOTE, Fence, neutralize, shield, to_line, to_title
from waylore.protocols import CountTokens
from waylore.text import normalise
from waylore.types.knowledge import Fact
from waylore.types.search import Hit, SearchResult, SetAnswer

Layout = Literal["passages", "graph", "narrative"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

MIN_HITS, MAX_HITS, TOKENS_PER_HIT = 10, 40, 100  # how many hits fill a budget
SET_SHARE = 3  # a set takes at most this fraction of the budget: one third
_MIN_CUT_CHARACTERS = 80  # a shorter part of a passage is left out
_MAX_SHORT_CHARACTERS = 240  # of a description, a statement or a value
_USER_NAMES = ("user", "i", "me")
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？।؟۔]+|(?<=\S)(?=\n\n)")


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
    block = _join(opening, _fit_graph_block(result, layout, config, count, opening))

    def format_page(cited: _CitedTexts) -> str:
        return _format_page(block, cited, include_sources=config.include_sources)

    by_line = _count_by_line(count)
    cited = _fit_passages(result.hits, fence, lambda cited: by_line(format_page(cited)) <= config.max_tokens)
    while cited and count(format_page(cited)) > config.max_tokens:
        cited = cited[:-1]
    text = format_page(cited)
    removed = _count_removed(result.hits, [citation for citation, _ in cited])
    return RenderedContext(text, count(text), tuple(citation for citation, _ in cited), removed)


def order_facts(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts so that a chain reads from its beginning: A depends_on B, then B uses C.

    Otherwise the order stays: the chain of the first fact comes first.
    """
    onward, back = _map_places(f.subject_id for f in facts), _map_places(f.object_id for f in facts)
    ordered: dict[int, Fact] = {}
    for first in range(len(facts)):
        following = [] if first in ordered else [_find_beginning(facts, first, back, ordered)]
        while following:
            at = following.pop()
            ordered[at] = facts[at]
            following.extend(reversed(onward.pop(facts[at].object_id, ())))
    return tuple(ordered.values())


def _map_places(ids: Iterable[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for at, id_ in enumerate(ids):
        places[id_].append(at)
    return places


def _find_beginning(facts: Sequence[Fact], at: int, back: dict[str, list[int]], ordered: Collection[int]) -> int:
    """Return where the chain that leads to a fact begins, or the fact itself if the chain is a ring."""
    chain = [at]
    while before := [n for n in back.get(facts[chain[-1]].subject_id, ()) if n not in ordered]:
        if before[0] in chain:
            return at
        chain.append(before[0])
    return chain[-1]


def _fit_set(answer: SetAnswer, config: ContextConfig, count: CountTokens, fence: Fence) -> str:
    """Return the summary of a set and as many of its lines as fit into their share of the budget."""

    def write(number: int) -> str:
        left_out = len(answer.lines) - number
        note = f" ({left_out} {'lines do' if left_out > 1 else 'line does'} not fit here)" if left_out else ""
        lines = fence.enclose("\n".join(answer.lines[:number])) if number else ""
        return "\n".join(filter(None, [f"## From the graph\n{answer.summary}{note}", lines]))

    def fits(number: int) -> bool:
        return count(_format_page(write(number), (), include_sources=False)) <= config.max_tokens // SET_SHARE

    number = bisect_left(range(1, len(answer.lines) + 1), True, key=lambda number: not fits(number))
    while number and not fits(number):
        number -= 1
    return write(number) if fits(number) else ""


def _join(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _count_by_line(count: CountTokens) -> CountTokens:
    """Return a counter that caches the tokens of each line, so that a growing text is not counted again."""
    count_line = cache(count)
    return lambda text: sum(map(count_line, text.splitlines(keepends=True)))


# -- passages ------------------------------------------------------------------------------------------

_CitedTexts: TypeAlias = tuple[tuple[Citation, str], ...]


def _fit_passages(hits: Sequence[Hit], fence: Fence, fits: Callable[[_CitedTexts], bool]) -> _CitedTexts:
    """Return the fenced texts that fit, best first. The mark of a passage that does not fit goes to the next one."""
    cited: _CitedTexts = ()
    for hit in hits:
        citation, text = _make_citation(hit, len(cited) + 1), _strip_lines(shield(hit.text_with_end))
        cited = _add_text(cited, citation, text, fence, fits)
    return cited


def _add_text(
    cited: _CitedTexts, citation: Citation, text: str, fence: Fence, fits: Callable[[_CitedTexts], bool]
) -> _CitedTexts:
    """Add as much of a text as fits: all of it, or up to the end of a sentence, or nothing."""

    def add_part(end: int) -> _CitedTexts:
        return (*cited, (citation, fence.enclose(f"{text[:end]} …")))

    whole = (*cited, (citation, fence.enclose(text))) if text else cited
    if fits(whole):
        return whole
    ends = [end for end in _find_sentence_ends(text) if end < len(text)]
    count = bisect_left(ends, True, key=lambda end: not fits(add_part(end)))
    return add_part(ends[count - 1]) if count else cited


def _make_citation(hit: Hit, mark: int) -> Citation:
    return Citation(mark, hit.passage.id, hit.document.id, hit.heading, hit.document.uri)


def _format_page(block: str, cited: _CitedTexts, *, include_sources: bool) -> str:
    note = RECALLED_NOTE if block or cited else ""
    heading = "## Passages" if block and cited else ""
    passages = [f"{f'[{c.mark}] {to_title(c.title)}'.rstrip()}\n{text}" for c, text in cited]
    sources = _format_sources([citation for citation, _ in cited]) if include_sources else ""
    return _join(note, block, heading, *passages, sources)


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


# -- the block before the passages -----------------------------------------------------------------------------


class _Line(NamedTuple):
    """A line of a section: its place, and the text around and between its parts."""

    place: int
    before: str = ""
    between: str = "\n"
    after: str = ""


_PLAIN = _Line(0)
_NAMES = _Line(0, "Query entities: [", ", ", "]")
_RELATED = _Line(1, "Related: ", ", ")
_DESCRIPTION = _Line(2, "Description: ")


class _Part(NamedTuple):
    """A part that is shown as a whole or not at all, with its section, heading and line."""

    section: int
    heading: str
    line: _Line
    text: str = ""


def _fit_graph_block(
    result: SearchResult, layout: Layout, config: ContextConfig, count: CountTokens, opening: str
) -> str:
    """Add parts in order of priority until the budget is used, then print them by section.

    The note and the opening before it count against the whole text, not against the budget of the block.
    """
    title = "## Knowledge Graph Context\n" if layout == "graph" else ""
    by_line = _count_by_line(count)
    shown: list[_Part] = []

    def fits(parts: Sequence[_Part], count: CountTokens) -> bool:
        block = _format_sections(parts, title)
        page = _format_page(_join(opening, block), (), include_sources=False)
        return count(block) <= config.graph_tokens and count(page) <= config.max_tokens

    for part in dict.fromkeys(_list_parts(result, layout, config)):
        if fits([*shown, part], by_line):
            shown.append(part)
    while shown and not fits(shown, count):
        shown.pop()
    return _format_sections(shown, title)


def _list_parts(result: SearchResult, layout: Layout, config: ContextConfig) -> Iterator[_Part]:
    if layout == "graph":
        yield from _list_graph_parts(result, include_relationships=config.include_relationships)
    elif layout == "narrative":
        yield from _list_narrative_parts(result)


def _format_sections(parts: Sequence[_Part], title: str) -> str:
    sections: list[str] = []
    in_place = sorted(parts, key=lambda part: (part.section, part.line))
    for heading, of_section in groupby(in_place, key=lambda part: part[:2]):
        lines = [heading[1]]
        for line, of_line in groupby(of_section, key=lambda part: part.line):
            text = line.between.join(part.text for part in of_line if part.text)
            lines.append(f"{line.before}{text}{line.after}" if text else "")
        sections.append("\n".join(filter(None, lines)))
    return title + "\n\n".join(sections) if sections else ""


def _list_graph_parts(result: SearchResult, *, include_relationships: bool) -> Iterator[_Part]:
    """Yield the named entities, their facts, then their descriptions, which a passage is likely to repeat."""
    entities = {entity.id: entity for entity in result.entities}
    sections = {id_: (at, _format_heading(e.name, e.type)) for at, (id_, e) in enumerate(entities.items(), 1)}
    yield from (_Part(0, "", _NAMES, to_line(entity.name)) for entity in entities.values())
    yield from (_Part(*section, _PLAIN) for section in sections.values())
    for fact in order_facts(_drop_repeated_facts(result.facts)):
        if include_relationships:
            yield _Part(len(sections) + 1, "### Relevant Relationships", _PLAIN, _format_relationship(fact))
        for end in fact.ends if fact.object_id else ():
            if end in sections:
                yield _Part(*sections[end], _RELATED, _format_related(fact, end))
    yield from (_Part(*sections[e.id], _DESCRIPTION, _shorten(e.description)) for e in entities.values())


def _list_narrative_parts(result: SearchResult) -> Iterator[_Part]:
    """Yield facts under their subjects: the user first, then the entities of the question, then the rest."""
    facts = order_facts(_drop_repeated_facts(result.facts))
    named = {entity.id: entity.name for entity in result.entities}
    names = named | {fact.subject_id: fact.subject for fact in facts} | named
    places = {id_: at for at, id_ in enumerate(names, 1)}
    for fact in facts:
        name = names[fact.subject_id]
        section = places[fact.subject_id], f"### CONTEXT: {to_line(name)}"
        if normalise(name) in _USER_NAMES:
            section = 0, "### USER CONTEXT"
        yield _Part(*section, _PLAIN, f"- {to_line(fact.predicate)}: {_shorten(fact.object)}")


def _drop_repeated_facts(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return each fact once, as it was first stated."""
    first: dict[str, Fact] = {}
    for fact in facts:
        first.setdefault(fact.id, fact)
    return tuple(first.values())


def _format_heading(name: str, type_: str) -> str:
    return f"### {to_line(name)} ({to_line(type_)})" if type_.strip() else f"### {to_line(name)}"


def _format_related(fact: Fact, entity_id: str) -> str:
    if fact.subject_id == entity_id:
        return f"{to_line(fact.object)} ({to_line(fact.predicate)}, weight: {fact.weight:g})"
    return f"{to_line(fact.subject)} (←{to_line(fact.predicate)})"


def _format_relationship(fact: Fact) -> str:
    statement = f" -- {_shorten(fact.statement)}" if fact.statement.strip() else ""
    ends = f"{to_line(fact.subject)} -> {_shorten(fact.object)}"
    return f'- {ends}: "{to_line(fact.predicate)}"{statement} (strength: {fact.weight:g})'


# -- texts ---------------------------------------------------------------------------------------------


def _strip_lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def _find_sentence_ends(text: str) -> list[int]:
    """Return where a text may be cut so that at least `_MIN_CUT_CHARACTERS` of it are left."""
    return [end.end() for end in _SENTENCE_END.finditer(text) if end.end() >= _MIN_CUT_CHARACTERS]


def _shorten(text: str) -> str:
    """Return a text on one line. If it is long, cut it at the end of a sentence, else of a word."""
    line = to_line(text)
    if len(line) <= _MAX_SHORT_CHARACTERS:
        return line
    ends = [end for end in _find_sentence_ends(line[: _MAX_SHORT_CHARACTERS + 1]) if end <= _MAX_SHORT_CHARACTERS]
    end = ends[-1] if ends else line.rfind(" ", 0, _MAX_SHORT_CHARACTERS)
    return f"{line[: end if end > 0 else _MAX_SHORT_CHARACTERS]} …"
