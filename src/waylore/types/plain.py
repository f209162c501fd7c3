"""Return documents, passages, entities and facts as plain values, as every surface writes them in JSON.

The values have no vectors and no internal counts. `surfaces/wire.py` describes the same fields for OpenAPI, and a test
compares both. Fields are written out one by one, because a search returns hundreds of these objects.
"""

from datetime import datetime
from typing import Any

from waylore.types.knowledge import Document, Entity, Fact, IndexedDocument, Passage

Plain = dict[str, Any]


def dump_document(document: Document) -> Plain:
    """Return a document as plain values."""
    metadata = document.metadata.items()
    return {
        "id": document.id,
        "title": document.title,
        "uri": document.uri,
        "source": document.source,
        "metadata": {key: list(value) if isinstance(value, list | tuple) else value for key, value in metadata},
        "labels": sorted(document.labels),
        "recorded_at": dump_time(document.recorded_at),
        "user": document.user,
        "agent": document.agent,
        "session": document.session,
        "at": dump_time(document.at),
        "expires": dump_time(document.expires),
        "author": document.author,
    }


def dump_passage(passage: Passage) -> Plain:
    """Return a passage as plain values."""
    return {
        "id": passage.id,
        "document_id": passage.document_id,
        "title": passage.title,
        "text": passage.text,
        "position": passage.position,
        "start": passage.start,
        "end": passage.end,
        "headings": list(passage.headings),
        "speaker": passage.speaker,
        "role": passage.role,
        "at": dump_time(passage.at),
    }


def dump_entity(entity: Entity) -> Plain:
    """Return an entity as plain values."""
    return {
        "id": entity.id,
        "name": entity.name,
        "type": entity.type,
        "description": entity.description,
        "aliases": list(entity.aliases),
        "passages": entity.passages,
    }


def dump_fact(fact: Fact) -> Plain:
    """Return a fact as plain values."""
    return {
        "id": fact.id,
        "subject": fact.subject,
        "subject_id": fact.subject_id,
        "predicate": fact.predicate,
        "object": fact.object,
        "object_id": fact.object_id,
        "statement": fact.statement,
        "weight": fact.weight,
        "confidence": fact.confidence,
        "source": fact.source,
        "status": fact.status,
        "valid_from": dump_time(fact.valid_from),
        "valid_to": dump_time(fact.valid_to),
        "passage_id": fact.passage_id,
    }


def dump_indexed_document(indexed: IndexedDocument) -> Plain:
    """Return a document with its passages, entities and facts as plain values."""
    return {
        "document": dump_document(indexed.document),
        "passages": [dump_passage(passage) for passage in indexed.passages],
        "entities": [dump_entity(entity) for entity in indexed.entities],
        "facts": [dump_fact(fact) for fact in indexed.facts],
    }


def dump_time(moment: datetime | None) -> str | None:
    """Return a time as ISO 8601 text, with Z for UTC."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
