"""Attacks on the isolation of tenants of a PostgreSQL server, generated from its catalogue. All must fail.

The attacker is a login that is a member of waylore_app, like an application. It may set the collection of its
own transaction, because an application does that. No other attempt may reach another tenant.
"""

from collections.abc import Iterator
from contextlib import closing
from functools import cache
from typing import Any

import psycopg
import pytest
from psycopg import sql

from databases import get_server_url, make_name
from waylore import names as naming
from waylore.errors import WayloreError
from waylore.store.postgres.store import PostgresStore
from waylore.store.protocol import Store
from waylore.store.receipts import record_as
from waylore.store.requests import make_request
from waylore.testing.world import KING, LOTHAIR, MODEL, SECRET, WORLD, day, page, question
from waylore.types.author import OWNER
from waylore.types.knowledge import STATUSES, NewFact
from waylore.types.results import Receipt
from waylore.types.search import Filter

TENANT = "waylore_test_tenant"
INJECTIONS = [
    "'; SET waylore.collection = '{key}'; --",
    "' OR true --",
    "'); RESET ROLE; SELECT * FROM waylore.documents; --",
    "$$; UPDATE waylore.documents SET collection = {key}; $$",
    "{key}",
    "%(collection)s",
    "'::tsquery | '1t1",
    "\\'; DROP TABLE waylore.documents; --",
]


@cache
def victim() -> PostgresStore:
    """Open a collection with rows in every table."""
    store = PostgresStore(get_server_url(), make_name("victim"))
    with record_as("0" * 32):
        store.write(WORLD, author=OWNER, model=MODEL, fingerprints={"a.md": "1"})
    store.count_uses(passages=[KING.passages[0].id], facts=[KING.facts[0].id], at=day("2024-05-02"))
    store.stage_vectors(list(KING.passages), author=OWNER, model="next")
    add_index_rows(store)
    return store


def add_index_rows(store: PostgresStore) -> None:
    """Add rows for an index that is not built, and for a change that it lacks."""
    with psycopg.connect(get_server_url()) as db:
        db.execute(
            "INSERT INTO waylore.indexes (collection, tenant, url, passages_after)"
            " VALUES (%s, gen_random_uuid(), 'http://127.0.0.1:1', gen_random_uuid())",
            (store._key,),
        )
        db.execute(
            "INSERT INTO waylore.outbox (collection, id, version, access, kind)"
            " VALUES (%s, gen_random_uuid(), 1, 1, 0)",
            (store._key,),
        )


@cache
def tenant_url() -> str:
    """Return the URL of a login with the rights of the application."""
    victim()
    with psycopg.connect(get_server_url(), autocommit=True) as db:
        db.execute(f"DROP ROLE IF EXISTS {TENANT}")
        db.execute(f"CREATE ROLE {TENANT} LOGIN IN ROLE waylore_app")
    return get_server_url().replace("//postgres@", f"//{TENANT}@")


@cache
def columns() -> dict[str, list[str]]:
    """Return every table of Waylore with its columns, without generated ones."""
    victim()
    with psycopg.connect(get_server_url()) as db:
        rows = db.execute(
            "SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class c "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
            "AND a.attgenerated = '' "
            "AND a.attidentity = '' "
            "WHERE c.relnamespace = 'waylore'::regnamespace AND c.relkind = 'r' "
            "AND c.relname !~ '_vectors_[0-9a-f]{16}$' GROUP BY 1"  # of one collection: test_own_vectors.py
        )
        return dict(rows.fetchall())


def tables() -> list[str]:
    return sorted(name for name in columns() if name != "migrations")


def changeable() -> list[str]:
    return [name for name in tables() if name != "audit"]  # the role only reads it and adds to it


NOBODY = Filter(labels=frozenset({"nobody"}))
READS = {
    "all rows": "SELECT count(*) FROM {t}",
    "by key": "SELECT count(*) FROM {t} WHERE collection = {victim}",
    "by join": "SELECT count(*) FROM {t} a JOIN {t} b USING (collection) WHERE a.collection = {victim}",
    "by qualified name": "SELECT count(*) FROM waylore.{t} WHERE collection <> {own}",
    "by function": "SELECT count(*) FROM {t} WHERE pg_column_size({t}) > 0 AND collection <> {own}",
    "by row lock": "SELECT count(*) FROM (SELECT 1 FROM {t} WHERE collection <> {own} FOR UPDATE) x",
}
WRITES = {
    "delete": "DELETE FROM {t} WHERE collection = {victim} RETURNING 1",
    "update": "UPDATE {t} SET {column} = {column} WHERE collection = {victim} RETURNING 1",
}
REFUSED = {
    "insert": "INSERT INTO {t} ({columns}) SELECT {moved} FROM {t} WHERE collection = {own}",
    "move": "UPDATE {t} SET collection = {victim} WHERE collection = {own}",
    "truncate": "TRUNCATE {t}",
    "disable row security": "ALTER TABLE {t} DISABLE ROW LEVEL SECURITY",
    "do not force row security": "ALTER TABLE {t} NO FORCE ROW LEVEL SECURITY",
    "create policy": "CREATE POLICY mine ON {t} USING (true)",
    "drop": "DROP TABLE {t}",
    "become superuser": "SET ROLE postgres; SELECT * FROM {t}",
    "become search role": "SET ROLE waylore_matching; SELECT * FROM {t}",
}


