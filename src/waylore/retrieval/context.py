"""Context: turns what was found into the text handed to a model, within a token budget.

Three styles: `passages` with citation marks; `graph` and `narrative` put a block of what the graph knows
before them. Parts are chosen by the sum of their lines' tokens, and the whole is counted at the end, so that
the budget holds for any tokenizer, also where the tokens of two texts do not add up. It shows what is in
`Found` and nothing else: it asks no store, calls no model and summarises nothing; what is long is cut at the
end of a sentence.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from waylore.config import Context
from waylore.protocols import Count
from waylore.text import normalise
from waylore.types.knowledge import Fact
from waylore.types.search import Found, Hit

Style = Literal["passages", "graph", "narrative"]

_SHORTEST = 80  # characters: less than this of a passage is not worth its heading
_BRIEF = 240  # characters of a description, a statement or a value
_USER = ("user", "i", "me")
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？।؟۔]+|(?<=\S)(?=\n\n)")


@dataclass(frozen=True, slots=True)
class Citation:
    """A mark in the text, such as [1], and the passage behind it."""

    mark: int
    passage_id: str
    document_id: str
    title: str = ""
    uri: str = ""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text for a model, how many tokens it takes, and the passage behind each citation mark."""

    text: str
    tokens: int
    sources: tuple[Citation, ...] = ()


def context(found: Found, *, style: Style, config: Context, count: Count) -> Rendered:
    """Write what was found in a style, in at most `config.max_tokens` tokens as `count` counts them."""
    block = _block(found, style, config, count)

    def page(shown: _Shown) -> str:
        return _page(block, shown, include_sources=config.include_sources)

    by_line = _by_line(count)
    shown = _passages(found.hits, lambda shown: by_line(page(shown)) <= config.max_tokens)
    while shown and count(page(shown)) > config.max_tokens:
        shown = shown[:-1]
    text = page(shown)
    return Rendered(text, count(text), tuple(citation for citation, _ in shown))


