"""Turn a PostgreSQL schema back into earlier layouts.

Before packs (migration 4) every assertion was a row. Before eight bits (migration 6) vectors had half precision.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import psycopg

from store.earlier_layout import score_trust, untype
from waylore.store.postgres.scope import compute_key
from waylore.store.postgres.store import PostgresStore
from waylore.store.rows import compute_predicate_key, to_microseconds
from waylore.store.sql import load_migrations
from waylore.store.vectors import from_int8, to_int8
from waylore.types.knowledge import Fact, IndexedDocument, Passage, Vector

LAST = 4  # the last migration before packs
LAST_HALF = 6  # the last migration with half precision
RESTORED = ("facts", "supports", "staged", "entity_vectors")
OWN = "collection = (SELECT nullif(current_setting('waylore.collection', true), '')::int8)"
DROP = """
    DROP TABLE packs, statement_vectors, assertions, staged, entity_vectors;
    DROP FUNCTION delete_mention, delete_assertion, delete_edge
"""
DROP_SCOPES = """
    DROP INDEX passage_vectors_of_access;
    ALTER TABLE accesses DROP COLUMN "user", DROP COLUMN turns;
    ALTER TABLE passage_terms DROP COLUMN sequence, DROP COLUMN tells_time;
    ALTER TABLE documents DROP COLUMN "user", DROP COLUMN agent, DROP COLUMN session, DROP COLUMN at,
      DROP COLUMN expires_at;
    DROP TABLE audit; DROP FUNCTION refuse_audit_change; ALTER TABLE documents DROP COLUMN author;
    ALTER TABLE passages DROP COLUMN speaker, DROP COLUMN role, DROP COLUMN at, DROP COLUMN session;
    ALTER TABLE assertions DROP COLUMN series, DROP COLUMN began
"""
UNDO_LATEST = """
    ALTER TABLE documents DROP CONSTRAINT documents_source_check;
    DROP TABLE indexes, outbox;
    ALTER TABLE collections DROP COLUMN weights, DROP COLUMN own_vectors;
    ALTER TABLE terms ALTER COLUMN passages TYPE int8;
    ALTER TABLE entities ALTER COLUMN passages TYPE int8;
    ALTER TABLE names ALTER COLUMN documents TYPE int8;
    ALTER TABLE entity_keys ALTER COLUMN documents TYPE int8;
    ALTER TABLE mentions ADD COLUMN count int4 NOT NULL GENERATED ALWAYS AS (-rank & 1073741823) STORED,
      ADD COLUMN is_own bool NOT NULL GENERATED ALWAYS AS (rank <= -1073741824) STORED;
    ALTER TABLE mentions ALTER COLUMN count DROP EXPRESSION, ALTER COLUMN is_own DROP EXPRESSION;
    ALTER TABLE mentions DROP COLUMN rank, ADD COLUMN rank int8 NOT NULL
        GENERATED ALWAYS AS (-count::int8 - CASE WHEN is_own THEN 4294967296 ELSE 0 END) STORED,
      ADD PRIMARY KEY (collection, entity, access, rank, passage);
    DROP FUNCTION rank_mention
"""
INSERT_EDGE = """
    INSERT INTO edges (collection, entity, access, rank, fact, predicate) VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT DO NOTHING
