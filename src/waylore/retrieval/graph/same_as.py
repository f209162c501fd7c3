"""Which entities are one thing under two names, as far as this caller can tell, and why.

Documents say so (a `same_as` fact: a definition, an alias, a user's word), or the names do: the same words,
vectors that are nearly identical, types that do not contradict. Whoever is trusted most has the last word, so a
user who retracts `same_as` parts what a file or a likeness joined. Weaker evidence makes names resemble each
other: a weak step of the walk, no more. Nothing is rewritten: with the document that said it the merge is gone,
and a document that the caller may not see merges nothing for him.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from waylore.config import Resolution
from waylore.names import is_short, mirrored, spelled, stems
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, together
from waylore.text import normalise
from waylore.types.identity import identity
from waylore.types.knowledge import RESEMBLES, SAME, SOURCES, STATUSES, Alike, Entity, Fact
from waylore.types.results import Merge
from waylore.types.search import Query


@dataclass(frozen=True, slots=True)
class Joins:
    """By entity, the facts that join it with others, what was parted among them."""

    by_entity: Mapping[str, Mapping[str, Fact]]

    def same(self, entity_id: str) -> dict[str, Fact]:
        """What is one with an entity, and the fact that says so."""
        return {id_: f for id_, f in self.live(entity_id).items() if normalise(f.predicate) == normalise(SAME)}

    def live(self, entity_id: str) -> dict[str, Fact]:
        """What an entity is joined with, and the fact that says so; what was parted is left out."""
        found = self.by_entity.get(entity_id, {})
        return {id_: fact for id_, fact in found.items() if fact.status != "retracted"}

    def are_parted(self, one: str, other: str) -> bool:
        """Whether it was said of the two that they are not the same."""
        fact = self.by_entity.get(one, {}).get(other)
        return fact is not None and fact.status == "retracted"

    @property
    def facts(self) -> dict[str, Fact]:
        """All that hold, each once, by identity."""
        return {f.id: f for entity_id in self.by_entity for f in self.live(entity_id).values()}


def joins(query: Query, asked: Mapping[str, Sequence[str]], config: Resolution) -> Reads[Joins]:
    """What joins entities with others, by their facts and by keys of their names: two calls for all of them."""
    told, alike = yield from together(
        read(
            Store.facts_of_entities,
            list(asked),
            per_entity=config.facts_per_entity,
            predicates=(SAME,),
            statuses=STATUSES,
            as_of=query.as_of,
            where=query.where,
        ),
        read(Store.alike, asked, most=config.most, where=query.where),
    )
    return Joins({id_: _joined(id_, told.get(id_, ()), alike.get(id_, ()), config) for id_ in asked})


def merges(query: Query, config: Resolution) -> Reads[tuple[Merge, ...]]:
    """With what the entities of this name are taken for one or for alike, and why; each pair once."""
    by_name = yield from read(Store.entities_by_names, [query.text], where=query.where)
    named = {e.id: e for es in by_name.values() for e in es}
    own_first = sorted(named, key=lambda id_: (normalise(named[id_].name) != normalise(query.text), id_))
    joined = yield from joins(query, {id_: mirrored(named[id_].name) for id_ in own_first}, config)
    pairs: dict[frozenset[str], tuple[str, str, Fact]] = {}
    for id_ in own_first:
        for other, fact in joined.live(id_).items():
            pairs.setdefault(frozenset((id_, other)), (id_, other, fact))
    others = yield from read(Store.entities, [other for _, other, _ in pairs.values()], where=query.where)
    found = [Merge(named[id_], others[other], fact) for id_, other, fact in pairs.values() if other in others]
    return tuple(sorted(found, key=lambda m: (not m.is_same, m.entity.id, m.other.id)))


def _joined(
    entity_id: str, told: Iterable[Fact], alike: Iterable[Alike], config: Resolution
) -> dict[str, Fact]:
    """By the other entity, the fact that counts: the most trusted that is told, else what the names suggest."""
    found: dict[str, Fact] = {}
    for fact in sorted(told, key=_voice):
        if fact.object_id and fact.object_id != fact.subject_id:
            found[fact.object_id if fact.subject_id == entity_id else fact.subject_id] = fact
    suggested = {a.other.id: judged(a, config) for a in alike}
    return {id_: fact for id_, fact in suggested.items() if fact} | found


def judged(alike: Alike, config: Resolution) -> Fact | None:
    """What the likeness of two names amounts to: the same, a resemblance, or nothing."""
    one, other = sorted((alike.entity, alike.other), key=lambda e: e.id)
    if one.sense != other.sense or _contradict(one.type, other.type):
        return None
    if not alike.key.startswith("words:"):
        return _likeness(one, other, RESEMBLES, config.resembling_weight, "one name may be short for the other")
    has_one_type = bool(one.type and other.type)
    if is_short(one.name) != is_short(other.name) and not has_one_type:
        return None  # WHO and The Who
    is_spelled_alike = spelled(one.name) == spelled(other.name)
    is_near = alike.cosine is not None and alike.cosine >= config.near_identical
    if is_near and (is_spelled_alike or (has_one_type and stems(one.name) == stems(other.name))):
        return _likeness(one, other, SAME, config.same_weight, "two spellings of one name")
    if is_spelled_alike or (alike.cosine is not None and alike.cosine >= config.resembling):
        return _likeness(one, other, RESEMBLES, config.resembling_weight, "names of the same words")
    return None


def _contradict(one: str, other: str) -> bool:
    return bool(one and other) and normalise(one) != normalise(other)


def _likeness(one: Entity, other: Entity, predicate: str, weight: float, why: str) -> Fact:
    """A fact that no document states."""
    return Fact(
        id=identity("alike", one.id, other.id),
        subject_id=one.id,
        subject=one.name,
        predicate=predicate,
        object=other.name,
        object_id=other.id,
        statement=f"{one.name} and {other.name}: {why}",
        weight=weight,
        source="system",
    )


def _voice(fact: Fact) -> tuple[int, float, bool, str]:
    """The less trusted first, as stores rank voices; of equals, who parts has the last word."""
    return -SOURCES.index(fact.source), fact.weight * fact.confidence, fact.status == "retracted", fact.id


def names_of_ends(facts: Iterable[Fact]) -> dict[str, str]:
    """The names of the entities that facts join, by identity."""
    found: dict[str, str] = {}
    for fact in facts:
        found.setdefault(fact.subject_id, fact.subject)
        if fact.object_id:
            found.setdefault(fact.object_id, fact.object)
    return found
