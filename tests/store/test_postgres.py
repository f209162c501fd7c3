"""The conformance tests on PostgreSQL, tests of PostgreSQL alone, and the same ranking as on SQLite."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.waiting import HANG_SECONDS, wait_until

from databases import create_database, get_server_url, make_name, open_collections, start_shared_server
from store.drawn import WORDS, DrawnPage, draw_pages, filters
from store.earlier_schema import UNDO_LATEST, restore_tables
from waylore import Waylore
from waylore.errors import ArgumentError, ConfigError, SchemaOutdated, StoreUnavailable
from waylore.store import bm25
from waylore.store.postgres import search as searching
from waylore.store.postgres import write as writing
from waylore.store.postgres.connections import translate_errors
from waylore.store.postgres.store import PostgresStore
from waylore.store.sql import load_migrations
from waylore.store.sqlite.store import SqliteStore
from waylore.store.urls import open_store
from waylore.testing import OpenStore, StoreConformance
from waylore.testing.scopes import say
from waylore.testing.world import EMBEDDER, KING, MODEL, PUBLIC, QUEEN, SECRET, WORLD, day, page, question
from waylore.types.author import OWNER
from waylore.types.identity import entity_id
from waylore.types.knowledge import IndexedDocument, NewFact
from waylore.types.results import Receipt
from waylore.types.search import Filter

EMPTY_RECEIPT = Receipt()


class TestPostgres(StoreConformance):
    @pytest.fixture
    def open_store(self) -> Iterator[OpenStore]:
        with open_collections(lambda name: PostgresStore(get_server_url(), name)) as open_store:
            yield open_store


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    with closing(PostgresStore(get_server_url(), make_name("own"))) as store:
        yield store


def run_as_superuser(sql: str, *bound: object, url: str | None = None) -> list[tuple[object, ...]]:
    with psycopg.connect(url or get_server_url(), autocommit=True) as db:
        done = db.execute(sql, bound or None)
        return done.fetchall() if done.description else []


# -- same ranking as SQLite ----------------------------------------------------------------------------


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pages=draw_pages(30), asked=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), where=filters)
def test_words_and_vectors_rank_as_on_sqlite(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    pages: Sequence[DrawnPage],
    asked: list[str],
    where: Filter,
) -> None:
    """Few postings may be read, so that the limit has an effect."""
    monkeypatch.setattr(bm25, "MAX_POSTINGS", 6)
    documents = [page(t, labels=ls, metadata=m, uri=str(i)) for i, (t, ls, m) in enumerate(pages)]
    stores = (
        SqliteStore(tmp_path_factory.mktemp("like") / "a.waylore"),
        PostgresStore(get_server_url(), make_name("like")),
    )
    try:
        for store in stores:
            store.write(documents[: len(documents) // 2], author=OWNER, model=MODEL)
            store.write(documents[len(documents) // 2 :], author=OWNER, model=MODEL)
            store.forget([documents[0].document.id], author=OWNER)
        query = " ".join(asked)
        one, other = (store.lexical(query, top_k=3, where=where) for store in stores)
        assert one == other
        one, other = (store.dense(question(query), top_k=5, where=where) for store in stores)
        assert one == other
    finally:
        for store in stores:
            store.close()


def test_lexical_reads_limited_number_of_postings(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "MAX_POSTINGS", 10)
    common = [page(f"common words on page {i}") for i in range(60)]
    mine = [page(f"common words of mine {i}", labels=["me"], metadata={"mine": True}) for i in range(3)]
    rare = page("common words and a zeppelin")
    store.write([*mine, *common, rare], author=OWNER, model=MODEL)
    assert store.lexical("common zeppelin words", top_k=5)[0].id == rare.passages[0].id
    assert len(store.lexical("common", top_k=5)) == 5
    expected = {p.id for c in mine for p in c.passages}
    where = Filter(metadata={"mine": True})
    assert {s.id for s in store.lexical("common words", top_k=5, where=where)} == expected


def test_word_search_uses_index(store: PostgresStore) -> None:
    """Row-level security keeps operators like @@ from using an index, except inside the function `matching`."""
    plans = run_as_superuser(
        "SELECT proconfig, prosecdef, pg_get_userbyid(proowner) FROM pg_proc WHERE proname = 'matching'"
    )
    assert plans == [(["search_path=waylore, pg_temp"], True, "waylore_matching")]
    with psycopg.connect(get_server_url()) as db:
        db.execute("SET LOCAL enable_seqscan = off")
        db.execute("SET LOCAL search_path = waylore")
        db.execute("SET LOCAL ROLE waylore_matching")
        plan = db.execute("EXPLAIN SELECT id FROM passage_terms WHERE words @@ '1t1'::tsquery").fetchall()
    assert "passage_terms_by_words" in str(plan)


def test_vector_search_learns_of_first_write(store: PostgresStore) -> None:
    with closing(PostgresStore(get_server_url(), store._name)) as other:
        assert [each.dense(question("king"), top_k=9) for each in (store, other)] == [(), ()]
        store.write(WORLD, author=OWNER, model=MODEL)
        assert [len(each.dense(question("king"), top_k=9)) for each in (store, other)] == [3, 3]


# -- large collections ---------------------------------------------------------------------------------


def grow(store: PostgresStore, count: int) -> list[IndexedDocument]:
    """Write pages with random vectors, a tenth with a label, a fiftieth with a tag, and wait for the index."""
    random = np.random.default_rng(7)
    documents = []
    for i in range(count):
        made = page(
            f"page {i}",
            labels=["few"] if i % 10 == 0 else [],
            metadata={"rare": True} if i % 50 == 1 else {},
        )
        vector = random.normal(size=EMBEDDER.dimension).astype(np.float32)
        documents.append(replace(made, passages=tuple(replace(p, vector=vector) for p in made.passages)))
    store.write(documents, author=OWNER, model=MODEL)
    assert store._building is not None
    store._building.join(HANG_SECONDS)
    return documents


def find_best(documents: Sequence[IndexedDocument], asked: np.ndarray, top_k: int) -> set[str]:
    def near(c: IndexedDocument) -> float:
        vector = c.passages[0].vector
        assert vector is not None
        return float(vector @ asked / np.linalg.norm(vector))

    return {c.passages[0].id for c in sorted(documents, key=near, reverse=True)[:top_k]}


def test_large_collection_gets_index_without_loss_of_recall(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MAX_EXACT_PASSAGES", 300)
    documents = grow(store, 2_000)
    names = [name for (name,) in run_as_superuser("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'hnsw%%'")]
    assert any(str(name).endswith(f"_own_passage_{EMBEDDER.dimension}") for name in names)
    few = [c for c in documents if c.document.labels]
    public = [c for c in documents if not c.document.labels]
    rare = [c for c in documents if c.document.metadata]
    random = np.random.default_rng(8)
    found, expected = 0, 0
    for _ in range(20):
        asked = random.normal(size=EMBEDDER.dimension).astype(np.float32)
        for where, of in (
            (Filter(), documents),
            (PUBLIC, public),
            (Filter(metadata={"rare": True}), rare),
            (Filter(labels=frozenset({"few"}), metadata={"rare": True}), rare),
        ):
            wanted = find_best(of, asked, 10)
            found += len(wanted & {s.id for s in store.dense(asked, top_k=10, where=where)})
            expected += len(wanted)
        assert {s.id for s in store.dense(asked, top_k=9, where=Filter(labels=frozenset({"few"})))}
    assert few
    assert found / expected > 0.98
    wait_for_scans(store, "passage", 40)  # without a filter, and for the public


def wait_for_scans(store: PostgresStore, kind: str, times: int) -> None:
    """Wait until the server has counted that the collection's index was used `times` times."""
    named = f"hnsw_{store._key & 0xFFFFFFFFFFFFFFFF:016x}_own_{kind}%"

    def is_counted() -> bool:
        store.statistics()
        [(count,)] = run_as_superuser("SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname LIKE %s", named)
        return int(str(count)) >= times

    wait_until(is_counted)


