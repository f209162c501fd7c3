"""A collection moves while it is read and written: no failed search, no lost write, the same export after."""

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.faults import is_done_before_killed

from cells.cells import BRISK, CELLS, Cut, opened, placed, spread
from waylore.cells import admin
from waylore.cells.catalogue.protocol import Placed
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.move import move
from waylore.cells.open import open_cell
from waylore.cells.store import FederatedStore
from waylore.cells.sync import emptied, is_equal, sweep
from waylore.errors import ConfigError, StoreError, StoreUnavailable
from waylore.store.protocol import NONE, Store
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.suite import (
    ANOTHER,
    KING,
    MODEL,
    QUEEN,
    SECRET,
    WORLD,
    canonical,
    day,
    page,
    vectors,
)
from waylore.types.knowledge import Claim, Contribution

KILLS = 20
TESTS = Path(__file__).parents[1]


def note(number: int, edition: int = 0) -> Contribution:
    """A document that can be told from others by one word."""
    claim = Claim("Harbour", "has", f"Pier {number}", weight=1 + edition % 9)
    return page(f"Marker{number}x{edition} tells of the harbour.", claim, uri=f"notes/{number:03}")


NOTES = [note(number) for number in range(30)]


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Federation]:
    made = spread(tmp_path, {"notes": NOTES}, MODEL, replace(BRISK, read_seconds=20.0))
    yield made
    made.close()


def in_cell(federation: Federation, cell: str, collection: str = "notes") -> list[Contribution]:
    """What a cell itself holds."""
    store = open_cell(federation.catalogue.cells()[cell].url, collection)
    try:
        return list(store.export())
    finally:
        store.close()


def moved(federation: Federation, to: str, **options: Any) -> None:
    move(federation.catalogue, "notes", to, **{"config": BRISK, **options})


# -- what moves ----------------------------------------------------------------------------------------


def test_everything_moves_and_open_stores_follow(federation: Federation) -> None:
    with opened(federation, "notes") as store:
        before, version = list(store.export()), store.version()
        fact = NOTES[3].facts[0].id
        store.touch(facts=[fact] * 3, at=day("2024-06-01"))
        store.write([], model=MODEL, fingerprints={"notes/003": "as it was"})
        moved(federation, "west")
        assert in_cell(federation, "west") == before == list(store.export())
        assert in_cell(federation, "east") == []
        assert store.version() > version
        assert [s.id for s in store.lexical("Marker3x0", top_k=3)] == [NOTES[3].passages[0].id]
        used = store.facts([fact])[fact]
        assert (used.access_count, used.last_accessed) == (3, day("2024-06-01"))
        assert store.fingerprints(["notes/003", "notes/004"]) == {"notes/003": "as it was"}
        assert store.write([note(99)], model=MODEL) == 1
        assert len(in_cell(federation, "west")) == 31
    assert placed(federation, "notes").state == "active"


def test_versions_grow_across_moves(federation: Federation) -> None:
    with opened(federation, "notes") as store:
        seen = [store.version()]
        for cell in ("west", "north", "east", "west"):
            moved(federation, cell)
            seen.append(store.version())
            store.write([note(7, len(seen))], model=MODEL)
            seen.append(store.version())
        assert seen == sorted(set(seen))


def test_vectors_move_too(federation: Federation) -> None:
    with opened(federation, "notes") as store:
        before = vectors(store.export())
        moved(federation, "north")
        assert vectors(store.export()) == before


def test_moving_to_where_it_is_does_nothing(federation: Federation) -> None:
    before = placed(federation, "notes")
    moved(federation, "east")
    assert placed(federation, "notes") == before


def test_a_place_that_is_not_there_is_refused(federation: Federation) -> None:
    with pytest.raises(ConfigError, match="there is no cell 'south': there are east, north, west"):
        moved(federation, "south")
    with pytest.raises(StoreError, match="no collection 'other'"):
        move(federation.catalogue, "other", "west", config=BRISK)


