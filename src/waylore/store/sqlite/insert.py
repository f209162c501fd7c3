"""Insert documents into the SQLite store, inside a transaction that the store has begun."""

import json
from collections import Counter
from collections.abc import Sequence

import apsw

from waylore.deadline import check_each
from waylore.store import bm25
from waylore.store import rows as columns
from waylore.store.packing import pack_parts, split_by_passage
from waylore.store.packs import Packs
from waylore.store.rows import Change, StoredDocument, make_turn_row
from waylore.store.sql import load_queries
from waylore.store.sqlite.blocks import allocate_rows, insert_vectors
from waylore.store.sqlite.index import index_packs, insert_assertions, insert_mentions, insert_packs
from waylore.store.sqlite.name_keys import add_keys
from waylore.store.sqlite.scope import (
    SqliteCollection,
    make_access_word,
    make_tag_word,
    run_by_ids,
)
from waylore.text import terms
from waylore.types.knowledge import IndexedDocument, Passage

SQL = load_queries("waylore.store.sqlite")


def insert_documents(
    db: apsw.Connection,
    into: SqliteCollection,
    changed: Sequence[tuple[IndexedDocument, bytes]],
    change: Change,
) -> None:
    """Insert documents, each with its digest. No part of them may be stored yet."""
    stored = [_insert_document(db, into.row, indexed, digest) for indexed, digest in check_each(changed)]
    change.documents += len(stored)
    passages, next_passage = _insert_passages(db, into, stored, change)
    entities, next_entity = _insert_entities(db, into, stored, change)
    db.execute(
        SQL["set_next"],
        {"collection": into.row, "next_passage": next_passage, "next_entity": next_entity},
    )
    _insert_profiles(db, into.row, stored, entities)
    _insert_packs(db, into, stored, passages, entities, change)


def _insert_document(db: apsw.Connection, into: int, indexed: IndexedDocument, digest: bytes) -> StoredDocument:
    document = indexed.document
    labels = columns.dump_labels(document.labels)
    access = db.execute(SQL["use_access"], {"collection": into, "labels": labels, "user": document.user}).get
    id_ = bytes.fromhex(document.id)
    row = db.execute(
        SQL["insert_document"],
        (
            into,
            id_,
            columns.make_sort_key(id_),
            access,
            document.title,
            document.uri,
            document.source,
            json.dumps(dict(document.metadata), ensure_ascii=False),
            labels,
            columns.to_microseconds(document.recorded_at),
            digest,
            document.user,
            document.agent,
            document.session,
            columns.to_optional_microseconds(document.at),
            columns.to_optional_microseconds(document.expires),
            document.author,
        ),
    ).get
    stored = StoredDocument(indexed, digest.hex(), access, row)
    db.executemany(SQL["insert_document_tag"], [(row, t) for t in stored.tags])
    return stored


def _insert_passages(
    db: apsw.Connection, into: SqliteCollection, stored: Sequence[StoredDocument], change: Change
) -> tuple[dict[str, int], int]:
    passages = [(p, passage) for p in stored for passage in p.indexed.passages]
    rows, next_row = allocate_rows(db, into, "passage", len(passages), into.next_passage)
    db.executemany(
        SQL["insert_passage"],
        [
            (
                row,
                into.row,
                bytes.fromhex(q.id),
                p.row,
                bytes.fromhex(q.document_id),
                p.access,
                q.position,
                q.title,
                q.text,
                q.start,
                q.end,
                json.dumps(q.headings, ensure_ascii=False),
                q.speaker,
                q.role,
                columns.to_optional_microseconds(q.at),
                columns.compute_session_key(p.indexed.document, q),
            )
            for row, (p, q) in zip(rows, passages, strict=True)
        ],
    )
    change.passages.update(p.access for p, q in passages if not q.is_silent)
    change.turns.update(p.access for p, q in passages if q.role)
    _insert_words(db, into.row, rows, passages, change)
    found = [(row, q.vector) for row, (_, q) in zip(rows, passages, strict=True) if not q.is_silent]
    insert_vectors(db, into, "passage", [row for row, _ in found], [vector for _, vector in found])
    return {q.id: row for row, (_, q) in zip(rows, passages, strict=True)}, next_row


