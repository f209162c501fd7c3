"""What must be true of a store file after a fault, whatever the fault was.

`Held` is what was acknowledged: the edition of each document that must be there, and no other. A document is
there whole or not at all; it is found by every way in; and the counters say what an export holds. Nothing
here writes documents but `check_that_all_can_be_forgotten`.
"""

import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import apsw

from faults.documents import EMBEDDER, NOW, Edition, contribution, identity, opened
from waylore.engine.waylore import Waylore
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import Contribution
from waylore.types.results import Receipt

Held = Mapping[int, Edition]
KEPT_WHEN_EMPTY = {"migrations", "collections", "blocks"}


def check_file(path: Path) -> None:
    """SQLite's own view of the file, through a connection that knows nothing of Waylore."""
    db = bare(path)
    try:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    finally:
        db.close()


def bare(path: Path) -> apsw.Connection:
    """A connection without Waylore's settings, but that it leaves the log to Waylore, which blanks what it moves."""
    db = apsw.Connection(str(path))
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    return db


def check_content(path: Path, held: Held) -> None:
    """Exactly what is held is there, whole, and counted."""
    store = SqliteStore(path)
    try:
        found = exported(store)
        assert found.keys() == {identity(number) for number in held}
        for wanted in held.values():
            assert shape(found[identity(wanted.number)]) == shape(contribution(wanted)), wanted
        check_counters(store, found.values())
    finally:
        store.close()


def check_counters(store: Store, found: Iterable[Contribution]) -> None:
    """What the collection counts is what an export holds."""
    told = list(found)
    counted = store.statistics()
    assert (counted.documents, counted.passages, counted.mentions) == (
        len(told),
        sum(len(c.passages) for c in told),
        sum(len(c.mentions) for c in told),
    )
    assert counted.entities == len({e.id for c in told for e in c.entities})
    assert counted.facts == len({f.id for c in told for f in c.facts})


def check_searches(path: Path, wanted: Iterable[Edition], gone: Iterable[Edition] = ()) -> None:
    """Every passage is found by its words and by its vector; of what is gone nothing is found by words."""
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
    """Of what is gone there is no row, and no byte; of what was half done there is none either."""
    store = SqliteStore(path)
    try:
        there = set(exported(store))
        forgotten = {identity(edition.number) for edition in gone} - there
        left = store.remains(Receipt(documents=tuple(sorted(forgotten))))
        assert left == (), left
    finally:
        store.close()
    held = on_disk(path)
    assert [m for edition in gone for m in edition.markers if m.encode() in held] == []


def on_disk(path: Path) -> bytes:
    """The bytes of a file and its log, read by another process: reading them here would drop our locks."""
    files = [str(p) for p in (path, Path(f"{path}-wal")) if p.exists()]
    return subprocess.run(["cat", *files], capture_output=True, check=True).stdout


def check_that_all_can_be_forgotten(path: Path, held: Held) -> None:
    """Forgetting the rest leaves no row behind: no support, counter or word is there once too often."""
    with opened(path) as waylore:
        waylore.forget(*map(identity, held))
    db = apsw.Connection(str(path))
    try:
        tables = {name for (name,) in db.execute("SELECT name FROM pragma_table_list WHERE type = 'table'")}
        plain = {t for t in tables if not t.startswith("sqlite_")} - KEPT_WHEN_EMPTY
        rows = {table: db.execute(f'SELECT count(*) FROM "{table}"').get for table in plain}
        assert rows == dict.fromkeys(plain, 0)
    finally:
        db.close()


def exported(store: Store) -> dict[str, Contribution]:
    """Everything that a store holds, by document."""
    return {c.document.id: c for c in store.export()}


def shape(told: Contribution) -> tuple[Any, ...]:
    """A contribution without the order of its parts, to be compared."""
    return told.document, *map(Counter, (told.passages, told.entities, told.mentions, told.facts))


def _check_found(waylore: Waylore, store: Store, wanted: Edition) -> None:
    expected = contribution(wanted)
    got = waylore.get(expected.document.id)
    assert (got.passages, set(got.facts)) == (expected.passages, set(expected.facts))
    vectors = EMBEDDER.embed_passages([p.embeddable for p in expected.passages])
    assert len(expected.passages) == len(wanted.markers)
    for passage, marker, vector in zip(expected.passages, wanted.markers, vectors, strict=True):
        assert [s.id for s in store.lexical(marker, top_k=2)] == [passage.id]
        assert [s.id for s in store.dense(vector, top_k=1)] == [passage.id]
    last = expected.passages[-1]
    found = waylore.search(last.text, top_k=1, method="hybrid", count_use=False)
    assert ([h.passage for h in found.hits], found.missing) == ([last], ())
    walked = waylore.search(last.text, top_k=1, count_use=False)
    assert (last in [h.passage for h in walked.hits], walked.missing) == (True, ())
