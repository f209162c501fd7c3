"""The conformance tests on SQLite, and tests of SQLite alone."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import numpy as np
import pytest

from waylore import Waylore
from waylore.cells import admin
from waylore.cells.catalogue.protocol import Cell
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.open import create_catalogue, open_catalogue
from waylore.errors import ArgumentError, ConfigError, Forbidden, NotFound, SchemaOutdated, StoreUnavailable
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import RegisteredCollection
from waylore.store import bm25
from waylore.store.rows import bind_turns
from waylore.store.sql import load_queries
from waylore.store.sqlite import blocks
from waylore.store.sqlite import scope as scoping
from waylore.store.sqlite import search as searching
from waylore.store.sqlite.file import CATALOGUE, STORE, open_file
from waylore.store.sqlite.pages import measure_log
from waylore.store.sqlite.store import SqliteStore
from waylore.store.sqlite.verify import check_pages
from waylore.store.urls import open_store
from waylore.store.vectors import BLOCK_ROWS
from waylore.testing import OpenStore, StoreConformance
from waylore.testing.scopes import say
from waylore.testing.world import (
    KING,
    LOTHAIR,
    MODEL,
    OTHER_EMBEDDER,
    PUBLIC,
    QUEEN,
    RULES,
    SECRET,
    WORLD,
    assert_unseen,
    day,
    page,
    question,
    stage_other_model,
)
from waylore.types.author import OWNER
from waylore.types.results import Receipt
from waylore.types.search import Filter, Ranking


class TestSqlite(StoreConformance):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda collection: SqliteStore(tmp_path / "test.waylore", collection)


def test_newest_assertions_are_read_by_their_time(tmp_path: Path) -> None:
    """However often a fact changed, only the rows that are returned are read."""
    SqliteStore(tmp_path / "a.waylore").close()
    rows = apsw.carray(np.array([1]))
    bound: dict[str, Any] = {"series": rows, "accesses": rows, "statuses": rows, "collection": 1, "latest": 9, "cap": 9}
    bound |= {"tags": "[]", "as_of": None, "may_be_retracted": False, **bind_turns(Filter())}
    with closing(open_file(str(tmp_path / "a.waylore"))) as db:
        found = db.execute("EXPLAIN QUERY PLAN " + load_queries("waylore.store.sqlite")["assertions_of_series"], bound)
        plan = [step for *_, step in found]
    key = "collection=? AND series=? AND access=? AND began"
    assert f"SEARCH s USING INDEX assertions_by_time ({key}=? AND tie=? AND fact=?)" in plan
    assert f"SEARCH n USING INDEX assertions_by_time ({key}<?)" in plan
    assert not [step for step in plan if "TEMP B-TREE" in step]


def test_unknown_source_is_refused_and_one_from_before_becomes_system(tmp_path: Path) -> None:
    path = tmp_path / "a.waylore"
    with Waylore.open(path) as memory:
        memory.add("Zebra lives in Oslo.", uri="web.md")
        memory.add("Sigrid lives in Bergen.", uri="notes.md", source="user_edit")
    with closing(open_file(str(path))) as db:
        with pytest.raises(apsw.ConstraintError, match="CHECK"):
            db.execute("UPDATE documents SET source = 'web' WHERE uri = 'web.md'")
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute("UPDATE documents SET source = 'web', digest = zeroblob(16) WHERE uri = 'web.md'")
        db.execute("DELETE FROM migrations WHERE name = 'source'")
    with Waylore.open(path) as memory:
        assert {each.uri: each.source for each in memory.documents()} == {"web.md": "system", "notes.md": "user_edit"}
        assert [hit.document.uri for hit in memory.search("Oslo").hits] == ["web.md"]
        memory.add("Zebra lives in Oslo.", uri="web.md")
        assert {each.source for each in memory.documents()} == {"file", "user_edit"}


def test_newer_schema_raises_error(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "a.waylore").close()
    with open_file(str(tmp_path / "a.waylore")) as db:
        db.execute("INSERT INTO migrations VALUES (9999, 'from the future', 0, '')")
    with pytest.raises(SchemaOutdated, match="upgrade Waylore"):
        SqliteStore(tmp_path / "a.waylore")


def test_schema_from_other_sql_raises_error(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "a.waylore").close()
    with open_file(str(tmp_path / "a.waylore")) as db:
        db.execute("UPDATE migrations SET checksum = 'another' WHERE number = 2")
    with pytest.raises(SchemaOutdated, match=r"migration 2 \(files\).* import the export"):
        SqliteStore(tmp_path / "a.waylore")


def test_links_to_a_file_and_to_its_folder_lead_to_the_file(tmp_path: Path) -> None:
    folder, link, other = tmp_path / "folder", tmp_path / "link", tmp_path / "other.waylore"
    folder.mkdir()
    link.symlink_to(folder)
    other.symlink_to(folder / "store.waylore")
    for path in (link / "store.waylore", other):
        with closing(SqliteStore(path)) as store:
            store.write([], author=OWNER, model="m")
            assert measure_log(str(path)) == (folder / "store.waylore-wal").stat().st_size
    assert {file.name for file in tmp_path.iterdir()} == {"folder", "link", "other.waylore"}


def test_write_to_locked_file_raises_error(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.waylore", busy_seconds=0.05)
    other = apsw.Connection(str(tmp_path / "a.waylore"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="busy_seconds"):
        store.write([KING], author=OWNER, model=MODEL)
    other.execute("ROLLBACK")
    assert store.write([KING], author=OWNER, model=MODEL) == 1
    store.close()


def test_waiting_for_a_lock_lets_other_threads_run(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "a.waylore")) as store:
        other = apsw.Connection(str(tmp_path / "a.waylore"))
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as thread:
            written = thread.submit(store.write, [KING], author=OWNER, model=MODEL)
            during = _count_wakings()
            assert not written.done()
            other.execute("ROLLBACK")
            other.close()
            assert written.result() == 1
        assert during > _count_wakings() / 4


def _count_wakings() -> int:
    """Return how often a thread wakes up in a second if it wants to each millisecond."""
    deadline, count = time.monotonic() + 1, 0
    while time.monotonic() < deadline:
        time.sleep(0.001)
        count += 1
    return count


def test_reads_do_not_wait_for_writer(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.waylore", busy_seconds=0.05)
    store.write([KING], author=OWNER, model=MODEL)
    other = apsw.Connection(str(tmp_path / "a.waylore"))
    other.execute("BEGIN IMMEDIATE; DELETE FROM passages")
    assert len(store.lexical("king", top_k=3)) == 1
    other.execute("ROLLBACK")
    store.close()


def test_export_reads_one_snapshot(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.waylore")
    store.write([KING, QUEEN], author=OWNER, model=MODEL)
    export = store.export()
    first = next(export)
    store.forget([KING.document.id, QUEEN.document.id], author=OWNER)
    assert [c.document.id for c in (first, *export)] == sorted([KING.document.id, QUEEN.document.id])
    store.close()


def test_packs_that_were_read_before_end_with_a_write(tmp_path: Path) -> None:
    """Facts and mentions of the same passages are decoded once, until any process writes, and for each filter."""
    path, hidden = tmp_path / "a.waylore", Filter(labels=frozenset({"none"}), metadata={"a": "b"})
    with closing(SqliteStore(path)) as store, closing(SqliteStore(path)) as other:
        store.write(WORLD, author=OWNER, model=MODEL)
        ids = [passage.id for document in WORLD for passage in document.passages]
        facts, mentions = store.facts_of_passages(ids, per_passage=9), store.entities_of_passages(ids, per_passage=9)
        assert facts.size
        assert mentions.size
        assert store.facts_of_passages(ids, per_passage=9, where=hidden).size == 0
        assert store.facts_of_passages(ids, per_passage=9).ids == facts.ids
        other.forget([document.document.id for document in WORLD], author=OWNER)
        assert store.facts_of_passages(ids, per_passage=9).size == 0
        assert store.entities_of_passages(ids, per_passage=9).size == 0


def test_vectors_that_are_kept_end_with_a_write_of_any_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search after a write of another process or of this one finds what a store finds that was opened then."""
    path, vector = tmp_path / "a.waylore", question("Lothair II rules Burgundy")
    program = "import sys; from waylore import Waylore; from pathlib import Path\n"
    program += "with Waylore.open(Path(sys.argv[1]), embedder=None) as memory: memory.forget(sys.argv[2:])"

    def ask(store: SqliteStore) -> tuple[Ranking, Ranking, Mapping[str, float], Mapping[str, float]]:
        ids = [passage.id for document in WORLD for passage in document.passages]
        near = store.nearby(vector, [LOTHAIR], per_entity=9)
        return store.dense(vector, top_k=9), store.lexical("Lothair", top_k=9), near[1], store.cosines(vector, ids)

    with closing(SqliteStore(path)) as store:
        store.write(WORLD, author=OWNER, model=MODEL)
        first = ask(store)
        with monkeypatch.context() as patch:
            patch.setattr(blocks, "read_joined", _refuse)  # what is kept is not read again
            assert ask(store) == first
        arguments = [sys.executable, "-c", program, str(path), SECRET.document.id]
        subprocess.run(arguments, check=True, timeout=60)
        without = ask(store)
        assert len(first[2]) > len(without[2]) > 0
        store.write([page("Lothair II rules Burgundy", RULES)], author=OWNER, model=MODEL)
        with closing(SqliteStore(path)) as fresh:
            assert ask(store) == ask(fresh) != without
        stage_other_model(store, limit=99, rounds=9)
        store.activate_model(OTHER_EMBEDDER.name, author=OWNER)
        vector = OTHER_EMBEDDER.embed_query("Lothair II rules Burgundy")
        with closing(SqliteStore(path)) as fresh:
            assert ask(store) == ask(fresh)


