"""Moving a collection while it is read and written: no search fails, no write is lost."""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.faults import start_and_kill
from tools.waiting import HANG_SECONDS, wait_until

from cells.cells import BRISK, CELLS, InterceptedStore, create_federation, get_placement, open_stores
from waylore.cells import admin
from waylore.cells.catalogue.protocol import CollectionPlacement
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.move import move_collection
from waylore.cells.open import open_cell
from waylore.cells.store import FederatedStore
from waylore.cells.sync import delete_all, is_equal, sync_stores
from waylore.errors import ConfigError, StoreError, StoreUnavailable
from waylore.store.protocol import NO_FINGERPRINTS, Store
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.scopes import say
from waylore.testing.world import (
    KING,
    MODEL,
    OTHER_EMBEDDER,
    QUEEN,
    SECRET,
    WORLD,
    day,
    list_vectors,
    page,
    sort_parts,
)
from waylore.types.audit import Verb
from waylore.types.author import OWNER, Author
from waylore.types.knowledge import IndexedDocument, NewFact
from waylore.types.search import Filter

KILLS = 20
TESTS = Path(__file__).parents[1]


def note(number: int, edition: int = 0) -> IndexedDocument:
    """Return a document that one word distinguishes from all others."""
    claim = NewFact("Harbour", "has", f"Pier {number}", weight=1 + edition % 9)
    return page(f"Marker{number}x{edition} tells of the harbour.", claim, uri=f"notes/{number:03}")


NOTES = [note(number) for number in range(30)]


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Federation]:
    made = create_federation(tmp_path, {"notes": NOTES}, MODEL, replace(BRISK, read_seconds=20.0))
    yield made
    made.close()


def in_cell(federation: Federation, cell: str, collection: str = "notes") -> list[IndexedDocument]:
    """Return the documents of a collection in a cell."""
    store = open_cell(federation.catalogue.get_cells()[cell].url, collection)
    try:
        return list(store.export())
    finally:
        store.close()


def moved(federation: Federation, to: str, **options: Any) -> None:
    move_collection(federation.catalogue, "notes", to, **{"config": BRISK, **options})


# -- what moves ----------------------------------------------------------------------------------------


def test_move_copies_everything_and_open_stores_follow(federation: Federation) -> None:
    with open_stores(federation, "notes") as store:
        before, version = list(store.export()), store.version()
        fact = NOTES[3].facts[0].id
        store.count_uses(facts=[fact] * 3, at=day("2024-06-01"))
        store.set_weights('{"bias": 0.5, "odds": 2.0}', author=OWNER)
        store.write([], author=OWNER, model=MODEL, fingerprints={"notes/003": "as it was"})
        moved(federation, "west")
        assert in_cell(federation, "west") == before == list(store.export())
        assert in_cell(federation, "east") == []
        assert store.version() > version
        assert store.statistics().weights == '{"bias": 0.5, "odds": 2.0}'
        assert [s.id for s in store.lexical("Marker3x0", top_k=3)] == [NOTES[3].passages[0].id]
        used = store.facts([fact])[fact]
        assert (used.access_count, used.last_accessed) == (3, day("2024-06-01"))
        assert store.fingerprints(["notes/003", "notes/004"]) == {"notes/003": "as it was"}
        assert store.write([note(99)], author=OWNER, model=MODEL) == 1
        assert len(in_cell(federation, "west")) == 31
    assert get_placement(federation, "notes").state == "active"


def test_versions_grow_across_moves(federation: Federation) -> None:
    with open_stores(federation, "notes") as store:
        seen = [store.version()]
        for cell in ("west", "north", "east", "west"):
            moved(federation, cell)
            seen.append(store.version())
            store.write([note(7, len(seen))], author=OWNER, model=MODEL)
            seen.append(store.version())
        assert seen == sorted(set(seen))


