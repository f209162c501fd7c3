"""Find the entities that are the same thing under two names, for one caller, and the reason.

A document can state it with a `same_as` fact (a definition, an alias, a user's correction). The names can also
suggest it: the same words, nearly identical vectors, and types that do not contradict. The most trusted source
decides, so a user who retracts `same_as` separates entities that a file or similar names merged. Weaker
evidence makes names only resemble each other, which is a weak step of the walk. Merges are not written: they
end with the document that states them, and a document that a caller may not see merges no entities for that
caller.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from waylore.config import ResolutionConfig
from waylore.names import is_short, list_matching_keys, split_significant_words, stems
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read, read_together
from waylore.text import normalise
from waylore.types.columns import FactColumns
from waylore.types.identity import identity
from waylore.types.knowledge import RESEMBLES, SAME, SOURCES, STATUSES, Entity, Fact, SimilarEntities
from waylore.types.results import Merge
from waylore.types.search import Query

DEFAULT_CONFIG = ResolutionConfig()


@dataclass(frozen=True, slots=True)
class EntityMerges:
    """The facts that merge entities with others, by entity. Retracted merges are among them."""

    by_entity: Mapping[str, Mapping[str, Fact]]

    def find_same(self, entity_id: str) -> dict[str, Fact]:
        """Return the entities that are the same as an entity, with the fact that says so."""
        return {id_: f for id_, f in self.list_active(entity_id).items() if normalise(f.predicate) == normalise(SAME)}

    def list_active(self, entity_id: str) -> dict[str, Fact]:
        """Return the entities merged with an entity, with the fact that says so, without retracted merges."""
        merges = self.by_entity.get(entity_id, {})
        return {id_: fact for id_, fact in merges.items() if fact.status != "retracted"}

    def are_distinct(self, one: str, other: str) -> bool:
        """Return whether a fact says that two entities are not the same."""
        fact = self.by_entity.get(one, {}).get(other)
        return fact is not None and fact.status == "retracted"

    @property
    def facts(self) -> dict[str, Fact]:
        """All facts that are not retracted, by id."""
        return {f.id: f for entity_id in self.by_entity for f in self.list_active(entity_id).values()}


def find_merges(query: Query, keys: Mapping[str, Sequence[str]], config: ResolutionConfig) -> Reads[EntityMerges]:
    """Find the merges of entities by their facts and by `keys` of their names, with two reads in all."""
    stated, similar = yield from read_together(
        read(
            Store.facts_of_entities,
            list(keys),
            per_entity=config.facts_per_entity,
            predicates=(SAME,),
            statuses=STATUSES,
            as_of=query.as_of,
            where=query.where,
        ),
        read(Store.find_similar_entities, keys, max_per_key=config.max_similar, where=query.where),
    )
    return EntityMerges({id_: _choose_facts(id_, stated.get(id_, ()), similar.get(id_, ()), config) for id_ in keys})


def list_merges(query: Query, config: ResolutionConfig = DEFAULT_CONFIG) -> Reads[tuple[Merge, ...]]:
    """Return the entities that those named `query.text` are merged with, and the reason, each pair once."""
    by_name = yield from read(Store.entities_by_names, [query.text], where=query.where)
    named = {e.id: e for es in by_name.values() for e in es}
    own_first = sorted(named, key=lambda id_: (normalise(named[id_].name) != normalise(query.text), id_))
    merges = yield from find_merges(query, {id_: list_matching_keys(named[id_].name) for id_ in own_first}, config)
    pairs: dict[frozenset[str], tuple[str, str, Fact]] = {}
    for id_ in own_first:
        for other, fact in merges.list_active(id_).items():
            pairs.setdefault(frozenset((id_, other)), (id_, other, fact))
    others = yield from read(Store.entities, [other for _, other, _ in pairs.values()], where=query.where)
    listed = [Merge(named[id_], others[other], fact) for id_, other, fact in pairs.values() if other in others]
    return tuple(sorted(listed, key=lambda m: (not m.is_same, m.entity.id, m.other.id)))


def _choose_facts(
    entity_id: str, stated: Iterable[Fact], similar: Iterable[SimilarEntities], config: ResolutionConfig
) -> dict[str, Fact]:
    """Return the deciding fact by other entity: the most trusted one, else one suggested by the names."""
    chosen: dict[str, Fact] = {}
    for fact in sorted(stated, key=_make_trust_key):
        if fact.object_id and fact.object_id != fact.subject_id:
            chosen[fact.object_id if fact.subject_id == entity_id else fact.subject_id] = fact
    suggested = {pair.other.id: classify_similar_names(pair, config) for pair in similar}
    return {id_: fact for id_, fact in suggested.items() if fact} | chosen


def classify_similar_names(pair: SimilarEntities, config: ResolutionConfig) -> Fact | None:
    """Return a `same_as` or `resembles` fact for two similar names, or None if they are too different."""
    one, other = sorted((pair.entity, pair.other), key=lambda e: e.id)
    if one.sense != other.sense or _contradict(one.type, other.type):
        return None
    if not pair.key.startswith("words:"):
        return _make_similarity_fact(
            one, other, RESEMBLES, config.resembling_weight, "one name may be short for the other"
        )
    has_one_type = bool(one.type and other.type)
    if is_short(one.name) != is_short(other.name) and not has_one_type:
        return None  # such as WHO and The Who
    has_same_words = split_significant_words(one.name) == split_significant_words(other.name)
    is_near = pair.cosine is not None and pair.cosine >= config.near_identical
    if is_near and (has_same_words or (has_one_type and stems(one.name) == stems(other.name))):
        return _make_similarity_fact(one, other, SAME, config.same_weight, "two spellings of one name")
    if has_same_words or (pair.cosine is not None and pair.cosine >= config.resembling):
        return _make_similarity_fact(one, other, RESEMBLES, config.resembling_weight, "names of the same words")
    return None


def _contradict(one: str, other: str) -> bool:
    return bool(one and other) and normalise(one) != normalise(other)


def _make_similarity_fact(one: Entity, other: Entity, predicate: str, weight: float, why: str) -> Fact:
    """Return a fact that no document states."""
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


def _make_trust_key(fact: Fact) -> tuple[int, float, bool, str]:
    """Return a sort key: the least trusted first, as stores rank sources; of equals, a retraction is last."""
    return -SOURCES.index(fact.source), fact.weight * fact.confidence, fact.status == "retracted", fact.id


def map_end_names(facts: FactColumns, entities: Iterable[str]) -> dict[str, str]:
    """Return the names of entities, by id, as the first fact with one of them at an end gives it."""
    last = range(facts.size - 1, -1, -1)  # the first place of an end stays, as it comes last
    subjects, objects = (dict(zip(reversed(ends), last, strict=True)) for ends in (facts.subjects, facts.objects))
    known = {id_: min(subjects.get(id_, facts.size), objects.get(id_, facts.size)) for id_ in entities}
    return {
        id_: facts.get_words(place)[0 if facts.subjects[place] == id_ else 2]
        for id_, place in known.items()
        if place < facts.size
    }