def test_vectors_that_are_kept_are_not_those_of_a_caller(tmp_path: Path) -> None:
    """After a caller who may see everything, others find no more than before."""
    with closing(SqliteStore(tmp_path / "a.waylore")) as store:
        store.write(WORLD, author=OWNER, model=MODEL)
        vector = question("Falcon codename")
        assert SECRET.passages[0].id in {scored.id for scored in store.dense(vector, top_k=9)}
        assert SECRET.passages[0].id in store.nearby(vector, [LOTHAIR], per_entity=9)[1]
        assert_unseen(store, PUBLIC)
        french = Filter(metadata={"lang": "fr"})
        assert [scored.id for scored in store.dense(vector, top_k=9, where=french)] == [QUEEN.passages[0].id]
        assert_unseen(store, Filter(user="ada", labels=frozenset()))


def test_vectors_beyond_the_limit_are_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection keeps a limited number of bytes, with equal answers."""
    vector = question("Lothair II rules Burgundy")
    with closing(SqliteStore(tmp_path / "a.waylore")) as store:
        store.write(WORLD, author=OWNER, model=MODEL)
        kept_answers = store.dense(vector, top_k=9), store.nearby(vector, [LOTHAIR], per_entity=9)[1]
    monkeypatch.setattr(blocks, "MAX_BYTES", 100)
    monkeypatch.setattr(scoping, "MAX_BYTES", 100)
    with closing(SqliteStore(tmp_path / "a.waylore")) as store:
        for _ in range(2):
            assert (store.dense(vector, top_k=9), store.nearby(vector, [LOTHAIR], per_entity=9)[1]) == kept_answers
            with store._snapshot(Filter()) as (_, scope):
                assert all(table.size <= 100 for table in scope.kept.values())


def test_passages_that_a_search_has_found_are_visible_with_its_filter_alone(tmp_path: Path) -> None:
    """Scores of passages that the last search has found need no query, until a document expires or is written."""
    with closing(SqliteStore(tmp_path / "a.waylore")) as store:
        store.write(WORLD, author=OWNER, model=MODEL)
        vector, ids = question("Falcon codename"), [passage.id for document in WORLD for passage in document.passages]
        assert {scored.id for scored in store.dense(vector, top_k=9)} == {*ids}
        assert store.cosines(vector, ids).keys() == store.word_scores("Falcon", ids).keys() == {*ids}
        hidden = {passage.id for passage in SECRET.passages}
        assert store.cosines(vector, ids, where=PUBLIC).keys() == {*ids} - hidden
        assert store.word_scores("Falcon", ids, where=PUBLIC).keys() == {*ids} - hidden
        assert store.cosines(vector, ids).keys() == {*ids}
        soon = replace(KING.document, expires=day("2025-01-01"))
        store.write([replace(KING, document=soon)], author=OWNER, model=MODEL)
        before, after = Filter(now=day("2024-12-31")), Filter(now=day("2025-01-02"))
        left = {*ids} - {passage.id for passage in KING.passages}
        for where, expected in ((before, {*ids}), (after, left), (before, {*ids})):
            assert {scored.id for scored in store.dense(vector, top_k=9, where=where)} == expected
            assert store.cosines(vector, ids, where=where).keys() == expected
            assert store.word_scores("Falcon", ids, where=where).keys() == expected


def test_few_passages_are_all_ranked_until_one_is_written(tmp_path: Path) -> None:
    """All rows of a small collection are remembered, so that blocks are not read; a write ends that too."""
    with closing(SqliteStore(tmp_path / "a.waylore")) as store, closing(SqliteStore(tmp_path / "a.waylore")) as other:
        store.write([KING], author=OWNER, model=MODEL)
        vector = question("Lothair II")
        assert [scored.id for scored in store.dense(vector, top_k=9)] == [KING.passages[0].id]
        other.write([QUEEN], author=OWNER, model=MODEL)
        both = {KING.passages[0].id, QUEEN.passages[0].id}
        assert {scored.id for scored in store.dense(vector, top_k=9)} == both
        assert {scored.id for ranking in store.dense_many([vector], top_k=9) for scored in ranking} == both


def _refuse(*_: object) -> bytes:
    raise AssertionError("rows were read again")


def test_threads_share_a_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.waylore")
    store.write(WORLD, author=OWNER, model=MODEL)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(store.lexical("Lothair", top_k=9)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3] * 8
    store.close()


def test_lexical_reads_limited_number_of_postings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ten postings the rare word still finds its page, and a caller who sees little finds all of it."""
    monkeypatch.setattr(bm25, "MAX_POSTINGS", 10)
    store = SqliteStore(tmp_path / "a.waylore")
    common = [page(f"common words on page {i}") for i in range(60)]
    mine = [page(f"common words of mine {i}", labels=["me"], metadata={"mine": True}) for i in range(3)]
    rare = page("common words and a zeppelin")
    store.write([*mine, *common, rare], author=OWNER, model=MODEL)
    assert store.lexical("common zeppelin words", top_k=5)[0].id == rare.passages[0].id
    assert len(store.lexical("common", top_k=5)) == 5
    expected = {p.id for c in mine for p in c.passages}
    where = Filter(metadata={"mine": True})
    assert {s.id for s in store.lexical("common words", top_k=5, where=where)} == expected
    store.close()


