"""Moves between PostgreSQL servers by logical replication: everything moves, and nothing is left behind."""

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tools.postgres.builds import find_plain_build
from tools.postgres.server import FAST_SETTINGS, Server, start_server
from tools.waiting import HANG_SECONDS

from cells.cells import BRISK, get_placement, open_stores
from cells.mover import MoverProcess
from databases import create_database, make_name
from threads import share_federation
from waylore.cells import admin
from waylore.cells.catalogue.protocol import CellState
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.move import move_collection
from waylore.cells.open import open_cell
from waylore.cells.replication.copy import open_replicated_copy
from waylore.cells.store import FederatedStore
from waylore.store.postgres import search as searching
from waylore.store.postgres import server as server_of_store
from waylore.store.postgres.scope import compute_key, read_collection
from waylore.store.postgres.store import PostgresStore
from waylore.store.receipts import record_as
from waylore.surfaces.checks.cells import check_moves
from waylore.testing.scopes import say
from waylore.testing.world import EMBEDDER, KING, MODEL, WORLD, day, list_vectors, page
from waylore.types.author import OWNER
from waylore.types.knowledge import IndexedDocument, NewFact
from waylore.types.search import Filter

FILE, CELLS = "catalogue.waylore", ("east", "west")
KILLS = 4
PATIENT = replace(BRISK, read_seconds=20.0)
SECRET = "hunter2"
SETTINGS = {**FAST_SETTINGS, "wal_level": "logical", "log_statement": "ddl", "log_replication_commands": "on"}
COUNT_LEFT = """
    SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database())
      + (SELECT count(*) FROM pg_publication)
      + (SELECT count(*) FROM pg_subscription
        WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database()))
"""
TABLES = """
    SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE a.attname = 'collection' AND c.relkind = 'r' AND c.relnamespace = 'waylore'::regnamespace
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server(find_plain_build(), settings=SETTINGS) as started:
        yield started


@pytest.fixture(scope="module")
def federation(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Create a federation of two databases of a server, for collections that are placed in the first one."""
    catalogue = SqliteCatalogue(tmp_path_factory.mktemp("cells") / FILE)
    with ExitStack() as stack:
        for name in CELLS:
            url = stack.enter_context(server.create_database())
            stack.callback(drop_subscriptions, url)
            admin.add_cell(catalogue, name, url.replace("postgres@", f"postgres:{SECRET}@"))
        with closing(open_cell(catalogue.get_cells()["west"].url, "another")) as another:  # so that marks differ
            another.write(WORLD, author=OWNER, model=MODEL)
        catalogue.set_cell(replace(catalogue.get_cells()["west"], state="draining"))
        yield stack.enter_context(share_federation(Federation(catalogue, open_cell, PATIENT)))


def drop_subscriptions(url: str) -> None:
    """Drop what a failed test has left, so that its database can be dropped."""
    with psycopg.connect(url, autocommit=True) as db:
        for (name,) in db.execute("SELECT subname FROM pg_subscription").fetchall():
            for change in ("DISABLE", "SET (slot_name = NONE)"):
                db.execute(f"ALTER SUBSCRIPTION {name} {change}".encode())
            db.execute(f"DROP SUBSCRIPTION {name}".encode())


@pytest.fixture
def notes(federation: Federation) -> Iterator[FederatedStore]:
    """Open a new collection in the cell east; the cell west may be a target."""
    set_state(federation, "west", "draining")
    with open_stores(federation, make_name("notes")) as store:
        set_state(federation, "west", "active")
        yield store


def set_state(federation: Federation, cell: str, state: CellState) -> None:
    federation.catalogue.set_cell(replace(federation.catalogue.get_cells()[cell], state=state))


def note(number: int, edition: int = 0) -> IndexedDocument:
    """Return a document that one word distinguishes from all others."""
    claim = NewFact("Harbour", "has", f"Pier {number}", weight=1 + edition % 9)
    return page(f"Marker{number}x{edition} tells of the harbour.", claim, uri=f"notes/{number:03}")


def get_name(store: FederatedStore) -> str:
    return store._members.written


