"""benchmarks/faults: what is lost or wrong is noticed, or a table of zeros would say nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from benchmarks.faults.load import Load, Report, Request, search_note
from benchmarks.faults.notes import (
    EMBEDDER,
    Ledger,
    Note,
    StoreCheck,
    check_store,
    index_note,
    open_collection,
    parse_note,
)

from waylore.engine.waylore import Waylore
from waylore.errors import StoreUnavailable
from waylore.indexing import pipeline
from waylore.store.sqlite.store import SqliteStore
from waylore.types.author import OWNER

World = tuple[Waylore, SqliteStore, Ledger]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    store = SqliteStore(tmp_path / "waylore.db")
    with open_collection(store) as waylore:
        ledger = Ledger()
        Load([(waylore, ledger)]).fill(12)
        yield waylore, store, ledger


def test_a_store_that_holds_what_was_acknowledged_is_right(world: World) -> None:
    waylore, store, ledger = world
    ledger.end(ledger.begin(Random(1), is_new=True), is_acknowledged=False)  # may be there or not
    assert check_store(waylore, store, ledger) == StoreCheck((), ())
    for method in ("chain", "hybrid", "keyword", "get"):
        assert search_note(waylore, [ledger], ledger, method, Random(2)) == ("", ())


def test_what_is_lost_is_noticed(world: World) -> None:
    waylore, store, ledger = world
    store.forget([Note(3).id], author=OWNER)
    assert check_store(waylore, store, ledger).lost == ("note 3: edition 1 was acknowledged and is not stored",)
    alone = Ledger(acknowledged={3: 1}, begun={3: 1})
    for method in ("chain", "hybrid", "keyword", "get"):
        assert "was acknowledged and is not" in search_note(waylore, [ledger], alone, method, Random(2))[0]


def test_an_older_edition_than_was_acknowledged_is_noticed(world: World) -> None:
    waylore, store, ledger = world
    ledger.begun[3] = ledger.acknowledged[3] = 2
    assert len(check_store(waylore, store, ledger).lost) == 1
    alone = Ledger(acknowledged={3: 2}, begun={3: 2})
    assert all(search_note(waylore, [ledger], alone, method, Random(2))[0] for method in ("hybrid", "get"))


def test_what_nobody_wrote_is_noticed(world: World) -> None:
    waylore, store, ledger = world
    told = index_note(Note(99))
    strange = replace(told, passages=(replace(told.passages[0], text="marker99x1: another text"),))
    pipeline.write(store, EMBEDDER, [strange], author=OWNER)
    assert check_store(waylore, store, ledger).wrong
    found = search_note(waylore, [ledger], Ledger(acknowledged={99: 1}, begun={99: 1}), "keyword", Random(2))
    assert "returned 'marker99x1: another text" in found[0]
    assert parse_note("marker99x1: another text") is None


def test_errors_must_say_where_and_tell_no_password() -> None:
    told = [
        StoreUnavailable("127.0.0.1:5432 is down"),
        StoreUnavailable("it is down"),
        StoreUnavailable("127.0.0.1:5432 refused hunter2"),
        ValueError("127.0.0.1:5432"),
    ]
    requests = [Request("write", 0.0, 1.0, error) for error in told]
    report = Report("fault", requests, StoreCheck((), ()), 0.5)
    assert len(report.find_unexplained(["127.0.0.1:"])) == 3
    assert report.recovered == float("inf")
    again = Report("fault", [*requests, Request("get", 2.0, 2.5)], StoreCheck((), ()), 0.5)
    assert again.recovered == 2.0