def test_search_of_a_user_is_that_of_a_store_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside very many passages of others, the passages of a user are found in other ways, with the same results."""
    monkeypatch.setattr(bm25, "MAX_POSTINGS", 10)
    monkeypatch.setattr(searching, "MIN_CANDIDATES", 10)
    own = [say(f"The falcon flew {n} times {'over the tower' * (n % 3)}.", user="ann") for n in range(40)]
    others = [say(f"The falcon saw the tower {n} times.", user=f"user {n % 50}") for n in range(2_000)]
    where = Filter(user="ann")

    def read(of: SqliteStore) -> list[Any]:
        questions = ("falcon", "times tower", "over the tower 7 falcon")
        return [of.lexical(each, top_k=4, where=where) for each in questions] + [
            of.dense(question(each), top_k=4, where=where) for each in questions
        ]

    with (
        closing(SqliteStore(tmp_path / "alone.waylore")) as alone,
        closing(SqliteStore(tmp_path / "many.waylore")) as many,
    ):
        alone.write(own, author=OWNER, model=MODEL)
        for start in range(10):
            many.write([*others[start::10], *own[start::10]], author=OWNER, model=MODEL)
        found = [read(alone), read(many)]
        monkeypatch.setattr(searching, "POSTINGS_PER_ROW", 1_000_000)
        monkeypatch.setattr(searching, "MIN_BLOCK_ROWS", 1)
        assert found == [read(alone), read(many)]
        assert [[s.score for s in ranking] for ranking in found[0]] == [
            [s.score for s in ranking] for ranking in found[1]
        ]


def test_vectors_of_a_user_are_read_from_its_own_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of another user is made unreadable. A search that does not read it still works."""
    monkeypatch.setattr(searching, "MIN_CANDIDATES", 10)
    monkeypatch.setattr(searching, "MIN_BLOCK_ROWS", 2)
    path = tmp_path / "blocks.waylore"
    with closing(SqliteStore(path)) as store:
        store.write([say(f"{n}.", user="ben") for n in range(BLOCK_ROWS)], author=OWNER, model=MODEL)
        store.write([say(f"Ann saw {n} falcons.", user="ann") for n in range(30)], author=OWNER, model=MODEL)
    with closing(open_file(str(path))) as db:
        db.execute("UPDATE blocks SET codes = x'00' WHERE row = (SELECT min(row) FROM blocks WHERE kind = 'passage')")
    with closing(SqliteStore(path)) as store:
        assert len(store.dense(question("falcons"), top_k=3, where=Filter(user="ann"))) == 3
        with pytest.raises(ValueError, match="buffer size"):
            store.dense(question("falcons"), top_k=3, where=Filter(user="ben"))