def test_move_copies_documents_of_users_and_labels(federation: Federation) -> None:
    with open_stores(federation, "notes") as store:
        store.write([say("The falcon flew.", user="ann"), say("A mill.", user="ben")], author=OWNER, model=MODEL)
        store.write([page("Only for staff.", labels=["staff"])], author=OWNER, model=MODEL)
        before = list(store.export())
        moved(federation, "west")
        assert in_cell(federation, "west") == before == list(store.export())
        assert in_cell(federation, "east") == []
        assert len(store.lexical("falcon", top_k=9, where=Filter(user="ann"))) == 1


def test_move_copies_vectors(federation: Federation) -> None:
    with open_stores(federation, "notes") as store:
        before = list_vectors(store.export())
        moved(federation, "north")
        assert list_vectors(store.export()) == before


def test_move_to_current_cell_does_nothing(federation: Federation) -> None:
    before = get_placement(federation, "notes")
    moved(federation, "east")
    assert get_placement(federation, "notes") == before


def test_move_refuses_unknown_cell_and_collection(federation: Federation) -> None:
    with pytest.raises(ConfigError, match="no cell 'south'; the cells are east, north, west"):
        moved(federation, "south")
    with pytest.raises(StoreError, match="no collection 'other'"):
        move_collection(federation.catalogue, "other", "west", config=BRISK)


def test_drained_cell_is_empty_and_gets_no_collections(tmp_path: Path) -> None:
    federation = create_federation(tmp_path, {name: [KING] for name in "abcdef"}, MODEL)
    gone = admin.drain_cell(federation.catalogue, "east", config=BRISK)
    assert gone == ("a", "d")
    states = {info.cell.name: (info.cell.state, info.collections) for info in admin.list_cells(federation.catalogue)}
    assert states["east"] == ("draining", ())
    assert sorted(name for _, names in states.values() for name in names) == list("abcdef")
    for name in "ad":
        assert in_cell(federation, "east", name) == []
        with open_stores(federation, name) as store:
            assert list(store.export()) == sort_parts(iter([KING]))
    with open_stores(federation, "g"):
        assert get_placement(federation, "g").cell != "east"
    with pytest.raises(ConfigError, match="is being drained"):
        move_collection(federation.catalogue, "b", "east", config=BRISK)
    federation.close()


# -- making one store equal to another ---------------------------------------------------------------------

PAGES = (KING, QUEEN, SECRET, *NOTES[:5], note(1, 1), note(2, 2))


@settings(max_examples=30)
@given(st.lists(st.sampled_from(PAGES), unique_by=id), st.lists(st.sampled_from(PAGES), unique_by=id))
def test_sync_makes_stores_equal(tmp_path_factory: pytest.TempPathFactory, here: Any, there: Any) -> None:
    folder = tmp_path_factory.mktemp("sweep")
    source, target = SqliteStore(folder / "a.waylore"), SqliteStore(folder / "b.waylore")
    source.write(here, author=OWNER, model=MODEL)
    target.write(there, author=OWNER, model=MODEL)
    sync_stores(source, target, 3, compare_rows=True)
    assert list(source.export()) == list(target.export())
    assert list_vectors(source.export()) == list_vectors(target.export())
    assert is_equal(source, target)
    assert sync_stores(source, target, 3, compare_rows=True) == 0
    delete_all(target, 3)
    assert list(target.export()) == []
    source.close()
    target.close()


def test_compare_rows_finds_damage_that_digests_miss(tmp_path: Path) -> None:
    source, target = SqliteStore(tmp_path / "a.waylore"), SqliteStore(tmp_path / "b.waylore")
    source.write(WORLD, author=OWNER, model=MODEL)
    target.write(WORLD, author=OWNER, model=MODEL)
    torn = [replace(p, vector=-p.vector) for p in KING.passages if p.vector is not None]
    target.write([replace(KING, passages=tuple(torn))], author=OWNER, model=MODEL, replacing=[KING.document.id])
    assert sync_stores(source, target, 9) == 0
    assert sync_stores(source, target, 9, compare_rows=True) == 1
    assert list_vectors(source.export()) == list_vectors(target.export())
    later = replace(KING, document=replace(KING.document, recorded_at=day("2030-01-01")))
    source.write([later], author=OWNER, model=MODEL, replacing=[KING.document.id])
    assert sync_stores(source, target, 9) == 1
    assert list(source.export()) == list(target.export())
    for store in (source, target):
        store.close()


