"""The conformance suite on SQLite, and what is SQLite's own."""

import threading
from pathlib import Path

import apsw
import pytest

from waylore.errors import SchemaOutdated, StoreUnavailable
from waylore.store import bm25
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.suite import KING, MODEL, QUEEN, WORLD, OpenStore, StoreConformance, page
from waylore.types.search import Filter


class TestSqlite(StoreConformance):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda collection: SqliteStore(tmp_path / "test.waylore", collection)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "a.waylore").close()
    with apsw.Connection(str(tmp_path / "a.waylore")) as db:
        db.execute("INSERT INTO migrations VALUES (9999, 'from the future', 0)")
    with pytest.raises(SchemaOutdated, match="upgrade Waylore"):
        SqliteStore(tmp_path / "a.waylore")


def test_a_file_that_is_written_by_another_for_too_long_is_said_to_be(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.waylore", busy_seconds=0.05)
    other = apsw.Connection(str(tmp_path / "a.waylore"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="busy_seconds"):
        store.write([KING], model=MODEL)
    other.execute("ROLLBACK")
    assert store.write([KING], model=MODEL) == 1
    store.close()


def test_readers_are_not_kept_waiting_by_a_writer(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.waylore", busy_seconds=0.05)
    store.write([KING], model=MODEL)
    other = apsw.Connection(str(tmp_path / "a.waylore"))
    other.execute("BEGIN IMMEDIATE; DELETE FROM passages")
    assert len(store.lexical("king", top_k=3)) == 1
    other.execute("ROLLBACK")
    store.close()


def test_an_export_is_of_one_moment(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.waylore")
    store.write([KING, QUEEN], model=MODEL)
    export = store.export()
    first = next(export)
    store.forget([KING.document.id, QUEEN.document.id])
    assert [c.document.id for c in (first, *export)] == sorted([KING.document.id, QUEEN.document.id])
    store.close()


def test_threads_share_a_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.waylore")
    store.write(WORLD, model=MODEL)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(len(store.lexical("Lothair", top_k=9)))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3] * 8
    store.close()


def test_lexical_reads_a_bounded_number_of_postings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for ten, the rare word still finds its page, and a caller who sees little sees all of it."""
    monkeypatch.setattr(bm25, "REACH", 10)
    store = SqliteStore(tmp_path / "a.waylore")
    common = [page(f"common words on page {i}") for i in range(60)]
    mine = [page(f"common words of mine {i}", labels=["me"], metadata={"mine": True}) for i in range(3)]
    rare = page("common words and a zeppelin")
    store.write([*mine, *common, rare], model=MODEL)
    assert store.lexical("common zeppelin words", top_k=5)[0].id == rare.passages[0].id
    assert len(store.lexical("common", top_k=5)) == 5
    expected = {p.id for c in mine for p in c.passages}
    where = Filter(metadata={"mine": True})
    assert {s.id for s in store.lexical("common words", top_k=5, where=where)} == expected
    store.close()


def test_collections_find_their_way_to_blocks_of_their_own(tmp_path: Path) -> None:
    """Two collections that grow in turns keep their vectors apart, past the end of a block."""
    one, two = (SqliteStore(tmp_path / "a.waylore", name) for name in ("one", "two"))
    for start in range(0, 4_500, 1_500):
        for store in (one, two):
            store.write([page(f"Page {i}") for i in range(start, start + 1_500)], model=MODEL)
    wanted = page("Page 4321")
    vector = wanted.passages[0].vector
    assert vector is not None
    for store in (one, two):
        assert store.dense(vector, top_k=1)[0].id == wanted.passages[0].id
        store.forget([wanted.document.id])
        assert wanted.passages[0].id not in {s.id for s in store.dense(vector, top_k=9)}
        store.close()
