"""Back up a PostgreSQL database while it is written, as an owner that is no superuser, and restore it."""

import json
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from tools.postgres.builds import find_plain_build
from tools.postgres.server import Server, start_server
from tools.waiting import HANG_SECONDS, wait_until

from surfaces.commands import process
from waylore import Waylore
from waylore.cells.catalogue.postgres import PostgresCatalogue
from waylore.cells.catalogue.protocol import Cell
from waylore.errors import ConfigError, DamagedStore, Forbidden, NotFound, SchemaOutdated, StoreUnavailable
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.service.backups.dispatch import back_up, restore, verify_backup
from waylore.service.backups.manifest import MANIFEST, SCHEMAS
from waylore.service.jobs.postgres import PostgresJobs
from waylore.service.jobs.protocol import Job
from waylore.service.keys import make_key
from waylore.service.registry.open import open_registry
from waylore.store.postgres import search as searching
from waylore.store.postgres.store import PostgresStore
from waylore.store.urls import open_store
from waylore.types.knowledge import IndexedDocument
from waylore.types.results import Receipt
from waylore.types.search import Filter

JOB = Job(uuid4().hex, "team", "a caller", "forget", {"documents": []}, datetime(2026, 1, 1, tzinfo=UTC))
TABLES = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname LIKE 'waylore%'"
_numbers = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Start a server with an owner that makes roles and one that may not, neither of them a superuser."""
    with start_server(find_plain_build()) as started:
        run_as_superuser(started.url, "CREATE ROLE keeper LOGIN CREATEROLE; CREATE ROLE plain LOGIN")
        yield started


def run_as_superuser(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as db:
        cursor = db.execute(sql.SQL(statement))
        return cursor.fetchall() if cursor.description else []


def create_database(server: Server, owner: str = "keeper") -> str:
    """Create an empty database with pgvector, and return its address for its owner."""
    name = f"saved_{next(_numbers)}"
    run_as_superuser(server.url, f"CREATE DATABASE {name} OWNER {owner}")
    run_as_superuser(server.build_url(name), "CREATE EXTENSION vector")
    return server.build_url(name, user=owner)


def open_memory(url: str, collection: str) -> Waylore:
    return Waylore.open(url, collection=collection, embedder=HashingEmbedder(64, quiet=True))


def fill(url: str) -> None:
    """Write two collections with labels, users, facts and vectors, a key, a job and a catalogue."""
    with open_memory(url, "default") as memory, open_memory(url, "team") as team:
        for n in range(5):
            memory.add(f"Note {n}: Mara leads Platform.", uri=f"{n}", labels=["staff"] if n % 2 else [])
        memory.add("Otto likes tea.", uri="tea", user="otto", facts=[("Otto", "likes", "tea")])
        team.add("Kofi leads Mara.", uri="kofi", metadata={"year": "2026"})
    with closing(open_registry(url)) as registry:
        registry.set_key(make_key("a key", scope="read")[0])
    with closing(PostgresJobs(url)) as jobs:
        jobs.add(JOB)
    with closing(PostgresCatalogue(url)) as catalogue:
        catalogue.set_cell(Cell("east", "east.waylore"))
        catalogue.place("notes")


def export(url: str, collection: str) -> Sequence[IndexedDocument]:
    with closing(open_store(url, collection)) as store:
        return list(store.export())


@pytest.fixture(scope="module")
def filled(server: Server) -> str:
    url = create_database(server)
    fill(url)
    return url


@pytest.fixture(scope="module")
def original(filled: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backups") / "saved"
    back_up(filled, folder)
    return folder


@pytest.fixture
def saved(original: Path, tmp_path: Path) -> Path:
    """Return a backup that a test may change."""
    return shutil.copytree(original, tmp_path / "saved")


def change_manifest(folder: Path, change: Callable[[dict[str, dict[str, object]]], object]) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    change(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_restored_database_equals_the_old_one(server: Server, filled: str, saved: Path) -> None:
    """The owner is no superuser and does not bypass row-level security."""
    new = create_database(server)
    manifest = restore(saved, new)
    assert {name: each.documents for name, each in manifest.collections.items()} == {"default": 6, "team": 1}
    for name in manifest.collections:
        assert export(new, name) == export(filled, name)
        with open_memory(filled, name) as old, open_memory(new, name) as restored:
            for question, where, user in (
                ("Who leads Platform?", Filter(), None),
                ("Who leads Platform?", Filter(labels=frozenset({"staff"})), None),
                ("tea", Filter(), "otto"),
            ):
                answer = restored.search(question, where=where, user=user)
                assert answer.hits == old.search(question, where=where, user=user).hits
    with closing(open_registry(new)) as registry, closing(open_registry(filled)) as before:
        assert registry.list_keys() == before.list_keys()
        assert [key.name for key in registry.list_keys()] == ["a key"]
        assert registry.get_secret() == before.get_secret()
    with closing(PostgresJobs(new)) as jobs:
        [job] = jobs.list_jobs("team", caller=None, before=None, limit=10)
        assert (job.id, job.work, job.state) == (JOB.id, JOB.work, "waiting")
    with closing(PostgresCatalogue(new)) as catalogue:
        assert (catalogue.list_collections(), list(catalogue.get_cells())) == (("notes",), ["east"])


def test_restored_database_can_be_written_and_backed_up_again(
    server: Server, filled: str, saved: Path, tmp_path: Path
) -> None:
    new = create_database(server)
    manifest = restore(saved, new)
    assert back_up(new, tmp_path / "again").parts.keys() == manifest.parts.keys()
    with open_memory(new, "a third") as memory:  # its mark in the inverted index must be a new one
        memory.add("Mara leads Platform.", uri="new")
        assert [hit.text for hit in memory.search("Platform")] == ["Mara leads Platform."]
    marks = "SELECT count(*), count(DISTINCT mark) FROM waylore.collections"
    assert run_as_superuser(new.replace("keeper@", "postgres@"), marks) == [(3, 3)]
    with closing(open_store(new, "default")) as store:
        assert not list(store.find_remains(Receipt()))


def test_large_collection_is_restored_to_shared_tables_and_split_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner is no superuser. The collection `team` stays small."""
    monkeypatch.setattr(searching, "MAX_EXACT_PASSAGES", 3)
    url, new = create_database(server), create_database(server)
    fill(url)
    own = "SELECT name FROM waylore.collections WHERE own_vectors"
    for each in (url, new):
        if each == new:
            back_up(url, tmp_path / "saved")
            restore(tmp_path / "saved", new)
            assert run_as_superuser(new.replace("keeper@", "postgres@"), own) == []
            assert export(new, "team") == export(url, "team")
        with closing(PostgresStore(each)) as store:
            assert store._building is not None
            store._building.join(HANG_SECONDS)
            assert store.find_remains(Receipt()) == ()
        assert run_as_superuser(each.replace("keeper@", "postgres@"), own) == [("default",)]
        assert export(each, "default") == export(url, "default")


