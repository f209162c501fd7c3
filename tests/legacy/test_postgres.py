"""A PostgreSQL database of the old name is renamed by the first process that opens it, and loses nothing."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tools.postgres.builds import find_plain_build, find_textsearch_build
from tools.postgres.server import Server, start_server

from legacy.keepsakes import ANSWERS, COLLECTION, check_answers, open_old, read_kept
from service.test_jobs import Gate, background, over
from service.test_jobs import settings as settings_of
from waylore.cells.open import open_catalogue
from waylore.errors import Forbidden, SchemaOutdated, StoreUnavailable
from waylore.service.jobs.postgres import PostgresJobs
from waylore.service.keys import split_token, verify_secret
from waylore.service.registry.open import open_registry
from waylore.store.postgres import setup
from waylore.store.sql import load_migrations, migrate
from waylore.surfaces.checks.store import check_store

SCHEMAS = ("weft", "weft_cells", "weft_service", "weft_jobs")
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY 1"
MEMBERS = """
    SELECT r.rolname, m.rolname, a.inherit_option FROM pg_auth_members a
    JOIN pg_roles r ON r.oid = a.roleid JOIN pg_roles m ON m.oid = a.member
    WHERE r.rolname LIKE %s AND m.rolname IN ('app', 'shy', 'keeper') ORDER BY 1, 2
"""
ADD_RANKED = setup.SQL["add_ranked"].replace("waylore", "weft")
_numbers = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Start a server for these tests alone, because roles belong to the whole server."""
    with start_server(find_plain_build()) as started:
        make_roles(started)
        yield started


@pytest.fixture
def url(server: Server) -> str:
    return restored(server)


def make_roles(server: Server) -> None:
    """Make the roles that the old version made, and their members: `app`, and `shy`, who inherits nothing."""
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute(
            "CREATE ROLE weft_app; CREATE ROLE weft_matching; GRANT weft_app, weft_matching TO postgres;"
            "CREATE ROLE app LOGIN; GRANT weft_app TO app;"
            "CREATE ROLE shy LOGIN; GRANT weft_app TO shy WITH INHERIT FALSE;"
            "CREATE ROLE keeper LOGIN; GRANT weft_app, weft_matching TO keeper"
        )


def restored(server: Server, *, owner: str = "postgres", extension: str = "") -> str:
    """Return the address of a database that was restored from the kept dump."""
    name = f"old_{next(_numbers)}"
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name} OWNER {owner}")
    dump = read_kept("database").decode().replace("OWNER TO postgres", f"OWNER TO {owner}")
    with psycopg.connect(server.build_url(name), autocommit=True) as db:
        if extension:
            db.execute(f"CREATE EXTENSION {extension}")
        db.execute(dump)
    return server.build_url(name)


def rows(url: str, sql: str, *bound: Any) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as db:
        done = db.execute(sql, bound or None)
        return done.fetchall() if done.description else []


def test_answers_are_those_of_the_old_version(url: str) -> None:
    check_answers(url, "postgres")
    check_answers(url, "postgres")
    with open_old(url) as memory:
        added = memory.add("Edda Lindqvar kept a diary.", uri="fam/diary")
        assert memory.search("diary", method="hybrid").hits[0].passage.document_id == added


def test_keys_and_cells_are_carried_over(url: str) -> None:
    kept = ANSWERS["postgres"]
    with closing(open_registry(url)) as registry:
        id_, secret = split_token(f"weft_{kept['token']}")
        key = registry.get_key(id_)
        assert key is not None
        assert verify_secret(key, secret, key.created)
        assert registry.get_secret().hex() == kept["secret"]
        assert [collection.name for collection in registry.list_collections()] == [COLLECTION]
    with closing(open_catalogue(url)) as catalogue:
        assert catalogue.place(COLLECTION).cell == "one"


async def test_a_job_that_waits_is_done(url: str, tmp_path: Path) -> None:
    async with background(settings_of(url, tmp_path), Gate(url)) as opened:
        job = opened.jobs.get_job("emptied", ANSWERS["postgres"]["job"])
        assert (await over(opened, job)).result == {"documents": 1}
    assert rows(url, TABLES, "waylore_jobs") == [("jobs",), ("migrations",)]


def test_an_old_process_is_refused(url: str) -> None:
    open_all(url)
    first = load_migrations("waylore.store.postgres")[:1]  # all that the old version has, of each schema
    for schema in SCHEMAS:
        assert rows(url, TABLES, schema) == [("migrations",)]
        applied = {number: "" for (number,) in rows(url, f"SELECT number FROM {schema}.migrations")}
        with pytest.raises(SchemaOutdated, match="schema 9999"):  # the old version compares just so
            migrate(first, applied=applied, run=pytest.fail, record=lambda m: pytest.fail(m.name))