@pytest.fixture(scope="module")
def own() -> Iterator[PostgresStore]:
    """Open a collection of the attacker, with the same rows as the victim's."""
    store = PostgresStore(tenant_url(), make_name("attacker"))
    with record_as("0" * 32):
        store.write(WORLD, author=OWNER, model=MODEL, fingerprints={"a.md": "1"})
    store.count_uses(passages=[KING.passages[0].id], facts=[KING.facts[0].id], at=day("2024-05-02"))
    store.stage_vectors(list(KING.passages), author=OWNER, model="next")
    add_index_rows(store)
    yield store
    store.close()


@pytest.fixture(scope="module", autouse=True)
def unharmed(own: PostgresStore) -> Iterator[None]:
    """Check that the victim is unchanged after all attacks."""
    before = (list(victim().export()), victim().statistics(), victim().find_remains(Receipt()))
    yield
    assert (list(victim().export()), victim().statistics(), victim().find_remains(Receipt())) == before
    victim().close()


def attempt(own: PostgresStore, text: str, table: str, *, collection: str, prepare: bool = False) -> list[Any]:
    """Run a statement as the attacker, with a given collection setting."""
    names = columns()[table]
    statement = sql.SQL(text).format(
        t=sql.Identifier(table),
        victim=sql.Literal(victim()._key),
        own=sql.Literal(own._key),
        column=sql.Identifier(names[-1]),
        columns=sql.SQL(", ").join(map(sql.Identifier, names)),
        moved=sql.SQL(", ").join([sql.Literal(victim()._key), *map(sql.Identifier, names[1:])]),
    )
    with psycopg.connect(tenant_url()) as db:
        db.execute("SELECT set_config('search_path', 'waylore, public', true)")
        if collection != "unset":
            db.execute("SELECT set_config('waylore.collection', %s, true)", (collection,))
        done = db.execute(statement, prepare=prepare or None)
        if prepare:
            done = db.execute(statement, prepare=True)
        while done.nextset():
            pass
        found = done.fetchall() if done.description else []
        db.rollback()
        return found


@pytest.mark.parametrize("how", READS)
@pytest.mark.parametrize("setting", ["own", "unset", "empty", "prepared"])
def test_tables_show_no_row_of_other_collection(own: PostgresStore, how: str, setting: str) -> None:
    for table in tables() if how != "by row lock" else changeable():
        collection = {"unset": "unset", "empty": ""}.get(setting, str(own._key))
        [(seen,)] = attempt(own, READS[how], table, collection=collection, prepare=setting == "prepared")
        with psycopg.connect(get_server_url()) as db:
            counted = db.execute(f"SELECT count(*) FROM waylore.{table} WHERE collection = %s", (own._key,))
            mine = counted.fetchall()[0][0]
        if how == "all rows" and collection == str(own._key):
            assert seen == mine > 0
        else:
            assert seen == 0


@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("setting", ["own", "unset"])
def test_writes_change_no_row_of_other_collection(own: PostgresStore, how: str, setting: str) -> None:
    for table in changeable():
        collection = "unset" if setting == "unset" else str(own._key)
        assert attempt(own, WRITES[how], table, collection=collection) == []


@pytest.mark.parametrize("statement", [*WRITES.values(), READS["by row lock"]])
def test_audit_log_is_not_changed(own: PostgresStore, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
        attempt(own, statement, "audit", collection=str(own._key))


@pytest.mark.parametrize("how", REFUSED)
def test_statements_that_weaken_isolation_are_refused(own: PostgresStore, how: str) -> None:
    for table in tables():
        with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UniqueViolation)) as caught:
            attempt(own, REFUSED[how], table, collection=str(own._key))
        assert (
            "row-level security" in str(caught.value)
            or "permission denied" in str(caught.value)
            or ("must be owner" in str(caught.value))
        )


def test_collection_setting_must_be_a_number(own: PostgresStore) -> None:
    for table in tables():
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            attempt(own, READS["all rows"], table, collection="1 OR true")


def test_word_search_finds_only_own_rows(own: PostgresStore) -> None:
    mark = "SELECT mark FROM waylore.collections WHERE collection = %s"
    with psycopg.connect(get_server_url()) as db:
        victims = db.execute(mark, (victim()._key,)).fetchall()[0][0]
    words = f"{victims}a1 | {victims}a2 | {victims}t1 | {victims}t2"
    with psycopg.connect(tenant_url()) as db:
        for collection in (str(own._key), ""):
            db.execute("SELECT set_config('waylore.collection', %s, true)", (collection,))
            assert db.execute("SELECT * FROM waylore.matching(%s::tsquery, 99)", (words,)).fetchall() == []