@pytest.mark.parametrize(
    ("vectors", "wanted", "width"),
    [(20_000, 100, 400), (100_000, 500, 500), (400_000, 100, 800), (1_000_000, 100, 1_000), (10**9, 10**4, 1_000)],
)
def test_search_among_more_vectors_keeps_more_candidates(vectors: int, wanted: int, width: int) -> None:
    assert searching.choose_width(vectors, wanted) == width


def test_names_of_large_collection_are_found_by_index(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    new_facts = [
        NewFact(f"{one} {other} {n}", "met", "us", is_value=True) for one in WORDS for other in WORDS for n in "ab"
    ]
    store.write([page(f"Page {n}.", *new_facts[n::8]) for n in range(8)], author=OWNER, model=MODEL)
    asked = [EMBEDDER.embed_passages([f"{one} {WORDS[n - 1]} a"])[0] for n, one in enumerate(WORDS)]
    exact = [{s.id for s in store.nearest_entities(vector, top_k=10)} for vector in asked]
    monkeypatch.setattr(searching, "MAX_EXACT_ENTITIES", 100)
    monkeypatch.setattr(searching, "MIN_CANDIDATES", 40)
    store.write([page("One more.", NewFact("Somebody else", "met", "us", is_value=True))], author=OWNER, model=MODEL)
    assert store._building is not None
    store._building.join(HANG_SECONDS)
    named = f"hnsw_{store._key & 0xFFFFFFFFFFFFFFFF:016x}_own_entity_{EMBEDDER.dimension}"
    assert run_as_superuser("SELECT 1 FROM pg_indexes WHERE indexname = %s", named)
    near = [{s.id for s in store.nearest_entities(vector, top_k=10)} for vector in asked]
    wait_for_scans(store, "entity", len(asked))
    assert np.mean([len(e & f) / len(e) for e, f in zip(exact, near, strict=True)]) >= 0.9


def test_nearest_names_are_the_same_without_a_filter(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller without labels sorts only the nearest; a caller with labels sorts all names, and sees the same here."""
    new_facts = [NewFact(f"{one} {other}", "met", "us", is_value=True) for one in WORDS for other in WORDS]
    store.write([page(f"Page {n}.", *new_facts[n::8]) for n in range(8)], author=OWNER, model=MODEL)
    monkeypatch.setattr(searching, "MIN_ENTITY_CANDIDATES", 1)
    for one in WORDS:
        vector = EMBEDDER.embed_passages([one])[0]
        found = store.nearest_entities(vector, top_k=9)
        assert len(found) == 9
        assert found == store.nearest_entities(vector, top_k=9, where=Filter(labels=frozenset()))


def test_only_owner_builds_indexes(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MAX_EXACT_PASSAGES", 20)
    run_as_superuser("DROP ROLE IF EXISTS waylore_test_app")
    run_as_superuser("CREATE ROLE waylore_test_app LOGIN IN ROLE waylore_app")
    named = f"%{store._key & 0xFFFFFFFFFFFFFFFF:016x}%"
    for user, indexes in (("waylore_test_app", 0), ("postgres", 1)):
        with closing(PostgresStore(get_server_url().replace("//postgres@", f"//{user}@"), store._name)) as mine:
            mine.write([page(f"Page {i} of {WORDS[i % 12]}") for i in range(40)], author=OWNER, model=MODEL)
            assert len(mine.dense(question("falcon"), top_k=7)) == 7
            assert mine._building is not None
            mine._building.join(HANG_SECONDS)
        found = run_as_superuser("SELECT indexname FROM pg_indexes WHERE indexname LIKE %s", f"hnsw{named}")
        assert len(found) == indexes


def test_index_is_rebuilt_for_new_model(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of another dimension get an index, and the index of the old ones is dropped."""
    monkeypatch.setattr(searching, "MAX_EXACT_PASSAGES", 20)
    store.write([page(f"Page {i} of {WORDS[i % 12]}") for i in range(40)], author=OWNER, model=MODEL)
    assert store._building is not None
    store._building.join(HANG_SECONDS)
    random = np.random.default_rng(3)
    while items := store.list_unembedded("next", limit=50):
        store.stage_vectors(
            [replace(i, vector=random.normal(size=48).astype(np.float32)) for i in items], author=OWNER, model="next"
        )
    assert store.activate_model("next", author=OWNER)
    store._building.join(HANG_SECONDS)
    key = f"hnsw_{store._key & 0xFFFFFFFFFFFFFFFF:016x}%"
    names = run_as_superuser("SELECT indexname FROM pg_indexes WHERE indexname LIKE %s", key)
    assert [str(name).rsplit("_", maxsplit=1)[-1] for (name,) in names] == ["48"]
    assert len(store.dense(random.normal(size=48).astype(np.float32), top_k=7)) == 7


# -- the schema ----------------------------------------------------------------------------------------


def test_newer_schema_raises_error() -> None:
    url = create_database()
    PostgresStore(url).close()
    run_as_superuser("INSERT INTO waylore.migrations (number, name) VALUES (9999, 'from the future')", url=url)
    with pytest.raises(SchemaOutdated, match="upgrade Waylore"):
        PostgresStore(url)


def test_schema_from_other_sql_raises_error() -> None:
    url = create_database()
    PostgresStore(url).close()
    run_as_superuser("UPDATE waylore.migrations SET checksum = 'another'", url=url)
    with pytest.raises(SchemaOutdated, match=r"migration 1 \(initial\).* import the export"):
        PostgresStore(url)


def test_words_of_users_are_carried_over() -> None:
    """In an earlier schema the words of a passage of a user were those of any passage."""
    url = create_database()
    with closing(PostgresStore(url)) as store:
        store.write(
            [say("The falcon flew.", user="ann"), say("A falcon.", user="ben"), page("Falcon!")],
            author=OWNER,
            model=MODEL,
        )
        found = store.lexical("falcon", top_k=9, where=Filter(user="ann"))
    words = "SELECT words FROM waylore.passage_terms ORDER BY collection, number"
    before = run_as_superuser(words, url=url)
    plain = r"""UPDATE waylore.passage_terms SET words = array_to_tsvector(ARRAY(
        SELECT regexp_replace(w, '^([0-9]+t[0-9]+)a[0-9]+$', '\1') FROM unnest(tsvector_to_array(words)) w))"""
    run_as_superuser(plain, url=url)
    run_as_superuser("ALTER TABLE waylore.documents DROP COLUMN expires_at, DROP COLUMN author", url=url)
    run_as_superuser("DROP TABLE waylore.audit; DROP FUNCTION waylore.refuse_audit_change", url=url)
    run_as_superuser(f"SET search_path = waylore; {UNDO_LATEST}", url=url)
    run_as_superuser("DELETE FROM waylore.migrations WHERE number >= 9", url=url)
    assert run_as_superuser(words, url=url) != before
    with closing(PostgresStore(url)) as store:
        assert store.lexical("falcon", top_k=9, where=Filter(user="ann")) == found
        assert len(found) == 2
    assert run_as_superuser(words, url=url) == before


def test_words_of_users_are_apart() -> None:
    """A search for a user reads no postings of others: no word but the permissions is shared."""
    url = create_database()
    with closing(PostgresStore(url)) as store:
        store.write([say("The falcon flew.", user=user) for user in ("ann", "ben")], author=OWNER, model=MODEL)
    words = "SELECT count(*), count(DISTINCT w) FROM waylore.passage_terms, unnest(tsvector_to_array(words)) w"
    assert run_as_superuser(words, url=url) == [(6, 6)]


def test_concurrent_migrations_run_once() -> None:
    """Each store has its own pool, like a separate process."""
    url = create_database()
    with ExitStack() as opened, ThreadPoolExecutor(6) as threads:
        for store in threads.map(lambda n: PostgresStore(url, str(n), connections=2 + n), range(6)):
            opened.enter_context(closing(store))
    assert run_as_superuser("SELECT count(*) FROM waylore.migrations", url=url) == [
        (len(load_migrations("waylore.store.postgres")),)
    ]


def test_unknown_source_is_refused_and_one_from_before_becomes_system() -> None:
    url = create_database()
    with Waylore.open(url) as memory:
        memory.add("Zebra lives in Oslo.", uri="web.md")
        memory.add("Sigrid lives in Bergen.", uri="notes.md", source="user_edit")
    with pytest.raises(psycopg.errors.CheckViolation):
        run_as_superuser("UPDATE waylore.documents SET source = 'web' WHERE uri = 'web.md'", url=url)
    run_as_superuser("ALTER TABLE waylore.documents DROP CONSTRAINT documents_source_check", url=url)
    run_as_superuser("UPDATE waylore.documents SET source = 'web' WHERE uri = 'web.md'", url=url)
    run_as_superuser("DELETE FROM waylore.migrations WHERE name = 'source'", url=url)
    with Waylore.open(url) as memory:
        assert {each.uri: each.source for each in memory.documents()} == {"web.md": "system", "notes.md": "user_edit"}
        assert [hit.document.uri for hit in memory.search("Oslo").hits] == ["web.md"]
    with pytest.raises(psycopg.errors.CheckViolation):
        run_as_superuser("UPDATE waylore.documents SET source = 'web' WHERE uri = 'web.md'", url=url)


def test_schema_equals_sum_of_migrations() -> None:
    folder = Path(bm25.__file__).parent / "postgres" / "sql"
    assert build_schema([(folder / "schema.sql").read_text("utf-8")]) == build_schema(
        [sql for _, _, sql in load_migrations("waylore.store.postgres")]
    )


def build_schema(scripts: Sequence[str]) -> list[tuple[object, ...]]:
    """Return the contents of a database that these scripts create."""
    url = create_database()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE EXTENSION vector; CREATE SCHEMA waylore; SET search_path = waylore, public")
        db.execute("CREATE TABLE migrations (number int4)")
        for script in scripts:
            db.execute(script)
        found = db.execute(
            "SELECT 'column', c.relname, a.attname || format_type(a.atttypid, a.atttypmod) || a.attnotnull "
            "FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
            "WHERE c.relnamespace = 'waylore'::regnamespace "
            "UNION ALL SELECT 'index', tablename, indexdef FROM pg_indexes WHERE schemaname = 'waylore' "
            "UNION ALL SELECT 'policy', tablename, policyname || roles::text || qual FROM pg_policies "
            "UNION ALL SELECT 'function', proname, pg_get_functiondef(oid) FROM pg_proc "
            "WHERE pronamespace = 'waylore'::regnamespace ORDER BY 1, 2, 3"
        )
        return found.fetchall()


def test_isolation_holds_for_owner_without_roles() -> None:
    """On many hosted servers the owner may not create roles. Words are then found without their index."""
    url = create_database()
    run_as_superuser("CREATE ROLE waylore_test_owner LOGIN")  # the role ends with the server of the tests
    run_as_superuser(f"ALTER DATABASE {url.split('/')[3].split('?')[0]} OWNER TO waylore_test_owner")
    owners = url.replace("//postgres@", "//waylore_test_owner@")
    with pytest.raises(ConfigError, match="CREATE EXTENSION vector"):
        PostgresStore(owners)
    run_as_superuser("CREATE EXTENSION vector", url=url)
    with closing(PostgresStore(owners, "one")) as one, closing(PostgresStore(owners, "other")) as other:
        assert one._server.role == "none"
        one.write(WORLD, author=OWNER, model=MODEL)
        assert [s.id for s in one.lexical("Erstein", top_k=9)] == [QUEEN.passages[0].id]
        assert len(one.dense(question("king"), top_k=9)) == 3
        assert other.lexical("Erstein", top_k=9) == ()
        with other._transaction() as (db, _):
            assert db.execute("SELECT count(*) FROM documents").fetchall() == [(0,)]
        assert one.find_remains(one.forget([KING.document.id], author=OWNER)) == ()


def test_rows_from_before_counts_by_access_are_counted() -> None:
    """The migration counts the rows of every collection, although row-level security shows the owner none."""
    url = create_database()
    run_as_superuser("CREATE EXTENSION vector", url=url)
    run_as_superuser("CREATE ROLE waylore_test_migrator LOGIN")  # the role ends with the server of the tests
    run_as_superuser(f"ALTER DATABASE {url.split('/')[3].split('?')[0]} OWNER TO waylore_test_migrator")
    owners = url.replace("//postgres@", "//waylore_test_migrator@")
    found = []
    for name in ("one", "two"):
        with closing(PostgresStore(owners, name)) as store:
            store.write(WORLD, author=OWNER, model=MODEL)
            found.append(store.lexical("Lothair king", top_k=9, where=PUBLIC))
    restore_tables(owners, ("one", "two"))
    run_as_superuser(
        "DROP TABLE waylore.term_counts, waylore.entity_counts; "
        "ALTER TABLE waylore.accesses DROP COLUMN length, DROP COLUMN assertions; "
        "DELETE FROM waylore.migrations WHERE name = 'counts_by_access'",
        url=url,
    )
    for name, expected in zip(("one", "two"), found, strict=True):
        with closing(PostgresStore(owners, name)) as store:
            assert store.find_remains(Receipt()) == ()
            assert store.lexical("Lothair king", top_k=9, where=PUBLIC) == expected != ()
            assert store.has_facts(where=PUBLIC)
    forced = "SELECT count(*) FROM pg_class WHERE relnamespace = 'waylore'::regnamespace AND relkind = 'r'"
    assert run_as_superuser(f"{forced} AND NOT relforcerowsecurity AND relname <> 'migrations'", url=url) == [(0,)]


def test_open_store_opens_postgres_by_url() -> None:
    with closing(open_store(get_server_url(), make_name("address"))) as store:
        assert isinstance(store, PostgresStore)


# -- concurrency ---------------------------------------------------------------------------------------


def test_export_reads_one_snapshot(store: PostgresStore) -> None:
    store.write([KING, QUEEN], author=OWNER, model=MODEL)
    export = store.export()
    first = next(export)
    store.forget([KING.document.id, QUEEN.document.id], author=OWNER)
    assert [c.document.id for c in (first, *export)] == sorted([KING.document.id, QUEEN.document.id])


def test_threads_share_store_without_leaking_connections(store: PostgresStore) -> None:
    store.write(WORLD, author=OWNER, model=MODEL)
    with ThreadPoolExecutor(24) as threads:
        found = list(threads.map(lambda _: len(store.lexical("Lothair", top_k=9)), range(200)))
    assert found == [3] * 200
    wait_until(lambda: count_borrowed(store) == 0)  # a connection may still be opening
    assert store._server.pool.get_stats()["pool_size"] <= 16


def count_borrowed(store: PostgresStore) -> int:
    stats = store._server.pool.get_stats()
    return stats["pool_size"] - stats["pool_available"]


def test_concurrent_writes_lose_nothing(store: PostgresStore) -> None:
    documents = [page(f"page {i}", NewFact("Hub", "knows", f"Page {i % 7}"), uri=str(i)) for i in range(60)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda c: store.write([c], author=OWNER, model=MODEL), documents))
        list(
            threads.map(
                lambda c: store.count_uses(passages=[c.passages[0].id], facts=[c.facts[0].id], at=day("2024-06-01")),
                documents,
            )
        )
    assert store.statistics().documents == 60
    assert store.find_remains(EMPTY_RECEIPT) == ()
    hub = entity_id("Hub")
    assert sum(f.access_count for f in store.facts_of_entities([hub], per_entity=9)[hub]) == 60


def test_write_does_not_wait_for_other_collection(store: PostgresStore) -> None:
    with closing(PostgresStore(get_server_url(), make_name("other"))) as other, store._transaction():
        assert other.write([KING], author=OWNER, model=MODEL) == 1
        assert store.lexical("king", top_k=3) == ()


# -- faults --------------------------------------------------------------------------------------------


def kill_connections(store: PostgresStore) -> None:
    """End every connection of the pool on the server's side."""
    run_as_superuser(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )


def test_reads_and_writes_work_after_connections_were_lost(store: PostgresStore) -> None:
    store.write(WORLD, author=OWNER, model=MODEL)
    for verb in (lambda: store.lexical("king", top_k=3), lambda: store.forget([QUEEN.document.id], author=OWNER)):
        kill_connections(store)
        assert verb()


def test_interrupted_write_leaves_nothing(store: PostgresStore) -> None:
    store.write([KING], author=OWNER, model=MODEL)
    before = list(store.export())

    def write_by_halves() -> None:
        with store._transaction() as (db, into):
            writing.write(db, into, [QUEEN], author=OWNER, model=MODEL)
            kill_connections(store)
            writing.write(db, into, [SECRET], author=OWNER, model=MODEL)

    with pytest.raises(StoreUnavailable, match="complete or absent"):
        write_by_halves()
    assert list(store.export()) == before
    assert store.find_remains(EMPTY_RECEIPT) == ()


def test_exhausted_pool_raises_error_after_wait_seconds() -> None:
    with closing(PostgresStore(get_server_url(), make_name("busy"), connections=1, wait_seconds=0.3)) as store:
        with store._transaction(), pytest.raises(StoreUnavailable, match=r"after 0\.30 sec.* more connections"):
            store.version()
        assert store.version() == 0


def test_unreachable_server_error_hides_password() -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1/nowhere") as caught:
        PostgresStore("postgresql://me:hunter2@127.0.0.1:1/nowhere")
    assert "hunter2" not in str(caught.value)


def test_missing_database_error_names_createdb() -> None:
    with pytest.raises(StoreUnavailable, match=r"/nope refuses .* create it with createdb nope"):
        PostgresStore(start_shared_server().build_url("nope"))


def test_missing_role_error_names_createuser() -> None:
    with pytest.raises(StoreUnavailable, match=r"refuses .* create it with createuser stranger"):
        PostgresStore(start_shared_server().build_url("postgres", user="stranger"))


def test_wrong_password_error_hides_password() -> None:
    rules = start_shared_server().folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    run_as_superuser("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    rules.write_text(f"host all guarded 127.0.0.1/32 scram-sha-256\n{before}")
    run_as_superuser("SELECT pg_reload_conf()")
    url = start_shared_server().build_url("postgres", user="guarded")
    try:
        for each in (url, url.replace("guarded@", "guarded:hunter2@")):
            with pytest.raises(StoreUnavailable, match="the password is wrong or missing") as caught:
                wait_for_password(each)
            assert "hunter2" not in str(caught.value)
    finally:
        rules.write_text(before)
        run_as_superuser("SELECT pg_reload_conf()")
        run_as_superuser("DROP ROLE guarded")


def wait_for_password(url: str) -> None:
    """Connect until the server has read its rules again and refuses."""
    with translate_errors(url):
        wait_until(lambda: psycopg.connect(url).close())


@pytest.mark.parametrize("text", ["half of a character \ud800", "nothing \x00 at all"])
def test_unstorable_text_refuses_whole_batch(store: PostgresStore, text: str) -> None:
    with pytest.raises(ArgumentError, match="replace"):
        store.write(
            [KING, replace(QUEEN, passages=(replace(QUEEN.passages[0], text=text),))], author=OWNER, model=MODEL
        )
    assert store.statistics().documents == 0


def test_names_and_uris_may_be_long(store: PostgresStore) -> None:
    """They may be longer than an entry of an index."""
    long = "".join(chr(97 + n) for n in np.random.default_rng(1).integers(0, 26, 9_000))
    document = page(f"{long} sings", NewFact(long, "sings", long[::-1]), uri=f"https://{long}", metadata={"k": long})
    other = page("short", uri=f"https://{long}#2", labels=[long])
    store.write([document, other], author=OWNER, model=MODEL)
    assert store.entities_by_names([long]).keys() == {long}
    assert [d.uri for d in store.list_documents(under="https://")] == [
        document.document.uri,
        other.document.uri,
    ]
    assert [d.uri for d in store.list_documents(after=(document.document.uri, document.document.id))] == [
        other.document.uri
    ]
    assert store.lexical("sings", top_k=3, where=Filter(metadata={"k": long}))
    assert store.find_remains(store.forget([document.document.id, other.document.id], author=OWNER)) == ()


# -- verification --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DELETE FROM documents WHERE title = 'Lothair II'", "passages have no document"),
        ("DELETE FROM documents WHERE title = 'Lothair II'", "tags have no document"),
        ("DELETE FROM documents WHERE title = 'Lothair II'", "sets of labels have a wrong number"),
        ("DELETE FROM documents WHERE title = 'Lothair II'", "descriptions have no document"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "vectors have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "lists of terms have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "mentions have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "assertions have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "use counts have no passage or fact"),
        ("DELETE FROM passage_terms WHERE number = 1", "terms are counted"),
        ("DELETE FROM entities", "vectors have no entity"),
        ("DELETE FROM entities", "descriptions have no entity"),
        ("DELETE FROM entities", "mentions have no entity"),
        ("DELETE FROM entities", "entities of packs are missing"),
        ("DELETE FROM entities", "edges have no entity"),
        ("DELETE FROM profiles", "entities have no document that describes them"),
        ("DELETE FROM profiles", "names are counted"),
        ("DELETE FROM mentions", "entities have a wrong number of mentions"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "packs have no passage"),
        ("DELETE FROM packs", "passages have no pack"),
        ("DELETE FROM packs", "vectors have no pack"),
        ("DELETE FROM packs", "mentions are in no pack"),
        ("DELETE FROM packs", "assertions are in no pack"),
        ("UPDATE packs SET facts = facts || gen_random_uuid()", "facts are missing in their packs"),
        (
            "UPDATE packs SET facts = facts[2:] || facts[:1] WHERE cardinality(facts) > 1",
            "facts are missing in their packs",
        ),
        ("DELETE FROM mentions", "mentions of packs are not found by their entity"),
        ("DELETE FROM assertions", "facts of packs are not found by their id"),
        ("UPDATE assertions SET place = place + 1", "facts of packs are not found by their id"),
        ("DELETE FROM assertions", "edges have no assertion"),
        ("DELETE FROM edges", "facts of packs are not found by their entity"),
        (
            "INSERT INTO staged SELECT collection, 'next', 'fact', gen_random_uuid(), 0, '\\x00' FROM collections",
            "staged vectors have no item",
        ),
        (
            "INSERT INTO files SELECT collection, gen_random_uuid(), 'gone', '1' FROM collections",
            "files have no",
        ),
    ],
)
def test_find_remains_reports_every_kind_of_trace(store: PostgresStore, sql: str, message: str) -> None:
    store.write(WORLD, author=OWNER, model=MODEL)
    store.count_uses(passages=[KING.passages[0].id], at=day("2024-05-02"))
    assert store.find_remains(EMPTY_RECEIPT) == ()
    with store._transaction() as (db, _):
        db.execute(sql)
    assert [line for line in store.find_remains(EMPTY_RECEIPT) if message in line]
