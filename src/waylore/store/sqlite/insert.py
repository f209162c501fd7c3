"""Inserting contributions into the SQLite store, inside a transaction that the store began."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from waylore.store import bm25, vectors
from waylore.store import rows as columns
from waylore.store.checks import checked
from waylore.store.rows import Change
from waylore.store.sql import load_queries
from waylore.store.sqlite.blocks import allocate, insert_vectors
from waylore.store.sqlite.name_keys import add_keys
from waylore.store.sqlite.scope import Collection, access_word, by_ids, by_rows, tag_word
from waylore.text import terms
from waylore.types.knowledge import Contribution, Fact, Passage

SQL = load_queries("waylore.store.sqlite")


@dataclass(frozen=True, slots=True)
class Placed:
    """A contribution whose document has its row."""

    contribution: Contribution
    row: int
    access: int

    @property
    def tie(self) -> int:
        """What orders the document's voices among others."""
        return columns.tie(bytes.fromhex(self.contribution.document.id))

    @property
    def tags(self) -> list[str]:
        """What filters find the document by."""
        return list(dict.fromkeys(t for ts in columns.tags(self.contribution.document.metadata) for t in ts))


def insert(
    db: apsw.Connection,
    into: Collection,
    changed: Sequence[tuple[Contribution, bytes]],
    change: Change,
) -> None:
    """Insert contributions, each with its digest; nothing of their documents is there."""
    placed = [_insert_document(db, into.row, c, digest) for c, digest in changed]
    change.documents += len(placed)
    passages, next_passage = _insert_passages(db, into, placed, change)
    entities, next_entity = _insert_entities(db, into, placed, change)
    db.execute(
        SQL["set_next"],
        {"collection": into.row, "next_passage": next_passage, "next_entity": next_entity},
    )
    _insert_profiles(db, into.row, placed, entities)
    _insert_mentions(db, placed, passages, entities, change)
    _insert_facts(db, into, placed, passages, entities, change)


def _insert_document(db: apsw.Connection, into: int, contribution: Contribution, digest: bytes) -> Placed:
    document = contribution.document
    labels = json.dumps(sorted(document.labels), ensure_ascii=False)
    access = db.execute(SQL["use_access"], {"collection": into, "labels": labels}).get
    id_ = bytes.fromhex(document.id)
    row = db.execute(
        SQL["insert_document"],
        (
            into,
            id_,
            columns.tie(id_),
            access,
            document.title,
            document.uri,
            document.source,
            json.dumps(dict(document.metadata), ensure_ascii=False),
            labels,
            columns.instant(document.recorded_at),
            digest,
        ),
    ).get
    placed = Placed(contribution, row, access)
    db.executemany(SQL["insert_document_tag"], [(row, t) for t in placed.tags])
    return placed


def _insert_passages(
    db: apsw.Connection, into: Collection, placed: Sequence[Placed], change: Change
) -> tuple[dict[str, int], int]:
    told = [(p, passage) for p in placed for passage in p.contribution.passages]
    rows, following = allocate(db, into, "passage", len(told), into.next_passage)
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
            )
            for row, (p, q) in zip(rows, told, strict=True)
        ],
    )
    change.passages += len(told)
    change.length += _insert_words(db, into.row, rows, told)
    insert_vectors(db, into, "passage", rows, [q.vector for _, q in told])
    return {q.id: row for row, (_, q) in zip(rows, told, strict=True)}, following


def _insert_words(
    db: apsw.Connection, into: int, rows: Sequence[int], told: Sequence[tuple[Placed, Passage]]
) -> int:
    """Index the words of passages; return how many terms they have in all."""
    counts = [Counter(terms(columns.readable(q.title, q.text))) for _, q in told]
    frequency = Counter(term for count in counts for term in count)
    db.executemany(SQL["add_term"], [(into, term, n) for term, n in frequency.items()])
    term_rows = _term_rows(db, into, tuple(frequency))
    lengths = [count.total() for count in counts]
    db.executemany(
        SQL["insert_passage_terms"],
        [
            (row, length, bm25.packed(Counter({term_rows[t]: n for t, n in count.items()})))
            for row, length, count in zip(rows, lengths, counts, strict=True)
        ],
    )
    db.executemany(
        SQL["insert_words"],
        [
            (row, indexed(into, [term_rows[t] for t in count], p.access, p.tags))
            for row, (p, _), count in zip(rows, told, counts, strict=True)
        ],
    )
    return sum(lengths)


def _term_rows(db: apsw.Connection, into: int, asked: tuple[str, ...]) -> dict[str, int]:
    if not asked:
        return {}
    found = db.execute(SQL["terms"], {"collection": into, "terms": apsw.carray(asked)})
    return {term: row for term, row, _ in found}