def test_every_table_forces_policy_and_roles_have_no_rights() -> None:
    with psycopg.connect(get_server_url()) as db:
        walls = db.execute(
            "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class "
            "WHERE relnamespace = 'waylore'::regnamespace AND relkind = 'r' AND relname <> 'migrations'"
        ).fetchall()
        roles = db.execute(
            "SELECT rolname, rolsuper OR rolbypassrls OR rolcanlogin OR rolcreaterole OR rolcreatedb, "
            "(SELECT count(*) FROM pg_class WHERE relowner = r.oid) FROM pg_roles r "
            "WHERE rolname IN ('waylore_app', 'waylore_matching') ORDER BY 1"
        ).fetchall()
    assert len(walls) >= 18
    assert all(is_walled for _, is_walled in walls)
    assert roles == [("waylore_app", False, 0), ("waylore_matching", False, 0)]


def test_isolation_holds_after_error_on_same_connection(own: PostgresStore) -> None:
    """A setting must not outlive its transaction, even if that failed."""
    with closing(PostgresStore(tenant_url(), make_name("after"), connections=1)) as store:
        with pytest.raises(WayloreError):
            divide_by_zero(store)
        with store._server.pool.connection() as db:
            assert db.execute("SELECT current_setting('waylore.collection', true)").fetchall() in (
                [("",)],
                [(None,)],
            )
            assert db.execute("SELECT count(*) FROM waylore.documents").fetchall() == [(0,)]
        assert list(store.export()) == []


def divide_by_zero(store: PostgresStore) -> None:
    with store._transaction() as (db, _):
        db.execute("SELECT 1 / 0").fetchall()


@pytest.mark.parametrize("pattern", INJECTIONS)
def test_sql_in_text_stays_text(own: PostgresStore, pattern: str) -> None:
    """Pass SQL in every text parameter of every method, and read written text back unchanged."""
    text = pattern.format(key=victim()._key)
    store = PostgresStore(tenant_url(), make_name("smuggler") + text)
    document = page(f"{text} word", NewFact(f"n {text}", f"p {text}", f"o {text}"), title=text, uri=text, labels=[text])
    store.write([document], author=OWNER, model=MODEL, fingerprints={text: text})
    where = Filter(labels=frozenset({text}), metadata={})
    assert [c.passages for c in store.export()] == [document.passages]
    assert store.lexical(f"{text} word", top_k=9, where=where)[0].id == document.passages[0].id
    assert store.fingerprints([text]) == {text: text}
    assert [d.uri for d in store.list_documents(under=text)] == [text]
    found: list[Any] = [
        store.lexical(text + " lothair falcon", top_k=99, where=Filter(metadata={text: text})),
        store.entities_by_names([text, "Lothair II"]),
        store.find_similar_entities({LOTHAIR: [text, *naming.list_matching_keys("Lothair II")]}, max_per_key=99),
        store.facts_of_entities([LOTHAIR, text], per_entity=99, predicates=[text, "rules"], statuses=STATUSES),
        store.facts_of_passages([SECRET.passages[0].id, text], per_passage=99),
        store.documents([SECRET.document.id, text]),
        store.passages([SECRET.passages[0].id, text]),
        store.sources([SECRET.passages[0].id, text]),
        store.cosines(question("falcon"), [SECRET.passages[0].id, text]),
        store.word_scores(text + " falcon", [SECRET.passages[0].id, text]),
        store.entities_of_passages([SECRET.passages[0].id, text], per_passage=99),
        store.find_entities_by_key([text, *naming.keys("Falcon")], max_per_key=99),
        *store.nearby(
            question("falcon"),
            [LOTHAIR, text],
            per_entity=99,
            keys=[text, *naming.keys("Falcon")],
            max_per_key=99,
        ),
        *store.read_many(
            [
                make_request(Store.facts, [text]),
                make_request(Store.lexical, text + " falcon", top_k=9, where=NOBODY),
            ]
        ),
        store.digests([KING.document.id, text]),
        store.get_indexed_documents([KING.document.id, text]),
        store.forget([KING.document.id, text], author=OWNER).documents,
        store.list_unembedded(text, limit=99)[3:],
    ]
    assert [one for one in found if one] == []
    assert {s.id for s in store.dense(question("falcon"), top_k=99)} == {document.passages[0].id}
    assert not store.activate_model(text, author=OWNER)
    store.close()


def test_role_that_bypasses_isolation_is_refused() -> None:
    """A superuser may become waylore_app. A bypassing role that is not a member is refused."""
    victim()
    with psycopg.connect(get_server_url(), autocommit=True) as db:
        db.execute("DROP ROLE IF EXISTS waylore_test_bypass")
        db.execute("CREATE ROLE waylore_test_bypass LOGIN BYPASSRLS")
        db.execute("GRANT USAGE ON SCHEMA waylore TO waylore_test_bypass")
        db.execute("GRANT SELECT ON waylore.migrations TO waylore_test_bypass")
    with pytest.raises(WayloreError, match="bypasses row-level security"):
        PostgresStore(get_server_url().replace("//postgres@", "//waylore_test_bypass@"))
