"""Turn a file back into the layout before packs (migration 7), in which every mention and assertion was a row."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw

from store.half_precision import restore_half_vectors
from waylore.store.rows import compute_predicate_key, make_sort_key, to_microseconds
from waylore.store.sql import load_migrations
from waylore.store.sqlite.file import open_file
from waylore.store.sqlite.store import SqliteStore
from waylore.store.vectors import to_int8
from waylore.types.identity import fact_id
from waylore.types.knowledge import SOURCES, Fact, IndexedDocument

MAX_STRENGTH = 99.0  # of an assertion among those of its source
LAST = 7  # the last migration of the earlier layout
CHANGED = ("mentions", "facts", "supports", "edges", "usage", "staged")
ADDED = ("packs", "statement_vectors", "assertions")


def restore_rows(path: Path, collection: str = "default") -> None:
    """Restore the tables of the earlier layout from what a collection, the only one of the file, exports."""
    with closing(SqliteStore(path, collection)) as store:
        documents = list(store.export())
    with closing(open_file(str(path))) as db, db:
        uses = list(db.execute("SELECT kind, row, access_count, last_accessed FROM usage"))
        restore_half_vectors(db)
        for table in {*ADDED, "mentions", "edges", "usage", "staged"}:
            db.execute(f"DROP TABLE {table}")
        for statement in _list_old_tables():
            db.execute(statement)
        rows = {kind: dict(db.execute(f"SELECT id, row FROM {kind}")) for kind in ("passages", "entities")}
        access: dict[Any, Any] = dict(db.execute("SELECT id, access FROM passages"))
        owner: dict[Any, Any] = dict(db.execute("SELECT id, document FROM passages"))
        for document in documents:
            _insert_mentions(db, document, rows, access)
            _insert_facts(db, document, rows, access, owner)
        db.execute("INSERT INTO edges SELECT * FROM (" + EDGES.format(end="subject") + ")")
        db.execute("INSERT OR IGNORE INTO edges SELECT * FROM (" + EDGES.format(end="object") + ")")
        _insert_uses(db, uses)
        db.execute(f"DELETE FROM migrations WHERE number > {LAST}")


EDGES = """SELECT f.{end}, s.access, max(s.weight * s.confidence), f.tie, f.row, f.predicate
FROM facts f JOIN supports s ON s.fact = f.row WHERE f.{end} IS NOT NULL GROUP BY f.row, s.access"""


def _list_old_tables() -> Iterator[str]:
    with closing(apsw.Connection(":memory:")) as db:
        for migration in load_migrations("waylore.store.sqlite")[:LAST]:
            db.execute(migration.sql)
        found = db.execute(
            "SELECT sql, tbl_name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC"
        ).fetchall()
    yield from (str(sql) for sql, table in found if table in CHANGED)


def _insert_mentions(db: apsw.Connection, document: IndexedDocument, rows: Any, access: Any) -> None:
    for mention in document.mentions:
        entity, passage = bytes.fromhex(mention.entity_id), bytes.fromhex(mention.passage_id)
        db.execute(
            "INSERT INTO mentions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(rows["entities"][entity], access[passage], mention.is_own, mention.count, make_sort_key(passage)),
                *(rows["passages"][passage], entity, passage),
            ),
        )


def _insert_facts(db: apsw.Connection, document: IndexedDocument, rows: Any, access: Any, owner: Any) -> None:
    for fact in (*document.facts, *map(untype, document.pairs)):
        id_, subject, passage = map(bytes.fromhex, (fact.id, fact.subject_id, fact.passage_id))
        object_ = bytes.fromhex(fact.object_id) if fact.object_id else None
        ends = (rows["entities"][subject], subject, compute_predicate_key(fact.predicate))
        db.execute(
            "INSERT OR IGNORE INTO facts (collection, id, tie, subject, subject_id, predicate, object, object_id) "
            "VALUES (1, ?, ?, ?, ?, ?, ?, ?)",
            (id_, make_sort_key(id_), *ends, rows["entities"][object_] if object_ else None, object_),
        )
        number = db.execute("SELECT row FROM facts WHERE id = ?", (id_,)).get
        place = (number, score_trust(fact), make_sort_key(passage), rows["passages"][passage], owner[passage], passage)
        db.execute(
            f"INSERT INTO supports VALUES ({', '.join('?' * 19)})",
            (*place, access[passage], to_microseconds(document.document.recorded_at), *_list_values(fact)),
        )


def untype(pair: Fact) -> Fact:
    """Return the fact that stood for a pair."""
    id_ = fact_id(pair.subject_id, "mentions", pair.object_id, is_entity=True)
    return replace(pair, id=id_, predicate="mentions")


def _list_values(fact: Fact) -> tuple[Any, ...]:
    words = (fact.subject, fact.predicate, fact.object, fact.statement)
    period = [moment and to_microseconds(moment) for moment in (fact.valid_from, fact.valid_to)]
    vector = None if fact.vector is None else to_int8(fact.vector)
    return (*words, fact.weight, fact.confidence, fact.source, fact.status, *period, vector)


def _insert_uses(db: apsw.Connection, uses: list[Any]) -> None:
    row_of: dict[Any, Any] = dict(db.execute("SELECT tie, row FROM facts"))
    for kind, row, count, last in uses:
        db.execute("INSERT INTO usage VALUES (?, ?, ?, ?)", (kind, row_of[row] if kind == "fact" else row, count, last))


def score_trust(fact: Fact) -> float:
    """Score how far an assertion was trusted: by its source, then by weight times confidence."""
    return 100.0 * (len(SOURCES) - SOURCES.index(fact.source)) + min(fact.weight * fact.confidence, MAX_STRENGTH)
