"""A PostgreSQL schema with vectors in half precision is converted when it is opened, and a kill loses nothing."""

import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tools.faults import measure_seconds, start_and_kill

from databases import create_database
from store.earlier_schema import LAST_HALF, restore_halves
from store.test_carry_over_postgres import NEWEST, OPEN, copy_database, read_all, rows, write
from store.test_half_precision import search, stage
from waylore.store.postgres.store import PostgresStore
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.world import EMBEDDER, MODEL, WORLD, page, question
from waylore.types.author import OWNER

KILLS = [2, pytest.param(6, marks=pytest.mark.full)]
PAGES = 150
QUESTIONS = ("king of lotharingia", "falcon", "tours")


def test_every_collection_with_half_precision_answers_alike() -> None:
    url = create_database()
    for name, documents in (("one", WORLD), ("two", [page("東京 and Łódź", metadata={"lang": "ja"})])):
        write(url, documents, MODEL, name)
    expected = [read_all(url, name) for name in ("one", "two")]
    with closing(PostgresStore(url, "one")) as store:
        found = [search(store, question(text)) for text in QUESTIONS]
    restore_halves(url, ("one", "two"))
    assert [read_all(url, name) for name in ("one", "two")] == expected
    with closing(PostgresStore(url, "one")) as store:
        assert [search(store, question(text)) for text in QUESTIONS] == found
    assert rows(url, "SELECT DISTINCT length(code), length(bits) FROM waylore.entity_vectors") == [
        (EMBEDDER.dimension, EMBEDDER.dimension)
    ]
    forced = "SELECT relforcerowsecurity, count(*) FROM pg_class WHERE relname LIKE '%\\_vectors' OR relname = 'staged'"
    assert rows(url, f"{forced} GROUP BY 1") == [(True, 4)]


def test_staged_vectors_are_converted() -> None:
    url = create_database()
    write(url, WORLD, MODEL)
    with closing(PostgresStore(url)) as store:
        for count in (99, 99, 2):  # all passages, all entities, and two facts
            stage(store, count)
    other = copy_database(url, "other")
    restore_halves(other)
    for each in (url, other):
        with closing(PostgresStore(each)) as store:
            while store.list_unembedded("next", limit=1):
                stage(store, 50)
            assert store.activate_model("next", author=OWNER)
    assert read_all(other) == read_all(url)


def test_engines_find_the_same_names(tmp_path: Path) -> None:
    """Both rank the nearest names by their codes. Above some thousand names both find them by their bits."""
    pages = [page(f"Page {number} tells of the falcon {number} of Tours.") for number in range(40)]
    with closing(SqliteStore(tmp_path / "a.waylore")) as one, closing(PostgresStore(create_database())) as other:
        for store in (one, other):
            store.write([*WORLD, *pages], author=OWNER, model=MODEL)
        for text in QUESTIONS:
            assert search(one, question(text)) == search(other, question(text))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", KILLS)
def test_killed_process_leaves_a_schema_that_is_converted(tmp_path: Path, kills: int) -> None:
    old = create_database()
    write(old, [page(f"Page {number} tells of falcon {number}.") for number in range(PAGES)], MODEL)
    expected = read_all(old)
    restore_halves(old)
    whole = measure_seconds([sys.executable, "-c", OPEN, copy_database(old, "whole")])
    layouts = []
    for number in range(kills):
        url = copy_database(old, f"killed_{number}")
        start_and_kill([sys.executable, "-c", OPEN, url], tmp_path, whole * number / kills)
        layouts.append(check_layout(url))
        assert read_all(url) == expected
    assert LAST_HALF in layouts


def check_layout(url: str) -> int:
    """Return the number of the newest migration, and check that the layout is completely that of it."""
    with psycopg.connect(url) as db:
        db.execute("SELECT pg_advisory_xact_lock(2003789428, 1)")  # until the killed process has ended on the server
        [(newest,)] = db.execute("SELECT max(number) FROM waylore.migrations").fetchall()
        columns = "SELECT attname FROM pg_attribute WHERE attrelid = 'waylore.entity_vectors'::regclass"
        has_code = ("code",) in db.execute(columns).fetchall()
    assert (newest, has_code) in {(LAST_HALF, False), (NEWEST, True)}
    return int(newest)
