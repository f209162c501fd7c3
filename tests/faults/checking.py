"""Check a store file after a fault.

`Held` has the acknowledged edition of each document; exactly these must be stored. A document is complete or
missing, every search finds it, and the counters agree with an export. Only `check_forget_all` writes to the
store.
"""

import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import apsw

from faults.documents import EMBEDDER, NOW, Edition, get_id, make_document, open_file
from waylore.engine.waylore import Waylore
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.store.sqlite.verify import check_pages
from waylore.types.knowledge import IndexedDocument
from waylore.types.results import Receipt

Held = Mapping[int, Edition]
KEPT_WHEN_EMPTY = {"audit", "migrations", "collections", "blocks"}


def check_file(path: Path) -> None:
    """Check the file through a SQLite connection that knows nothing of Waylore."""
    db = open_bare(path)
    try:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    finally:
        db.close()
    checked = check_pages(str(path))
    assert (checked.has_checksums, checked.damaged) == (True, ())


def open_bare(path: Path) -> apsw.Connection:
    """Open a connection without Waylore's settings, except that Waylore checkpoints the log and blanks it."""
    db = apsw.Connection(str(path))
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    return db


def check_content(path: Path, held: Held) -> None:
    """Check that exactly the held documents are stored, complete and counted."""
    store = SqliteStore(path)
    try:
        found = export_all(store)
        assert found.keys() == {get_id(number) for number in held}
        for wanted in held.values():
            assert to_shape(found[get_id(wanted.number)]) == to_shape(make_document(wanted)), wanted
        check_counters(store, found.values())
    finally:
        store.close()


def check_counters(store: Store, found: Iterable[IndexedDocument]) -> None:
    """Check that the collection's counters agree with an export."""
    documents = list(found)
    counted = store.statistics()
    assert (counted.documents, counted.passages, counted.mentions) == (
        len(documents),
        sum(len(c.passages) for c in documents),
        sum(len(c.mentions) for c in documents),
    )
    assert counted.entities == len({e.id for c in documents for e in c.entities})
    assert counted.facts == len({f.id for c in documents for f in c.facts})


def check_searches(path: Path, wanted: Iterable[Edition], gone: Iterable[Edition] = ()) -> None:
    """Check that every passage is found by words and by vector, and removed ones not by words."""
    store = SqliteStore(path)
    waylore = Waylore(store, EMBEDDER, clock=lambda: NOW)
    try:
        for edition in wanted:
            _check_found(waylore, store, edition)
        for edition in gone:
            assert store.lexical(" ".join(edition.markers), top_k=10) == (), edition
    finally:
        waylore.close()


def check_forgotten(path: Path, gone: Iterable[Edition]) -> None:
    """Check that no row and no byte of removed or half-written documents is left."""
    store = SqliteStore(path)
    try:
        there = set(export_all(store))
        forgotten = {get_id(edition.number) for edition in gone} - there
        left = store.find_remains(Receipt(documents=tuple(sorted(forgotten))))
        assert left == (), left
    finally:
        store.close()
    held = read_disk(path)
    assert [m for edition in gone for m in edition.markers if m.encode() in held] == []


def read_disk(path: Path) -> bytes:
    """Return the bytes of a file and its log, read by another process: reading here would drop our locks."""
    files = [str(p) for p in (path, Path(f"{path}-wal")) if p.exists()]
    return subprocess.run(["cat", *files], capture_output=True, check=True).stdout


def check_forget_all(path: Path, held: Held) -> None:
    """Check that forgetting the rest leaves no row: no assertion, counter or word is counted too often."""
    with open_file(path) as waylore:
        waylore.forget(*map(get_id, held))
    db = apsw.Connection(str(path))
    try:
        tables = {name for (name,) in db.execute("SELECT name FROM pragma_table_list WHERE type = 'table'")}
        plain = {t for t in tables if not t.startswith("sqlite_")} - KEPT_WHEN_EMPTY
        rows = {table: db.execute(f'SELECT count(*) FROM "{table}"').get for table in plain}
        assert rows == dict.fromkeys(plain, 0)
    finally:
        db.close()


def export_all(store: Store) -> dict[str, IndexedDocument]:
    """Return all indexed documents of a store, by document id."""
    return {c.document.id: c for c in store.export()}


def to_shape(documents: IndexedDocument) -> tuple[Any, ...]:
    """Return an indexed document without the order of its parts, for comparison."""
    return documents.document, *map(
        Counter, (documents.passages, documents.entities, documents.mentions, documents.facts)
    )


def _check_found(waylore: Waylore, store: Store, wanted: Edition) -> None:
    expected = make_document(wanted)
    got = waylore.get(expected.document.id)
    assert (got.passages, set(got.facts)) == (expected.passages, set(expected.facts))
    vectors = EMBEDDER.embed_passages([p.embeddable for p in expected.passages])
    assert len(expected.passages) == len(wanted.markers)
    for passage, marker, vector in zip(expected.passages, wanted.markers, vectors, strict=True):
        assert [s.id for s in store.lexical(marker, top_k=2)] == [passage.id]
        assert [s.id for s in store.dense(vector, top_k=1)] == [passage.id]
    last = expected.passages[-1]
    found = waylore.search(last.text, top_k=1, method="hybrid", record_use=False)
    assert ([h.passage for h in found.hits], found.missing) == ([last], ())
    walked = waylore.search(last.text, top_k=1, record_use=False)
    assert (last in [h.passage for h in walked.hits], walked.missing) == (True, ())
