"""Write the block of entities and facts before the passages: the layouts `graph` (S9) and `narrative` (S13)."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias, get_args

from waylore.config import ContextConfig
from waylore.fence import to_line
from waylore.protocols import CountTokens
from waylore.retrieval.context.sentences import shorten
from waylore.text import normalise
from waylore.types.knowledge import Fact
from waylore.types.search import SearchResult

Layout = Literal["passages", "graph", "narrative"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
FitsPage: TypeAlias = Callable[[str, CountTokens], bool]  # whether a page that begins with this block fits
_USER_NAMES = ("user", "i", "me")


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


def fit_block(
    result: SearchResult, layout: Layout, config: ContextConfig, count: CountTokens, fits_page: FitsPage
) -> str:
    """Add parts in order of priority until the budget is used, then print them by section.

    The note and the set before it count against the whole text, not against the budget of the block.
    """
    title = "## Knowledge Graph Context\n" if layout == "graph" else ""
    by_line = count_by_line(count)
    shown: list[_Part] = []

    def fits(parts: Sequence[_Part], count: CountTokens) -> bool:
        block = _format_sections(parts, title)
        return count(block) <= config.graph_tokens and fits_page(block, count)

    for part in dict.fromkeys(_list_parts(result, layout, config)):
        if fits([*shown, part], by_line):
            shown.append(part)
    while shown and not fits(shown, count):
        shown.pop()
    return _format_sections(shown, title)


def count_by_line(count: CountTokens) -> CountTokens:
    """Return a counter that caches the tokens of each line, so that a growing text is not counted again."""
    count_line = cache(count)
    return lambda text: sum(map(count_line, text.splitlines(keepends=True)))


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
    yield from (_Part(*sections[e.id], _DESCRIPTION, shorten(e.description)) for e in entities.values())


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
        yield _Part(*section, _PLAIN, f"- {to_line(fact.predicate)}: {shorten(fact.object)}")


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
    statement = f" -- {shorten(fact.statement)}" if fact.statement.strip() else ""
    ends = f"{to_line(fact.subject)} -> {shorten(fact.object)}"
    return f'- {ends}: "{to_line(fact.predicate)}"{statement} (strength: {fact.weight:g})'


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