def test_row_level_security_holds_after_a_restore_and_beside_the_role(server: Server, saved: Path) -> None:
    new = create_database(server)
    restore(saved, new)
    forced = (
        "SELECT bool_and(relrowsecurity AND relforcerowsecurity) FROM pg_class "
        "WHERE relnamespace = 'waylore'::regnamespace AND relkind = 'r' AND relname <> 'migrations'"
    )
    assert run_as_superuser(new, forced) == [(True,)]
    documents = "SELECT count(*) FROM waylore.documents"
    assert run_as_superuser(new, documents) == [(0,)]  # as the owner, which is a member of waylore_backup
    assert run_as_superuser(new, f"SET ROLE waylore_app; {documents}") == []
    assert run_as_superuser(new.replace("keeper@", "postgres@"), documents) == [(7,)]


def test_backup_role_reads_every_table_and_changes_none(server: Server, filled: str, tmp_path: Path) -> None:
    """A migration that adds a table must let the role read it."""
    run_as_superuser(server.url, "CREATE ROLE nightly LOGIN IN ROLE waylore_backup")
    nightly = filled.replace("keeper@", "nightly@")
    manifest = back_up(nightly, tmp_path / "saved")
    assert manifest.schemas.keys() == SCHEMAS["postgresql"].keys()
    assert manifest.collections["default"].documents == 6
    with psycopg.connect(nightly) as db:
        db.execute("SET ROLE waylore_backup")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute("DELETE FROM waylore.documents")