def test_sync_removes_stale_fingerprints(tmp_path: Path) -> None:
    source, target = SqliteStore(tmp_path / "a.waylore"), SqliteStore(tmp_path / "b.waylore")
    rows = [page(f"row {i}", uri=f"a.csv#row={i}") for i in range(5)]
    source.write(rows, author=OWNER, model=MODEL, fingerprints={"a.csv": "1"})
    sync_stores(source, target, 2)
    assert target.fingerprints(["a.csv"]) == {"a.csv": "1"}
    source.write(rows[:1], author=OWNER, model=MODEL, replacing=[rows[0].document.id])
    assert source.fingerprints(["a.csv"]) == {}
    sync_stores(source, target, 2)
    assert target.fingerprints(["a.csv"]) == {}
    for store in (source, target):
        store.close()


def test_sync_replaces_store_with_another_model(tmp_path: Path) -> None:
    source, target = SqliteStore(tmp_path / "a.waylore"), SqliteStore(tmp_path / "b.waylore")
    source.write(WORLD, author=OWNER, model=OTHER_EMBEDDER.name)
    target.write(WORLD, author=OWNER, model=MODEL)
    assert not is_equal(source, target)
    sync_stores(source, target, 2)
    assert target.statistics().model == OTHER_EMBEDDER.name
    assert is_equal(source, target)
    for store in (source, target):
        store.close()


class OpenWithLossyCell:
    """Opens cells, one of which changes the title of every document."""

    def __call__(self, url: str, collection: str) -> Store:
        store = open_cell(url, collection)
        return store if "west" not in url else Lossy(url.removeprefix("sqlite:///"), collection)


class Lossy(SqliteStore):
    """A store that changes the title of every document that it writes."""

    def write(
        self,
        documents: Sequence[IndexedDocument],
        *,
        author: Author,
        model: str | None,
        fingerprints: Any = NO_FINGERPRINTS,
        replacing: Sequence[str] = (),
        verb: Verb = "write",
    ) -> int:
        less = [replace(c, document=replace(c.document, title="lost")) for c in documents]
        return super().write(
            less, author=author, model=model, fingerprints=fingerprints, replacing=replacing, verb=verb
        )


def test_move_fails_if_target_stores_something_else(federation: Federation) -> None:
    with pytest.raises(StoreError, match="returns other rows than were written"):
        moved(federation, "west", open_cell=OpenWithLossyCell())
    with open_stores(federation, "notes") as store:
        assert list(store.export()) == sort_parts(iter(NOTES))
        assert get_placement(federation, "notes").cell == "east"


# -- during a move -------------------------------------------------------------------------------------


def test_writers_continue_after_mover_died(federation: Federation) -> None:
    known = get_placement(federation, "notes")
    stopped = replace(known, state="stopped", other="west", until=time.time() + 0.3)
    assert federation.catalogue.change(known, stopped)
    with open_stores(federation, "notes") as store:
        assert store.write([note(50)], author=OWNER, model=MODEL) == 1
        assert time.time() >= stopped.until
    assert get_placement(federation, "notes").state == "copying"
    moved(federation, "west")
    assert len(in_cell(federation, "west")) == 31


def test_change_by_another_process_is_not_overwritten(federation: Federation) -> None:
    known = get_placement(federation, "notes")
    assert federation.catalogue.change(known, replace(known, state="copying", other="west"))
    assert federation.catalogue.change(known, replace(known, cell="north")) is None
    assert get_placement(federation, "notes").cell == "east"


def test_catalogue_allows_one_move_at_a_time(federation: Federation) -> None:
    with federation.catalogue.lock_moves(), pytest.raises(StoreUnavailable, match="another process is moving"):
        moved(federation, "west")
    moved(federation, "west")