def _insert_words(
    db: apsw.Connection,
    into: int,
    rows: Sequence[int],
    passages: Sequence[tuple[StoredDocument, Passage]],
    change: Change,
) -> None:
    """Index and count the words of passages."""
    found = [terms(columns.join_searchable_text(q.title, q.text)) for _, q in check_each(passages)]
    counts = [Counter(each) for each in found]
    term_rows = _count_terms(db, into, [(p.access, count) for (p, _), count in zip(passages, counts, strict=True)])
    db.executemany(
        SQL["insert_passage_terms"],
        [
            (
                row,
                count.total(),
                bm25.pack_terms(Counter({term_rows[t]: n for t, n in count.items()})),
                *make_turn_row(p, q, [term_rows[t] for t in each]),
            )
            for row, (p, q), each, count in zip(rows, passages, found, counts, strict=True)
        ],
    )
    db.executemany(
        SQL["insert_words"],
        [
            (row, join_index_words(into, [term_rows[t] for t in count], p.access, p.tags))
            for row, (p, q), count in zip(rows, passages, counts, strict=True)
            if not q.is_silent
        ],
    )
    for (p, _), count in zip(passages, counts, strict=True):
        change.length[p.access] += count.total()


def _count_terms(db: apsw.Connection, into: int, passages: Sequence[tuple[int, Counter[str]]]) -> dict[str, int]:
    """Count the passages that have a term, given with their permissions, and return the row of each term."""
    by_access = Counter((term, access) for access, count in passages for term in count)
    frequency = Counter(term for _, count in passages for term in count)
    db.executemany(SQL["add_term"], [(into, term, n) for term, n in frequency.items()])
    rows = _find_term_rows(db, into, tuple(frequency))
    db.executemany(SQL["add_term_count"], [(rows[term], access, n) for (term, access), n in by_access.items()])
    return rows


def _find_term_rows(db: apsw.Connection, into: int, terms: tuple[str, ...]) -> dict[str, int]:
    if not terms:
        return {}
    found = db.execute(SQL["terms"], {"collection": into, "terms": apsw.carray(terms)})
    return {term: row for term, row, *_ in found}


def join_index_words(of: int, terms: Sequence[int], access: int, tags: Sequence[str]) -> str:
    """Return the text of a passage in the inverted index. Deleting the passage needs the same text."""
    return " ".join([*map(str, terms), make_access_word(of, access), *(make_tag_word(of, t) for t in tags)])


def _insert_entities(
    db: apsw.Connection, into: SqliteCollection, stored: Sequence[StoredDocument], change: Change
) -> tuple[dict[str, int], int]:
    entities = {e.id: e for p in stored for e in p.indexed.entities}
    found = run_by_ids(db, "entity_rows", list(entities), collection=into.row)
    known = {id_.hex(): row for id_, row in found}
    fresh = [e for id_, e in entities.items() if id_ not in known]
    rows, next_row = allocate_rows(db, into, "entity", len(fresh), into.next_entity)
    db.executemany(
        SQL["insert_entity"],
        [(row, into.row, bytes.fromhex(e.id), e.sense) for row, e in zip(rows, fresh, strict=True)],
    )
    change.entities += len(fresh)
    insert_vectors(db, into, "entity", rows, [e.vector for e in fresh])
    return known | {e.id: row for row, e in zip(rows, fresh, strict=True)}, next_row


def _insert_profiles(
    db: apsw.Connection, into: int, stored: Sequence[StoredDocument], entities: dict[str, int]
) -> None:
    profiles = [(p, e, entities[e.id]) for p in stored for e in p.indexed.entities]
    db.executemany(
        SQL["insert_profile"],
        [
            (
                row,
                p.access,
                p.sort_key,
                p.row,
                e.name,
                e.type,
                e.description,
                json.dumps(e.aliases, ensure_ascii=False),
            )
            for p, e, row in profiles
        ],
    )
    db.executemany(
        SQL["add_name"],
        [(into, name, row, p.access) for p, e, row in profiles for name in columns.list_names(e.name, e.aliases)],
    )
    add_keys(db, into, [(e.name, p.access, row) for p, e, row in profiles])


def _insert_packs(
    db: apsw.Connection,
    into: SqliteCollection,
    stored: Sequence[StoredDocument],
    passages: dict[str, int],
    entities: dict[str, int],
    change: Change,
) -> None:
    """Insert the pack of each passage, and its index rows for entities and facts."""
    parts = [(p, own) for p in stored for own in split_by_passage(p.indexed)]
    encoded = [pack_parts(own, into.statistics.dimension) for _, own in check_each(parts)]
    rows = [passages[own.passage.id] for _, own in parts]
    insert_packs(db, rows, encoded)
    accesses, ids = [p.access for p, _ in parts], [own.passage.id for _, own in parts]
    packs = Packs([each.pack for each in encoded])
    said = [columns.get_time(p.indexed.document, own.passage) for p, own in parts]
    indexed = index_packs(packs, into.row, accesses, ids, rows, entities, said)
    insert_mentions(db, indexed.mentions)
    change.mentions += len(indexed.mentions)
    change.assertions.update(indexed.stated)
    change.facts += insert_assertions(db, into.row, indexed)
