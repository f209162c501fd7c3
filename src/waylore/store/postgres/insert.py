"""Insert documents into the PostgreSQL store, inside a transaction that the store has begun.

Rows are sent as arrays, one statement for each table, and no statement waits for the one before it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from pgvector import HalfVector

from waylore.deadline import check_each
from waylore.store import bm25
from waylore.store import rows as columns
from waylore.store.checks import check_vector
from waylore.store.packing import pack_parts, split_by_passage
from waylore.store.postgres.connections import Connection, run_by_column
from waylore.store.postgres.index import index_packs, insert_assertions, insert_mentions, insert_packs
from waylore.store.postgres.name_keys import add_keys
from waylore.store.postgres.scope import (
    PostgresCollection,
    make_access_word,
    make_tag_word,
    make_term_ending,
    make_term_word,
    run,
    run_by_ids,
    run_many,
)
from waylore.store.postgres.steps import name_vector_tables
from waylore.store.rows import Change, StoredDocument
from waylore.store.vectors import Codes, format_bits, quantise
from waylore.text import terms
from waylore.types.identity import add_scope, identity
from waylore.types.knowledge import IndexedDocument, Passage, Vector

Access: TypeAlias = tuple[frozenset[str], str]  # labels and a user


def insert_documents(
    db: Connection, into: PostgresCollection, changed: Sequence[tuple[IndexedDocument, str]], change: Change
) -> None:
    """Insert documents, each with its digest. No part of them may be stored yet."""
    accesses, into = _number_accesses(db, into, [c for c, _ in changed])
    stored = [StoredDocument(c, digest, accesses[_get_access(c)]) for c, digest in changed]
    _insert_documents(db, into.key, stored, change)
    into = _insert_passages(db, into, stored, change)
    bound = {"next_passage": into.next_passage, "next_term": into.next_term, "next_access": into.next_access}
    run(db, "set_next", collection=into.key, **bound)
    _insert_entities(db, into, stored, change)
    _insert_profiles(db, into.key, stored)
    change.touched_entities.update((e.id, p.access) for p in stored for e in p.indexed.entities)
    _insert_packs(db, into, stored, change)


def _number_accesses(
    db: Connection, into: PostgresCollection, indexed: Sequence[IndexedDocument]
) -> tuple[dict[Access, int], PostgresCollection]:
    """Return the number of each set of labels with its user. A new one gets the next number."""
    documents = Counter(_get_access(c) for c in indexed)
    ids = {access: add_scope(identity("labels", *sorted(access[0])), access[1:]) for access in documents}
    known = {id_.hex(): n for id_, n in run_by_ids(db, "known_accesses", ids.values(), collection=into.key)}
    fresh = [access for access, id_ in ids.items() if id_ not in known]
    numbers = {access: known[id_] for access, id_ in ids.items() if id_ in known}
    numbers |= {access: into.next_access + i for i, access in enumerate(fresh)}
    for (labels, user), id_ in ids.items():
        own = {"access": numbers[labels, user], "id": id_, "labels": sorted(labels), "user": user}
        run(db, "use_access", collection=into.key, **own, documents=documents[labels, user])
    return numbers, replace(into, next_access=into.next_access + len(fresh))


def _get_access(indexed: IndexedDocument) -> Access:
    return indexed.document.labels, indexed.document.user


def _insert_documents(db: Connection, into: int, stored: Sequence[StoredDocument], change: Change) -> None:
    run_many(db, "insert_document", into, [_make_document_row(p) for p in stored])
    run_many(db, "insert_document_tag", into, [(p.indexed.document.id, t) for p in stored for t in _hash_tags(p)])
    change.documents += len(stored)


def _hash_tags(stored: StoredDocument) -> list[str]:
    return [identity("tag", tag) for tag in stored.tags]


def _make_document_row(stored: StoredDocument) -> tuple[Any, ...]:
    document = stored.indexed.document
    return (
        document.id,
        stored.access,
        document.title,
        document.uri,
        document.source,
        json.dumps(dict(document.metadata), ensure_ascii=False),
        columns.dump_labels(document.labels),
        columns.to_microseconds(document.recorded_at),
        stored.digest,
        document.user,
        document.agent,
        document.session,
        columns.to_optional_microseconds(document.at),
        columns.to_optional_microseconds(document.expires),
        document.author,
    )


# -- passages ------------------------------------------------------------------------------------------


def _insert_passages(
    db: Connection, into: PostgresCollection, stored: Sequence[StoredDocument], change: Change
) -> PostgresCollection:
    passages = [(p, passage) for p in stored for passage in p.indexed.passages]
    numbers = range(into.next_passage, into.next_passage + len(passages))
    run_many(
        db,
        "insert_passage",
        into.key,
        [_make_passage_row(p, q, number) for number, (p, q) in zip(numbers, passages, strict=True)],
    )
    heard = [(p, q) for p, q in passages if not q.is_silent]
    change.passages.update(p.access for p, _ in heard)
    change.turns.update(p.access for p, q in passages if q.role)
    next_term = _insert_words(db, into, numbers, passages, change)
    encoded = make_passage_vectors(_quantise(into, [q.vector for _, q in heard]))
    vectors = [(q.id, *vector, q.document_id, p.access) for (p, q), vector in zip(heard, encoded, strict=False)]
    insert_vectors(db, "insert_passage_vector", into, vectors)
    change.touched_passages.update((q.id, p.access) for p, q in passages)
    return replace(into, next_passage=into.next_passage + len(passages), next_term=next_term)


def _make_passage_row(stored: StoredDocument, passage: Passage, number: int) -> tuple[Any, ...]:
    return (
        passage.id,
        number,
        passage.document_id,
        stored.access,
        passage.position,
        passage.title,
        passage.text,
        passage.start,
        passage.end,
        json.dumps(passage.headings, ensure_ascii=False),
        passage.speaker,
        passage.role,
        columns.to_optional_microseconds(passage.at),
        columns.compute_session_key(stored.indexed.document, passage),
    )


def _insert_words(
    db: Connection,
    into: PostgresCollection,
    numbers: Sequence[int],
    passages: Sequence[tuple[StoredDocument, Passage]],
    change: Change,
) -> int:
    """Index the words of passages, and return the next free number of a term."""
    found = [terms(columns.join_searchable_text(q.title, q.text)) for _, q in check_each(passages)]
    counts = [Counter(each) for each in found]
    term_numbers, next_term = _add_terms(db, into, Counter(term for count in counts for term in count))
    rows = []
    by_access: Counter[tuple[int, int]] = Counter()
    for number, each, count, (p, q) in zip(numbers, found, counts, passages, strict=True):
        counted = {term_numbers[t]: n for t, n in count.items()}
        packed = bm25.pack_terms(Counter(counted))
        turn = columns.make_turn_row(p, q, [term_numbers[t] for t in each])
        rows.append(
            (number, q.id, count.total(), packed, "" if q.is_silent else _join_words(into.mark, counted, p), *turn)
        )
        by_access.update((term, p.access) for term in counted)
        change.length[p.access] += count.total()
    run_many(db, "insert_passage_terms", into.key, rows)
    run_many(db, "add_term_count", into.key, [(*key, passages) for key, passages in sorted(by_access.items())])
    return next_term


def _add_terms(db: Connection, into: PostgresCollection, frequency: Counter[str]) -> tuple[dict[str, int], int]:
    ids = {term: identity("term", term) for term in frequency}
    known = {id_.hex(): n for id_, n, _ in run_by_ids(db, "terms", ids.values(), collection=into.key)}
    fresh = [id_ for id_ in ids.values() if id_ not in known]
    known |= {id_: into.next_term + i for i, id_ in enumerate(fresh)}
    run_many(db, "add_term", into.key, [(id_, known[id_], frequency[term]) for term, id_ in ids.items()])
    return {term: known[id_] for term, id_ in ids.items()}, into.next_term + len(fresh)


def _join_words(mark: int, terms: dict[int, int], stored: StoredDocument) -> str:
    ending = make_term_ending(stored.access) if stored.indexed.document.user else ""
    words = [make_term_word(mark, number, ending) for number in terms]
    return " ".join(
        [*words, make_access_word(mark, stored.access), *(make_tag_word(mark, t) for t in _hash_tags(stored))]
    )


def _quantise(into: PostgresCollection, vectors: Sequence[Vector | None]) -> Codes:
    """Return the codes of vectors; no rows if the collection has no model."""
    present = [v for v in (check_vector(v, into.statistics.dimension) for v in vectors) if v is not None]
    return quantise(np.stack(present)) if present else np.empty((0, 0), np.int8)


def insert_vectors(db: Connection, query: str, into: PostgresCollection, rows: Sequence[Sequence[Any]]) -> None:
    """Insert vectors of passages or entities into the tables that have those of the collection."""
    run_by_column(db, name_vector_tables(query, into.own_vectors), into.key, rows)


def make_passage_vectors(codes: Iterable[Codes]) -> list[tuple[HalfVector, int]]:
    """Return codes as whole numbers in half precision, which pgvector searches, with their dimensions."""
    return [(HalfVector(code.astype(np.float16)), len(code)) for code in codes]


def make_entity_vectors(codes: Iterable[Codes]) -> list[tuple[str, bytes, int]]:
    """Return the bits of codes as digits, the codes, and their dimensions."""
    return [(format_bits(code), code.tobytes(), len(code)) for code in codes]


# -- entities ------------------------------------------------------------------------------------------


def _insert_entities(
    db: Connection, into: PostgresCollection, stored: Sequence[StoredDocument], change: Change
) -> None:
    entities = {e.id: e for p in stored for e in p.indexed.entities}
    known = {id_.hex() for id_, _ in run_by_ids(db, "entity_rows", entities, collection=into.key)}
    fresh = [e for id_, e in entities.items() if id_ not in known]
    run_many(db, "insert_entity", into.key, [(e.id, e.sense) for e in fresh])
    encoded = make_entity_vectors(_quantise(into, [e.vector for e in fresh]))
    vectors = [(e.id, *vector) for e, vector in zip(fresh, encoded, strict=False)]
    insert_vectors(db, "insert_entity_vector", into, vectors)
    change.entities += len(fresh)


def _insert_profiles(db: Connection, into: int, stored: Sequence[StoredDocument]) -> None:
    profiles = [(p, e) for p in stored for e in p.indexed.entities]
    run_many(
        db,
        "insert_profile",
        into,
        [
            (
                e.id,
                p.access,
                p.indexed.document.id,
                e.name,
                e.type,
                e.description,
                json.dumps(e.aliases, ensure_ascii=False),
            )
            for p, e in profiles
        ],
    )
    names = Counter(
        (identity("name", name), e.id, p.access) for p, e in profiles for name in columns.list_names(e.name, e.aliases)
    )
    run_many(db, "add_name", into, [(*row, count) for row, count in sorted(names.items())])
    add_keys(db, into, [(e.name, p.access, e.id) for p, e in profiles])


def _insert_packs(db: Connection, into: PostgresCollection, stored: Sequence[StoredDocument], change: Change) -> None:
    """Insert the pack of each passage, and its index rows for entities and facts."""
    parts = [(p, own) for p in stored for own in split_by_passage(p.indexed)]
    encoded = [pack_parts(own, into.statistics.dimension) for _, own in check_each(parts)]
    ids = [own.passage.id for _, own in parts]
    packs = insert_packs(db, into.key, ids, encoded)
    said = [columns.get_time(p.indexed.document, own.passage) for p, own in parts]
    indexed = index_packs(packs, [p.access for p, _ in parts], ids, said)
    insert_mentions(db, into.key, indexed.mentions)
    change.mentions += len(indexed.mentions)
    change.assertions.update(indexed.stated)
    change.facts += insert_assertions(db, into.key, indexed)
