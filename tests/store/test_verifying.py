"""Verification of a SQLite file: each kind of trace, made by hand, and its message."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import apsw
import pytest
from apsw import VFSFile
from tools.waiting import HANG_SECONDS

from store.earlier_layout import restore_rows
from waylore.store.sql import load_migrations
from waylore.store.sqlite import pages, vfs
from waylore.store.sqlite.file import open_file
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.world import KING, MODEL, QUEEN, SECRET, WORLD, day, page
from waylore.types.author import OWNER
from waylore.types.results import Receipt

EMPTY_RECEIPT = Receipt()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.waylore"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    store.write(WORLD, author=OWNER, model=MODEL)
    store.count_uses(passages=[KING.passages[0].id], at=day("2024-05-02"))
    yield store
    store.close()


def damage(path: Path, sql: str) -> None:
    with closing(open_file(str(path))) as db:
        db.execute(sql).fetchall()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DELETE FROM documents WHERE title = 'Lothair II'", "passages have no document"),
        ("DELETE FROM documents WHERE title = 'Lothair II'", "tags have no document"),
        ("DELETE FROM documents WHERE title = 'Lothair II'", "sets of labels have a wrong number"),
        ("DELETE FROM documents WHERE title = 'Lothair II'", "descriptions have no document"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "vectors have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "lists of terms have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "entries of the full-text index have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "mentions have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "assertions have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "use counts have no passage or fact"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "codes have no passage or entity"),
        ("DELETE FROM passage_terms WHERE row IN (SELECT row FROM passages LIMIT 1)", "terms are counted"),
        ("UPDATE assertions SET began = began + 1", "facts of packs are not found by their id"),
        ("UPDATE assertions SET series = 0", "facts of packs are not found by their id"),
        ("DELETE FROM entities WHERE row = (SELECT max(row) FROM entities)", "vectors have no entity"),
        ("DELETE FROM entities WHERE row = (SELECT max(row) FROM entities)", "descriptions have no entity"),
        ("DELETE FROM entities WHERE row = (SELECT max(row) FROM entities)", "mentions have no entity"),
        ("DELETE FROM entities WHERE row = (SELECT max(row) FROM entities)", "entities of packs are missing"),
        ("DELETE FROM entities WHERE row = (SELECT max(row) FROM entities)", "edges have no entity"),
        ("DELETE FROM profiles", "entities have no document that describes them"),
        ("DELETE FROM profiles", "names are counted"),
        ("DELETE FROM mentions", "entities have a wrong number of mentions"),
        ("DELETE FROM entity_counts", "entities have a wrong number of mentions"),
        ("INSERT INTO entity_counts VALUES (1, 99, 0)", "counts of mentions are not those of their labels"),
        ("UPDATE entity_counts SET access = access + 99", "counts of mentions are not those of their labels"),
        ("INSERT INTO term_counts VALUES (1, 99, 0)", "counts of terms are not those of their labels"),
        ("DELETE FROM term_counts", "counts of terms are not those of their labels"),
        ("UPDATE accesses SET length = length + 1", "sets of labels have a wrong number of passages, terms"),
        ("UPDATE accesses SET assertions = 0", "sets of labels have a wrong number of passages, terms"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "packs have no passage"),
        ("DELETE FROM packs", "passages have no pack"),
        ("DELETE FROM packs", "vectors have no pack"),
        ("DELETE FROM packs", "mentions are in no pack"),
        ("DELETE FROM packs", "assertions are in no pack"),
        ("UPDATE packs SET facts = facts + 1", "facts are missing in their packs"),
        ("DELETE FROM mentions", "mentions of packs are not found by their entity"),
        ("DELETE FROM assertions", "facts of packs are not found by their id"),
        ("UPDATE assertions SET place = place + 1", "facts of packs are not found by their id"),
        ("DELETE FROM assertions", "edges have no assertion"),
        ("DELETE FROM edges", "facts of packs are not found by their entity"),
        ("INSERT INTO staged VALUES (1, 'next', 'fact', 99, 99, x'00')", "staged vectors have no item"),
        ("UPDATE blocks SET live = zeroblob(length(live))", "codes have no passage or entity"),
    ],
)
def test_find_remains_reports_every_kind_of_trace(store: SqliteStore, path: Path, sql: str, message: str) -> None:
    assert store.find_remains(EMPTY_RECEIPT) == ()
    damage(path, sql)
    assert [line for line in store.find_remains(EMPTY_RECEIPT) if message in line]


def test_compact_removes_reported_bytes(store: SqliteStore, path: Path) -> None:
    """A program that deletes without blanking leaves free pages and bytes beside rows."""
    damage(path, "CREATE TABLE old AS SELECT hex(randomblob(9000)) FROM terms")
    damage(path, "DELETE FROM old WHERE rowid % 3 = 0; DROP TABLE old")
    lines = store.find_remains(EMPTY_RECEIPT)
    assert "free pages hold" in lines[0]
    assert all("compact()" in line for line in lines)
    store.compact()
    assert store.find_remains(EMPTY_RECEIPT) == ()


def test_checkpoint_blanks_copies_that_sqlite_leaves(tmp_path: Path) -> None:
    def fill(path: Path) -> apsw.Connection:
        db = apsw.Connection(str(path))
        db.execute("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON").fetchall()
        db.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
        db.execute("CREATE TABLE names (name TEXT PRIMARY KEY) WITHOUT ROWID")
        names = [(f"{n * 7919 % 3001:04d} {'x' * (n % 90)}",) for n in range(3_000)]
        with db:
            db.executemany("INSERT INTO names VALUES (?)", names)
        return db

    with closing(fill(tmp_path / "bare")) as bare:
        bare.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        assert pages.count_unclean(bare)[1] > 0
    with closing(fill(tmp_path / "ours")) as ours:
        assert pages.checkpoint(str(tmp_path / "ours"), truncate_log=True)
        assert pages.count_unclean(ours) == (0, 0)
        assert ours.execute("PRAGMA integrity_check").get == "ok"
        assert ours.execute("SELECT count(*) FROM names").get == 3_000


def test_find_remains_reports_log_held_by_reader(store: SqliteStore) -> None:
    """Forgetting does not wait for a slow export, and verification reports the log that it holds."""
    export = store.export()
    next(export)
    receipt = store.forget([SECRET.document.id], author=OWNER)
    (line,) = store.find_remains(receipt)
    assert "verify again when it has finished" in line
    assert len([KING, QUEEN, SECRET]) == 1 + len(list(export))
    assert store.find_remains(receipt) == ()


def test_find_remains_works_during_writes(store: SqliteStore, path: Path) -> None:
    """While others write without end, verification reads one snapshot without traces."""
    done = threading.Event()

    def write() -> None:
        other = SqliteStore(path)
        for number in range(10_000):
            if done.is_set():
                break
            other.write([page(f"Page {number} of many", uri=f"page/{number % 5}")], author=OWNER, model=MODEL)
        other.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        receipt = store.forget([SECRET.document.id], author=OWNER)
        lines = [line for _ in range(5) for line in store.find_remains(receipt)]
    finally:
        done.set()
        writer.join()
    assert [line for line in lines if "the log beside the file" not in line] == []
    assert store.find_remains(receipt) == ()


def test_close_removes_log(path: Path) -> None:
    store = SqliteStore(path)
    store.write(WORLD, author=OWNER, model=MODEL)
    assert pages.measure_log(str(path)) > 0
    store.close()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_long_log_is_checkpointed(path: Path) -> None:
    """Replaced documents leave the log, and the log does not grow with the number of writes."""
    store = SqliteStore(path)
    sizes = []
    for number in range(300):
        store.write([page(f"Edition {number} of a page " * 40, uri="page")], author=OWNER, model=MODEL)
        sizes.append(pages.measure_log(str(path)))
    assert max(sizes) < 2 * 8_192 * pages.MAX_LOG_PAGES
    assert any(after < before for before, after in pairwise(sizes))
    store.close()


def test_log_that_begins_again_is_whole(store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk is slow to write the first bytes of a log that begins again: until then it has its old pages."""
    is_writing, go_on = threading.Event(), threading.Event()

    def write_slowly(log: VFSFile, data: bytes, offset: int) -> None:
        if offset == 0:
            is_writing.set()
            go_on.wait(HANG_SECONDS)
        VFSFile.xWrite(log, data, offset)

    for number in range(3):
        store.write([page(f"Edition {number}", uri="page")], author=OWNER, model=MODEL)
    pages.checkpoint(str(path))
    monkeypatch.setattr(vfs._LogFile, "xWrite", write_slowly, raising=False)
    writer = threading.Thread(target=lambda: store.write([page("Edition 3", uri="page")], author=OWNER, model=MODEL))
    writer.start()
    assert is_writing.wait(HANG_SECONDS)
    with closing(open_file(str(path))) as db:
        lost = pages.count_lost_writes(db)
    go_on.set()
    writer.join()
    assert lost == 0


