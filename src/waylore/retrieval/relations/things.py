"""Find the things that names mean: an entity with all entities that are the same under other names.

Names are resolved like those of a question: by name and alias, else by the words of the name. Then `same_as` facts and
nearly identical names are followed (`graph.same_as`), from each entity to those that are the same, until none is new.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from waylore.config import ResolutionConfig
from waylore.names import list_matching_keys, list_word_keys, stems
from waylore.retrieval.graph.same_as import EntityMerges, find_merges
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.types.knowledge import Entity, Fact
from waylore.types.search import Query

MAX_CANDIDATES = 20  # things that share a name and are listed
MAX_SIMILAR = 8  # entities whose names have the same words
SEARCHED_PASSAGES = 20  # in which names are looked for that contain an unknown one
ENTITIES_PER_PASSAGE = 50
MAX_ROUNDS = 8  # of looking for further names of the entities found last
CONFIG = replace(ResolutionConfig(), facts_per_entity=64)


@dataclass(slots=True)
class Things:
    """Which entities are one thing, as far as they were read. The entity that was read first stands for all.

    `is_cut` if some may be missing because of a bound. `evidence` has, for each entity, those that are the same with
    the fact that says so, `distinct` the pairs that a user or a document has separated, and `passages` the number of
    passages that mention each entity.
    """

    leaders: dict[str, str] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    evidence: dict[str, dict[str, Fact]] = field(default_factory=lambda: defaultdict(dict))
    distinct: set[tuple[str, str]] = field(default_factory=set)
    passages: dict[str, int] = field(default_factory=dict)
    is_cut: bool = False

    def add(self, entity: str) -> None:
        """Add an entity as a thing of its own, if it is new."""
        if entity not in self.leaders:
            self.leaders[entity] = entity
            self.members[entity] = [entity]
            self.numbers[entity] = len(self.numbers)

    def merge(self, one: str, other: str, fact: Fact) -> None:
        """Make two entities one thing, unless this would join entities that were separated."""
        pair = self.leaders[one], self.leaders[other]
        first, second = sorted(pair, key=self.numbers.__getitem__)
        pairs = product(self.members[first], self.members[second])
        if not self.distinct.isdisjoint(pairs):
            return
        self.evidence[one][other] = self.evidence[other][one] = fact
        if first != second:
            for member in self.members.pop(second):
                self.leaders[member] = first
                self.members[first].append(member)

    def list_members(self, leaders: Iterable[str]) -> list[str]:
        """Return the entities of things."""
        return [member for leader in leaders for member in self.members[self.leaders[leader]]]

    def count_passages(self, leaders: Iterable[str]) -> int:
        """Return the number of passages that mention things: what reading their facts costs."""
        return sum(self.passages.get(member, 0) for member in self.list_members(leaders))

    def find_route(self, one: str, other: str) -> list[tuple[str, str, Fact]]:
        """Return the facts that lead from one entity of a thing to another one, each with its two entities."""
        before: dict[str, str] = {one: ""}
        pending = [one]
        for entity in pending:
            near = sorted(id_ for id_ in self.evidence.get(entity, ()) if id_ not in before)
            before |= dict.fromkeys(near, entity)
            pending += near
        route: list[tuple[str, str, Fact]] = []
        while other != one and other in before:
            route.append((before[other], other, self.evidence[before[other]][other]))
            other = before[other]
        return route[::-1]


@dataclass(frozen=True, slots=True)
class ResolvedName:
    """The thing that a name means, by the entity that stands for it, or several candidates, best first."""

    leader: str = ""
    candidates: tuple[Entity, ...] = ()


def resolve_name(query: Query, name: str, things: Things) -> Reads[ResolvedName]:
    """Find the thing that a name or an id means. If there are several, return one entity of each."""
    found = yield from find_named(query, name)
    best = sorted(found, key=lambda entity: (-entity.passages, entity.id))
    if len(best) > MAX_CANDIDATES:
        return ResolvedName(candidates=tuple(best[:MAX_CANDIDATES]))
    yield from add_things(query, things, [entity.id for entity in best], best)
    of_thing: dict[str, Entity] = {}
    for entity in best:
        of_thing.setdefault(things.leaders[entity.id], entity)
    if len(of_thing) == 1:
        return ResolvedName(next(iter(of_thing)))
    return ResolvedName(candidates=tuple(of_thing.values()))


def find_named(query: Query, name: str) -> Reads[Collection[Entity]]:
    """Return the entities with a name, else the entity with that id, else those whose names have the same words."""
    by_name = yield from read(Store.entities_by_names, [name], where=query.where)
    if by_name.get(name):
        return by_name[name]
    by_id = yield from read(Store.entities, [name], where=query.where)
    keys = list_word_keys(name)
    if by_id or not keys:
        return by_id.values()
    by_key = yield from read(Store.find_entities_by_key, keys, max_per_key=MAX_SIMILAR, where=query.where)
    ids = sorted({id_ for some in by_key.values() for id_ in some})
    similar = yield from read(Store.entities, ids, where=query.where)
    return similar.values()


def find_similar_names(query: Query, name: str) -> Reads[tuple[Entity, ...]]:
    """Return entities whose names contain all words of a name that no entity has, the most mentioned first.

    Only the best passages by words are read, so the list may lack some.
    """
    words, where = frozenset(stems(name)), query.where
    ranking = yield from read(Store.lexical, name, top_k=SEARCHED_PASSAGES, where=where)
    passages = [scored.id for scored in ranking]
    mentions = yield from read(Store.entities_of_passages, passages, per_passage=ENTITIES_PER_PASSAGE, where=where)
    found = yield from read(Store.entities, sorted(set(mentions.entities)), where=where)
    similar = [entity for entity in found.values() if words.issubset(stems(entity.name))]
    return tuple(sorted(similar, key=lambda entity: (-entity.passages, entity.id))[:MAX_CANDIDATES])


def add_things(query: Query, things: Things, ids: Sequence[str], known: Collection[Entity] = ()) -> Reads[None]:
    """Add entities with all entities that are the same as they. `known` are those that were read already."""
    entities = {entity.id: entity for entity in known}
    fresh = [id_ for id_ in dict.fromkeys(ids) if id_ not in things.leaders]
    for _ in range(MAX_ROUNDS):
        for id_ in fresh:
            things.add(id_)
        if not fresh:
            return
        unknown = [id_ for id_ in fresh if id_ not in entities]
        entities |= (yield from read(Store.entities, unknown, where=query.where)) if unknown else {}
        things.passages |= {id_: entities[id_].passages for id_ in fresh if id_ in entities}
        keys = {id_: list_matching_keys(entities[id_].name) if id_ in entities else () for id_ in fresh}
        merges = yield from find_merges(query, keys, CONFIG)
        fresh = _merge_found(things, fresh, merges)
    things.is_cut |= bool(fresh)


def _merge_found(things: Things, ids: Iterable[str], merges: EntityMerges) -> list[str]:
    """Merge entities with those that are the same, and return the ids that are new."""
    found: dict[str, None] = {}
    for id_ in ids:
        others = merges.by_entity.get(id_, {})
        things.is_cut |= len(others) >= CONFIG.facts_per_entity
        separated = [other for other in others if merges.are_distinct(id_, other)]
        things.distinct.update(pair for other in separated for pair in ((id_, other), (other, id_)))
    for id_ in ids:
        for other, fact in sorted(merges.find_same(id_).items()):
            if other not in things.leaders:
                found[other] = None
                things.add(other)
            things.merge(id_, other, fact)
    return list(found)