"""


def restore_tables(url: str, collections: Sequence[str] = ("default",)) -> None:
    """Restore the tables before packs from what all collections export; `url` is that of the owner."""
    exported = {name: _export(url, name) for name in collections}
    with psycopg.connect(url) as db:
        _set_search_path(db)
        db.execute(UNDO_LATEST)
        db.execute(DROP_SCOPES)
        db.execute(DROP)
        for statement in _list_old_tables(RESTORED, LAST):
            db.execute(statement)
        for name, documents in exported.items():
            db.execute("SELECT set_config('waylore.collection', %s, true)", (str(compute_key(name)),))
            for document in documents:
                _insert_facts(db, compute_key(name), document)
            _insert_half_vectors(db, compute_key(name), documents)
        db.execute(f"DELETE FROM migrations WHERE number > {LAST}")


def restore_halves(url: str, collections: Sequence[str] = ("default",)) -> None:
    """Restore the tables with half precision from what all collections export and have staged."""
    exported = {name: _export(url, name) for name in collections}
    with psycopg.connect(url) as db:
        _set_search_path(db)
        db.execute(UNDO_LATEST)
        db.execute(DROP_SCOPES)
        staged = db.execute("SELECT * FROM staged").fetchall()
        db.execute("DROP TABLE entity_vectors, staged")
        for statement in _list_old_tables(("entity_vectors", "staged"), LAST_HALF):
            db.execute(statement)
        for name, documents in exported.items():
            _insert_half_vectors(db, compute_key(name), documents)
        for *key, kind, id_, place, code in staged:
            vectors = (None, code) if kind == "fact" else (_format(from_int8([code])[0]), None)
            db.execute(f"INSERT INTO staged VALUES ({', '.join(['%s'] * 7)})", (*key, kind, id_, place, *vectors))
        db.execute(f"DELETE FROM migrations WHERE number > {LAST_HALF}")


def _set_search_path(db: psycopg.Connection[Any]) -> None:
    [(schema,)] = db.execute(
        "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'"
    ).fetchall()
    db.execute(f"SET LOCAL search_path = waylore, {schema}")


def _insert_half_vectors(db: psycopg.Connection[Any], collection: int, documents: Sequence[IndexedDocument]) -> None:
    for part in (part for document in documents for part in document.parts):
        if part.vector is None or isinstance(part, Fact):
            continue
        key, vector = (collection, part.id), _format(part.vector)
        if isinstance(part, Passage):
            db.execute("UPDATE passage_vectors SET vector = %s WHERE collection = %s AND id = %s", (vector, *key))
        else:
            values = (*key, len(part.vector), vector)
            db.execute("INSERT INTO entity_vectors VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", values)


def _format(vector: Vector) -> str:
    return str(vector.tolist())


def _export(url: str, collection: str) -> list[IndexedDocument]:
    with closing(PostgresStore(url, collection)) as store:
        return list(store.export())


def _list_old_tables(tables: Sequence[str], last: int) -> Iterator[str]:
    sql = "\n".join(migration.sql for migration in load_migrations("waylore.store.postgres")[:last])
    for table in tables:
        [*_, created] = re.findall(rf"CREATE TABLE {table} \(.*?\n\)[^;]*;", sql, re.DOTALL)
        yield created
        yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
        yield f"CREATE POLICY own ON {table} USING ({OWN}) WITH CHECK ({OWN})"
        yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO waylore_app"
    if last == LAST:
        yield from re.findall(r"CREATE INDEX (?:mentions_of_passage|supports_of_passage|edges_of_fact) .*?;", sql)


def _insert_facts(db: psycopg.Connection[Any], collection: int, document: IndexedDocument) -> None:
    for fact in (*document.facts, *map(untype, document.pairs)):
        ends = (fact.subject_id, compute_predicate_key(fact.predicate), fact.object_id or None)
        db.execute("INSERT INTO facts VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING", (collection, fact.id, *ends))
        [(owner, access)] = db.execute(
            "SELECT document, access FROM passages WHERE collection = %s AND id = %s", (collection, fact.passage_id)
        ).fetchall()
        place = (collection, fact.id, -score_trust(fact), fact.passage_id, owner, access)
        recorded_at = to_microseconds(document.document.recorded_at)
        db.execute(
            f"INSERT INTO supports VALUES ({', '.join(['%s'] * 18)})", (*place, recorded_at, *_list_values(fact))
        )
        if fact.predicate == "mentions":  # the edges of other facts are there
            edge = (access, -fact.weight * fact.confidence, fact.id, compute_predicate_key(fact.predicate))
            for entity in fact.ends:
                db.execute(INSERT_EDGE, (collection, entity, *edge))


def _list_values(fact: Fact) -> tuple[Any, ...]:
    words = (fact.subject, fact.predicate, fact.object, fact.statement)
    period = [moment and to_microseconds(moment) for moment in (fact.valid_from, fact.valid_to)]
    vector = None if fact.vector is None else to_int8(fact.vector)
    return (*words, fact.weight, fact.confidence, fact.source, fact.status, *period, vector)
