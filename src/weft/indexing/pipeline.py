"""From what a caller adds to what the store holds: contributions, their vectors, one write.

A text becomes a document with passages; a claim becomes a fact with its two ends, supported by the passage
that states it. A claim that comes without a text is its own document, so that it can be found, explained
and forgotten like any other. Nothing here extracts facts from text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from weft.errors import DimensionMismatch, QueryError
from weft.indexing.chunking import pieces
from weft.models import Embedder, Vectors
from weft.store.base import Store
from weft.text import normalise, occurrences, without_aside
from weft.types import (
    Claim,
    Contribution,
    Document,
    Embeddable,
    Entity,
    Fact,
    Mention,
    Passage,
    entity_id,
    fact_id,
    identity,
    passage_id,
)

Read: TypeAlias = tuple[Passage, str, set[str]]  # a passage, its text normalised, and what its title names


def contribution(document: Document, text: str, claims: Sequence[Claim] = ()) -> Contribution:
    """A document with its text cut into passages, and the claims that they support."""
    passages = _passages(document, text)
    if not passages:
        raise QueryError("there is nothing to add: the text is empty")
    entities = _entities(claims)
    read = [(p, normalise(p.text), _names_of_title(p.title)) for p in passages]
    mentions = [m for e in entities for m in _mentions(e, read)]
    facts = [_fact(claim, read, document) for claim in claims]
    told = {(m.entity_id, m.passage_id) for m in mentions}
    ends = {(end, f.passage_id) for f in facts for end in f.ends}
    mentions += [Mention(e, p) for e, p in sorted(ends - told)]
    distinct = {(f.id, f.passage_id): f for f in facts}
    return Contribution(document, tuple(passages), tuple(entities), tuple(mentions), tuple(distinct.values()))


def stated(claim: Claim, document: Document) -> Contribution:
    """A claim that comes without a text, as a document of its own."""
    statement = claim.statement or f"{claim.subject} {_words(claim.predicate)} {claim.object}"
    own = identity("document", "fact", _id(claim), *sorted(document.labels))
    return contribution(replace(document, id=own), statement, [replace(claim, statement=statement)])


def write(store: Store, embedder: Embedder | None, contributions: Sequence[Contribution]) -> int:
    """Embed what is new or changed and write it; what is there already costs a look."""
    digests = store.digests([c.document.id for c in contributions])
    changed = [c for c in contributions if digests.get(c.document.id) != c.digest]
    if not changed:
        return 0
    if embedder is None:
        return store.write(changed, model=None)
    return store.write(embedded(changed, embedder), model=embedder.name)


def embedded(contributions: Sequence[Contribution], embedder: Embedder) -> list[Contribution]:
    """Contributions with the vectors of their passages, entities and facts; each text is embedded once."""
    vectors = vectors_of((p for c in contributions for p in c.parts), embedder)
    return [
        replace(
            c,
            passages=tuple(replace(p, vector=vectors[p.embeddable]) for p in c.passages),
            entities=tuple(replace(e, vector=vectors[e.embeddable]) for e in c.entities),
            facts=tuple(replace(f, vector=vectors[f.embeddable]) for f in c.facts),
        )
        for c in contributions
    ]


def vectors_of(parts: Iterable[Embeddable], embedder: Embedder) -> dict[str, Vectors]:
    """The vector of each distinct text."""
    texts = list(dict.fromkeys(part.embeddable for part in parts))
    rows = embedder.embed_passages(texts)
    if rows.shape != (len(texts), embedder.dimension):
        raise DimensionMismatch(
            f"{embedder.name} gave vectors of shape {rows.shape} for {len(texts)} texts, "
            f"not {(len(texts), embedder.dimension)}"
        )
    return dict(zip(texts, rows.astype(np.float32), strict=True))


def _passages(document: Document, text: str) -> list[Passage]:
    """Pieces of the text; one that comes again is the same passage, where it came first."""
    passages: dict[str, Passage] = {}
    for position, (start, end) in enumerate(pieces(text)):
        said = text[start:end]
        id_ = passage_id(document.id, said)
        passages.setdefault(id_, Passage(id_, document.id, said, document.title, position, start, end))
    return list(passages.values())


def _entities(claims: Iterable[Claim]) -> list[Entity]:
    named = [(c.subject, c.subject_type) for c in claims]
    named += [(c.object, c.object_type) for c in claims if not c.is_value]
    entities: dict[str, Entity] = {}
    for name, type_ in named:
        known = entities.get(entity_id(name))
        if known is None or (type_ and not known.type):
            entities[entity_id(name)] = Entity(entity_id(name), known.name if known else name, type_)
    return list(entities.values())


def _mentions(entity: Entity, read: Iterable[Read]) -> list[Mention]:
    name = normalise(entity.name)
    found = []
    for passage, text, titles in read:
        count, is_own = occurrences(name, text), name in titles
        if count or is_own:
            found.append(Mention(entity.id, passage.id, max(count, 1), is_own))
    return found


def _names_of_title(title: str) -> set[str]:
    """What a title names: `Mercury (planet)` names itself and Mercury."""
    return {normalise(title), normalise(without_aside(title))} - {""}


def _fact(claim: Claim, read: Sequence[Read], document: Document) -> Fact:
    return Fact(
        id=_id(claim),
        subject_id=entity_id(claim.subject),
        subject=claim.subject,
        predicate=claim.predicate,
        object=claim.object,
        object_id="" if claim.is_value else entity_id(claim.object),
        passage_id=_place(claim, read).id,
        statement=claim.statement,
        weight=claim.weight,
        confidence=claim.confidence,
        source=claim.source,
        status=claim.status,
        valid_from=claim.valid_from,
        valid_to=claim.valid_to,
        recorded_at=document.recorded_at,
    )


def _place(claim: Claim, read: Sequence[Read]) -> Passage:
    """The passage that states a claim word for word, or names most of it; the first of several."""
    statement = normalise(claim.statement)
    parts = [normalise(part) for part in (claim.subject, _words(claim.predicate), claim.object)]

    def said(passage: Read) -> tuple[bool, int]:
        _, text, _ = passage
        return bool(statement) and statement in text, sum(occurrences(part, text) > 0 for part in parts)

    return max(read, key=said)[0]


def _id(claim: Claim) -> str:
    object_ = claim.object if claim.is_value else entity_id(claim.object)
    return fact_id(entity_id(claim.subject), claim.predicate, object_, is_entity=not claim.is_value)


def _words(predicate: str) -> str:
    return predicate.replace("_", " ")
