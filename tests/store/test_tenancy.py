"""Attacks on the walls between tenants of a PostgreSQL server, made from its own catalogue; all must fail.

The attacker is a login that is a member of waylore_app, as an application is. It may set the collection of its
own transaction, for that is what the application does; whatever else it tries, others stay out of reach.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import psycopg
import pytest
from psycopg import sql

from databases import fresh_name, server
from waylore import names as naming
from waylore.errors import WayloreError
from waylore.store.postgres.store import PostgresStore
from waylore.store.protocol import Store
from waylore.store.requests import ask
from waylore.testing.suite import KING, LOTHAIR, MODEL, SECRET, WORLD, day, page, question
from waylore.types.knowledge import STATUSES, Claim
from waylore.types.results import Receipt
from waylore.types.search import Filter

TENANT = "waylore_test_tenant"
SMUGGLED = [
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
    """A collection that is full in every table."""
    store = PostgresStore(server(), fresh_name("victim"))
    store.write(WORLD, model=MODEL, fingerprints={"a.md": "1"})
    store.touch(passages=[KING.passages[0].id], facts=[KING.facts[0].id], at=day("2024-05-02"))
    store.stage(list(KING.passages), model="next")
    return store


@cache
def tenant_url() -> str:
    """The address of a login that may do what the application may."""
    victim()
    with psycopg.connect(server(), autocommit=True) as db:
        db.execute(f"DROP ROLE IF EXISTS {TENANT}")
        db.execute(f"CREATE ROLE {TENANT} LOGIN IN ROLE waylore_app")
    return server().replace("//postgres@", f"//{TENANT}@")


@cache
def columns() -> dict[str, list[str]]:
    """Every table of Waylore with its columns, generated ones aside."""
    victim()
    with psycopg.connect(server()) as db:
        rows = db.execute(
            "SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class c "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
            "AND a.attgenerated = '' "
            "AND a.attidentity = '' WHERE c.relnamespace = 'waylore'::regnamespace AND c.relkind = 'r' GROUP BY 1"
        )
        return dict(rows.fetchall())


def tables() -> list[str]:
    return sorted(name for name in columns() if name != "migrations")


UNSEEN = Filter(labels=frozenset({"nobody"}))
READS = {
    "all of it": "SELECT count(*) FROM {t}",
    "by its key": "SELECT count(*) FROM {t} WHERE collection = {victim}",
    "by a join": "SELECT count(*) FROM {t} a JOIN {t} b USING (collection) WHERE a.collection = {victim}",
    "by the catalogue's eyes": "SELECT count(*) FROM waylore.{t} WHERE collection <> {own}",
    "by a function": "SELECT count(*) FROM {t} WHERE pg_column_size({t}) > 0 AND collection <> {own}",
    "by a row lock": "SELECT count(*) FROM (SELECT 1 FROM {t} WHERE collection <> {own} FOR UPDATE) x",
}
WRITES = {
    "taken away": "DELETE FROM {t} WHERE collection = {victim} RETURNING 1",
    "changed": "UPDATE {t} SET {column} = {column} WHERE collection = {victim} RETURNING 1",
}
REFUSED = {
    "put in": "INSERT INTO {t} ({columns}) SELECT {moved} FROM {t} WHERE collection = {own}",
    "moved there": "UPDATE {t} SET collection = {victim} WHERE collection = {own}",
    "emptied": "TRUNCATE {t}",
    "opened": "ALTER TABLE {t} DISABLE ROW LEVEL SECURITY",
    "opened for the owner": "ALTER TABLE {t} NO FORCE ROW LEVEL SECURITY",
    "given a policy": "CREATE POLICY mine ON {t} USING (true)",
    "dropped": "DROP TABLE {t}",
    "looked at from a role above": "SET ROLE postgres; SELECT * FROM {t}",
    "looked at as the search": "SET ROLE waylore_matching; SELECT * FROM {t}",
}


@pytest.fixture(scope="module")
def own() -> Iterator[PostgresStore]:
    """A collection of the attacker's own, as full as the victim's."""
    store = PostgresStore(tenant_url(), fresh_name("attacker"))
    store.write(WORLD, model=MODEL, fingerprints={"a.md": "1"})
    store.touch(passages=[KING.passages[0].id], facts=[KING.facts[0].id], at=day("2024-05-02"))
    store.stage(list(KING.passages), model="next")
    yield store
    store.close()


@pytest.fixture(scope="module", autouse=True)
def unharmed(own: PostgresStore) -> Iterator[None]:
    """Whatever was tried, the victim is as before."""
    before = (list(victim().export()), victim().statistics(), victim().remains(Receipt()))
    yield
    assert (list(victim().export()), victim().statistics(), victim().remains(Receipt())) == before
    victim().close()


def attempt(own: PostgresStore, text: str, table: str, *, collection: str, prepare: bool = False) -> list[Any]:
    """Run a statement as the attacker, with the collection of a transaction set to something."""
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
def test_no_table_shows_a_row_of_another(own: PostgresStore, how: str, setting: str) -> None:
    for table in tables():
        collection = {"unset": "unset", "empty": ""}.get(setting, str(own._key))
        [(seen,)] = attempt(own, READS[how], table, collection=collection, prepare=setting == "prepared")
        with psycopg.connect(server()) as db:
            counted = db.execute(f"SELECT count(*) FROM waylore.{table} WHERE collection = %s", (own._key,))
            mine = counted.fetchall()[0][0]
        if how == "all of it" and collection == str(own._key):
            assert seen == mine > 0
        else:
            assert seen == 0


@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("setting", ["own", "unset"])
def test_no_row_of_another_is_changed(own: PostgresStore, how: str, setting: str) -> None:
    for table in tables():
        collection = "unset" if setting == "unset" else str(own._key)
        assert attempt(own, WRITES[how], table, collection=collection) == []


@pytest.mark.parametrize("how", REFUSED)
def test_what_would_open_a_wall_is_refused(own: PostgresStore, how: str) -> None:
    for table in tables():
        with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UniqueViolation)) as told:
            attempt(own, REFUSED[how], table, collection=str(own._key))
        assert (
            "row-level security" in str(told.value)
            or "permission denied" in str(told.value)
            or ("must be owner" in str(told.value))
        )


def test_a_collection_that_is_no_number_is_refused(own: PostgresStore) -> None:
    for table in tables():
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            attempt(own, READS["all of it"], table, collection="1 OR true")


def test_the_function_that_searches_words_finds_only_ones_own(own: PostgresStore) -> None:
    mark = "SELECT mark FROM waylore.collections WHERE collection = %s"
    with psycopg.connect(server()) as db:
        victims = db.execute(mark, (victim()._key,)).fetchall()[0][0]
    asked = f"{victims}a1 | {victims}a2 | {victims}t1 | {victims}t2"
    with psycopg.connect(tenant_url()) as db:
        for collection in (str(own._key), ""):
            db.execute("SELECT set_config('waylore.collection', %s, true)", (collection,))
            assert db.execute("SELECT * FROM waylore.matching(%s::tsquery, 99)", (asked,)).fetchall() == []


def test_every_table_forces_its_policy_and_the_roles_are_nobody() -> None:
    with psycopg.connect(server()) as db:
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


def test_the_wall_stands_after_an_error_on_the_same_connection(own: PostgresStore) -> None:
    """A setting must not outlive its transaction, whether that ended well or not."""
    store = PostgresStore(tenant_url(), fresh_name("after"), connections=1)
    with pytest.raises(WayloreError):
        divide_by_zero(store)
    with store._server.pool.connection() as db:
        assert db.execute("SELECT current_setting('waylore.collection', true)").fetchall() in (
            [("",)],
            [(None,)],
        )
        assert db.execute("SELECT count(*) FROM waylore.documents").fetchall() == [(0,)]
    assert list(store.export()) == []
    store.close()


def divide_by_zero(store: PostgresStore) -> None:
    with store._writing() as (db, _):
        db.execute("SELECT 1 / 0").fetchall()


@pytest.mark.parametrize("pattern", SMUGGLED)
def test_sql_in_a_text_is_a_text(own: PostgresStore, pattern: str) -> None:
    """In every text parameter of every verb; what may be written is written and read back as it is."""
    text = pattern.format(key=victim()._key)
    store = PostgresStore(tenant_url(), fresh_name("smuggler") + text)
    told = page(
        f"{text} word", Claim(f"n {text}", f"p {text}", f"o {text}"), title=text, uri=text, labels=[text]
    )
    store.write([told], model=MODEL, fingerprints={text: text})
    where = Filter(labels=frozenset({text}), metadata={})
    assert [c.passages for c in store.export()] == [told.passages]
    assert store.lexical(f"{text} word", top_k=9, where=where)[0].id == told.passages[0].id
    assert store.fingerprints([text]) == {text: text}
    assert [d.uri for d in store.listed(under=text)] == [text]
    found: list[Any] = [
        store.lexical(text + " lothair falcon", top_k=99, where=Filter(metadata={text: text})),
        store.entities_by_names([text, "Lothair II"]),
        store.alike({LOTHAIR: [text, *naming.mirrored("Lothair II")]}, most=99),
        store.facts_of_entities([LOTHAIR, text], per_entity=99, predicates=[text, "rules"], statuses=STATUSES),
        store.facts_of_passages([SECRET.passages[0].id, text], per_passage=99),
        store.documents([SECRET.document.id, text]),
        store.passages([SECRET.passages[0].id, text]),
        store.sources([SECRET.passages[0].id, text]),
        store.cosines(question("falcon"), [SECRET.passages[0].id, text]),
        store.entities_of_passages([SECRET.passages[0].id, text], per_passage=99),
        store.keyed([text, *naming.keys("Falcon")], most=99),
        *store.nearby(
            question("falcon"), [LOTHAIR, text], per_entity=99, keys=[text, *naming.keys("Falcon")], most=99
        ),
        *store.together(
            [ask(Store.facts, [text]), ask(Store.lexical, text + " falcon", top_k=9, where=UNSEEN)]
        ),
        store.digests([KING.document.id, text]),
        store.contributions([KING.document.id, text]),
        store.forget([KING.document.id, text]).documents,
        store.unembedded(text, limit=99)[3:],
    ]
    assert [one for one in found if one] == []
    assert {s.id for s in store.dense(question("falcon"), top_k=99)} == {told.passages[0].id}
    assert not store.adopt(text)
    store.close()


def test_a_role_to_which_walls_are_nothing_is_refused() -> None:
    """A superuser who may not become waylore_app there is not; a bypassing role that is no member is."""
    victim()
    with psycopg.connect(server(), autocommit=True) as db:
        db.execute("DROP ROLE IF EXISTS waylore_test_bypass")
        db.execute("CREATE ROLE waylore_test_bypass LOGIN BYPASSRLS")
        db.execute("GRANT USAGE ON SCHEMA waylore TO waylore_test_bypass")
        db.execute("GRANT SELECT ON waylore.migrations TO waylore_test_bypass")
    with pytest.raises(WayloreError, match="bypasses row-level security"):
        PostgresStore(server().replace("//postgres@", "//waylore_test_bypass@"))
