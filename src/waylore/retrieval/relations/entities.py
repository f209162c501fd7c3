"""List entities by type, by what they are related to, or by name, in pages, and count them.

Entities that are related to an object are found by its facts, those of a name by the name, and all others by going
through the entities of the collection in the order of their ids. All are counted up to `MAX_TOTAL`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from waylore.retrieval.relations.facts import MAX_READ, MAX_TOTAL, ReadBudget
from waylore.retrieval.relations.predicates import PredicateMatcher
from waylore.retrieval.relations.related import RelatedOptions, read_level
from waylore.retrieval.relations.things import Things, find_named, resolve_name
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.text import normalise
from waylore.types.knowledge import Entity
from waylore.types.relations import EntityList, Extent
from waylore.types.search import Query

ENTITIES_AT_ONCE = 500
RELATED_AT_ONCE = 100  # if their facts are read too


@dataclass(frozen=True, slots=True)
class EntityOptions:
    """Which entities to list: of a type, with facts that match, about an object, or with a name; empty for any."""

    matcher: PredicateMatcher
    type: str = ""
    object: str = ""
    name: str = ""
    after: str = ""
    limit: int = 50
    single_valued: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Scan:
    """Entities that match, by id, the last one that was looked at (empty if all were), and whether a bound cut them."""

    entities: tuple[Entity, ...]
    last: str = ""
    is_cut: bool = False


def read_entities(query: Query, options: EntityOptions) -> Reads[EntityList]:
    """Return a page of the entities that match, and how many there are."""
    if options.object:
        return (yield from _list_related(query, options))
    if options.name:
        return (yield from _list_named(query, options))
    scan = yield from _scan(query, options, "", MAX_TOTAL + 1)
    rest = [entity for entity in scan.entities if entity.id > options.after]
    if not scan.last or len(rest) > options.limit:
        return _make_page(scan, options)
    beyond = yield from _scan(query, options, options.after, options.limit + 1)
    known = [entity for entity in scan.entities if entity.id <= options.after]
    return _make_page(_Scan((*known, *beyond.entities), beyond.last, is_cut=True), options)


def _list_related(query: Query, options: EntityOptions) -> Reads[EntityList]:
    things, budget = Things(), ReadBudget()
    named = yield from resolve_name(query, options.object, things)
    if not named.leader:
        return EntityList(extent=Extent(is_exact=not named.candidates), candidates=named.candidates)
    entities = yield from _find_related(query, named.leader, things, options, budget)
    return _make_page(_Scan(entities, is_cut=budget.is_cut or things.is_cut), options)


def _list_named(query: Query, options: EntityOptions) -> Reads[EntityList]:
    budget = ReadBudget()
    found = yield from find_named(query, options.name)
    typed = [entity for entity in found if _has_type(entity, options.type)]
    kept = yield from _keep_related(query, typed, options, budget)
    return _make_page(_Scan(tuple(sorted(kept, key=_get_id)), is_cut=budget.is_cut), options)


def _get_id(entity: Entity) -> str:
    return entity.id


def _has_type(entity: Entity, wanted: str) -> bool:
    return not wanted or normalise(entity.type) == normalise(wanted)


def _make_page(scan: _Scan, options: EntityOptions) -> EntityList:
    """Return the entities after the cursor, by name, and the cursor of the next page."""
    rest = [entity for entity in scan.entities if entity.id > options.after]
    page = rest[: options.limit]
    after = page[-1].id if len(rest) > len(page) else scan.last
    total = min(len(scan.entities), MAX_TOTAL)
    is_exact = not scan.is_cut and not scan.last and len(scan.entities) == total
    return EntityList(
        tuple(sorted(page, key=lambda entity: (normalise(entity.name), entity.id))),
        Extent(len(page), total, is_exact),
        after,
        predicates=options.matcher.count_matched(),
        unmatched=options.matcher.count_unmatched(),
    )


# -- reading -------------------------------------------------------------------------------------------


def _find_related(
    query: Query, leader: str, things: Things, options: EntityOptions, budget: ReadBudget
) -> Reads[tuple[Entity, ...]]:
    """Return the entities at the other ends of the facts that lead to an object, by id."""
    related = RelatedOptions(options.matcher, direction="in", single_valued=options.single_valued)
    found = yield from read_level(query, things, [leader], related, budget)
    ids = sorted({each.far for each in found if each.far})
    entities = yield from read(Store.entities, ids, where=query.where)
    named = normalise(options.name)
    return tuple(
        entity
        for id_, entity in sorted(entities.items())
        if _has_type(entity, options.type)
        and (not named or named in {normalise(name) for name in (entity.name, *entity.aliases)})
    )


def _keep_related(
    query: Query, entities: Sequence[Entity], options: EntityOptions, budget: ReadBudget
) -> Reads[Sequence[Entity]]:
    """Return the entities that have a fact with a predicate that was asked for; all if none was."""
    if not options.matcher.is_asked or not entities:
        return entities
    things = Things()
    for entity in entities:
        things.add(entity.id)
    related = RelatedOptions(options.matcher, direction="out", single_valued=options.single_valued)
    found = yield from read_level(query, things, [entity.id for entity in entities], related, budget)
    subjects = {each.near for each in found}
    return [entity for entity in entities if entity.id in subjects]


def _scan(query: Query, options: EntityOptions, after: str, wanted: int) -> Reads[_Scan]:
    """Go through the entities of the collection until enough match, or until the facts of many were read."""
    found: list[Entity] = []
    size = RELATED_AT_ONCE if options.matcher.is_asked else ENTITIES_AT_ONCE
    left, is_cut = MAX_READ, False
    while len(found) < wanted and left > 0:
        page = yield from read(Store.list_entities, of_type=options.type, after=after, limit=size, where=query.where)
        budget = ReadBudget()
        found += yield from _keep_related(query, page, options, budget)
        left -= MAX_READ - budget.left
        is_cut |= budget.is_cut
        if len(page) < size:
            return _Scan(tuple(found), is_cut=is_cut)
        after = page[-1].id
    return _Scan(tuple(found), after, is_cut)