def test_move_empties_target_of_unfinished_other_move(federation: Federation) -> None:
    known = get_placement(federation, "notes")
    federation.catalogue.change(known, replace(known, state="copying", other="north"))
    half = open_cell(federation.catalogue.get_cells()["north"].url, "notes")
    half.write(NOTES[:9], author=OWNER, model=MODEL)
    half.close()
    moved(federation, "west")
    assert [len(in_cell(federation, cell)) for cell in CELLS] == [0, 0, 30]


def test_write_overtaken_by_move_is_repeated_in_new_cell(tmp_path: Path, federation: Federation) -> None:
    reached, go = threading.Event(), threading.Event()

    def passing(verb: str) -> None:
        if verb == "write" and not reached.is_set():
            reached.set()
            go.wait(HANG_SECONDS)

    def opening(url: str, collection: str) -> Store:
        return InterceptedStore(open_cell(url, collection), passing)

    with (
        closing(Federation(open_catalogue(tmp_path), opening, federation.config)) as slow,
        open_stores(slow, "notes") as store,
        ThreadPoolExecutor(1) as pool,
    ):
        writing = pool.submit(store.write, [note(70)], author=OWNER, model=MODEL)
        assert reached.wait(HANG_SECONDS)
        moved(federation, "west")
        assert len(in_cell(federation, "west")) == 30
        go.set()
        assert writing.result(HANG_SECONDS) == 1
    assert len(in_cell(federation, "west")) == 31
    assert in_cell(federation, "east") == []  # no copy stays in the old cell


def open_catalogue(folder: Path) -> SqliteCatalogue:
    """Open the catalogue of `federation` as another process does."""
    return SqliteCatalogue(folder / "catalogue.waylore")


class Interrupted(SqliteCatalogue):
    """A catalogue that calls `before` just before every change."""

    before: Callable[[CollectionPlacement], None] = staticmethod(lambda _: None)

    def change(self, before: CollectionPlacement, after: CollectionPlacement) -> CollectionPlacement | None:
        self.before(after)
        return super().change(before, after)


def test_writes_just_before_stop_are_moved(tmp_path: Path, federation: Federation) -> None:
    catalogue = Interrupted(tmp_path / "catalogue.waylore")
    states: list[str] = []

    def interfere(after: CollectionPlacement) -> None:
        states.append(after.state)
        if after.state == "stopped":
            store.write([note(50), note(3, 9)], author=OWNER, model=MODEL, fingerprints={"notes/050": "new"})
            store.forget([NOTES[5].document.id], author=OWNER)

    with open_stores(federation, "notes") as store:
        catalogue.before = interfere
        move_collection(catalogue, "notes", "west", config=BRISK)
        kept = [c for c in NOTES if c.document.uri not in ("notes/003", "notes/005")]
        expected = sort_parts(iter([*kept, note(50), note(3, 9)]))
        assert in_cell(federation, "west") == expected == list(store.export())
        assert store.fingerprints(["notes/050"]) == {"notes/050": "new"}
    assert states == ["copying", "stopped", "opening", "leaving", "active"]
    catalogue.close()


@pytest.mark.timeout(300)
def test_move_under_writes_and_searches(tmp_path: Path, federation: Federation) -> None:
    """Placements are cached for long, so that a writer or reader that continues too early is caught."""
    known = replace(federation.config, place_seconds=0.4)
    with closing(Federation(open_catalogue(tmp_path), open_cell, known)) as other, Crowd(other).run() as crowd:
        for cell in ("west", "north", "east", "west"):
            moved(federation, cell, config=replace(BRISK, place_seconds=known.place_seconds, stop_seconds=5.0))
            assert get_placement(federation, "notes").cell == cell
        wait_until(lambda: crowd.errors or (crowd.searches > 50 and crowd.count_documents() > 20))
    assert crowd.errors == []
    expected = [*NOTES, *(c for writer in crowd.writers for c in writer.held.values())]
    with open_stores(federation, "notes") as store:
        assert list(store.export()) == sort_parts(iter(expected))
    assert [len(in_cell(federation, cell)) for cell in CELLS] == [0, 0, len(expected)]


