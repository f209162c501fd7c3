"""What verification must find in a SQLite file: each kind of leftover, made by hand, and what it says of it."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import apsw
import pytest

from waylore.store.sql import load_migrations
from waylore.store.sqlite import pages
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.suite import KING, MODEL, QUEEN, SECRET, WORLD, day, page
from waylore.types.results import Receipt

NOWHERE = Receipt()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.waylore"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    store.write(WORLD, model=MODEL)
    store.touch(passages=[KING.passages[0].id], at=day("2024-05-02"))
    yield store
    store.close()


def harmed(path: Path, sql: str) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.execute(sql).fetchall()


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("DELETE FROM documents WHERE title = 'Lothair II'", "passages have no document"),
        ("DELETE FROM documents WHERE title = 'Lothair II'", "tags have no document"),
        ("DELETE FROM documents WHERE title = 'Lothair II'", "sets of labels have another number"),
        ("DELETE FROM documents WHERE title = 'Lothair II'", "descriptions have no document"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "vectors have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "lists of terms have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "entries of the full-text index have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "mentions have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "statements have no passage"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "uses are of nothing"),
        ("DELETE FROM passages WHERE title = 'Lothair II'", "codes have no passage or entity"),
        ("DELETE FROM passage_terms WHERE row IN (SELECT row FROM passages LIMIT 1)", "terms are counted"),
        ("DELETE FROM entities WHERE row = (SELECT max(row) FROM entities)", "vectors have no entity"),
        ("DELETE FROM entities WHERE row = (SELECT max(row) FROM entities)", "descriptions have no entity"),
        ("DELETE FROM entities WHERE row = (SELECT max(row) FROM entities)", "mentions have no entity"),
        ("DELETE FROM entities WHERE row = (SELECT max(row) FROM entities)", "facts have no entity at an end"),
        ("DELETE FROM profiles", "entities have no document that describes them"),
        ("DELETE FROM profiles", "names are counted"),
        ("DELETE FROM mentions", "entities have another number of mentions"),
        ("DELETE FROM supports", "facts have no passage that states them"),
        ("DELETE FROM supports", "edges have no statement"),
        ("DELETE FROM facts", "statements have no fact"),
        ("INSERT INTO staged VALUES (1, 'next', 'fact', 99, 99, x'00')", "staged vectors are of nothing"),
        ("UPDATE blocks SET live = zeroblob(length(live))", "codes have no passage or entity"),
    ],
)
def test_whatever_is_left_is_told(store: SqliteStore, path: Path, sql: str, told: str) -> None:
    assert store.remains(NOWHERE) == ()
    harmed(path, sql)
    assert [line for line in store.remains(NOWHERE) if told in line]


def test_bytes_from_before_are_told_and_compacted_away(store: SqliteStore, path: Path) -> None:
    """A program that deletes without blanking leaves free pages and bytes beside rows."""
    harmed(path, "CREATE TABLE old AS SELECT hex(randomblob(9000)) FROM terms")
    harmed(path, "DELETE FROM old WHERE rowid % 3 = 0; DROP TABLE old")
    told = store.remains(NOWHERE)
    assert "free pages hold" in told[0]
    assert all("compact()" in line for line in told)
    store.compact()
    assert store.remains(NOWHERE) == ()


def test_sqlite_leaves_copies_of_rows_that_it_moved_and_our_checkpoints_blank_them(tmp_path: Path) -> None:
    def filled(path: Path) -> apsw.Connection:
        db = apsw.Connection(str(path))
        db.execute("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON").fetchall()
        db.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
        db.execute("CREATE TABLE names (name TEXT PRIMARY KEY) WITHOUT ROWID")
        names = [(f"{n * 7919 % 3001:04d} {'x' * (n % 90)}",) for n in range(3_000)]
        with db:
            db.executemany("INSERT INTO names VALUES (?)", names)
        return db

    with closing(filled(tmp_path / "bare")) as bare:
        bare.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        assert pages.unclean(bare)[1] > 0
    with closing(filled(tmp_path / "ours")) as ours:
        assert pages.checkpoint(str(tmp_path / "ours"), is_emptying=True)
        assert pages.unclean(ours) == (0, 0)
        assert ours.execute("PRAGMA integrity_check").get == "ok"
        assert ours.execute("SELECT count(*) FROM names").get == 3_000


def test_a_reader_holds_the_log_and_the_proof_says_so(store: SqliteStore) -> None:
    """Forgetting does not wait for an export that takes its time; the proof does not overlook it."""
    export = store.export()
    next(export)
    receipt = store.forget([SECRET.document.id])
    (told,) = store.remains(receipt)
    assert "verify again when they are done" in told
    assert len([KING, QUEEN, SECRET]) == 1 + len(list(export))
    assert store.remains(receipt) == ()


def test_verifying_goes_on_beside_writers(store: SqliteStore, path: Path) -> None:
    """Others write without end; what is verified is one moment, in which nothing was left."""
    done = threading.Event()

    def write() -> None:
        other = SqliteStore(path)
        for number in range(10_000):
            if done.is_set():
                break
            other.write([page(f"Page {number} of many", uri=f"page/{number % 5}")], model=MODEL)
        other.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        receipt = store.forget([SECRET.document.id])
        told = [line for _ in range(5) for line in store.remains(receipt)]
    finally:
        done.set()
        writer.join()
    assert [line for line in told if "the log beside the file" not in line] == []
    assert store.remains(receipt) == ()


def test_the_log_is_cut_when_a_store_is_closed(path: Path) -> None:
    store = SqliteStore(path)
    store.write(WORLD, model=MODEL)
    assert pages.log_size(str(path)) > 0
    store.close()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_long_log_goes_to_the_file_by_itself(path: Path) -> None:
    """What was replaced is not kept for ever either, and the log does not grow with the number of writes."""
    store = SqliteStore(path)
    sizes = []
    for number in range(300):
        store.write([page(f"Edition {number} of a page " * 40, uri="page")], model=MODEL)
        sizes.append(pages.log_size(str(path)))
    assert max(sizes) < 2 * 8_192 * pages.LOG_PAGES
    assert any(after < before for before, after in pairwise(sizes))
    store.close()


def test_a_file_of_the_first_schema_finds_the_same_and_forgets_for_good(tmp_path: Path) -> None:
    """Its inverted index holds words, and buries what is deleted."""
    new, old = tmp_path / "new.waylore", tmp_path / "old.waylore"
    store = SqliteStore(new)
    store.write([*WORLD, page("東京 and Łódź", metadata={"lang": "ja"})], model=MODEL)
    store.close()
    shutil.copy(new, old)
    _as_first_schema(old)
    for path in (new, old):
        store = SqliteStore(path)
        found = [store.lexical(q, top_k=9) for q in ("Lothair king", "東京", "falcon codename", "łódź")]
        assert [len(ranking) for ranking in found] == [3, 1, 1, 1]
        receipt = store.forget([SECRET.document.id])
        store.compact()
        assert store.remains(receipt) == ()
        assert store.lexical("falcon", top_k=9) == ()
        store.close()


def _as_first_schema(path: Path) -> None:
    """Put back the words and the recorded migrations of the first schema."""
    (_, _, first), *_ = load_migrations("waylore.store.sqlite")
    start = first.index("CREATE VIRTUAL TABLE words")
    with closing(apsw.Connection(str(path))) as db:
        db.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab (main, words, instance)")
        rows = db.execute(
            "SELECT doc, group_concat(coalesce(t.collection || '·' || t.term, v.term), ' ') "
            "FROM v LEFT JOIN terms t ON t.row = CAST(v.term AS INTEGER) AND v.term NOT LIKE '%·%' GROUP BY doc"
        ).fetchall()
        db.execute(
            "DROP TABLE temp.v; DROP TABLE words; DROP TABLE files; "
            "DROP INDEX documents_by_uri; DROP TABLE entity_keys; DELETE FROM migrations WHERE number > 1"
        )
        db.execute(first[start : first.index(";", start) + 1])
        db.executemany("INSERT INTO words (rowid, terms) VALUES (?, ?)", rows)