@pytest.mark.parametrize("owner", ["app", "plain"])
def test_login_that_sees_not_all_rows_gets_an_error_and_no_backup(
    server: Server, filled: str, tmp_path: Path, owner: str
) -> None:
    """`app` is the login of a service; `plain` owns its tables, but could not make the role."""
    if owner == "app":
        run_as_superuser(server.url, "CREATE ROLE app LOGIN IN ROLE waylore_app")
        url = filled.replace("keeper@", "app@")
    else:
        url = create_database(server, "plain")
        with open_memory(url, "default") as memory:
            memory.add("Mara leads Platform.", uri="a")
    with pytest.raises(Forbidden, match=f"{owner} does not see all rows of .* waylore_backup"):
        back_up(url, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
    run_as_superuser(server.url, f"GRANT waylore_backup TO {owner}")
    assert back_up(url, tmp_path / "saved").collections["default"].documents > 0


def test_superuser_backs_up_a_database_without_the_role(tmp_path: Path) -> None:
    with start_server(find_plain_build()) as bare:
        run_as_superuser(bare.url, "CREATE ROLE plain LOGIN")
        url = create_database(bare, "plain")
        with open_memory(url, "default") as memory:
            memory.add("Mara leads Platform.", uri="a")
        assert run_as_superuser(bare.url, "SELECT to_regrole('waylore_backup')::text") == [(None,)]
        with pytest.raises(Forbidden, match="connect as a superuser"):
            back_up(url, tmp_path / "saved")
        back_up(url.replace("plain@", "postgres@"), tmp_path / "saved")
        new = create_database(bare, "plain")
        restore(tmp_path / "saved", new)
        assert export(new, "default") == export(url, "default")


def test_backup_during_writes_is_the_store_of_one_moment(server: Server, tmp_path: Path) -> None:
    url, is_over, written = create_database(server), threading.Event(), list[str]()

    def write() -> None:
        with open_memory(url, "default") as memory:
            while not is_over.wait(0.05):
                memory.add(f"Note {len(written)}: Mara leads Platform.", uri=f"{len(written):06}")
                written.append(f"{len(written):06}")

    def wait_for_writes(_: str) -> None:
        so_far = len(written)
        wait_until(lambda: len(written) > so_far + 5)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(written) > 20)
        before = len(written)
        back_up(url, tmp_path / "saved", progress=wait_for_writes)
        after = len(written)
    finally:
        is_over.set()
        writer.join()
    assert after > before + 10
    new = create_database(server)
    restore(tmp_path / "saved", new)
    found = export(new, "default")
    uris = {indexed.document.uri for indexed in found}
    assert sorted(uris) == written[: len(uris)]
    assert before <= len(uris) <= before + 2  # the snapshot is made before the first pause
    assert found == [indexed for indexed in export(url, "default") if indexed.document.uri in uris]


def test_changed_part_is_refused(server: Server, saved: Path) -> None:
    verify_backup(saved)
    part = saved / "waylore.passages.copy"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    new = create_database(server)
    with pytest.raises(DamagedStore, match="was changed"):
        verify_backup(saved)
    with pytest.raises(DamagedStore, match="was changed"):
        restore(saved, new)
    assert run_as_superuser(new, TABLES) == [(0,)]


def test_trial_restore_leaves_nothing(server: Server, saved: Path) -> None:
    new = create_database(server)
    roles = "SELECT count(*) FROM pg_roles"
    before = run_as_superuser(new, roles)
    manifest, is_restored = verify_backup(saved, new)
    assert (is_restored, manifest.collections["default"].documents) == (True, 6)
    assert (run_as_superuser(new, TABLES), run_as_superuser(new, roles)) == ([(0,)], before)
    with pytest.raises(ConfigError, match="is a backup of postgresql"):
        verify_backup(saved, "memory.waylore")


def test_part_that_has_its_hash_but_does_not_restore_is_noticed(server: Server, saved: Path) -> None:
    """Every row is there twice, as if two copies had been joined."""
    part = saved / "waylore.passages.copy"
    content, header = part.read_bytes(), 19
    part.write_bytes(content[:-2] + content[header:])
    digest = sha256(part.read_bytes()).hexdigest()
    change_manifest(saved, lambda manifest: manifest["parts"].update({part.name: digest}))
    assert verify_backup(saved)[1] is False
    new = create_database(server)
    with pytest.raises(DamagedStore, match=r"(?s)cannot be restored .*duplicate key.*; use another backup"):
        verify_backup(saved, new)
    assert run_as_superuser(new, TABLES) == [(0,)]