class Writer:
    """Adds, replaces and deletes its own documents, and reads each change at once through another store."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.held: dict[int, IndexedDocument] = {}

    def step(self, store: FederatedStore, reader: FederatedStore, chance: random.Random) -> None:
        number = self.first + chance.randrange(40)
        if number in self.held and chance.random() < 0.4:
            gone = self.held.pop(number)
            assert store.forget([gone.document.id], author=OWNER).documents == (gone.document.id,)
            assert reader.documents([gone.document.id]) == {}
            return
        told = note(number, chance.randrange(1_000))
        store.write([told], author=OWNER, model=MODEL)
        self.held[number] = told
        assert reader.passages([told.passages[0].id]).keys() == {told.passages[0].id}


class Crowd:
    """Writers and readers of one collection, each with its own stores."""

    def __init__(self, federation: Federation) -> None:
        self.federation = federation
        self.writers = [Writer(1_000), Writer(2_000)]
        self.errors: list[str] = []
        self.searches = 0
        self._ended = threading.Event()
        self._threads = [
            *(threading.Thread(target=self._run, args=(w.step, 0.05)) for w in self.writers),
            *(threading.Thread(target=self._run, args=(self._searching, 0.02)) for _ in range(2)),
        ]

    @contextmanager
    def run(self) -> Iterator["Crowd"]:
        """Write and read while the block runs."""
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            for thread in self._threads:
                thread.join()

    def count_documents(self) -> int:
        return sum(len(writer.held) for writer in self.writers)

    def _run(self, step: Callable[[FederatedStore, FederatedStore, random.Random], None], pause: float) -> None:
        chance = random.Random(threading.get_ident())
        with open_stores(self.federation, "notes") as store, open_stores(self.federation, "notes") as reader:
            while not self._ended.wait(pause):
                try:
                    step(store, reader, chance)
                except Exception as error:  # noqa: BLE001 - whatever goes wrong is a failure
                    self.errors.append(repr(error))
                    return

    def _searching(self, store: FederatedStore, _: FederatedStore, chance: random.Random) -> None:
        wanted = chance.choice(NOTES)
        [marker] = [word for word in wanted.passages[0].text.split() if word.startswith("Marker")]
        assert [s.id for s in store.lexical(marker, top_k=1)] == [wanted.passages[0].id]
        assert store.get_indexed_documents([wanted.document.id])[wanted.document.id].facts
        self.searches += 1


# -- killed --------------------------------------------------------------------------------------------


@pytest.mark.timeout(300)
def test_killed_move_is_resumed(tmp_path: Path, federation: Federation) -> None:
    chance = random.Random(5)
    held = {number: note(number) for number in range(30)}
    states: set[str] = set()
    done, latest = 0, 1.2 * _measure_move(tmp_path, "west")
    for kill in range(KILLS):
        target = CELLS[1 + kill // 7 % 2]  # the same cell for several kills, then another
        is_done = start_and_kill(_build_mover_command(tmp_path, target), TESTS, chance.uniform(0.0, latest))
        done, latest = done + is_done, latest * (0.7 if is_done else 1.0)  # a move may have been measured too slow
        states.add(get_placement(federation, "notes").state)
        with open_stores(federation, "notes") as store:
            assert list(store.export()) == sort_parts(iter(held.values()))
            held[kill] = note(kill, kill + 1)
            assert store.write([held[kill]], author=OWNER, model=MODEL) == 1
    moved(federation, "east")
    moved(federation, "west")
    assert in_cell(federation, "west") == sort_parts(iter(held.values()))
    assert [len(in_cell(federation, cell)) for cell in CELLS] == [0, 0, 30]
    assert done < KILLS
    assert len(states) > 1, states


def _build_mover_command(folder: Path, to: str) -> list[str]:
    return [sys.executable, "-m", "cells.mover", str(folder), "notes", to]


def _measure_move(folder: Path, to: str) -> float:
    """Return the seconds of a move that is not killed."""
    command = _build_mover_command(folder, to)
    with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True) as mover:
        assert mover.stdout
        assert mover.stdout.readline() == "begun\n"
        began = time.monotonic()
        assert mover.stdout.readline() == "done\n"
        return time.monotonic() - began