def indexed(of: int, terms: Sequence[int], access: int, tags: Sequence[str]) -> str:
    """What the inverted index is given for a passage, and must be told again to forget it."""
    return " ".join([*map(str, terms), access_word(of, access), *(tag_word(of, t) for t in tags)])


def _insert_entities(
    db: apsw.Connection, into: Collection, placed: Sequence[Placed], change: Change
) -> tuple[dict[str, int], int]:
    told = {e.id: e for p in placed for e in p.contribution.entities}
    found = by_ids(db, "entity_rows", list(told), collection=into.row)
    known = {id_.hex(): row for id_, row in found}
    fresh = [e for id_, e in told.items() if id_ not in known]
    rows, following = allocate(db, into, "entity", len(fresh), into.next_entity)
    db.executemany(
        SQL["insert_entity"],
        [(row, into.row, bytes.fromhex(e.id), e.sense) for row, e in zip(rows, fresh, strict=True)],
    )
    change.entities += len(fresh)
    insert_vectors(db, into, "entity", rows, [e.vector for e in fresh])
    return known | {e.id: row for row, e in zip(rows, fresh, strict=True)}, following


def _insert_profiles(
    db: apsw.Connection, into: int, placed: Sequence[Placed], entities: dict[str, int]
) -> None:
    profiles = [(p, e, entities[e.id]) for p in placed for e in p.contribution.entities]
    db.executemany(
        SQL["insert_profile"],
        [
            (
                row,
                p.access,
                p.tie,
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
        [(into, name, row, p.access) for p, e, row in profiles for name in columns.names_of(e.name, e.aliases)],
    )
    add_keys(db, into, [(e.name, p.access, row) for p, e, row in profiles])


def _insert_mentions(
    db: apsw.Connection,
    placed: Sequence[Placed],
    passages: dict[str, int],
    entities: dict[str, int],
    change: Change,
) -> None:
    told = [(p, m) for p in placed for m in p.contribution.mentions]
    db.executemany(
        SQL["insert_mention"],
        [
            (
                entities[m.entity_id],
                p.access,
                m.is_own,
                m.count,
                columns.tie(bytes.fromhex(m.passage_id)),
                passages[m.passage_id],
                bytes.fromhex(m.entity_id),
                bytes.fromhex(m.passage_id),
            )
            for p, m in told
        ],
    )
    counts = Counter(entities[m.entity_id] for _, m in told)
    db.executemany(SQL["add_entity_passages"], [(n, row) for row, n in counts.items()])
    change.mentions += len(told)


def _insert_facts(
    db: apsw.Connection,
    into: Collection,
    placed: Sequence[Placed],
    passages: dict[str, int],
    entities: dict[str, int],
    change: Change,
) -> None:
    told = {f.id: f for p in placed for f in p.contribution.facts}
    found = by_ids(db, "fact_rows", list(told), collection=into.row)
    rows = {id_.hex(): row for id_, row in found}
    db.executemany(SQL["delete_edge"], by_rows(db, "edge_keys", list(rows.values())))
    fresh = [f for id_, f in told.items() if id_ not in rows]
    inserted = db.executemany(SQL["insert_fact"], [_fact_columns(into.row, f, entities) for f in fresh])
    rows |= {f.id: row for f, (row,) in zip(fresh, inserted, strict=True)}
    change.facts += len(fresh)
    db.executemany(
        SQL["insert_support"],
        [
            _support_columns(p, f, rows[f.id], passages[f.passage_id], into.statistics.dimension)
            for p in placed
            for f in p.contribution.facts
        ],
    )
    by_rows(db, "insert_edges", list(rows.values()))


def _fact_columns(into: int, fact: Fact, entities: dict[str, int]) -> tuple[Any, ...]:
    id_ = bytes.fromhex(fact.id)
    is_entity = bool(fact.object_id)
    return (
        into,
        id_,
        columns.tie(id_),
        entities[fact.subject_id],
        bytes.fromhex(fact.subject_id),
        columns.predicate_key(fact.predicate),
        entities[fact.object_id] if is_entity else None,
        bytes.fromhex(fact.object_id) if is_entity else None,
    )


def _support_columns(
    placed: Placed, fact: Fact, row: int, passage: int, dimension: int | None
) -> tuple[Any, ...]:
    vector = checked(fact.vector, dimension)
    passage_id = bytes.fromhex(fact.passage_id)
    return (
        row,
        columns.voice(fact),
        columns.tie(passage_id),
        passage,
        placed.row,
        passage_id,
        placed.access,
        columns.instant(placed.contribution.document.recorded_at),
        fact.subject,
        fact.predicate,
        fact.object,
        fact.statement,
        fact.weight,
        fact.confidence,
        fact.source,
        fact.status,
        None if fact.valid_from is None else columns.instant(fact.valid_from),
        None if fact.valid_to is None else columns.instant(fact.valid_to),
        None if vector is None else vectors.quantised(vector),
    )