def move(federation: Federation, store: FederatedStore, to: str) -> None:
    move_collection(federation.catalogue, get_name(store), to, config=BRISK)


def count_left(federation: Federation) -> int:
    """Count the slots, publications and subscriptions that moves have left."""
    left = 0
    for cell in federation.catalogue.get_cells().values():
        with psycopg.connect(cell.url) as db:
            left += db.execute(COUNT_LEFT).fetchall()[0][0]
    return left


def count_rows(federation: Federation, store: FederatedStore, cell: str) -> dict[str, int]:
    """Count the rows of the collection in each table of a cell, apart from its own row and its audit log."""
    bound = [compute_key(get_name(store))]
    with psycopg.connect(federation.catalogue.get_cells()[cell].url) as db:
        tables = [name for (name,) in db.execute(TABLES).fetchall() if name not in ("collections", "audit")]
        counted = {
            name: db.execute(f"SELECT count(*) FROM ONLY waylore.{name} WHERE collection = %s".encode(), bound)
            for name in tables
        }
        return {name: found.fetchall()[0][0] for name, found in counted.items()}


def read_answers(store: FederatedStore) -> list[object]:
    """Return answers by words and by vectors, with their scores to the last digit."""
    vector = EMBEDDER.embed_query("harbour king")
    return [
        store.lexical("harbour", top_k=20),
        store.lexical("falcon", top_k=9, where=Filter(user="ann")),
        store.dense(vector, top_k=20),
        store.dense(vector, top_k=20, where=Filter(labels=frozenset())),
        store.statistics().documents,
    ]


def test_everything_moves_and_answers_stay(federation: Federation, notes: FederatedStore) -> None:
    notes.write([*WORLD, *map(note, range(20))], author=OWNER, model=MODEL, fingerprints={"notes/003": "1"})
    notes.write([say("The falcon flew.", user="ann"), say("A mill.", user="ben")], author=OWNER, model=MODEL)
    notes.count_uses(facts=[KING.facts[0].id] * 3, passages=[KING.passages[0].id], at=day("2024-06-01"))
    notes.set_weights('{"bias": 0.5}', author=OWNER)
    with record_as("0" * 32):
        receipt = notes.forget([note(7).document.id], author=OWNER)
    before, vectors, answers = list(notes.export()), list_vectors(notes.export()), read_answers(notes)
    rows, version = count_rows(federation, notes, "east"), notes.version()
    for cell, left in (("west", "east"), ("east", "west")):
        move(federation, notes, cell)
        assert list(notes.export()) == before
        assert list_vectors(notes.export()) == vectors
        assert read_answers(notes) == answers
        assert count_rows(federation, notes, cell) == rows
        assert not any(count_rows(federation, notes, left).values())
        assert notes.version() > version
        version = notes.version()
    assert notes.facts([KING.facts[0].id])[KING.facts[0].id].access_count == 3
    assert notes.statistics().weights == '{"bias": 0.5}'
    assert notes.fingerprints(["notes/003"]) == {"notes/003": "1"}
    assert notes.get_receipt("0" * 32, author=OWNER) == receipt
    assert notes.write([note(7)], author=OWNER, model=MODEL) == 1
    assert count_left(federation) == 0


def test_password_of_a_cell_is_in_no_log(federation: Federation, notes: FederatedStore, server: Server) -> None:
    move(federation, notes, "west")
    log = server.log.read_text("utf-8", "replace")
    assert "CREATE PUBLICATION" in log  # statements are logged
    assert SECRET not in log
    assert "CREATE SUBSCRIPTION" not in log


def start_copy(federation: Federation, store: FederatedStore) -> None:
    """Leave a move as a process does that is killed before the switch."""
    placement = get_placement(federation, get_name(store))
    assert federation.catalogue.change(placement, replace(placement, state="copying", other="west"))
    east, west = (federation.catalogue.get_cells()[cell].url for cell in CELLS)
    for url in (east, west):
        open_cell(url, get_name(store)).close()
    with open_replicated_copy(east, west, get_name(store)) as copy:
        assert copy.find_obstacle() == ""
        copy.copy()