@pytest.mark.parametrize("schema", [*SCHEMAS["postgresql"], "waylore_later"])
def test_newer_backup_is_refused(server: Server, saved: Path, schema: str) -> None:
    change_manifest(saved, lambda manifest: manifest["schemas"].update({schema: 1_000}))
    with pytest.raises(SchemaOutdated, match="install that version"):
        restore(saved, create_database(server))


EARLIER: dict[str, dict[str, str | None]] = {
    "waylore.documents": {"author": None},  # a column that the earlier table did not have
    "waylore.collections": {"weights": None, "own_vectors": None},
    "waylore.terms": {"passages": "passages::int8"},
    "waylore.entities": {"passages": "passages::int8"},
    "waylore.names": {"documents": "documents::int8"},
    "waylore.entity_keys": {"documents": "documents::int8"},
    "waylore.mentions": {"rank": None, "count": "-rank & 1073741823", "is_own": "rank <= -1073741824"},
    "waylore_cells.cells": {"bytes": None, "measured": None, "measured_at": None},
}  # the columns of tables before number 10 that differ from today's, and their values


def write_earlier_parts(database: str, folder: Path) -> None:
    """Change a backup to one from before the audit log, with documents that have no authors, and wider rows."""
    manifest = json.loads((folder / MANIFEST).read_text())
    added = ("waylore.audit.copy", "waylore_service.audit.copy", "waylore.indexes.copy", "waylore.outbox.copy")
    for part in added:
        (folder / part).unlink()
        for listed in (manifest["parts"], manifest["columns"]):
            del listed[part]
    for table, changed in EARLIER.items():
        part = f"{table}.copy"
        values = {**{name: f'"{name}"' for name in manifest["columns"][part]}, **changed}
        columns = {name: value for name, value in values.items() if value}
        statement = f"COPY (SELECT {', '.join(columns.values())} FROM {table}) TO STDOUT (FORMAT binary)"
        with psycopg.connect(database) as db, db.cursor().copy(statement.encode()) as copied:
            (folder / part).write_bytes(b"".join(copied))
        manifest["columns"][part] = list(columns)
        manifest["parts"][part] = sha256((folder / part).read_bytes()).hexdigest()
    earlier = {"waylore": 9, "waylore_service": 4, "waylore_jobs": 2, "waylore_cells": 1}
    (folder / MANIFEST).write_text(json.dumps({**manifest, "schemas": {**manifest["schemas"], **earlier}}))


def test_backup_of_an_earlier_schema_is_upgraded(server: Server, filled: str, saved: Path) -> None:
    """Number 10 of the store changed no columns, 11 added authors and the audit log, 12 and 16 a column, 14 tables."""
    write_earlier_parts(filled.replace("keeper@", "postgres@"), saved)
    new = create_database(server)
    restore(saved, new)
    assert export(new, "default") == export(filled, "default")
    numbers = "SELECT max(number) FROM waylore.migrations"
    assert run_as_superuser(new, numbers) == run_as_superuser(filled, numbers)


def test_restored_database_has_no_search_index(server: Server, tmp_path: Path) -> None:
    """The points on a cluster belong to the database that was saved."""
    url, new = create_database(server), create_database(server)
    with open_memory(url, "default"):
        pass
    old, copy = (each.replace("keeper@", "postgres@") for each in (url, new))
    run_as_superuser(
        old,
        "INSERT INTO waylore.indexes (collection, tenant, url, passages_after)"
        " SELECT collection, gen_random_uuid(), 'http://127.0.0.1:1', gen_random_uuid() FROM waylore.collections",
    )
    back_up(url, tmp_path / "saved")
    restore(tmp_path / "saved", new)
    assert run_as_superuser(old, "SELECT count(*) FROM waylore.indexes") == [(1,)]
    assert run_as_superuser(copy, "SELECT count(*) FROM waylore.indexes") == [(0,)]


def test_database_with_another_schema_number_is_not_backed_up(server: Server, tmp_path: Path) -> None:
    url = create_database(server)
    with open_memory(url, "default"):
        pass
    run_as_superuser(url, "DELETE FROM waylore.migrations WHERE number = (SELECT max(number) FROM waylore.migrations)")
    with pytest.raises(SchemaOutdated, match="or run `waylore migrate`"):
        back_up(url, tmp_path / "saved")


