"""Puts a document together from what was found in its passages: entities, mentions, facts, each in its place.

It finds nothing itself: an extractor has read each passage (`extraction`, `waylore.providers`), or a caller has
said what a text states and `placed` looks for where.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from waylore.protocols import Extraction
from waylore.text import normalise, occurrences, without_aside
from waylore.types.identity import entity_id, fact_id
from waylore.types.knowledge import Claim, Contribution, Document, Entity, Fact, Mention, Passage


def assembled(
    document: Document, passages: Sequence[Passage], extractions: Sequence[Extraction]
) -> Contribution:
    """A document with its passages and with what each of them says."""
    entities: dict[str, Entity] = {}
    mentions: list[Mention] = []
    facts: dict[tuple[str, str], Fact] = {}
    for passage, said in zip(passages, extractions, strict=True):
        told = _entities(said)
        for id_, entity in told.items():
            entities[id_] = _united(entities.get(id_), entity)
        mentions += _mentions(passage, told)
        facts |= {(f.id, passage.id): f for f in (_fact(c, passage, document) for c in said.claims)}
    return Contribution(
        document, tuple(passages), tuple(entities.values()), tuple(mentions), tuple(facts.values())
    )


def together(first: Extraction, second: Extraction) -> Extraction:
    """What two have found in one passage."""
    return Extraction(
        (*first.claims, *second.claims),
        {**first.names, **second.names},
        {**first.descriptions, **second.descriptions},
        {**first.aliases, **second.aliases},
    )


def placed(passages: Sequence[Passage], claims: Iterable[Claim]) -> list[Extraction]:
    """Claims by the passage that states each, and in every passage the names that they are about."""
    claims = list(claims)
    read = [normalise(p.text) for p in passages]
    told: list[list[Claim]] = [[] for _ in passages]
    for claim in claims:
        told[_place(claim, read)].append(claim)
    types = _types(claims)
    named = {name: normalise(name) for name in types}
    return [
        Extraction(tuple(said), {name: types[name] for name in named if _names(named[name], text, passage)})
        for passage, text, said in zip(passages, read, told, strict=True)
    ]


def claim_id(claim: Claim) -> str:
    """The identity of the fact that a claim becomes."""
    object_ = claim.object if claim.is_value else entity_id(claim.object)
    return fact_id(entity_id(claim.subject), claim.predicate, object_, is_entity=not claim.is_value)


def statement_of(claim: Claim) -> str:
    """What a claim says, in its own words, if they are more than blanks, or in those of its parts."""
    own = claim.statement if claim.statement.strip() else ""
    return own or f"{claim.subject} {words(claim.predicate)} {claim.object}"


def words(predicate: str) -> str:
    """A predicate as it would be said."""
    return predicate.replace("_", " ")


def _types(claims: Iterable[Claim]) -> dict[str, str]:
    """What claims are about, by name, with the first type that is told of it."""
    types: dict[str, str] = {}
    for claim in claims:
        ends = [(claim.subject, claim.subject_type), (claim.object, claim.object_type)]
        for name, type_ in ends[:1] if claim.is_value else ends:
            types[name] = types.get(name) or type_
    return types


def _entities(said: Extraction) -> dict[str, Entity]:
    """What a passage names, by identity."""
    types = _types(said.claims)
    found: dict[str, Entity] = {}
    for name in dict.fromkeys((*said.names, *types)):
        type_, description = said.names.get(name) or types.get(name, ""), said.descriptions.get(name, "")
        told = Entity(entity_id(name), name, type_, description, tuple(said.aliases.get(name, ())))
        found[told.id] = _united(found.get(told.id), told)
    return found


def _united(known: Entity | None, told: Entity) -> Entity:
    """An entity as one document has it: the first name and type, all aliases, the longest description."""
    if known is None or known == told:
        return told
    return replace(
        known,
        type=known.type or told.type,
        description=max(known.description, told.description, key=len),
        aliases=tuple(dict.fromkeys((*known.aliases, *told.aliases))),
    )


def _mentions(passage: Passage, told: Mapping[str, Entity]) -> list[Mention]:
    text, titles = normalise(passage.text), _names_of_title(passage.title)
    found = []
    for id_, entity in told.items():
        name = normalise(entity.name)
        found.append(Mention(id_, passage.id, max(occurrences(name, text), 1), name in titles))
    return found


def _names_of_title(title: str) -> set[str]:
    """What a title names: `Mercury (planet)` names itself and Mercury."""
    return {normalise(title), normalise(without_aside(title))} - {""}


def _names(name: str, text: str, passage: Passage) -> bool:
    return occurrences(name, text) > 0 or name in _names_of_title(passage.title)


def _fact(claim: Claim, passage: Passage, document: Document) -> Fact:
    return Fact(
        id=claim_id(claim),
        subject_id=entity_id(claim.subject),
        subject=claim.subject,
        predicate=claim.predicate,
        object=claim.object,
        object_id="" if claim.is_value else entity_id(claim.object),
        passage_id=passage.id,
        statement=claim.statement,
        weight=claim.weight,
        confidence=claim.confidence,
        source=claim.source,
        status=claim.status,
        valid_from=claim.valid_from,
        valid_to=claim.valid_to,
        recorded_at=document.recorded_at,
    )


def _place(claim: Claim, read: Sequence[str]) -> int:
    """The passage that states a claim word for word, or names most of it; the first of several."""
    statement = normalise(claim.statement)
    parts = [normalise(part) for part in (claim.subject, words(claim.predicate), claim.object)]

    def said(number: int) -> tuple[bool, int]:
        text = read[number]
        return bool(statement) and statement in text, sum(occurrences(part, text) > 0 for part in parts)

    return max(range(len(read)), key=said)
