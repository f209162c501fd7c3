"""Find the shortest paths between two things, from both ends at once.

A step is a typed fact, or a statement that names both ends (a pair). The side that costs less is widened by one hop at
a time until both meet, so a path over a hub is found without reading the hub. Of equally short paths, those with more
typed facts come first, then those with stronger ones. Reads are bounded for each entity and in all, and the answer says
whether a bound cut the search.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from waylore.retrieval.graph.state import Loaded
from waylore.retrieval.graph.validity import select_current
from waylore.retrieval.history import load_stating
from waylore.retrieval.relations.facts import is_relation
from waylore.retrieval.relations.related import FoundFact, show_fact
from waylore.retrieval.relations.things import ResolvedName, Things, add_things, resolve_name
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_together
from waylore.types.columns import FactColumns
from waylore.types.knowledge import Entity, Fact
from waylore.types.relations import ConnectingPath, Connection
from waylore.types.search import Query

FACTS_PER_ENTITY = 256
PAIRS_PER_ENTITY, PASSAGES_PER_ENTITY = 256, 64  # with 64 and 16, 8 of 160 paths in real folders were missed
MAX_LOOKED_AT = 8_000  # facts and pairs that one call reads in all
ENTITIES_AT_ONCE = 64
MAX_PATHS = 100  # that a caller may ask for
MAX_ENUMERATED = 1_000  # shortest paths that are compared


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """How far to search, how many paths to return, and the predicates that are single-valued besides ours."""

    max_hops: int = 4
    limit: int = 3
    single_valued: Sequence[str] = ()


@dataclass(slots=True)
class _Side:
    """What is reached from one end: for each thing its distance, and the things before it with the best fact."""

    distances: dict[str, int]
    frontier: list[str]
    before: dict[str, dict[str, FoundFact]] = field(default_factory=lambda: defaultdict(dict))
    depth: int = 0


@dataclass(slots=True)
class _Search:
    """The state of a search: which entities are one thing, and how much was read."""

    things: Things = field(default_factory=Things)
    facts: set[str] = field(default_factory=set)
    entities: set[str] = field(default_factory=set)
    left: int = field(default_factory=lambda: MAX_LOOKED_AT)
    is_cut: bool = False


def read_connection(query: Query, names: tuple[str, str], options: ConnectOptions) -> Reads[Connection]:
    """Return the shortest paths between the things of two names."""
    search = _Search()
    first = yield from resolve_name(query, names[0], search.things)
    ends = (first, (yield from resolve_name(query, names[1], search.things)))
    if not all(end.leader for end in ends):
        return _refuse(names, ends, options)
    leaders = [search.things.leaders[end.leader] for end in ends]
    sides = [_Side({leader: 0}, [leader]) for leader in leaders]
    met = sorted(set(leaders)) if leaders[0] == leaders[1] else []
    while not met and sides[0].depth + sides[1].depth < options.max_hops and all(side.frontier for side in sides):
        side, other = sorted(sides, key=lambda each: (search.things.count_passages(each.frontier), each.depth))
        yield from _widen(query, search, side, options)
        met = [thing for thing in side.frontier if thing in other.distances]
    return (yield from _load_connection(query, names, search, sides, met, options))


def _refuse(names: tuple[str, str], ends: Sequence[ResolvedName], options: ConnectOptions) -> Connection:
    pairs = dict(zip(names, ends, strict=True))
    unknown = tuple(name for name, end in pairs.items() if not end.leader and not end.candidates)
    several = tuple((name, end.candidates) for name, end in pairs.items() if end.candidates)
    return Connection(names, options.max_hops, candidates=several, unknown=unknown)


# -- one hop -------------------------------------------------------------------------------------------


def _widen(query: Query, search: _Search, side: _Side, options: ConnectOptions) -> Reads[None]:
    """Follow the facts and pairs of all things at the edge of a side."""
    found: list[FoundFact] = []
    ids = search.things.list_members(side.frontier)
    for start in range(0, len(ids), ENTITIES_AT_ONCE):
        if search.left <= 0:
            search.is_cut = True
            break
        found += yield from _read_steps(query, search, ids[start : start + ENTITIES_AT_ONCE], options.single_valued)
    yield from add_things(query, search.things, list(dict.fromkeys(each.far for each in found)))
    search.is_cut |= search.things.is_cut
    side.depth += 1
    leaders = search.things.leaders
    reached: dict[str, None] = {}
    for each in found:
        near, far = leaders[each.near], leaders[each.far]
        if side.distances.setdefault(far, side.depth) == side.depth:
            reached[far] = None
            known = side.before[far].get(near)
            side.before[far][near] = min(filter(None, (known, each)), key=_make_step_key)
    side.frontier = list(reached)


def _make_step_key(found: FoundFact) -> tuple[bool, float, str, str]:
    """Return what steps between the same two things are sorted by: typed ones first, then the stronger ones."""
    fact = found.fact
    return not fact.is_typed, -fact.weight * fact.confidence, fact.id, found.near


def _read_steps(
    query: Query, search: _Search, ids: Sequence[str], single_valued: Sequence[str]
) -> Reads[list[FoundFact]]:
    """Return the facts and pairs that lead from entities to others, and note what a bound may have cut off."""
    stated, pairs, entities = yield from read_together(
        read(Store.facts_of_entities, ids, per_entity=FACTS_PER_ENTITY + 1, as_of=query.as_of, where=query.where),
        read(
            Store.pairs_of_entities,
            ids,
            per_entity=PAIRS_PER_ENTITY + 1,
            passages_per_entity=PASSAGES_PER_ENTITY,
            where=query.where,
        ),
        read(Store.entities, ids, where=query.where),
    )
    search.left -= stated.size + pairs.size
    search.facts.update(stated.ids, pairs.ids)
    search.entities.update(ids)
    search.is_cut |= _is_cut(stated, FACTS_PER_ENTITY) or _is_cut(pairs, PAIRS_PER_ENTITY)
    search.is_cut |= any(entity.passages > PASSAGES_PER_ENTITY for entity in entities.values())
    held = yield from select_current(query, stated, single_valued, per_entity=FACTS_PER_ENTITY)
    return [step for columns in (held, pairs) for id_ in ids for step in _list_steps(id_, columns.get(id_, ()))]


def _is_cut(columns: FactColumns, most: int) -> bool:
    return max(Counter(columns.of).values(), default=0) > most


def _list_steps(near: str, facts: Sequence[Fact]) -> Iterator[FoundFact]:
    """Yield the facts that lead from an entity to another one."""
    for fact in facts:
        far = fact.object_id if fact.subject_id == near else fact.subject_id
        if far and far != near and (is_relation(fact) or not fact.is_typed):
            yield FoundFact(fact, near, far)


# -- the paths -----------------------------------------------------------------------------------------


def _load_connection(
    query: Query,
    names: tuple[str, str],
    search: _Search,
    sides: Sequence[_Side],
    met: Sequence[str],
    options: ConnectOptions,
) -> Reads[Connection]:
    routes = (route for thing in sorted(met) for route in _list_routes(thing, sides))
    best = sorted(islice(routes, MAX_ENUMERATED), key=_make_route_key)[: options.limit]
    first, last = (next(iter(side.distances)) for side in sides)
    paths = [_add_names(route, search.things, first, last) for route in best]
    facts = [step.fact for path in paths for step in path]
    ids = {first, last, *(step.far for path in paths for step in path), *(step.near for path in paths for step in path)}
    loaded, entities = yield from read_together(
        load_stating(query, facts), read(Store.entities, sorted(ids), where=query.where)
    )
    built = [_build_path(path, first, entities, loaded) for path in paths]
    return Connection(
        names,
        options.max_hops,
        tuple(filter(None, built)),
        entities=len(search.entities),
        facts=len(search.facts),
        exhaustive=not search.is_cut,
    )


def _list_routes(thing: str, sides: Sequence[_Side]) -> Iterator[tuple[FoundFact, ...]]:
    """Yield the shortest routes through a thing at which both sides meet, from the first side to the second."""
    for start in _list_halves(thing, sides[0]):
        for end in _list_halves(thing, sides[1]):
            yield (*reversed(start), *(FoundFact(step.fact, step.far, step.near) for step in end))


def _list_halves(thing: str, side: _Side) -> Iterator[tuple[FoundFact, ...]]:
    """Yield the steps from a thing back to the beginning of a side, the last step first."""
    if not side.distances[thing]:
        yield ()
    for before, step in sorted(side.before.get(thing, {}).items()):
        for rest in _list_halves(before, side):
            yield (step, *rest)


def _make_route_key(route: Sequence[FoundFact]) -> tuple[int, float, list[str]]:
    """Return what routes of one length are sorted by: more typed facts first, then the strength of the weakest."""
    strengths = [step.fact.weight * step.fact.confidence for step in route]
    return sum(not s.fact.is_typed for s in route), -min(strengths, default=0.0), [step.fact.id for step in route]


def _add_names(route: Sequence[FoundFact], things: Things, first: str, last: str) -> list[FoundFact]:
    """Return a route with a step wherever it goes on under another name of a thing, if a passage says so."""
    steps: list[FoundFact] = []
    at = first
    for step in (*route, None):
        near = step.near if step else last
        names = things.find_route(at, near)
        steps += [FoundFact(fact, one, other) for one, other, fact in names if fact.passage_id]
        if step:
            steps.append(step)
            at = step.far
    return steps


def _build_path(
    steps: Sequence[FoundFact], first: str, entities: Mapping[str, Entity], loaded: Loaded
) -> ConnectingPath | None:
    """Return a path with the passages of its steps; None if one cannot be read any more."""
    built = [show_fact(step, entities, loaded) for step in steps]
    if first not in entities or not all(built):
        return None
    return ConnectingPath(entities[first], tuple(filter(None, built)))