def test_collections_have_separate_blocks(tmp_path: Path) -> None:
    """Two collections that grow in turns keep their vectors separate, past the end of a block."""
    one, two = (SqliteStore(tmp_path / "a.waylore", name) for name in ("one", "two"))
    for start in range(0, 4_500, 1_500):
        for store in (one, two):
            store.write([page(f"Page {i}") for i in range(start, start + 1_500)], author=OWNER, model=MODEL)
    wanted = page("Page 4321")
    vector = wanted.passages[0].vector
    assert vector is not None
    for store in (one, two):
        assert store.dense(vector, top_k=1)[0].id == wanted.passages[0].id
        store.forget([wanted.document.id], author=OWNER)
        assert wanted.passages[0].id not in {s.id for s in store.dense(vector, top_k=9)}
        store.close()


# -- files that may not be written ---------------------------------------------------------------------

NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[None]:
    """Run the block as another user, because root may write everything."""
    if is_root := os.geteuid() == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.fixture
def public() -> Iterator[Path]:
    """Yield a folder that every user may enter; those of tmp_path are private."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


@pytest.fixture(params=["file", "folder", "both"])
def closed(request: pytest.FixtureRequest, public: Path) -> Path:
    """Return a store whose file, or folder, or both, may not be written."""
    path = public / "a #1?.waylore"
    with closing(SqliteStore(path)) as store:
        store.write([KING, QUEEN], author=OWNER, model=MODEL)
    path.chmod(0o666 if request.param == "folder" else 0o444)
    public.chmod(0o777 if request.param == "file" else 0o555)
    return path


def test_read_only_file_can_be_read(closed: Path) -> None:
    before = closed.read_bytes()
    with as_nobody(), closing(SqliteStore(closed)) as store:
        assert len(store.lexical("king", top_k=3)) == 1
        assert store.statistics().documents == 2
        assert len(list(store.export())) == 2
        assert store.find_remains(Receipt()) == ()
        store.count_uses(passages=[KING.passages[0].id], at=datetime.now(UTC))
    assert closed.read_bytes() == before
    assert [each.name for each in closed.parent.iterdir()] == [closed.name]


def test_read_only_file_without_checksums_can_be_read(public: Path) -> None:
    path = public / "a.waylore"
    with closing(apsw.Connection(str(path))) as other:  # makes the first page, and keeps the file from being rewritten
        other.execute("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; SELECT * FROM sqlite_schema").fetchall()
        with closing(SqliteStore(path)) as store:
            store.write([KING, QUEEN], author=OWNER, model=MODEL)
    path.chmod(0o444)
    before = path.read_bytes()
    with as_nobody(), closing(SqliteStore(path)) as store:
        assert len(store.lexical("king", top_k=3)) == 1
        assert len(list(store.export())) == 2
    assert path.read_bytes() == before
    assert not check_pages(str(path)).has_checksums


def test_read_only_file_refuses_writes(closed: Path) -> None:
    with as_nobody(), closing(SqliteStore(closed)) as store:
        message = r"a #1\?\.waylore is read-only, nothing was written.*`cp '.*a #1\?\.waylore' elsewhere`"
        with pytest.raises(Forbidden, match=message):
            store.write([page("new")], author=OWNER, model=MODEL)
        with pytest.raises(Forbidden, match=message):
            store.forget([KING.document.id], author=OWNER)
        with pytest.raises(Forbidden, match=message):
            store.compact()
    with as_nobody(), pytest.raises(NotFound, match="no collection 'other'"):
        SqliteStore(closed, "other")


def test_read_only_file_of_old_schema_is_refused(closed: Path) -> None:
    with open_file(str(closed)) as db:
        db.execute("DELETE FROM migrations WHERE number > 3")
    db.close()
    with as_nobody(), pytest.raises(SchemaOutdated, match=r"read-only and has schema 3.*`cp '.*' elsewhere`"):
        SqliteStore(closed)


def test_read_only_file_of_newer_schema_is_refused(closed: Path) -> None:
    with open_file(str(closed)) as db:
        db.execute("INSERT INTO migrations VALUES (9999, 'from the future', 0, '')")
    db.close()
    with as_nobody(), pytest.raises(SchemaOutdated, match="upgrade Waylore"):
        SqliteStore(closed)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may write what others may not")
def test_reader_of_read_only_file_sees_new_writes(closed: Path) -> None:
    with as_nobody():
        reader = SqliteStore(closed)
        assert reader.statistics().documents == 2
    writer = SqliteStore(closed)
    for number in range(1, 4):
        writer.write([page(f"new {number}")], author=OWNER, model=MODEL)
        with as_nobody():
            assert reader.statistics().documents == 2 + number
    writer.close()
    with as_nobody():
        assert len(reader.lexical("new", top_k=9)) == 3
        reader.close()


# -- temporary files, and files of another kind --------------------------------------------------------


def test_memory_store_works_in_threads_and_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store, other = SqliteStore(":memory:"), SqliteStore(":memory:")
    writers = [
        threading.Thread(target=store.write, args=([each],), kwargs={"author": OWNER, "model": MODEL}) for each in WORLD
    ]
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    assert (store.statistics().documents, other.statistics().documents) == (len(WORLD), 0)
    store.close()
    assert len(list(tmp_path.iterdir())) == 1
    del other
    assert list(tmp_path.iterdir()) == []


def test_empty_path_raises_error() -> None:
    with pytest.raises(ArgumentError, match="must name a file"):
        SqliteStore("")


# -- kinds of files ------------------------------------------------------------------------------------


def remove_application_id(path: Path) -> None:
    """Make a file as versions before application ids left it."""
    with closing(open_file(str(path))) as db:
        db.pragma("application_id", 0)


@pytest.mark.parametrize("is_old", [False, True])
def test_catalogue_and_store_are_told_apart(tmp_path: Path, is_old: bool) -> None:
    store, catalogue = tmp_path / "a.waylore", tmp_path / "catalogue.waylore"
    SqliteStore(store).close()
    SqliteCatalogue(catalogue).close()
    assert (read_kind(store), read_kind(catalogue)) == (STORE, CATALOGUE)
    if is_old:
        remove_application_id(store)
        remove_application_id(catalogue)
    with pytest.raises(ConfigError, match=r"is a catalogue of cells.* cells\+sqlite:///.*catalogue\.waylore"):
        SqliteStore(catalogue)
    with pytest.raises(ConfigError, match=r"is a store, not a catalogue of cells.* without cells"):
        SqliteCatalogue(store)
    SqliteStore(store).close()
    SqliteCatalogue(catalogue).close()
    open_registry(str(store)).close()
    open_registry(str(catalogue)).close()


def read_kind(path: Path) -> int:
    with closing(apsw.Connection(str(path))) as db:
        return int(db.pragma("application_id"))


@pytest.mark.parametrize("application", [0, 0x0F055112])  # the id of a Fossil checkout
def test_database_of_another_program_is_left_alone(tmp_path: Path, application: int) -> None:
    path = tmp_path / "theirs.db"
    with closing(apsw.Connection(str(path))) as db:
        db.pragma("application_id", application)
        db.execute("CREATE TABLE invoices (id INTEGER PRIMARY KEY)")
    before = path.read_bytes()
    for open_ in (SqliteStore, SqliteCatalogue, open_registry):
        with pytest.raises(ConfigError, match=r"theirs\.db is a database of another program: name another file"):
            open_(str(path))
    assert path.read_bytes() == before


@pytest.mark.parametrize("before", [None, "empty", "registry"])
def test_only_adding_a_cell_creates_a_catalogue(tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "typo.waylore"
    if before == "empty":
        path.touch()
    elif before == "registry":
        open_registry(str(path)).close()
    content = path.read_bytes() if before else None
    url = f"cells+sqlite:///{path}"
    for open_ in (Waylore.open, open_catalogue, open_store, open_registry):
        with pytest.raises(NotFound, match=r"no catalogue of cells at .*typo\.waylore; create one with `waylore cells"):
            open_(url)
    assert (path.read_bytes() if path.exists() else None) == content
    with closing(create_catalogue(url)) as catalogue:
        admin.add_cell(catalogue, "east", str(tmp_path / "east.waylore"))
    with Waylore.open(url) as memory, closing(open_registry(url)):
        assert memory.stats().documents == 0


@pytest.fixture(params=["file", "folder", "both"])
def closed_cells(request: pytest.FixtureRequest, public: Path) -> Path:
    """Return a catalogue with a registry whose file, or folder, or both, may not be written."""
    path = public / "catalogue.waylore"
    with closing(create_catalogue(str(path))) as catalogue:
        admin.add_cell(catalogue, "east", str(public / "east.waylore"))
    with Waylore.open(f"cells+sqlite:///{path}", collection="notes") as notes:
        notes.add("The king lives in Thebes.")
    with closing(open_registry(str(path))) as registry:
        registry.set_collection(RegisteredCollection("notes", "", datetime.now(UTC)))
    for file in public.iterdir():
        file.chmod(0o666 if request.param == "folder" else 0o444)
    public.chmod(0o777 if request.param == "file" else 0o555)
    return path


def test_read_only_cells_can_be_searched(closed_cells: Path) -> None:
    url = f"cells+sqlite:///{closed_cells}"
    before = closed_cells.read_bytes()
    with as_nobody():
        with Waylore.open(url, collection="notes") as notes:
            assert len(notes.search("king")) == 1
        with pytest.raises(Forbidden, match=r"catalogue\.waylore is read-only"):
            Waylore.open(url, collection="others")
    assert closed_cells.read_bytes() == before


def test_read_only_registry_can_be_read(closed_cells: Path) -> None:
    with as_nobody(), closing(open_registry(str(closed_cells))) as registry:
        assert [collection.name for collection in registry.list_collections()] == ["notes"]
        with pytest.raises(Forbidden, match=r"catalogue\.waylore is read-only"):
            registry.remove_collection("notes")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may write what others may not")
def test_readers_of_read_only_cells_see_changes(closed_cells: Path) -> None:
    with as_nobody():
        catalogue, registry = open_catalogue(str(closed_cells)), open_registry(str(closed_cells))
    with closing(open_registry(str(closed_cells))) as writer:
        writer.remove_collection("notes")
    with closing(open_catalogue(str(closed_cells))) as changed:
        changed.set_cell(Cell("west", "west.waylore"))
    with as_nobody():
        assert registry.list_collections() == ()
        assert list(catalogue.get_cells()) == ["east", "west"]
        registry.close()
        catalogue.close()