def test_the_renaming_is_recorded_once(url: str) -> None:
    open_all(url)
    open_all(url)
    for schema in SCHEMAS:
        new = schema.replace("weft", "waylore")
        recorded = rows(url, f"SELECT name FROM {new}.migrations ORDER BY number")
        later = {
            "waylore_service": [("grants",), ("max_source",), ("user",)],
            "waylore_jobs": [("queue",)],
            "waylore": [
                ("secret",),
                ("receipts",),
                ("counts_by_access",),
                ("packs",),
                ("drop_old_rows",),
                ("eight_bits",),
                ("scopes",),
                ("expires",),
            ],
        }
        newest = {
            "waylore": [
                ("backup",),
                ("audit",),
                ("weights",),
                ("narrow_rows",),
                ("outbox",),
                ("source",),
                ("own_vectors",),
            ],
            "waylore_service": [("backup",), ("audit",)],
            "waylore_cells": [("backup",), ("bytes",)],
        }.get(new, [("backup",)])
        assert recorded == [(f"renamed from {schema}",), ("initial",), *later.get(new, []), *newest]
        assert rows(url, f"SELECT count(*) FROM {new}.migrations WHERE number > 0 AND checksum = ''") == [(0,)]
    left = "SELECT count(*) FROM pg_policies WHERE qual LIKE '%weft%' OR 'weft_matching' = ANY(roles)"
    assert rows(url, left) == [(0,)]
    left = "SELECT count(*) FROM pg_proc WHERE prosrc LIKE '%weft%' OR proconfig::text LIKE '%weft%'"
    assert rows(url, left) == [(0,)]


def test_members_of_old_roles_are_members_of_the_new(server: Server, url: str) -> None:
    open_all(url)
    old = rows(url, MEMBERS, "weft%")
    assert rows(url, MEMBERS, "waylore%") == [
        (role.replace("weft", "waylore"), member, inherits) for role, member, inherits in old
    ]
    theirs = server.build_url(url.rsplit("/", 1)[1], user="app")
    check_answers(theirs, "postgres")
    # No collection is named, so row-level security shows no row.
    assert rows(theirs, "SELECT count(*) FROM waylore.documents") == [(0,)]


def test_a_member_cannot_rename(server: Server, url: str) -> None:
    with pytest.raises(Forbidden, match="waylore migrate"):
        open_old(server.build_url(url.rsplit("/", 1)[1], user="app"))
    assert rows(url, "SELECT count(*) > 0 FROM weft.documents") == [(True,)]


@pytest.mark.parametrize("rights", ["CREATEROLE", "NOCREATEROLE"])
def test_an_owner_that_is_no_superuser_renames(rights: str) -> None:
    with start_server(find_plain_build()) as server:
        make_roles(server)
        rows(server.url, f"ALTER ROLE keeper {rights}")
        url = restored(server, owner="keeper")
        name = url.rsplit("/", 1)[1]
        open_all(server.build_url(name, user="keeper"))
        for user in ("keeper", "app"):
            check_answers(server.build_url(name, user=user), "postgres")
        made = rows(url, "SELECT count(*) FROM pg_roles WHERE rolname IN ('waylore_app', 'waylore_matching')")
        assert made == [(2 if rights == "CREATEROLE" else 0,)]


@pytest.mark.parametrize("step", range(len(setup.CARRY_STORE) + 1))
def test_a_killed_renaming_leaves_the_old_schema(url: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    carry = list(setup.CARRY_STORE)
    carry.insert(step, "SELECT pg_terminate_backend(pg_backend_pid())")
    before = rows(url, TABLES, "weft")
    monkeypatch.setattr(setup, "CARRY_STORE", tuple(carry))
    with pytest.raises(StoreUnavailable):
        open_old(url)
    assert rows(url, TABLES, "weft") == before
    assert rows(url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'waylore'") == [(0,)]
    monkeypatch.undo()
    check_answers(url, "postgres")


def test_doctor_changes_nothing_and_names_the_old_schema(url: str) -> None:
    *_, finding = check_store(url)
    assert finding.state == "note"
    assert "has the schema of the old name" in finding.message
    assert "the next command renames it" in finding.remedy
    assert rows(url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'waylore'") == [(0,)]
    open_old(url).close()
    assert {finding.state for finding in check_store(url)} == {"good"}


def test_a_schema_in_the_way_is_an_error(url: str) -> None:
    rows(url, "CREATE SCHEMA waylore")
    with pytest.raises(SchemaOutdated, match="drop or rename it"):
        open_old(url)
    rows(url, "DROP SCHEMA waylore")
    check_answers(url, "postgres")


def test_a_foreign_schema_of_the_old_name_is_left_alone(server: Server) -> None:
    name = f"foreign_{next(_numbers)}"
    rows(server.url, f"CREATE DATABASE {name}")
    url = server.build_url(name)
    rows(url, "CREATE SCHEMA weft; CREATE TABLE weft.cloth (thread text)")
    open_old(url).close()
    assert rows(url, TABLES, "weft") == [("cloth",)]
    assert rows(url, "SELECT count(*) FROM waylore.migrations WHERE number = 0") == [(0,)]


def test_many_may_open_it_at_once(url: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(open_all, [url] * 6)) == [None] * 6
    check_answers(url, "postgres")


def test_ranked_words_are_carried_over() -> None:
    with start_server(find_textsearch_build()) as server:
        make_roles(server)
        url = restored(server, extension="pg_textsearch")
        rows(url, ADD_RANKED)
        check_answers(url, "postgres")
        with open_old(url) as memory:
            added = memory.add("Edda Lindqvar kept a marmoset.", uri="fam/marmoset")
            assert memory.search("marmoset", method="hybrid").hits[0].passage.document_id == added
        assert rows(url, "SELECT count(*) FROM pg_proc WHERE prosrc LIKE '%weft%'") == [(0,)]


def open_all(url: str) -> None:
    """Open and close everything that has a schema of its own."""
    open_old(url).close()
    open_registry(url).close()
    open_catalogue(url).close()
    PostgresJobs(url).close()