def test_a_drained_cell_is_empty_and_gets_nothing_new(tmp_path: Path) -> None:
    federation = spread(tmp_path, {name: [KING] for name in "abcdef"}, MODEL)
    gone = admin.drain(federation.catalogue, "east", config=BRISK)
    assert gone == ("a", "d")
    states = {
        info.cell.name: (info.cell.state, info.collections) for info in admin.listed(federation.catalogue)
    }
    assert states["east"] == ("draining", ())
    assert sorted(name for _, names in states.values() for name in names) == list("abcdef")
    for name in "ad":
        assert in_cell(federation, "east", name) == []
        with opened(federation, name) as store:
            assert list(store.export()) == canonical(iter([KING]))
    with opened(federation, "g"):
        assert placed(federation, "g").cell != "east"
    with pytest.raises(ConfigError, match="is being drained"):
        move(federation.catalogue, "b", "east", config=BRISK)
    federation.close()


# -- making one store equal to another ---------------------------------------------------------------------

PAGES = (KING, QUEEN, SECRET, *NOTES[:5], note(1, 1), note(2, 2))


@settings(max_examples=30)
@given(st.lists(st.sampled_from(PAGES), unique_by=id), st.lists(st.sampled_from(PAGES), unique_by=id))
def test_a_sweep_makes_stores_equal(tmp_path_factory: pytest.TempPathFactory, here: Any, there: Any) -> None:
    folder = tmp_path_factory.mktemp("sweep")
    source, target = SqliteStore(folder / "a.waylore"), SqliteStore(folder / "b.waylore")
    source.write(here, model=MODEL)
    target.write(there, model=MODEL)
    sweep(source, target, 3, is_whole=True)
    assert list(source.export()) == list(target.export())
    assert vectors(source.export()) == vectors(target.export())
    assert is_equal(source, target)
    assert sweep(source, target, 3, is_whole=True) == 0
    emptied(target, 3)
    assert list(target.export()) == []
    source.close()
    target.close()


def test_what_a_light_sweep_cannot_see_a_whole_one_does(tmp_path: Path) -> None:
    source, target = SqliteStore(tmp_path / "a.waylore"), SqliteStore(tmp_path / "b.waylore")
    source.write(WORLD, model=MODEL)
    target.write(WORLD, model=MODEL)
    torn = [replace(p, vector=-p.vector) for p in KING.passages if p.vector is not None]
    target.write([replace(KING, passages=tuple(torn))], model=MODEL, instead_of=[KING.document.id])
    assert sweep(source, target, 9) == 0
    assert sweep(source, target, 9, is_whole=True) == 1
    assert vectors(source.export()) == vectors(target.export())
    later = replace(KING, document=replace(KING.document, recorded_at=day("2030-01-01")))
    source.write([later], model=MODEL, instead_of=[KING.document.id])
    assert sweep(source, target, 9) == 1
    assert list(source.export()) == list(target.export())
    for store in (source, target):
        store.close()


def test_a_file_that_only_the_target_takes_for_read_is_not(tmp_path: Path) -> None:
    source, target = SqliteStore(tmp_path / "a.waylore"), SqliteStore(tmp_path / "b.waylore")
    rows = [page(f"row {i}", uri=f"a.csv#row={i}") for i in range(5)]
    source.write(rows, model=MODEL, fingerprints={"a.csv": "1"})
    sweep(source, target, 2)
    assert target.fingerprints(["a.csv"]) == {"a.csv": "1"}
    source.write(rows[:1], model=MODEL, instead_of=[rows[0].document.id])
    assert source.fingerprints(["a.csv"]) == {}
    sweep(source, target, 2)
    assert target.fingerprints(["a.csv"]) == {}
    for store in (source, target):
        store.close()


def test_another_model_is_copied_from_the_beginning(tmp_path: Path) -> None:
    source, target = SqliteStore(tmp_path / "a.waylore"), SqliteStore(tmp_path / "b.waylore")
    source.write(WORLD, model=ANOTHER.name)
    target.write(WORLD, model=MODEL)
    assert not is_equal(source, target)
    sweep(source, target, 2)
    assert target.statistics().model == ANOTHER.name
    assert is_equal(source, target)
    for store in (source, target):
        store.close()


