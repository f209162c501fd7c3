"""A file with vectors in half precision is converted when it is opened: it answers alike, and a kill loses nothing."""

import shutil
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np
import pytest
from tools.faults import measure_seconds, start_and_kill

from store.half_precision import restore_halves
from store.test_carry_over import OPEN, read_all, write
from waylore.store.protocol import Store
from waylore.store.sqlite.file import open_file
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.world import EMBEDDER, MODEL, WORLD, page, question
from waylore.types.author import OWNER
from waylore.types.knowledge import Vector

KILLS = [3, pytest.param(8, marks=pytest.mark.full)]
PAGES = 300


def search(store: Store, vector: Vector) -> list[object]:
    return [store.dense(vector, top_k=9), store.nearest_entities(vector, top_k=9)]


def read_lengths(path: Path) -> list[set[int]]:
    with closing(apsw.Connection(str(path))) as db:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        tables = ("passage_vectors", "entity_vectors", "staged")
        return [{length for (length,) in db.execute(f"SELECT length(vector) FROM {table}")} for table in tables]


def stage(store: Store, count: int) -> None:
    items = store.list_unembedded("next", limit=count)
    vectors = np.random.default_rng(1).normal(size=(count, 12)).astype(np.float32)
    embedded = [replace(item, vector=vector) for item, vector in zip(items, vectors, strict=False)]
    store.stage_vectors(embedded, author=OWNER, model="next")


def test_file_with_half_precision_answers_alike(tmp_path: Path) -> None:
    new, old = tmp_path / "new.waylore", tmp_path / "old.waylore"
    write(new, [*WORLD, page("東京 and Łódź", metadata={"lang": "ja"})], MODEL)
    shutil.copy(new, old)
    restore_halves(old)
    assert read_lengths(old) == [{2 * EMBEDDER.dimension}, {2 * EMBEDDER.dimension}, set()]
    assert read_all(old) == read_all(new)
    assert read_lengths(old) == [{EMBEDDER.dimension}, {EMBEDDER.dimension}, set()]
    with closing(SqliteStore(old)) as converted, closing(SqliteStore(new)) as expected:
        for text in ("king of lotharingia", "falcon", "tours"):
            assert search(converted, question(text)) == search(expected, question(text))


def test_staged_vectors_are_converted(tmp_path: Path) -> None:
    one, other = tmp_path / "one.waylore", tmp_path / "other.waylore"
    write(one, WORLD, MODEL)
    with closing(SqliteStore(one)) as store:
        stage(store, 99)
        stage(store, 2)
    shutil.copy(one, other)
    restore_halves(other)
    for path in (one, other):
        with closing(SqliteStore(path)) as store:
            while store.list_unembedded("next", limit=1):
                stage(store, 50)
            assert store.activate_model("next", author=OWNER)
    assert read_all(other) == read_all(one)
    assert read_lengths(other) == [{12}, {12}, set()]


def test_bits_are_derived_from_the_codes(tmp_path: Path) -> None:
    """Half precision has signs of numbers that eight bits round to zero."""
    path = tmp_path / "a.waylore"
    write(path, WORLD, MODEL)
    with closing(apsw.Connection(str(path))) as db:
        expected = db.execute("SELECT codes, live FROM blocks").fetchall()
    restore_halves(path)
    with closing(open_file(str(path))) as db, db:
        db.execute("UPDATE blocks SET codes = zeroblob(length(codes))")
    SqliteStore(path).close()
    with closing(apsw.Connection(str(path))) as db:
        assert db.execute("SELECT codes, live FROM blocks").fetchall() == expected


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", KILLS)
def test_killed_process_leaves_a_file_that_is_converted(tmp_path: Path, kills: int) -> None:
    old, path = tmp_path / "old.waylore", tmp_path / "a.waylore"
    write(old, [page(f"Page {number} tells of falcon {number}.") for number in range(PAGES)], MODEL)
    expected = read_all(old)
    restore_halves(old)
    shutil.copy(old, path)
    command = [sys.executable, "-c", OPEN, str(path)]
    whole = measure_seconds(command)
    finished = []
    for number in range(kills):
        for file in tmp_path.glob("a.waylore*"):
            file.unlink()
        shutil.copy(old, path)
        finished.append(start_and_kill(command, tmp_path, whole * number / kills))
        assert read_all(path) == expected
    assert not all(finished)
