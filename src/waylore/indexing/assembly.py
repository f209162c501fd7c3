"""Assemble an indexed document from the extractions of its passages: entities, mentions and facts.

The module extracts nothing. The extractions come from an extractor (`indexing.extractors`,
`waylore.providers`), or a caller passes facts and `assign_facts_to_passages` finds the passage that states
each of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from waylore.deadline import check_each
from waylore.names import get_subject
from waylore.protocols import Extraction
from waylore.text import count_occurrences, normalise
from waylore.types.identity import entity_id, fact_id
from waylore.types.knowledge import Document, Entity, Fact, IndexedDocument, Mention, NewFact, Passage, make_pair


def assemble_document(
    document: Document, passages: Sequence[Passage], extractions: Sequence[Extraction]
) -> IndexedDocument:
    """Return an indexed document with the entities, mentions and facts of all its passages."""
    entities: dict[str, Entity] = {}
    mentions: list[Mention] = []
    facts: dict[tuple[str, str], Fact] = {}
    pairs: dict[tuple[str, str], Fact] = {}
    for passage, extraction in check_each(zip(passages, extractions, strict=True)):
        named = _build_entities(extraction)
        for id_, entity in named.items():
            entities[id_] = _merge_entities(entities.get(id_), entity)
        mentions += _build_mentions(passage, named)
        for fact in extraction.facts:
            stated = (_build_pair if fact.is_pair else _build_fact)(fact, passage, document)
            (pairs if fact.is_pair else facts)[stated.id, passage.id] = stated
    return IndexedDocument(
        document,
        tuple(passages),
        tuple(entities.values()),
        tuple(mentions),
        tuple(facts.values()),
        tuple(pairs.values()),
    )


def merge_extractions(first: Extraction, second: Extraction) -> Extraction:
    """Merge two extractions of one passage; if both have a name, the type of the second one is used."""
    return Extraction(
        (*first.facts, *second.facts),
        {**first.names, **second.names},
        {**first.descriptions, **second.descriptions},
        {**first.aliases, **second.aliases},
    )


def assign_facts_to_passages(passages: Sequence[Passage], facts: Iterable[NewFact]) -> list[Extraction]:
    """Return an extraction for each passage: its facts, and all names of facts that it mentions."""
    facts = list(facts)
    texts = [normalise(p.text) for p in passages]
    assigned: list[list[NewFact]] = [[] for _ in passages]
    for fact in check_each(facts):
        assigned[_find_passage(fact, texts)].append(fact)
    types = _collect_types(facts)
    named = {name: normalise(name) for name in types}
    return [
        Extraction(tuple(stated), {name: types[name] for name in named if _is_named(named[name], text, passage)})
        for passage, text, stated in check_each(zip(passages, texts, assigned, strict=True))
    ]


def compute_fact_id(fact: NewFact) -> str:
    """Return the id that the fact will have in the store."""
    object_ = fact.object if fact.is_value else entity_id(fact.object)
    return fact_id(entity_id(fact.subject), fact.predicate, object_, is_entity=not fact.is_value)


def get_statement(fact: NewFact) -> str:
    """Return the statement of a fact, or "subject predicate object" if it is blank."""
    own = fact.statement if fact.statement.strip() else ""
    return own or f"{fact.subject} {spell_predicate(fact.predicate)} {fact.object}"


def spell_predicate(predicate: str) -> str:
    """Return a predicate with spaces instead of underscores."""
    return predicate.replace("_", " ")


def _collect_types(facts: Iterable[NewFact]) -> dict[str, str]:
    """Return the names of all entities in facts, each with the first type that a fact gives it."""
    types: dict[str, str] = {}
    for fact in facts:
        ends = [(fact.subject, fact.subject_type), (fact.object, fact.object_type)]
        for name, type_ in ends[:1] if fact.is_value else ends:
            types[name] = types.get(name) or type_
    return types


def _build_entities(extraction: Extraction) -> dict[str, Entity]:
    """Return the entities named in a passage, by id."""
    types = _collect_types(extraction.facts)
    entities: dict[str, Entity] = {}
    for name in dict.fromkeys((*extraction.names, *types)):
        type_ = extraction.names.get(name) or types.get(name, "")
        aliases = tuple(extraction.aliases.get(name, ()))
        entity = Entity(entity_id(name), name, type_, extraction.descriptions.get(name, ""), aliases)
        entities[entity.id] = _merge_entities(entities.get(entity.id), entity)
    return entities


def _merge_entities(known: Entity | None, other: Entity) -> Entity:
    """Merge two descriptions of one entity: the first name and type, all aliases, the longest description."""
    if known is None or known == other:
        return other
    return replace(
        known,
        type=known.type or other.type,
        description=max(known.description, other.description, key=len),
        aliases=tuple(dict.fromkeys((*known.aliases, *other.aliases))),
    )


def _build_mentions(passage: Passage, named: Mapping[str, Entity]) -> list[Mention]:
    text, titles = normalise(passage.text), _get_title_names(passage.title)
    mentions = []
    for id_, entity in named.items():
        name = normalise(entity.name)
        mentions.append(Mention(id_, passage.id, max(count_occurrences(name, text), 1), name in titles))
    return mentions


def _get_title_names(title: str) -> set[str]:
    """Return the names in a title: `Mercury (planet)` names itself and Mercury."""
    return {normalise(title), normalise(get_subject(title))} - {""}


def _is_named(name: str, text: str, passage: Passage) -> bool:
    return count_occurrences(name, text) > 0 or name in _get_title_names(passage.title)


def _build_fact(fact: NewFact, passage: Passage, document: Document) -> Fact:
    return Fact(
        id=compute_fact_id(fact),
        subject_id=entity_id(fact.subject),
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        object_id="" if fact.is_value else entity_id(fact.object),
        passage_id=passage.id,
        statement=fact.statement,
        weight=fact.weight,
        confidence=fact.confidence,
        source=fact.source,
        status=fact.status,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        recorded_at=document.recorded_at,
        is_own=fact.is_own,
    )


def _build_pair(fact: NewFact, passage: Passage, document: Document) -> Fact:
    return make_pair(fact, (entity_id(fact.subject), entity_id(fact.object)), passage.id, document.recorded_at)


def _find_passage(fact: NewFact, texts: Sequence[str]) -> int:
    """Return the number of the first passage that has the statement of a fact, else most of its parts."""
    statement = normalise(fact.statement)
    parts = [normalise(part) for part in (fact.subject, spell_predicate(fact.predicate), fact.object)]

    def count_matches(number: int) -> tuple[bool, int]:
        text = texts[number]
        return bool(statement) and statement in text, sum(count_occurrences(part, text) > 0 for part in parts)

    return max(range(len(texts)), key=count_matches)