class Forgetful:
    """Opens cells of which one loses a passage of whatever it is given."""

    def __call__(self, url: str, collection: str) -> Store:
        store = open_cell(url, collection)
        return store if "west" not in url else Lossy(url.removeprefix("sqlite:///"), collection)


class Lossy(SqliteStore):
    def write(
        self,
        contributions: Sequence[Contribution],
        *,
        model: str | None,
        fingerprints: Any = NONE,
        instead_of: Sequence[str] = (),
    ) -> int:
        less = [replace(c, document=replace(c.document, title="lost")) for c in contributions]
        return super().write(less, model=model, fingerprints=fingerprints, instead_of=instead_of)


def test_a_cell_that_keeps_something_else_gets_nothing(federation: Federation) -> None:
    with pytest.raises(StoreError, match="gives back another document"):
        moved(federation, "west", opening=Forgetful())
    with opened(federation, "notes") as store:
        assert list(store.export()) == canonical(iter(NOTES))
        assert placed(federation, "notes").cell == "east"


# -- under way -----------------------------------------------------------------------------------------


def test_writers_do_not_wait_for_a_mover_that_died(federation: Federation) -> None:
    known = placed(federation, "notes")
    stopped = replace(known, state="stopped", other="west", until=time.time() + 0.3)
    assert federation.catalogue.change(known, stopped)
    with opened(federation, "notes") as store:
        begun = time.time()
        assert store.write([note(50)], model=MODEL) == 1
        assert time.time() - begun >= 0.29
    assert placed(federation, "notes").state == "copying"
    moved(federation, "west")
    assert len(in_cell(federation, "west")) == 31


def test_a_change_by_another_is_not_overwritten(federation: Federation) -> None:
    known = placed(federation, "notes")
    assert federation.catalogue.change(known, replace(known, state="copying", other="west"))
    assert federation.catalogue.change(known, replace(known, cell="north")) is None
    assert placed(federation, "notes").cell == "east"


def test_one_moves_at_a_time(federation: Federation) -> None:
    with federation.catalogue.moving(), pytest.raises(StoreUnavailable, match="somebody else is moving"):
        moved(federation, "west")
    moved(federation, "west")


def test_a_move_that_was_begun_to_elsewhere_leaves_nothing_there(federation: Federation) -> None:
    known = placed(federation, "notes")
    federation.catalogue.change(known, replace(known, state="copying", other="north"))
    half = open_cell(federation.catalogue.cells()["north"].url, "notes")
    half.write(NOTES[:9], model=MODEL)
    half.close()
    moved(federation, "west")
    assert [len(in_cell(federation, cell)) for cell in CELLS] == [0, 0, 30]


def test_a_write_that_a_move_overtakes_is_made_again_where_the_collection_lives(federation: Federation) -> None:
    reached, go = threading.Event(), threading.Event()

    def passing(verb: str) -> None:
        if verb == "write" and not reached.is_set():
            reached.set()
            go.wait(30)

    def opening(url: str, collection: str) -> Store:
        return Cut(open_cell(url, collection), passing)

    slow = Federation(federation.catalogue, opening, federation.config)
    with opened(slow, "notes") as store, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(store.write, [note(70)], model=MODEL)
        reached.wait(30)
        moved(federation, "west")
        assert len(in_cell(federation, "west")) == 30
        go.set()
        assert writing.result(30) == 1
    assert len(in_cell(federation, "west")) == 31
    assert in_cell(federation, "east") == []  # no stray copy stays behind


class Interrupted(SqliteCatalogue):
    """A catalogue on whose change something else happens just before."""

    before: Callable[[Placed], None] = staticmethod(lambda _: None)

    def change(self, before: Placed, after: Placed) -> Placed | None:
        self.before(after)
        return super().change(before, after)


