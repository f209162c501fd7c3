"""A PostgreSQL schema of the layout before packs is carried over when it is opened, and a kill loses nothing."""

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from tools.faults import measure_seconds, start_and_kill

from databases import create_database, get_server_url
from faults.documents import Edition, make_document
from store.earlier_schema import LAST, restore_tables
from store.test_carry_over import read_store
from waylore.errors import SchemaOutdated
from waylore.store.postgres.store import PostgresStore
from waylore.store.sql import load_migrations, migrate
from waylore.testing.world import MODEL, WORLD, day, page
from waylore.types.author import OWNER
from waylore.types.knowledge import IndexedDocument
from waylore.types.results import Receipt

DOCUMENTS = 120
KILLS = [3, pytest.param(20, marks=pytest.mark.full)]
NEWEST = len(load_migrations("waylore.store.postgres"))
OPEN = """
import sys
from waylore.store.postgres.store import PostgresStore

print("begun", flush=True)
PostgresStore(sys.argv[1]).close()
print("done", flush=True)
"""


def write(url: str, documents: Sequence[IndexedDocument], model: str | None, collection: str = "default") -> None:
    with closing(PostgresStore(url, collection)) as store:
        store.write(documents, author=OWNER, model=model)
        facts = [fact.id for document in documents for fact in document.facts]
        store.count_uses(passages=[documents[0].passages[0].id], facts=facts[:2], at=day("2024-05-02"))


def read_all(url: str, collection: str = "default") -> list[object]:
    with closing(PostgresStore(url, collection)) as store:
        return read_store(store)


def rows(url: str, sql: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as db:
        done = db.execute(sql)
        return done.fetchall() if done.description else []


def test_every_collection_of_earlier_layout_answers_alike() -> None:
    url = create_database()
    pages = [*WORLD, page("東京 and Łódź", metadata={"lang": "ja"})]
    plain = [make_document(Edition(number, 1)) for number in range(9)]
    for name, documents, model in (("one", pages, MODEL), ("two", plain, None)):
        write(url, documents, model, name)
    expected = [read_all(url, name) for name in ("one", "two")]
    restore_tables(url, ("one", "two"))
    assert [read_all(url, name) for name in ("one", "two")] == expected


def test_restored_rows_are_those_of_the_earlier_layout() -> None:
    """Otherwise the other tests would carry over empty tables. A process of the new layout is refused there."""
    url = create_database()
    write(url, WORLD, MODEL)
    with closing(PostgresStore(url)) as store:
        known = store.statistics()
    restore_tables(url)
    pairs = sum(len(document.pairs) for document in WORLD)
    assert rows(url, "SELECT count(*) FROM waylore.facts") == [(known.facts + pairs,)]
    assert rows(url, "SELECT count(*) FROM waylore.mentions") == [(known.mentions,)]
    assert rows(url, "SELECT to_regclass('waylore.packs')") == [(None,)]


def test_process_of_earlier_layout_is_refused() -> None:
    url = create_database()
    PostgresStore(url).close()
    applied = dict(rows(url, "SELECT number, checksum FROM waylore.migrations"))
    known = load_migrations("waylore.store.postgres")[:LAST]
    with pytest.raises(SchemaOutdated, match=f"schema {NEWEST}, .* knows {LAST}: upgrade Waylore"):
        migrate(known, applied=applied, run=pytest.fail, record=lambda m: pytest.fail(m.name))


def test_staged_vectors_survive_and_those_of_facts_are_made_again() -> None:
    url = create_database()
    write(url, WORLD, MODEL)
    restore_tables(url)
    rows(
        url,
        "INSERT INTO waylore.staged (collection, model, kind, id, passage, vector, code) "
        "SELECT collection, 'next', 'passage', id, id, (SELECT '[' || repeat('1,', 11) || '1]')::halfvec, NULL::bytea "
        "FROM waylore.passages UNION ALL "
        "SELECT collection, 'next', 'fact', fact, passage, NULL, '\\x00' FROM waylore.supports",
    )
    with closing(PostgresStore(url)) as store:
        passages = store.statistics().passages
        assert rows(url, "SELECT kind, count(*) FROM waylore.staged GROUP BY kind") == [("passage", passages)]
        while items := store.list_unembedded("next", limit=7):
            vector = np.eye(12, dtype=np.float32)[len(items)]
            embedded = [replace(item, vector=vector) for item in items]
            store.stage_vectors(embedded, author=OWNER, model="next")
        assert store.activate_model("next", author=OWNER)
        assert store.find_remains(Receipt()) == ()
        assert {len(fact.vector) for d in store.export() for fact in d.facts if fact.vector is not None} == {12}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", KILLS)
def test_killed_process_leaves_a_schema_that_is_carried_over(tmp_path: Path, kills: int) -> None:
    old = create_database()
    write(old, [make_document(Edition(number, 1)) for number in range(DOCUMENTS)], None)
    expected = read_all(old)
    restore_tables(old)
    whole = measure_seconds([sys.executable, "-c", OPEN, copy_database(old, "whole")])
    layouts = []
    for number in range(kills):
        url = copy_database(old, f"killed_{number}")
        start_and_kill([sys.executable, "-c", OPEN, url], tmp_path, whole * number / kills)
        layouts.append(check_layout(url))
        assert read_all(url) == expected
    assert LAST in layouts


def copy_database(url: str, name: str) -> str:
    """Copy a database and return the address of the copy."""
    old = url.rsplit("/", 1)[1]
    rows(get_server_url(), f"CREATE DATABASE {old}_{name} TEMPLATE {old}")
    return f"{url}_{name}"


def check_layout(url: str) -> int:
    """Return the number of the newest migration, and check that the layout is completely that of it."""
    with psycopg.connect(url) as db:
        db.execute("SELECT pg_advisory_xact_lock(2003789428, 1)")  # until the killed process has ended on the server
        [(newest,)] = db.execute("SELECT max(number) FROM waylore.migrations").fetchall()
        [(supports, packs)] = db.execute(
            "SELECT to_regclass('waylore.supports') IS NOT NULL, to_regclass('waylore.packs') IS NOT NULL"
        ).fetchall()
    assert (newest, supports, packs) in {(LAST, True, False), (NEWEST, False, True)}
    return int(newest)