def test_file_of_first_schema_is_migrated(tmp_path: Path) -> None:
    """The inverted index of the first schema holds words, and keeps tombstones of deleted ones."""
    new, old = tmp_path / "new.waylore", tmp_path / "old.waylore"
    store = SqliteStore(new)
    store.write([*WORLD, page("東京 and Łódź", metadata={"lang": "ja"})], author=OWNER, model=MODEL)
    store.close()
    shutil.copy(new, old)
    restore_rows(old)
    _restore_first_schema(old)
    for path in (new, old):
        store = SqliteStore(path)
        found = [store.lexical(q, top_k=9) for q in ("Lothair king", "東京", "falcon codename", "łódź")]
        assert [len(ranking) for ranking in found] == [3, 1, 1, 1]
        receipt = store.forget([SECRET.document.id], author=OWNER)
        store.compact()
        assert store.find_remains(receipt) == ()
        assert store.lexical("falcon", top_k=9) == ()
        store.close()


def _restore_first_schema(path: Path) -> None:
    """Restore the words and the recorded migrations of the first schema."""
    (_, _, first), *_ = load_migrations("waylore.store.sqlite")
    start = first.index("CREATE VIRTUAL TABLE words")
    with closing(open_file(str(path))) as db:
        db.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab (main, words, instance)")
        rows = db.execute(
            "SELECT doc, group_concat(coalesce(t.collection || '·' || t.term, v.term), ' ') "
            "FROM v LEFT JOIN terms t ON t.row = CAST(v.term AS INTEGER) AND v.term NOT LIKE '%·%' GROUP BY doc"
        ).fetchall()
        db.execute(
            "DROP TABLE temp.v; DROP TABLE words; DROP TABLE files; DROP TABLE receipts; "
            "DROP INDEX documents_by_uri; DROP TABLE entity_keys; ALTER TABLE collections DROP COLUMN secret; "
            "DROP TABLE term_counts; DROP TABLE entity_counts; ALTER TABLE accesses DROP COLUMN passages; "
            "ALTER TABLE accesses DROP COLUMN length; ALTER TABLE accesses DROP COLUMN assertions; "
            "DELETE FROM migrations WHERE number > 1"
        )
        db.execute(first[start : first.index(";", start) + 1])
        db.executemany("INSERT INTO words (rowid, terms) VALUES (?, ?)", rows)
