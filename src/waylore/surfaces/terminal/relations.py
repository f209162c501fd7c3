"""Render related facts, connections and lists of entities for people at a terminal, each with its extent.

Texts come from other people, so control and invisible characters are removed before they reach the terminal.
"""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from waylore.dates import format_day
from waylore.fence import to_line
from waylore.surfaces.terminal.hits import DIM, NAME, count, format_period, render_entity, render_step
from waylore.types.knowledge import Entity
from waylore.types.relations import ConnectingPath, Connection, EntityList, Extent, PredicateCount, Related, RelatedFact

MAX_NAMES = 5  # entities that are suggested for an unknown name


def render_related(answer: Related) -> RenderableType:
    """Render the facts of a thing as a tree, and whether these are all."""
    if answer.candidates:
        return _render_candidates(answer.name, answer.candidates)
    if not answer.entities:
        return render_unknown(answer.name, answer.similar)
    tree = Tree(_render_thing(answer.entities), guide_style=DIM)
    _add_facts(tree, answer.facts)
    return Group(tree, Text(), *_render_extent(answer.extent, "fact"), *_render_predicates(answer))


def render_connection(answer: Connection) -> RenderableType:
    """Render paths, one step on each line with its quote, and how many entities and facts were read."""
    if answer.unknown:
        return Group(*(render_unknown(name, ()) for name in answer.unknown))
    if answer.candidates:
        return Group(*(_render_candidates(name, some) for name, some in answer.candidates))
    paths: list[RenderableType] = [part for path in answer.paths for part in (_render_path(path), Text())]
    return Group(*paths, Text(str(answer), DIM if answer.paths else "yellow"))


def render_entities(answer: EntityList, name: str = "") -> RenderableType:
    """Render entities as a table, and their total number."""
    if answer.candidates:
        return _render_candidates(name, answer.candidates)
    table = Table.grid(padding=(0, 2))
    for entity in answer:
        notes = " ".join(filter(None, [to_line(entity.type), to_line(entity.description)]))
        table.add_row(Text(to_line(entity.name), NAME), Text(notes, DIM))
    more = [Text(f"--after {answer.after} shows the next ones.", DIM)] if answer.after else []
    rows: list[RenderableType] = [table, Text()] if answer.entities else []
    return Group(*rows, *_render_extent(answer.extent, "entity"), *_render_predicates(answer), *more)


def _render_thing(entities: Sequence[Entity]) -> Text:
    """Render a thing as its main entity and its other names."""
    shown = render_entity(entities[0])
    others = dict.fromkeys(to_line(entity.name) for entity in entities[1:] if entity.name != entities[0].name)
    return shown.append(f"\nalso {', '.join(others)}", DIM) if others else shown


def _add_facts(tree: Tree, facts: Iterable[RelatedFact]) -> None:
    for fact in facts:
        _add_facts(tree.add(Group(*_render_fact(fact))), fact.branches)


def _render_fact(fact: RelatedFact) -> Iterator[Text]:
    """Yield a fact with its type and period, its quote and source, and its end."""
    told = fact.assertion
    kind = to_line(fact.entity.type) if fact.entity else ""
    notes = "  ".join(filter(None, [kind, format_period(told.fact)]))
    yield Text.assemble(render_step(told.fact, is_forward=fact.is_forward), (f"  {notes}" if notes else "", DIM))
    place = to_line(told.document.title or told.document.uri or told.said)
    words = " ".join(filter(None, [f"“{told.quote}”" if told.quote else "", place]))
    if words:
        yield Text(words, DIM)
    if fact.end and fact.end.by:
        by = fact.end.by
        yield Text.assemble((f"{fact.end.kind} {format_day(fact.end.at)}: ", "yellow"), (to_line(str(by.fact)), DIM))


def _render_path(path: ConnectingPath) -> RenderableType:
    tree = Tree(Text(to_line(path.start.name), NAME), guide_style=DIM)
    branch = tree
    for step in path.steps:
        branch = branch.add(Group(*_render_fact(step)))
    return tree


def render_unknown(name: str, similar: Sequence[Entity]) -> Text:
    """Render a message for an unknown name, with the names that contain it."""
    if not similar:
        return Text(f"no entity {to_line(name)!r}; `waylore search` finds passages, and the names that they use")
    names = ", ".join(f"{to_line(entity.name)} ({count(entity.passages, 'passage')})" for entity in similar[:MAX_NAMES])
    return Text(f"no entity {to_line(name)!r}; did you mean {names}?")


def _render_candidates(name: str, candidates: Sequence[Entity]) -> RenderableType:
    """Render the things that share a name, each with the id to ask for it."""
    table = Table.grid(padding=(0, 2))
    for entity in candidates:
        table.add_row(Text(entity.id, DIM), render_entity(entity))
    head = f"{len(candidates)} things are called {to_line(name)!r}; ask again with the id of one"
    return Group(Text(head, "yellow"), table)


def _render_extent(extent: Extent, item: str) -> Iterator[Text]:
    items = item if extent.total == 1 else "entities" if item == "entity" else f"{item}s"
    if not extent.total and extent.is_exact:
        yield Text(f"no {items}", "yellow")
    else:
        yield Text(f"{extent} {items}", "green" if extent.is_complete else "yellow")


def _render_predicates(answer: Related | EntityList) -> Iterator[Text]:
    """Yield the predicates that matched, and the predicates that did not."""
    if answer.predicates:
        yield Text(f"matched: {_list_predicates(answer.predicates)}", DIM)
    if answer.unmatched:
        yield Text(f"not matched: {_list_predicates(answer.unmatched)}", DIM)


def _list_predicates(counts: Iterable[PredicateCount]) -> str:
    return ", ".join(f"{to_line(each.predicate)} ({each.facts})" for each in counts)
