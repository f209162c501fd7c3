"""The conformance suite on PostgreSQL, what is PostgreSQL's own, and that it ranks as SQLite does."""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from databases import database, fresh_name, opening, server
from waylore.errors import ConfigError, QueryError, SchemaOutdated, StoreUnavailable
from waylore.store import bm25
from waylore.store.postgres import search as searching
from waylore.store.postgres import write as writing
from waylore.store.postgres.store import PostgresStore
from waylore.store.sql import load_migrations
from waylore.store.sqlite.store import SqliteStore
from waylore.store.urls import open_store
from waylore.testing.suite import (
    EMBEDDER,
    KING,
    MODEL,
    PUBLIC,
    QUEEN,
    SECRET,
    WORLD,
    OpenStore,
    StoreConformance,
    day,
    page,
    question,
)
from waylore.types.identity import entity_id
from waylore.types.knowledge import Claim, Contribution
from waylore.types.results import Receipt
from waylore.types.search import Filter

NOWHERE = Receipt()
WORDS = "mill falcon harbour lantern river anvil orchard violin glacier saddle comet parsley".split()


class TestPostgres(StoreConformance):
    @pytest.fixture
    def open_store(self) -> Iterator[OpenStore]:
        with opening(lambda name: PostgresStore(server(), name)) as open_store:
            yield open_store


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    store = PostgresStore(server(), fresh_name("own"))
    yield store
    store.close()


def superuser(sql: str, *bound: object, url: str | None = None) -> list[tuple[object, ...]]:
    with psycopg.connect(url or server(), autocommit=True) as db:
        done = db.execute(sql, bound or None)
        return done.fetchall() if done.description else []


# -- it ranks as SQLite does ---------------------------------------------------------------------------

pages = st.lists(
    st.builds(
        lambda words, labels, lang: (" ".join(words), labels, {"lang": lang} if lang else {}),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=9),
        st.sampled_from([(), (), ("red",), ("blue", "red")]),
        st.sampled_from(["", "en", "fr"]),
    ),
    min_size=1,
    max_size=30,
)
filters = st.builds(
    Filter,
    labels=st.sampled_from([None, frozenset({"red"}), frozenset()]),
    metadata=st.sampled_from([{}, {}, {"lang": "en"}, {"lang": ["en", "fr"]}]),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pages=pages, asked=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), where=filters)