def in_order(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The same facts, so that a chain reads from its beginning: A depends_on B, then B uses C.

    For the rest they stay as they are: the chain that the first fact belongs to comes first.
    """
    onward, back = _places(f.subject_id for f in facts), _places(f.object_id for f in facts)
    ordered: dict[int, Fact] = {}
    for first in range(len(facts)):
        following = [] if first in ordered else [_beginning(facts, first, back, ordered)]
        while following:
            at = following.pop()
            ordered[at] = facts[at]
            following.extend(reversed(onward.pop(facts[at].object_id, ())))
    return tuple(ordered.values())


def _places(ids: Iterable[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for at, id_ in enumerate(ids):
        places[id_].append(at)
    return places


def _beginning(facts: Sequence[Fact], at: int, back: dict[str, list[int]], ordered: Collection[int]) -> int:
    """Where the chain begins that leads to a fact: at itself, where the chain is a ring."""
    chain = [at]
    while before := [n for n in back.get(facts[chain[-1]].subject_id, ()) if n not in ordered]:
        if before[0] in chain:
            return at
        chain.append(before[0])
    return chain[-1]


def _by_line(count: Count) -> Count:
    """Count each line once and remember it, instead of the whole again for everything that is added."""
    of_line = cache(count)
    return lambda text: sum(map(of_line, text.splitlines(keepends=True)))


# -- passages ------------------------------------------------------------------------------------------

_Shown: TypeAlias = tuple[tuple[Citation, str], ...]


def _passages(hits: Sequence[Hit], fits: Callable[[_Shown], bool]) -> _Shown:
    """The texts that fit, best first; the mark of a passage left out goes to the next."""
    shown: _Shown = ()
    for hit in hits:
        shown = _with_text(shown, _citation(hit, len(shown) + 1), _tidy(hit.passage.text), fits)
    return shown


def _with_text(shown: _Shown, citation: Citation, text: str, fits: Callable[[_Shown], bool]) -> _Shown:
    """What is shown, and as much of a text as fits: all of it, or up to the end of a sentence, or nothing."""

    def cut(end: int) -> _Shown:
        return (*shown, (citation, f"{text[:end]} …"))

    whole = (*shown, (citation, text)) if text else shown
    if fits(whole):
        return whole
    ends = [end for end in _sentence_ends(text) if end < len(text)]
    fitting = bisect_left(ends, True, key=lambda end: not fits(cut(end)))
    return cut(ends[fitting - 1]) if fitting else shown


def _citation(hit: Hit, mark: int) -> Citation:
    title = hit.passage.title or hit.document.title
    return Citation(mark, hit.passage.id, hit.document.id, title, hit.document.uri)


def _page(block: str, shown: _Shown, *, include_sources: bool) -> str:
    heading = "## Passages" if block and shown else ""
    passages = [f"{f'[{c.mark}] {_line(c.title)}'.rstrip()}\n{text}" for c, text in shown]
    sources = _sources([citation for citation, _ in shown]) if include_sources else ""
    return "\n\n".join(filter(None, [block, heading, *passages, sources]))


def _sources(citations: Sequence[Citation]) -> str:
    """A line for each address, with the marks of all passages from there."""
    marks: dict[str, list[str]] = defaultdict(list)
    for citation in citations:
        marks[_line(citation.uri)].append(f"[{citation.mark}]")
    lines = [f"{' '.join(of_uri)} {uri}" for uri, of_uri in marks.items() if uri]
    return "\n".join(["## Sources", *lines]) if lines else ""


# -- the block before them -----------------------------------------------------------------------------


class _Line(NamedTuple):
    """A line of a section: its place there, and what is written around and between its parts."""

    place: int
    before: str = ""
    between: str = "\n"
    after: str = ""


_ALONE = _Line(0)
_NAMES = _Line(0, "Query entities: [", ", ", "]")
_RELATED = _Line(1, "Related: ", ", ")
_DESCRIPTION = _Line(2, "Description: ")


class _Part(NamedTuple):
    """What is shown whole or not at all, and where: in which section, under its heading, on which line."""

    section: int
    heading: str
    line: _Line
    text: str = ""


def _block(found: Found, style: Style, config: Context, count: Count) -> str:
    """As many parts as fit, the first to come served first, each written where it belongs."""
    limit = min(config.graph_tokens, config.max_tokens)
    title = "## Knowledge Graph Context\n" if style == "graph" else ""
    by_line = _by_line(count)
    shown: list[_Part] = []
    for part in dict.fromkeys(_parts(found, style, config)):
        if by_line(_sections([*shown, part], title)) <= limit:
            shown.append(part)
    while shown and count(_sections(shown, title)) > limit:
        shown.pop()
    return _sections(shown, title)


def _parts(found: Found, style: Style, config: Context) -> Iterator[_Part]:
    if style == "graph":
        yield from _graph(found, include_relationships=config.include_relationships)
    elif style == "narrative":
        yield from _narrative(found)


def _sections(parts: Sequence[_Part], title: str) -> str:
    sections: list[str] = []
    in_place = sorted(parts, key=lambda part: (part.section, part.line))
    for heading, of_section in groupby(in_place, key=lambda part: part[:2]):
        lines = [heading[1]]
        for line, of_line in groupby(of_section, key=lambda part: part.line):
            text = line.between.join(part.text for part in of_line if part.text)
            lines.append(f"{line.before}{text}{line.after}" if text else "")
        sections.append("\n".join(filter(None, lines)))
    return title + "\n\n".join(sections) if sections else ""


def _graph(found: Found, *, include_relationships: bool) -> Iterator[_Part]:
    """What the question names, how it is joined, then what it is: the last, a passage will say as well."""
    entities = {entity.id: entity for entity in found.entities}
    sections = {id_: (at, _titled(e.name, e.type)) for at, (id_, e) in enumerate(entities.items(), 1)}
    yield from (_Part(0, "", _NAMES, _line(entity.name)) for entity in entities.values())
    yield from (_Part(*section, _ALONE) for section in sections.values())
    for fact in in_order(_distinct(found.facts)):
        if include_relationships:
            yield _Part(len(sections) + 1, "### Relevant Relationships", _ALONE, _relationship(fact))
        for end in fact.ends if fact.object_id else ():
            if end in sections:
                yield _Part(*sections[end], _RELATED, _related(fact, end))
    yield from (_Part(*sections[e.id], _DESCRIPTION, _brief(e.description)) for e in entities.values())


def _narrative(found: Found) -> Iterator[_Part]:
    """Facts under their subjects, the user's own first, then what the question names, then the rest."""
    facts = in_order(_distinct(found.facts))
    asked = {entity.id: entity.name for entity in found.entities}
    names = asked | {fact.subject_id: fact.subject for fact in facts} | asked
    places = {id_: at for at, id_ in enumerate(names, 1)}
    for fact in facts:
        name = names[fact.subject_id]
        section = places[fact.subject_id], f"### CONTEXT: {_line(name)}"
        if normalise(name) in _USER:
            section = 0, "### USER CONTEXT"
        yield _Part(*section, _ALONE, f"- {_line(fact.predicate)}: {_brief(fact.object)}")


def _distinct(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Each fact once, as it was first stated."""
    first: dict[str, Fact] = {}
    for fact in facts:
        first.setdefault(fact.id, fact)
    return tuple(first.values())


def _titled(name: str, type_: str) -> str:
    return f"### {_line(name)} ({_line(type_)})" if type_.strip() else f"### {_line(name)}"


def _related(fact: Fact, entity_id: str) -> str:
    if fact.subject_id == entity_id:
        return f"{_line(fact.object)} ({_line(fact.predicate)}, weight: {fact.weight:g})"
    return f"{_line(fact.subject)} (←{_line(fact.predicate)})"


def _relationship(fact: Fact) -> str:
    statement = f" -- {_brief(fact.statement)}" if fact.statement.strip() else ""
    ends = f"{_line(fact.subject)} -> {_brief(fact.object)}"
    return f'- {ends}: "{_line(fact.predicate)}"{statement} (strength: {fact.weight:g})'


# -- texts ---------------------------------------------------------------------------------------------


def _line(text: str) -> str:
    return " ".join(text.split())


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def _sentence_ends(text: str) -> list[int]:
    """Where a text may be cut so that enough of it is left."""
    return [end.end() for end in _SENTENCE_END.finditer(text) if end.end() >= _SHORTEST]


def _brief(text: str) -> str:
    """A text on one line, cut at the end of a sentence, else of a word, where it is long."""
    line = _line(text)
    if len(line) <= _BRIEF:
        return line
    ends = [end for end in _sentence_ends(line[: _BRIEF + 1]) if end <= _BRIEF]
    end = ends[-1] if ends else line.rfind(" ", 0, _BRIEF)
    return f"{line[: end if end > 0 else _BRIEF]} …"
