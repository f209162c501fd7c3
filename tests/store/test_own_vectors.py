"""Large collections on PostgreSQL have tables of vectors of their own: filled, protected, and read alone."""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from threading import Event
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql
from tools.waiting import HANG_SECONDS

from databases import create_database, get_server_url, make_name
from waylore.store.postgres import search as searching
from waylore.store.postgres import server
from waylore.store.postgres import vector_indexes as indexing
from waylore.store.postgres import verify as verifying
from waylore.store.postgres import write as writing
from waylore.store.postgres.candidates import outbox
from waylore.store.postgres.fetch import read_export_page
from waylore.store.postgres.scope import make_table_ending
from waylore.store.postgres.steps import LOWEST_ID, Asked, Steps
from waylore.store.postgres.store import PostgresStore
from waylore.store.qdrant.queries import CandidateQuery
from waylore.store.reads import drive
from waylore.testing.world import EMBEDDER, MODEL, PUBLIC, RULES, WORLD, page, question
from waylore.types.author import OWNER
from waylore.types.knowledge import IndexedDocument, NewFact
from waylore.types.results import Receipt
from waylore.types.search import Filter

LARGE = 40  # passages of a large collection here
NEIGHBOUR = "waylore_test_neighbour"
PAGES = [
    page(f"Page {n} tells of the harbour and pier {n}.", NewFact("Harbour", "has", f"Pier {n}"), uri=f"{n}.md")
    for n in range(60)
]
LATER = [
    page("A page that came later tells of pier 70.", NewFact("Harbour", "has", "Pier 70"), uri="70.md"),
    page("Page 3 has changed and tells of pier 71.", NewFact("Harbour", "has", "Pier 71"), uri="3.md"),
]
SCANNED = re.compile(r"(?:Seq Scan|Bitmap Heap Scan|Index (?:Only )?Scan using \w+) on (\w+_vectors\w*)")


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let collections of the size here be large from the call on."""
    return lambda: monkeypatch.setattr(searching, "MAX_EXACT_PASSAGES", LARGE)


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    """Return a collection that is not large yet."""
    with closing(fill(get_server_url(), "large")) as store:
        yield store


def fill(url: str, name: str) -> PostgresStore:
    store = PostgresStore(url, make_name(name))
    store.write([*WORLD, *PAGES], author=OWNER, model=MODEL)
    return store


def reopen(store: PostgresStore) -> None:
    """Open a collection again and wait until its tables and indexes are built, also by a write before."""
    if store._building is not None:
        store._building.join(HANG_SECONDS)
    with closing(PostgresStore(store._url, store._name)) as opened:
        assert opened._building is not None
        opened._building.join(HANG_SECONDS)


def change(store: PostgresStore) -> None:
    store.write(LATER, author=OWNER, model=MODEL, replacing=[PAGES[3].document.id])
    store.forget([PAGES[5].document.id], author=OWNER)


def fetch(store: PostgresStore, statement: str, *bound: object) -> list[tuple[Any, ...]]:
    """Run a statement as superuser."""
    with psycopg.connect(store._url, autocommit=True) as db:
        done = db.execute(statement.encode(), bound or None)
        return done.fetchall() if done.description else []


def count_rows(store: PostgresStore) -> list[tuple[int, int]]:
    """Count the vectors of passages and of entities: those in the shared table, and those in its own."""
    count = "SELECT count(*) FROM ONLY waylore.{} WHERE collection = %s"
    pairs = indexing.list_own_tables(store._key).items()
    return [
        (fetch(store, count.format(shared), store._key)[0][0], fetch(store, count.format(own), store._key)[0][0])
        for own, shared in pairs
    ]


def list_indexes(store: PostgresStore) -> list[str]:
    named = f"hnsw\\_{make_table_ending(store._key)}%"
    return [name for (name,) in fetch(store, "SELECT indexname FROM pg_indexes WHERE indexname LIKE %s", named)]


def ask(store: PostgresStore) -> list[object]:
    """Return answers, and parts with their vectors, by every statement that reads vectors."""
    passages = [p.id for document in (*WORLD, *PAGES, *LATER) for p in document.passages]
    entities = sorted({e.id for document in (*WORLD, *PAGES) for e in document.entities})
    asked = [question(text) for text in ("king of lotharingia", "pier 7")]
    found: list[object] = [
        store.dense(vector, top_k=90, where=where) for vector in asked for where in (Filter(), PUBLIC)
    ]
    found += [store.nearest_entities(vector, top_k=20) for vector in asked]
    found += [store.cosines(asked[0], passages), store.nearby(asked[0], entities, per_entity=9)[1]]
    found += [store.dense(asked[0], top_k=9, where=Filter(metadata={"lang": "en"}))]
    parts = [part for _, part in sorted(store.passages(passages, vectors=True).items())]
    named = [part for _, part in sorted(store.entities(entities, vectors=True).items())]
    exported = [part for document in store.export() for part in document.parts]
    vectors = [part.vector for part in (*parts, *named, *exported)]
    return [*found, np.concatenate([v for v in vectors if v is not None]).tolist()]


# -- becoming large ------------------------------------------------------------------------------------


def test_answers_stay_when_collection_gets_own_tables(store: PostgresStore, limit: Callable[[], None]) -> None:
    before, version = ask(store), store.version()
    limit()
    reopen(store)
    assert [shared for shared, _ in count_rows(store)] == [0, 0]
    assert all(own for _, own in count_rows(store))
    assert list_indexes(store) == [f"hnsw_{make_table_ending(store._key)}_own_passage_{EMBEDDER.dimension}"]
    assert ask(store) == before  # also of an open store that has cached where the vectors were
    assert store.version() > version
    assert store.find_remains(Receipt()) == ()


def test_server_knows_values_of_own_tables_before_they_are_used(
    store: PostgresStore, limit: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it reads all passages of an access for a few ids: 47 ms for 40 of 100,000, where the key takes 0.4 ms."""
    switch, known = indexing._switch, list[tuple[str, str]]()
    query = "SELECT tablename, attname FROM pg_stats WHERE n_distinct = -1 AND tablename LIKE %s ORDER BY tablename"

    def read_and_switch(db: psycopg.Connection[Any], collection: int) -> bool:
        known.extend(fetch(store, query, f"%\\_vectors\\_{make_table_ending(collection)}"))
        return switch(db, collection)

    limit()
    monkeypatch.setattr(indexing, "_switch", read_and_switch)
    reopen(store)
    assert {(own, "id") for own in indexing.list_own_tables(store._key)} <= set(known)