def test_other_documents_than_those_of_the_manifest_are_refused(server: Server, saved: Path) -> None:
    change_manifest(saved, lambda manifest: manifest["collections"].pop("team"))
    new = create_database(server)
    with pytest.raises(DamagedStore, match="are not those"):
        restore(saved, new)
    assert run_as_superuser(new, TABLES) == [(0,)]


def test_nothing_is_overwritten_and_engines_are_not_mixed(
    server: Server, filled: str, saved: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="name an empty database"):
        restore(saved, filled)
    with pytest.raises(ConfigError, match="name a new folder"):
        back_up(filled, saved)
    with pytest.raises(ConfigError, match=r"is a backup of postgresql: name an empty .* `waylore export` and"):
        restore(saved, str(tmp_path / "new.waylore"))
    with pytest.raises(NotFound, match="no store at"):
        back_up(create_database(server), tmp_path / "none")
    with pytest.raises(ConfigError, match="each cell"):
        back_up(f"cells+{filled}", tmp_path / "none")


@pytest.mark.full
def test_engine_is_changed_by_export_and_import(server: Server, saved: Path, tmp_path: Path) -> None:
    """The error of a restore into the other engine names these commands."""
    restored, again, file = create_database(server), create_database(server), str(tmp_path / "new.waylore")
    restore(saved, restored)
    for name in ("default", "team"):
        copy_collection(tmp_path, name, restored, file)
        copy_collection(tmp_path, name, file, again)
        assert export(file, name) == export(again, name) == export(restored, name)
        with open_memory(restored, name) as old, open_memory(file, name) as new:
            assert [hit.text for hit in new.search("Who leads?")] == [hit.text for hit in old.search("Who leads?")]


def copy_collection(folder: Path, collection: str, source: str, target: str) -> None:
    for command, store in (("export", source), ("import", target)):
        force = ["--force"] if command == "export" else []
        options = ("--store", store, "--collection", collection, *force)
        done = process(folder, command, "moved.jsonl", *options, WAYLORE_EMBEDDING_PROVIDER="none")
        assert done.returncode == 0, done.stderr


def interrupt_at(step: str) -> Callable[[str], None]:
    def interrupt(current: str) -> None:
        if current == step:
            raise KeyboardInterrupt

    return interrupt


@pytest.mark.parametrize("step", ["copying", "verifying"])
def test_interrupted_backup_is_made_anew(filled: str, original: Path, tmp_path: Path, step: str) -> None:
    folder = tmp_path / "saved"
    with pytest.raises(KeyboardInterrupt):
        back_up(filled, folder, progress=interrupt_at(step))
    assert not folder.exists()
    back_up(filled, folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in original.iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_interrupted_restore_leaves_nothing_and_can_be_repeated(server: Server, filled: str, saved: Path) -> None:
    new = create_database(server)
    with pytest.raises(KeyboardInterrupt):
        restore(saved, new, progress=interrupt_at("comparing"))
    assert run_as_superuser(new, TABLES) == [(0,)]

    def end_connection(current: str) -> None:
        if current == "comparing":
            others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            run_as_superuser(new, f"SELECT pg_terminate_backend(pid) {others}")

    with pytest.raises(StoreUnavailable):
        restore(saved, new, progress=end_connection)
    assert run_as_superuser(new, TABLES) == [(0,)]
    restore(saved, new)
    assert export(new, "default") == export(filled, "default")


def test_backup_can_be_read_by_its_owner_alone(original: Path) -> None:
    assert stat.S_IMODE(original.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in original.glob("*.copy")} == {0o600}


def test_commands_back_up_verify_and_restore(server: Server, filled: str, tmp_path: Path) -> None:
    made = json.loads(process(tmp_path, "backup", "saved", "--store", filled, "--json").stdout)
    assert (made["engine"], made["collections"]["default"]["documents"]) == ("postgresql", 6)
    assert "name an empty database with --store" in process(tmp_path, "backup", "saved", "--verify").stdout
    empty = create_database(server)
    shown = process(tmp_path, "backup", "saved", "--verify", "--store", empty).stdout
    assert "saved: verified, default (6 documents)" in " ".join(shown.split())
    assert "restored as a trial" in " ".join(shown.split())
    new = create_database(server).replace("keeper@", "keeper:secret@")
    done = process(tmp_path, "restore", "saved", "--store", new)
    assert (done.returncode, "secret" in done.stdout) == (0, False), done.stderr
    assert "Mara" in process(tmp_path, "search", "Platform", "--store", new).stdout
