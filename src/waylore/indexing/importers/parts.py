"""Assemble imported documents from parts that another program has split and extracted.

An importer passes the parts of a document, each with its facts and entities. The id of the result is computed from its
content and its labels, so importing the same data again gives the same document. The module reads no format.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from waylore.indexing.assembly import get_statement
from waylore.indexing.pipeline import index_text
from waylore.text import count_occurrences, normalise
from waylore.types.identity import add_scope, entity_id, identity
from waylore.types.knowledge import Document, Entity, Fact, IndexedDocument, Mention, NewFact, Passage

_GAP_CHARACTERS = 2  # characters between two parts, like a blank line


@dataclass(frozen=True, slots=True)
class ImportedPart:
    """A part of a document that another program has split, with its facts, its entities and its offset."""

    text: str
    facts: tuple[NewFact, ...] = ()
    entities: tuple[Entity, ...] = ()
    start: int | None = None  # None: directly after the previous part


def make_document(template: Document, kind: str, *content: str, **fields: str) -> Document:
    """Return the template with an id made of kind, content, labels and user, and with a title and a uri."""
    own = identity("document", "imported", kind, repr(content), *sorted(template.labels))
    id_ = add_scope(own, (template.user,))
    return replace(template, id=id_, title=fields.get("title", ""), uri=fields.get("uri", ""))


def make_fact_document(fact: NewFact, template: Document) -> IndexedDocument:
    """Index a fact that has no text; the same fact from another source is another document."""
    content = (fact.subject, fact.predicate, fact.object, fact.statement, fact.source, str(fact.valid_from))
    # "claim" is part of the ids of stored documents, so the word stays.
    own = make_document(template, "claim", *content, "value" if fact.is_value else "")
    document = replace(own, title=template.title, uri=template.uri, source=fact.source)
    statement = get_statement(fact)
    return index_text(document, statement, [replace(fact, statement=statement)])


def make_entity(name: str, type_: str = "", description: str = "", aliases: Sequence[str] = ()) -> Entity:
    """Return an entity without aliases that repeat its name or another alias."""
    others = {normalise(alias): alias for alias in aliases if alias.strip()}
    others.pop(normalise(name), None)
    return Entity(entity_id(name), name, type_, description, tuple(others.values()))


def make_entity_document(entity: Entity, template: Document) -> IndexedDocument:
    """Index the description of an entity as a document with its name as the title."""
    text = entity.description or (f"{entity.name}: {entity.type}" if entity.type else entity.name)
    content = (entity.name, entity.type, text, *entity.aliases)
    document = make_document(template, "entity", *content, title=entity.name)
    return assemble_parts(document, [ImportedPart(text)], [entity])


def assemble_parts(
    document: Document, parts: Iterable[ImportedPart], subjects: Sequence[Entity] = ()
) -> IndexedDocument:
    """Index a document from its parts; the document's subjects are own entities of every passage."""
    indexed = list(_index_parts(document, parts))
    passages = {p.id: p for part in reversed(indexed) for p in reversed(part.passages)}
    ordered = sorted(passages.values(), key=lambda p: p.start)
    mentions = {(m.entity_id, m.passage_id): m for part in indexed for m in part.mentions}
    own = {(e.id, p.id): Mention(e.id, p.id, 1, is_own=True) for e in subjects for p in ordered}
    own = {key: replace(mentions.get(key, mention), is_own=True) for key, mention in own.items()}
    facts: dict[tuple[str, str], Fact] = {(f.id, f.passage_id): f for part in indexed for f in part.facts}
    return IndexedDocument(
        document,
        tuple(replace(p, position=position) for position, p in enumerate(ordered)),
        tuple(_merge_entities([*subjects, *(e for part in indexed for e in part.entities)]).values()),
        tuple((mentions | own).values()),
        tuple(facts.values()),
        tuple({(f.id, f.passage_id): f for part in indexed for f in part.pairs}.values()),
    )


def _index_parts(document: Document, parts: Iterable[ImportedPart]) -> Iterator[IndexedDocument]:
    """Index each part by itself, with offsets into the whole document."""
    after = 0
    for part in parts:
        start = after if part.start is None else part.start
        indexed = _add_entities(index_text(document, part.text, part.facts), part.entities)
        moved = (replace(p, start=p.start + start, end=p.end + start) for p in indexed.passages)
        yield replace(indexed, passages=tuple(moved))
        after = start + len(part.text) + _GAP_CHARACTERS


def _add_entities(indexed: IndexedDocument, added: Sequence[Entity]) -> IndexedDocument:
    """Add entities and their mentions. An entity whose name occurs nowhere gets a mention in the first passage."""
    if not added:
        return indexed
    texts = {p.id: normalise(p.text) for p in indexed.passages}
    known = {(m.entity_id, m.passage_id) for m in indexed.mentions}
    found = (m for e in added for m in _find_mentions(e, texts, indexed.passages[0]))
    mentions = {(m.entity_id, m.passage_id): m for m in found}
    new = tuple(m for key, m in mentions.items() if key not in known)
    entities = tuple(_merge_entities([*indexed.entities, *added]).values())
    return replace(indexed, entities=entities, mentions=indexed.mentions + new)


def _find_mentions(entity: Entity, texts: Mapping[str, str], first: Passage) -> list[Mention]:
    name = normalise(entity.name)
    counts = {id_: count_occurrences(name, text) for id_, text in texts.items()}
    return [Mention(entity.id, id_, n) for id_, n in counts.items() if n] or [Mention(entity.id, first.id)]


def _merge_entities(entities: Iterable[Entity]) -> dict[str, Entity]:
    """Return each entity once: the first one, completed by the type, description and aliases of the others."""
    merged: dict[str, Entity] = {}
    for other in entities:
        first = merged.setdefault(other.id, other)
        described = first.description or other.description
        aliases = tuple(dict.fromkeys(first.aliases + other.aliases))
        merged[other.id] = replace(first, type=first.type or other.type, description=described, aliases=aliases)
    return merged