def test_writes_while_tables_are_filled_are_kept(
    store: PostgresStore, limit: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(fill(get_server_url(), "small")) as small:
        change(small)
        expected = ask(small)
    switch = indexing._switch

    def change_and_switch(db: psycopg.Connection[Any], collection: int) -> bool:
        change(store)
        return switch(db, collection)

    limit()
    monkeypatch.setattr(indexing, "_switch", change_and_switch)
    reopen(store)
    assert count_rows(store) == [(0, len([*WORLD, *PAGES])), (0, store.statistics().entities)]
    assert ask(store) == expected
    assert store.find_remains(Receipt()) == ()


def test_readers_and_writers_go_on_meanwhile(store: PostgresStore, limit: Callable[[], None]) -> None:
    """No search sees half of the collection, and no document that is written in the meantime is lost."""
    is_over, vector = Event(), question("harbour")

    def search() -> set[int]:
        found = {len(store.dense(vector, top_k=200, where=Filter(metadata={"lang": "en"})))}
        while not is_over.is_set():
            found.add(len(store.dense(vector, top_k=200, where=Filter(metadata={"lang": "en"}))))
        return found

    def write() -> int:
        number = 0
        while not is_over.is_set():
            store.write([page(f"Note {number}", uri=f"note-{number}")], author=OWNER, model=MODEL)
            number += 1
        return number

    with ThreadPoolExecutor(2) as pool:
        searching_, writing = pool.submit(search), pool.submit(write)
        try:
            limit()
            reopen(store)
        finally:
            is_over.set()
        assert searching_.result(HANG_SECONDS) == {1}
        written = writing.result(HANG_SECONDS)
    reopen(store)
    assert count_rows(store)[0] == (0, len([*WORLD, *PAGES]) + written)
    assert len(store.dense(vector, top_k=1_000)) == len([*WORLD, *PAGES]) + written


@pytest.mark.parametrize(
    "step",
    [
        "protect_own_vectors",
        "fill_own_vectors",
        "index_passage_vectors",
        "analyze_vectors",
        "inherit_vectors",
        "drop_changed_vectors",
        "empty_shared_vectors",
        "use_own_vectors",
    ],
)
def test_killed_split_is_repaired_at_next_opening(
    step: str, store: PostgresStore, limit: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends the connection at one of the steps; the collection can be used before and after the repair."""
    before = ask(store)

    def kill(run: Callable[..., Any], db: psycopg.Connection[Any], query: str, **bound: Any) -> Any:
        if query == step:
            fetch(store, "SELECT pg_terminate_backend(%s, 9000)", db.info.backend_pid)
        return run(db, query, **bound)

    limit()
    with monkeypatch.context() as patched:
        for name in ("run", "_run"):
            patched.setattr(indexing, name, partial(kill, getattr(indexing, name)))
        reopen(store)
    assert fetch(store, "SELECT own_vectors FROM waylore.collections WHERE collection = %s", store._key) == [(False,)]
    assert ask(store) == before
    with closing(fill(get_server_url(), "small")) as small:
        change(small)
        expected = ask(small)
    change(store)
    reopen(store)
    assert ask(store) == expected
    assert [shared for shared, _ in count_rows(store)] == [0, 0]
    assert store.find_remains(Receipt()) == ()


def test_large_collection_of_earlier_version_is_split(limit: Callable[[], None]) -> None:
    """It had an index of its own rows on the shared table, which is dropped."""
    with closing(fill(create_database(), "large")) as store:
        before = ask(store)
        ending = make_table_ending(store._key)
        fetch(store, "ALTER TABLE waylore.collections DROP COLUMN own_vectors")
        fetch(store, "DELETE FROM waylore.migrations WHERE name = 'own_vectors'")
        parts = {
            "name": sql.Identifier(f"hnsw_{ending}_passage_{EMBEDDER.dimension}"),
            **{name: sql.Literal(value) for name, value in (("links", 16), ("tried", 64), ("collection", store._key))},
            "table": sql.SQL("passage_vectors"),
            "dimension": sql.Literal(EMBEDDER.dimension),
        }
        with psycopg.connect(store._url, autocommit=True) as db:
            db.execute(sql.SQL(indexing.SQL["index_passage_vectors"]).format(**parts))
    limit()
    with closing(PostgresStore(store._url, store._name)) as opened:
        assert opened._building is not None
        opened._building.join(HANG_SECONDS)
        assert ask(opened) == before
        assert list_indexes(opened) == [f"hnsw_{ending}_own_passage_{EMBEDDER.dimension}"]
        assert [shared for shared, _ in count_rows(opened)] == [0, 0]


def test_emptied_collection_keeps_its_tables(store: PostgresStore, limit: Callable[[], None]) -> None:
    limit()
    reopen(store)
    documents = [document.document.id for document in (*WORLD, *PAGES)]
    store.forget(documents, author=OWNER)
    assert count_rows(store) == [(0, 0), (0, 0)]
    store.write(WORLD, author=OWNER, model=MODEL)
    assert count_rows(store)[0] == (0, 3)
    assert len(store.dense(question("king"), top_k=9)) == 3


# -- protection ----------------------------------------------------------------------------------------


def test_own_tables_are_made_as_the_shared_ones(store: PostgresStore, limit: Callable[[], None]) -> None:
    """A change of the shared tables must be made to the statements that create own tables too."""
    limit()
    reopen(store)
    for own, shared in indexing.list_own_tables(store._key).items():
        made, expected = describe_table(store, own), describe_table(store, shared)
        checks = [each for each in made if each[0] == "check"]
        assert checks == [("check", f"CHECK ((collection = '{store._key}'::bigint))")]
        assert [each for each in made if each not in checks] == expected


def describe_table(store: PostgresStore, table: str) -> list[tuple[Any, ...]]:
    """Return what makes up a table, without its name and without indexes of single collections."""
    return fetch(
        store,
        """WITH t AS (SELECT * FROM pg_class WHERE oid = %s::regclass)
        SELECT 'column', attname || format_type(atttypid, atttypmod) || attnotnull || attstorage::text || attnum
          FROM pg_attribute, t WHERE attrelid = t.oid AND attnum > 0
        UNION ALL SELECT 'index', regexp_replace(pg_get_indexdef(indexrelid), '^.* USING', '') FROM pg_index, t
          WHERE indrelid = t.oid AND indpred IS NULL
        UNION ALL SELECT 'check', pg_get_constraintdef(c.oid) FROM pg_constraint c, t
          WHERE conrelid = t.oid AND contype = 'c'
        UNION ALL SELECT 'policy', (p.policyname, p.permissive, p.roles, p.cmd, p.qual, p.with_check)::text
          FROM pg_policies p, t WHERE p.schemaname = 'waylore' AND p.tablename = t.relname
        UNION ALL SELECT 'right', (g.grantee::regrole, g.privilege_type)::text FROM t, aclexplode(t.relacl) g
          WHERE g.grantee <> t.relowner
        UNION ALL SELECT 'table', (t.relowner, t.reloptions, t.relrowsecurity, t.relforcerowsecurity)::text FROM t
        ORDER BY 1, 2""",
        f"waylore.{table}",
    )


def test_own_tables_are_closed_to_others(store: PostgresStore, limit: Callable[[], None]) -> None:
    limit()
    reopen(store)
    other = store._key + 1
    fetch(store, f"DROP ROLE IF EXISTS {NEIGHBOUR}")
    fetch(store, f"CREATE ROLE {NEIGHBOUR} LOGIN IN ROLE waylore_app")
    with psycopg.connect(store._url.replace("//postgres@", f"//{NEIGHBOUR}@"), autocommit=True) as db:
        for own in indexing.list_own_tables(store._key):
            for collection in ("", str(other)):
                db.execute("SELECT set_config('waylore.collection', %s, false)", (collection,))
                assert db.execute(f"SELECT count(*) FROM waylore.{own}".encode()).fetchall() == [(0,)]
                assert db.execute(f"DELETE FROM waylore.{own} RETURNING 1".encode()).fetchall() == []
                assert db.execute(f"UPDATE waylore.{own} SET dimension = 1 RETURNING 1".encode()).fetchall() == []
            for refused in (f"TRUNCATE waylore.{own}", f"ALTER TABLE waylore.{own} DISABLE ROW LEVEL SECURITY"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    db.execute(refused.encode())
            db.execute("SELECT set_config('waylore.collection', %s, false)", (str(store._key),))
            [(count,)] = db.execute(f"SELECT count(*) FROM waylore.{own}".encode()).fetchall()
            assert count > 0
            db.execute("SELECT set_config('waylore.collection', %s, false)", (str(other),))
            insert = f"INSERT INTO waylore.{own} SELECT (jsonb_populate_record(NULL::waylore.{own}, '{{}}')).*"
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security policy"):
                db.execute(insert.encode())
    assert all(own for _, own in count_rows(store))


def test_role_that_owns_no_table_leaves_vectors_where_they_are(store: PostgresStore, limit: Callable[[], None]) -> None:
    before = ask(store)
    limit()
    fetch(store, f"DROP ROLE IF EXISTS {NEIGHBOUR}")
    fetch(store, f"CREATE ROLE {NEIGHBOUR} LOGIN IN ROLE waylore_app")
    with closing(PostgresStore(store._url.replace("//postgres@", f"//{NEIGHBOUR}@"), store._name)) as theirs:
        assert theirs._building is not None
        theirs._building.join(HANG_SECONDS)
        assert ask(theirs) == before
    tables = [f"waylore.{own}" for own in indexing.list_own_tables(store._key)]
    assert fetch(store, "SELECT to_regclass(t) FROM unnest(%s::text[]) t", tables) == [(None,), (None,)]


# -- what a search reads -------------------------------------------------------------------------------


def list_locked(db: psycopg.Connection[Any]) -> set[str]:
    """Return the tables of vectors that the server has locked for the statements of a transaction."""
    locked = db.execute(
        "SELECT relname FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
        " WHERE pid = pg_backend_pid() AND relkind = 'r' AND relname ~ '^(passage|entity)_vectors'"
    )
    return {name for (name,) in locked.fetchall()}


def observe(store: PostgresStore, verb: Callable[[Any], Steps[Any]]) -> tuple[set[str], set[str]]:
    """Run a verb. Return the tables of vectors in the plans of its statements, and those that the server has locked."""
    scanned: set[str] = set()
    with server.open_snapshot(store._server, store._key) as db:

        def explain(wanted: Sequence[Asked]) -> list[list[Any]]:
            statements = [one for one in wanted if not isinstance(one, CandidateQuery)]
            for one in statements:
                if one and "_vectors" in str(one.query):
                    query = sql.SQL(one.query) if isinstance(one.query, str) else one.query
                    plan = db.execute(sql.SQL("EXPLAIN ") + query, one.bound).fetchall()
                    scanned.update(SCANNED.findall("\n".join(line for (line,) in plan)))
            return server.fetch_statements(db, statements)

        [scope] = drive(store._reader._make_scopes({"": Filter()}), explain).values()
        drive(verb(scope), explain)
        return scanned, list_locked(db)


def test_search_reads_and_locks_only_the_tables_of_its_collection(limit: Callable[[], None]) -> None:
    url = create_database()
    with closing(fill(url, "large")) as large, closing(PostgresStore(url, "small")) as small:
        small.write(WORLD, author=OWNER, model=MODEL)
        limit()
        reopen(large)
        vector, passages = question("king of lotharingia"), [p.id for document in WORLD for p in document.passages]
        entities = [e.id for document in WORLD for e in document.entities]
        verbs: list[Callable[[Any], Steps[Any]]] = [
            lambda scope: searching.dense(scope, vector, top_k=9),
            lambda scope: searching.nearest_entities(scope, vector, top_k=9),
            lambda scope: searching.cosines(scope, vector, passages),
            lambda scope: searching.nearby(scope, vector, entities, per_entity=9),
            lambda scope: searching.turns(scope, "king", passages, before=1, after=1),
        ]
        for store, ending in ((small, ""), (large, f"_{make_table_ending(large._key)}")):
            tables = {f"passage_vectors{ending}", f"entity_vectors{ending}"}
            seen = [observe(store, verb) for verb in verbs]
            assert seen[0] == ({f"passage_vectors{ending}"}, {f"passage_vectors{ending}"})
            assert all(scanned | locked <= tables for scanned, locked in seen)
            assert set().union(*(scanned for scanned, _ in seen)) == tables


def test_writes_and_checks_lock_only_the_tables_of_their_collection(limit: Callable[[], None]) -> None:
    url = create_database()
    with closing(fill(url, "large")) as large, closing(PostgresStore(url, "small")) as small:
        small.write(WORLD, author=OWNER, model=MODEL)
        limit()
        reopen(large)
        for store, ending in ((small, ""), (large, f"_{make_table_ending(large._key)}")):
            tables = {f"passage_vectors{ending}", f"entity_vectors{ending}"}
            with store._transaction() as (db, of):
                assert writing.write(db, of, [page("A new one.", RULES)], author=OWNER, model=MODEL) == 1
                assert writing.forget(db, store._collection(db), [WORLD[1].document.id], author=OWNER).documents
                assert list_locked(db) == tables
            with server.open_snapshot(store._server, store._key) as db:
                assert verifying.find_remains(db, store._collection(db), Receipt()) == ()
                assert list_locked(db) == tables
            with server.open_snapshot(store._server, store._key) as db:
                fetch_rows = partial(server.fetch_statements, db)
                assert drive(read_export_page(store._key, store._collection(db).own_vectors, LOWEST_ID), fetch_rows)
                assert list_locked(db) == tables
            with store._transaction() as (db, of):
                outbox._read_passages(db, of, [p.id for p in WORLD[0].passages])
                outbox._read_entities(db, of, [e.id for e in WORLD[0].entities])
                assert list_locked(db) == tables


def test_whole_of_a_shared_table_includes_own_tables(store: PostgresStore, limit: Callable[[], None]) -> None:
    """Backups and an operator's statements find every vector once."""
    limit()
    reopen(store)
    count = "SELECT count(*) FROM waylore.passage_vectors WHERE collection = %s"
    assert fetch(store, count, store._key) == [(len([*WORLD, *PAGES]),)]


def test_new_documents_of_a_large_collection_are_found(store: PostgresStore, limit: Callable[[], None]) -> None:
    limit()
    reopen(store)
    new: IndexedDocument = page("Zeppelins moor at pier 99.", NewFact("Zeppelin", "moors at", "Pier 99"))
    store.write([new], author=OWNER, model=MODEL)
    assert store.dense(question("Zeppelins moor at pier 99."), top_k=1)[0].id == new.passages[0].id
    store.forget([new.document.id], author=OWNER)
    assert new.passages[0].id not in {s.id for s in store.dense(question("Zeppelins moor"), top_k=90)}
    assert store.find_remains(Receipt()) == ()