def split(federation: Federation, store: FederatedStore, cell: str) -> bool:
    """Let a cell build what a large collection lacks. Return whether its vectors are in tables of their own."""
    with closing(PostgresStore(federation.catalogue.get_cells()[cell].url, get_name(store))) as opened:
        if opened._building is not None:
            opened._building.join(HANG_SECONDS)
        with server_of_store.open_snapshot(opened._server, opened._key) as db:
            return bool(read_collection(db, opened._key, get_name(store)).own_vectors)


def test_large_collection_moves_with_tables_of_its_own(
    federation: Federation, notes: FederatedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes.write([*WORLD, *map(note, range(20))], author=OWNER, model=MODEL)
    answers = read_answers(notes)
    monkeypatch.setattr(searching, "MAX_EXACT_PASSAGES", 9)
    assert split(federation, notes, "east")
    start_copy(federation, notes)
    with closing(PostgresStore(federation.catalogue.get_cells()["east"].url, get_name(notes))) as source:
        source.write([note(50), note(3, 1)], author=OWNER, model=MODEL, replacing=[note(3).document.id])
        source.write([note(3)], author=OWNER, model=MODEL, replacing=[note(50).document.id, note(3, 1).document.id])
    before, vectors, rows = list(notes.export()), list_vectors(notes.export()), count_rows(federation, notes, "east")
    for cell, left in (("west", "east"), ("east", "west"), ("west", "east")):
        move(federation, notes, cell)
        assert list(notes.export()) == before
        assert list_vectors(notes.export()) == vectors
        assert read_answers(notes) == answers
        assert without_zeros(count_rows(federation, notes, cell)) == without_zeros(rows)
        assert not any(count_rows(federation, notes, left).values())
        assert split(federation, notes, cell)
    assert rows["passage_vectors"] == 0
    assert count_left(federation) == 0


def without_zeros(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def test_collection_that_becomes_large_during_a_move_is_split_afterwards(
    federation: Federation, notes: FederatedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its vectors stay in the tables that the link between the cells names."""
    notes.write(list(map(note, range(20))), author=OWNER, model=MODEL)
    start_copy(federation, notes)
    monkeypatch.setattr(searching, "MAX_EXACT_PASSAGES", 9)
    assert not any(split(federation, notes, cell) for cell in CELLS)
    notes.write([note(50)], author=OWNER, model=MODEL)
    before, answers = list(notes.export()), read_answers(notes)
    move(federation, notes, "west")
    assert list(notes.export()) == before
    assert read_answers(notes) == answers
    assert split(federation, notes, "west")
    assert read_answers(notes) == answers
    assert count_left(federation) == 0


def test_cancelled_move_leaves_nothing(federation: Federation, notes: FederatedStore) -> None:
    notes.write(list(map(note, range(9))), author=OWNER, model=MODEL)
    before = list(notes.export())
    start_copy(federation, notes)
    assert count_left(federation) == 3
    move(federation, notes, "east")
    assert count_left(federation) == 0
    assert not any(count_rows(federation, notes, "west").values())
    assert list(notes.export()) == before
    assert get_placement(federation, get_name(notes)).state == "active"


def test_doctor_names_slots_of_moves(federation: Federation, notes: FederatedStore, server: Server) -> None:
    start_copy(federation, notes)
    east = federation.catalogue.get_cells()["east"]
    [finding] = check_moves(federation.catalogue, east)
    assert (finding.state, f"the move of {get_name(notes)}" in finding.message) == ("note", True)
    assert f"`waylore collections move {get_name(notes)} east` cancels it" in finding.remedy
    placement = get_placement(federation, get_name(notes))
    federation.catalogue.change(placement, replace(placement, state="active", other=""))
    [finding] = check_moves(federation.catalogue, east)
    assert (finding.state, "belongs to no move" in finding.message) == ("wrong", True)
    federation.catalogue.change(get_placement(federation, get_name(notes)), replace(placement, state="copying"))
    move(federation, notes, "east")
    assert list(check_moves(federation.catalogue, east)) == []


def test_interrupted_move_continues_with_what_was_written_since(
    federation: Federation, notes: FederatedStore, server: Server
) -> None:
    notes.write(list(map(note, range(9))), author=OWNER, model=MODEL)
    start_copy(federation, notes)
    copies = count_copies(server)
    notes.write([note(50), note(3, 1)], author=OWNER, model=MODEL, replacing=[note(3).document.id])
    notes.forget([note(4).document.id], author=OWNER)
    before, answers = list(notes.export()), read_answers(notes)
    move(federation, notes, "west")
    assert count_copies(server) == copies  # it did not start anew
    assert list(notes.export()) == before
    assert read_answers(notes) == answers
    assert count_left(federation) == 0


def count_copies(server: Server) -> int:
    return server.log.read_text("utf-8", "replace").count("CREATE_REPLICATION_SLOT")


def test_killed_movers_lose_and_double_nothing(federation: Federation, notes: FederatedStore) -> None:
    """A mover is killed at places all over a move while the collection is written; the next one continues."""
    written, is_over, name = dict.fromkeys(range(10), 0), threading.Event(), get_name(notes)

    def write() -> None:
        number = 10
        while not is_over.wait(0.05):
            written[number % 10] = number // 10
            new = note(number % 10, number // 10)
            notes.write([new], author=OWNER, model=MODEL, replacing=[new.document.id])
            number += 1

    notes.write(list(map(note, range(10))), author=OWNER, model=MODEL)
    with MoverProcess(Path(federation.catalogue._path)) as mover, ThreadPoolExecutor(1) as pool:  # type: ignore[attr-defined]
        writing = pool.submit(write)
        try:
            places, to = mover.move(name, "west"), "west"
            for number in range(KILLS):
                to = "east" if to == "west" else "west"
                assert mover.move(name, to, 2 + (places - 2) * number // (KILLS - 1)) < 0
                assert mover.move(name, to) > 0
        finally:
            is_over.set()
        writing.result(HANG_SECONDS)
    expected = sorted(note(number, edition).passages[0].text for number, edition in written.items())
    assert sorted(p.text for c in notes.export() for p in c.passages) == expected
    assert notes.statistics().documents == 10
    assert all(notes.lexical(f"Marker{n}x{edition}", top_k=5) for n, edition in written.items())
    assert not any(count_rows(federation, notes, "east" if to == "west" else "west").values())
    assert count_left(federation) == 0


def test_drain_moves_several_collections_at_once(federation: Federation) -> None:
    set_state(federation, "west", "draining")
    names = sorted(make_name("tenant") for _ in range(6))
    for number, name in enumerate(names):
        with open_stores(federation, name) as store:
            store.write([note(number), KING], author=OWNER, model=MODEL)
    set_state(federation, "west", "active")
    try:
        assert set(names) <= set(admin.drain_cell(federation.catalogue, "east", at_once=4, config=BRISK))
    finally:
        set_state(federation, "east", "active")
    assert federation.catalogue.list_collections("east") == ()
    for number, name in enumerate(names):
        with open_stores(federation, name) as store:
            assert [len(store.lexical(f"Marker{number}x0", top_k=9)), store.statistics().documents] == [1, 2]
    assert count_left(federation) == 0


def test_server_that_cannot_publish_moves_documents_and_says_why(
    tmp_path: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        server.create_database() as west,
        closing(Federation(SqliteCatalogue(tmp_path / "c.waylore"), open_cell, PATIENT)) as federation,
    ):
        admin.add_cell(federation.catalogue, "east", create_database())  # on a server with the default wal_level
        name = make_name("notes")
        with open_stores(federation, name) as store:
            store.write(WORLD, author=OWNER, model=MODEL)
            admin.add_cell(federation.catalogue, "west", west)
            before = list(store.export())
            with caplog.at_level(logging.WARNING, "waylore.cells"):
                move_collection(federation.catalogue, name, "west", config=BRISK)
            assert list(store.export()) == before
    assert "wal_level of" in caplog.text
    assert "ALTER SYSTEM SET wal_level = 'logical'" in caplog.text