def test_words_and_vectors_rank_as_on_sqlite(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    pages: Sequence[tuple[str, tuple[str, ...], dict[str, str]]],
    asked: list[str],
    where: Filter,
) -> None:
    """Also where a search may read few postings, so that the cap cuts."""
    monkeypatch.setattr(bm25, "REACH", 6)
    told = [page(t, labels=ls, metadata=m, uri=str(i)) for i, (t, ls, m) in enumerate(pages)]
    stores = (
        SqliteStore(tmp_path_factory.mktemp("like") / "a.waylore"),
        PostgresStore(server(), fresh_name("like")),
    )
    try:
        for store in stores:
            store.write(told[: len(told) // 2], model=MODEL)
            store.write(told[len(told) // 2 :], model=MODEL)
            store.forget([told[0].document.id])
        query = " ".join(asked)
        one, other = (store.lexical(query, top_k=3, where=where) for store in stores)
        assert one == other
        one, other = (store.dense(question(query), top_k=5, where=where) for store in stores)
        assert one == other
    finally:
        for store in stores:
            store.close()


def test_lexical_reads_a_bounded_number_of_postings(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bm25, "REACH", 10)
    common = [page(f"common words on page {i}") for i in range(60)]
    mine = [page(f"common words of mine {i}", labels=["me"], metadata={"mine": True}) for i in range(3)]
    rare = page("common words and a zeppelin")
    store.write([*mine, *common, rare], model=MODEL)
    assert store.lexical("common zeppelin words", top_k=5)[0].id == rare.passages[0].id
    assert len(store.lexical("common", top_k=5)) == 5
    expected = {p.id for c in mine for p in c.passages}
    where = Filter(metadata={"mine": True})
    assert {s.id for s in store.lexical("common words", top_k=5, where=where)} == expected


def test_words_are_found_through_their_index(store: PostgresStore) -> None:
    """Row-level security keeps operators like @@ from an index, unless a function sees to it."""
    plans = superuser(
        "SELECT proconfig, prosecdef, pg_get_userbyid(proowner) FROM pg_proc WHERE proname = 'matching'"
    )
    assert plans == [(["search_path=waylore, pg_temp"], True, "waylore_matching")]
    with psycopg.connect(server()) as db:
        db.execute("SET LOCAL enable_seqscan = off")
        db.execute("SET LOCAL search_path = waylore")
        db.execute("SET LOCAL ROLE waylore_matching")
        plan = db.execute("EXPLAIN SELECT id FROM passage_terms WHERE words @@ '1t1'::tsquery").fetchall()
    assert "passage_terms_by_words" in str(plan)


# -- large collections ---------------------------------------------------------------------------------


def grown(store: PostgresStore, count: int) -> list[Contribution]:
    """Pages with random vectors, a tenth of them labelled, a fiftieth tagged; and their index built."""
    random = np.random.default_rng(7)
    told = []
    for i in range(count):
        made = page(
            f"page {i}",
            labels=["few"] if i % 10 == 0 else [],
            metadata={"rare": True} if i % 50 == 1 else {},
        )
        vector = random.normal(size=EMBEDDER.dimension).astype(np.float32)
        told.append(replace(made, passages=tuple(replace(p, vector=vector) for p in made.passages)))
    store.write(told, model=MODEL)
    assert store._building is not None
    store._building.join(60)
    return told


def best(told: Sequence[Contribution], asked: np.ndarray, top_k: int) -> set[str]:
    def near(c: Contribution) -> float:
        vector = c.passages[0].vector
        assert vector is not None
        return float(vector @ asked / np.linalg.norm(vector))

    return {c.passages[0].id for c in sorted(told, key=near, reverse=True)[:top_k]}


def test_a_large_collection_gets_an_index_of_its_own_and_filters_cost_no_recall(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "EXACT", 300)
    told = grown(store, 2_000)
    names = [name for (name,) in superuser("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'hnsw%%'")]
    assert any(str(name).endswith(f"_passage_{EMBEDDER.dimension}") for name in names)
    few = [c for c in told if c.document.labels]
    public = [c for c in told if not c.document.labels]
    rare = [c for c in told if c.document.metadata]
    random = np.random.default_rng(8)
    found, expected = 0, 0
    for _ in range(20):
        asked = random.normal(size=EMBEDDER.dimension).astype(np.float32)
        for where, of in (
            (Filter(), told),
            (PUBLIC, public),
            (Filter(metadata={"rare": True}), rare),
            (Filter(labels=frozenset({"few"}), metadata={"rare": True}), rare),
        ):
            wanted = best(of, asked, 10)
            found += len(wanted & {s.id for s in store.dense(asked, top_k=10, where=where)})
            expected += len(wanted)
        assert {s.id for s in store.dense(asked, top_k=9, where=Filter(labels=frozenset({"few"})))}
    assert few
    assert found / expected > 0.98
    assert are_scanned(store, "passage", 40)  # everyone's, and the public's


def are_scanned(store: PostgresStore, kind: str, times: int) -> bool:
    """Whether the collection's index was searched so often; a server is some seconds late to count."""
    named = f"hnsw_{store._key & 0xFFFFFFFFFFFFFFFF:016x}_{kind}%"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        store.statistics()
        [(count,)] = superuser("SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname LIKE %s", named)
        if int(str(count)) >= times:
            return True
        time.sleep(0.2)
    return False


def test_names_of_a_large_collection_are_found_through_an_index(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = [
        Claim(f"{one} {other} {n}", "met", "us", is_value=True)
        for one in WORDS
        for other in WORDS
        for n in "ab"
    ]
    store.write([page(f"Page {n}.", *claims[n::8]) for n in range(8)], model=MODEL)
    asked = [EMBEDDER.embed_passages([f"{one} {WORDS[n - 1]} a"])[0] for n, one in enumerate(WORDS)]
    exact = [{s.id for s in store.nearest_entities(vector, top_k=10)} for vector in asked]
    monkeypatch.setattr(searching, "EXACT_NAMES", 100)
    monkeypatch.setattr(searching, "CANDIDATES", 40)
    store.write([page("One more.", Claim("Somebody else", "met", "us", is_value=True))], model=MODEL)
    assert store._building is not None
    store._building.join(60)
    named = f"hnsw_{store._key & 0xFFFFFFFFFFFFFFFF:016x}_entity_{EMBEDDER.dimension}"
    assert superuser("SELECT 1 FROM pg_indexes WHERE indexname = %s", named)
    near = [{s.id for s in store.nearest_entities(vector, top_k=10)} for vector in asked]
    assert are_scanned(store, "entity", len(asked))
    assert np.mean([len(e & f) / len(e) for e, f in zip(exact, near, strict=True)]) >= 0.9


def test_the_owner_builds_what_the_application_may_not(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "EXACT", 20)
    superuser("DROP ROLE IF EXISTS waylore_test_app")
    superuser("CREATE ROLE waylore_test_app LOGIN IN ROLE waylore_app")
    named = f"%{store._key & 0xFFFFFFFFFFFFFFFF:016x}%"
    for user, indexes in (("waylore_test_app", 0), ("postgres", 1)):
        mine = PostgresStore(server().replace("//postgres@", f"//{user}@"), store._name)
        mine.write([page(f"Page {i} of {WORDS[i % 12]}") for i in range(40)], model=MODEL)
        assert len(mine.dense(question("falcon"), top_k=7)) == 7
        assert mine._building is not None
        mine._building.join(60)
        found = superuser("SELECT indexname FROM pg_indexes WHERE indexname LIKE %s", f"hnsw{named}")
        assert len(found) == indexes
        mine.close()


def test_an_index_follows_the_model(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of another length go beside those of the first; the index of the first goes."""
    monkeypatch.setattr(searching, "EXACT", 20)
    store.write([page(f"Page {i} of {WORDS[i % 12]}") for i in range(40)], model=MODEL)
    assert store._building is not None
    store._building.join(60)
    random = np.random.default_rng(3)
    while items := store.unembedded("next", limit=50):
        store.stage([replace(i, vector=random.normal(size=48).astype(np.float32)) for i in items], model="next")
    assert store.adopt("next")
    store._building.join(60)
    key = f"hnsw_{store._key & 0xFFFFFFFFFFFFFFFF:016x}%"
    names = superuser("SELECT indexname FROM pg_indexes WHERE indexname LIKE %s", key)
    assert [str(name).rsplit("_", maxsplit=1)[-1] for (name,) in names] == ["48"]
    assert len(store.dense(random.normal(size=48).astype(np.float32), top_k=7)) == 7


# -- the schema ----------------------------------------------------------------------------------------


def test_a_newer_schema_is_refused() -> None:
    url = database()
    PostgresStore(url).close()
    superuser("INSERT INTO waylore.migrations (number, name) VALUES (9999, 'from the future')", url=url)
    with pytest.raises(SchemaOutdated, match="upgrade Waylore"):
        PostgresStore(url)


def test_many_may_migrate_at_once() -> None:
    """Each in a pool of its own, as processes are."""
    url = database()
    with ThreadPoolExecutor(6) as threads:
        opened = list(threads.map(lambda n: PostgresStore(url, str(n), connections=2 + n), range(6)))
    assert superuser("SELECT count(*) FROM waylore.migrations", url=url) == [(1,)]
    for store in opened:
        store.close()


def test_the_schema_is_the_sum_of_its_migrations() -> None:
    folder = Path(bm25.__file__).parent / "sql" / "postgres"
    assert built([(folder / "schema.sql").read_text("utf-8")]) == built(
        [sql for _, _, sql in load_migrations("waylore.store.postgres")]
    )


def built(scripts: Sequence[str]) -> list[tuple[object, ...]]:
    """What a database made by these scripts holds."""
    url = database()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE EXTENSION vector; CREATE SCHEMA waylore; SET search_path = waylore, public")
        db.execute("CREATE TABLE migrations (number int4)")
        for script in scripts:
            db.execute(script)
        found = db.execute(
            "SELECT 'column', c.relname, a.attname || format_type(a.atttypid, a.atttypmod) || a.attnotnull "
            "FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
            "WHERE c.relnamespace = 'waylore'::regnamespace "
            "UNION ALL SELECT 'index', tablename, indexdef FROM pg_indexes WHERE schemaname = 'waylore' "
            "UNION ALL SELECT 'policy', tablename, policyname || roles::text || qual FROM pg_policies "
            "UNION ALL SELECT 'function', proname, pg_get_functiondef(oid) FROM pg_proc "
            "WHERE pronamespace = 'waylore'::regnamespace ORDER BY 1, 2, 3"
        )
        return found.fetchall()


def test_an_owner_who_may_make_no_roles_is_walled_in_all_the_same() -> None:
    """As on many a cloud: words are found without their index then, and nothing else is different."""
    url = database()
    superuser("CREATE ROLE waylore_test_owner LOGIN")  # the server ends with the tests, and it too
    superuser(f"ALTER DATABASE {url.split('/')[3].split('?')[0]} OWNER TO waylore_test_owner")
    owners = url.replace("//postgres@", "//waylore_test_owner@")
    with pytest.raises(ConfigError, match="CREATE EXTENSION vector"):
        PostgresStore(owners)
    superuser("CREATE EXTENSION vector", url=url)
    one, other = (PostgresStore(owners, name) for name in ("one", "other"))
    assert one._server.role == "none"
    one.write(WORLD, model=MODEL)
    assert [s.id for s in one.lexical("Erstein", top_k=9)] == [QUEEN.passages[0].id]
    assert len(one.dense(question("king"), top_k=9)) == 3
    assert other.lexical("Erstein", top_k=9) == ()
    with other._writing() as (db, _):
        assert db.execute("SELECT count(*) FROM documents").fetchall() == [(0,)]
    assert one.remains(one.forget([KING.document.id])) == ()
    one.close()
    other.close()


def test_the_store_of_an_address() -> None:
    store = open_store(server(), fresh_name("address"))
    assert isinstance(store, PostgresStore)
    store.close()


# -- several at once -----------------------------------------------------------------------------------


def test_an_export_is_of_one_moment(store: PostgresStore) -> None:
    store.write([KING, QUEEN], model=MODEL)
    export = store.export()
    first = next(export)
    store.forget([KING.document.id, QUEEN.document.id])
    assert [c.document.id for c in (first, *export)] == sorted([KING.document.id, QUEEN.document.id])


def test_threads_share_a_store_and_leak_no_connection(store: PostgresStore) -> None:
    store.write(WORLD, model=MODEL)
    with ThreadPoolExecutor(24) as threads:
        found = list(threads.map(lambda _: len(store.lexical("Lothair", top_k=9)), range(200)))
    assert found == [3] * 200
    stats, deadline = store._server.pool.get_stats(), time.monotonic() + 10
    while stats["pool_available"] != stats["pool_size"]:  # one that was being made may be late
        assert time.monotonic() < deadline
        time.sleep(0.01)
        stats = store._server.pool.get_stats()
    assert stats["pool_size"] <= 16


def test_writers_of_one_collection_queue_and_lose_nothing(store: PostgresStore) -> None:
    told = [page(f"page {i}", Claim("Hub", "knows", f"Page {i % 7}"), uri=str(i)) for i in range(60)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda c: store.write([c], model=MODEL), told))
        list(
            threads.map(
                lambda c: store.touch(passages=[c.passages[0].id], facts=[c.facts[0].id], at=day("2024-06-01")),
                told,
            )
        )
    assert store.statistics().documents == 60
    assert store.remains(NOWHERE) == ()
    hub = entity_id("Hub")
    assert sum(f.access_count for f in store.facts_of_entities([hub], per_entity=9)[hub]) == 60


def test_a_writer_of_another_collection_does_not_wait(store: PostgresStore) -> None:
    other = PostgresStore(server(), fresh_name("other"))
    with store._writing():
        assert other.write([KING], model=MODEL) == 1
        assert store.lexical("king", top_k=3) == ()
    other.close()


# -- what goes wrong -----------------------------------------------------------------------------------


def killed(store: PostgresStore) -> None:
    """End every connection of the pool from the server's side."""
    superuser(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )


def test_reads_and_writes_go_on_after_connections_were_cut(store: PostgresStore) -> None:
    store.write(WORLD, model=MODEL)
    for verb in (lambda: store.lexical("king", top_k=3), lambda: store.forget([QUEEN.document.id])):
        killed(store)
        assert verb()


def test_a_write_that_is_cut_in_the_middle_leaves_nothing(store: PostgresStore) -> None:
    store.write([KING], model=MODEL)
    before = list(store.export())

    def write_by_halves() -> None:
        with store._writing() as (db, into):
            writing.write(db, into, [QUEEN], model=MODEL)
            killed(store)
            writing.write(db, into, [SECRET], model=MODEL)

    with pytest.raises(StoreUnavailable, match="whole or not at all"):
        write_by_halves()
    assert list(store.export()) == before
    assert store.remains(NOWHERE) == ()


def test_a_pool_that_is_used_up_says_so_in_time() -> None:
    store = PostgresStore(server(), fresh_name("busy"), connections=1, wait_seconds=0.3)
    began = threading.Event()
    done = threading.Event()

    def hold() -> None:
        with store._writing():
            began.set()
            done.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    began.wait(20)
    start = time.monotonic()
    with pytest.raises(StoreUnavailable, match="more connections"):
        store.version()
    assert time.monotonic() - start < 5
    done.set()
    holder.join()
    assert store.version() == 0
    store.close()


def test_a_server_that_is_not_there_is_said_not_to_be_without_the_password() -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1/nowhere") as told:
        PostgresStore("postgresql://me:hunter2@127.0.0.1:1/nowhere")
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize("text", ["half of a character \ud800", "nothing \x00 at all"])
def test_a_text_that_cannot_be_kept_is_refused_whole(store: PostgresStore, text: str) -> None:
    with pytest.raises(QueryError, match="replace"):
        store.write([KING, replace(QUEEN, passages=(replace(QUEEN.passages[0], text=text),))], model=MODEL)
    assert store.statistics().documents == 0


def test_names_and_addresses_may_be_long(store: PostgresStore) -> None:
    """Longer than an entry of an index may be."""
    long = "".join(chr(97 + n) for n in np.random.default_rng(1).integers(0, 26, 9_000))
    told = page(f"{long} sings", Claim(long, "sings", long[::-1]), uri=f"https://{long}", metadata={"k": long})
    other = page("short", uri=f"https://{long}#2", labels=[long])
    store.write([told, other], model=MODEL)
    assert store.entities_by_names([long]).keys() == {long}
    assert [d.uri for d in store.listed(under="https://")] == [told.document.uri, other.document.uri]
    assert [d.uri for d in store.listed(after=(told.document.uri, told.document.id))] == [other.document.uri]
    assert store.lexical("sings", top_k=3, where=Filter(metadata={"k": long}))
    assert store.remains(store.forget([told.document.id, other.document.id])) == ()


# -- what verification finds ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("DELETE FROM documents WHERE title = 'Lothair II'", "passages have no document"),
        ("DELETE FROM documents WHERE title = 'Lothair II'", "tags have no document"),
        ("DELETE FROM documents WHERE title = 'Lothair II'", "sets of labels have another number"),
        ("DELETE FROM documents WHERE title = 'Lothair II'", "descriptions have no document"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "vectors have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "lists of terms have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "mentions have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "statements have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "uses are of nothing"),
        ("DELETE FROM passage_terms WHERE number = 1", "terms are counted"),
        ("DELETE FROM entities", "vectors have no entity"),
        ("DELETE FROM entities", "descriptions have no entity"),
        ("DELETE FROM entities", "mentions have no entity"),
        ("DELETE FROM entities", "facts have no entity at an end"),
        ("DELETE FROM profiles", "entities have no document that describes them"),
        ("DELETE FROM profiles", "names are counted"),
        ("DELETE FROM mentions", "entities have another number of mentions"),
        ("DELETE FROM supports", "facts have no passage that states them"),
        ("DELETE FROM supports", "edges have no statement"),
        ("DELETE FROM facts", "statements have no fact"),
        (
            "INSERT INTO staged SELECT collection, 'next', 'fact', gen_random_uuid(), gen_random_uuid() "
            "FROM collections",
            "staged vectors are of nothing",
        ),
        (
            "INSERT INTO files SELECT collection, gen_random_uuid(), 'gone', '1' FROM collections",
            "files have no",
        ),
    ],
)
def test_whatever_is_left_is_told(store: PostgresStore, sql: str, told: str) -> None:
    store.write(WORLD, model=MODEL)
    store.touch(passages=[KING.passages[0].id], at=day("2024-05-02"))
    assert store.remains(NOWHERE) == ()
    with store._writing() as (db, _):
        db.execute(sql)
    assert [line for line in store.remains(NOWHERE) if told in line]