def test_what_is_written_just_before_writers_are_stopped_moves_too(
    tmp_path: Path, federation: Federation
) -> None:
    catalogue = Interrupted(tmp_path / "catalogue.waylore")
    states: list[str] = []

    def interfere(after: Placed) -> None:
        states.append(after.state)
        if after.state == "stopped":
            store.write([note(50), note(3, 9)], model=MODEL, fingerprints={"notes/050": "new"})
            store.forget([NOTES[5].document.id])

    with opened(federation, "notes") as store:
        catalogue.before = interfere
        move(catalogue, "notes", "west", config=BRISK)
        kept = [c for c in NOTES if c.document.uri not in ("notes/003", "notes/005")]
        expected = canonical(iter([*kept, note(50), note(3, 9)]))
        assert in_cell(federation, "west") == expected == list(store.export())
        assert store.fingerprints(["notes/050"]) == {"notes/050": "new"}
    assert states == ["copying", "stopped", "opening", "leaving", "active"]
    catalogue.close()


@pytest.mark.timeout(300)
def test_a_move_under_writes_and_searches(tmp_path: Path, federation: Federation) -> None:
    """Where a collection lives is remembered for long, so that one who goes on too early is caught."""
    known = replace(federation.config, place_seconds=0.4)
    crowd = Crowd(Federation(federation.catalogue, open_cell, known))
    crowd.start()
    try:
        for cell in ("west", "north", "east", "west"):
            moved(federation, cell, config=replace(BRISK, place_seconds=known.place_seconds, stop_seconds=5.0))
            assert placed(federation, "notes").cell == cell
    finally:
        crowd.stop()
    assert crowd.errors == []
    assert crowd.searches > 50
    assert sum(len(writer.held) for writer in crowd.writers) > 20
    expected = [*NOTES, *(c for writer in crowd.writers for c in writer.held.values())]
    with opened(federation, "notes") as store:
        assert list(store.export()) == canonical(iter(expected))
    assert [len(in_cell(federation, cell)) for cell in CELLS] == [0, 0, len(expected)]


class Writer:
    """Adds, replaces and forgets documents of its own, and sees that at once through another handle."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.held: dict[int, Contribution] = {}

    def step(self, store: FederatedStore, reader: FederatedStore, chance: random.Random) -> None:
        number = self.first + chance.randrange(40)
        if number in self.held and chance.random() < 0.4:
            gone = self.held.pop(number)
            assert store.forget([gone.document.id]).documents == (gone.document.id,)
            assert reader.documents([gone.document.id]) == {}
            return
        told = note(number, chance.randrange(1_000))
        store.write([told], model=MODEL)
        self.held[number] = told
        assert reader.passages([told.passages[0].id]).keys() == {told.passages[0].id}


class Crowd:
    """Writers and readers of one collection, each with handles of its own."""

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

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _run(self, step: Callable[[FederatedStore, FederatedStore, random.Random], None], pause: float) -> None:
        chance = random.Random(threading.get_ident())
        with opened(self.federation, "notes") as store, opened(self.federation, "notes") as reader:
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
        assert store.contributions([wanted.document.id])[wanted.document.id].facts
        self.searches += 1


# -- killed --------------------------------------------------------------------------------------------


@pytest.mark.timeout(300)
def test_a_move_that_is_killed_goes_on(tmp_path: Path, federation: Federation) -> None:
    chance = random.Random(5)
    held = {number: note(number) for number in range(30)}
    states: set[str] = set()
    done = 0
    for kill in range(KILLS):
        target = CELLS[1 + kill // 7 % 2]  # the same for a while, then elsewhere
        done += _kill_mover(tmp_path, target, chance.uniform(0.0, 0.25))
        states.add(placed(federation, "notes").state)
        with opened(federation, "notes") as store:
            assert list(store.export()) == canonical(iter(held.values()))
            held[kill] = note(kill, kill + 1)
            assert store.write([held[kill]], model=MODEL) == 1
    moved(federation, "east")
    moved(federation, "west")
    assert in_cell(federation, "west") == canonical(iter(held.values()))
    assert [len(in_cell(federation, cell)) for cell in CELLS] == [0, 0, 30]
    assert done < KILLS
    assert len(states) > 1, states


def _kill_mover(folder: Path, to: str, after: float) -> bool:
    """Kill a mover at its work; whether it was done before."""
    command = [sys.executable, "-m", "federation.mover", str(folder), "notes", to]
    return is_done_before_killed(command, TESTS, after)
