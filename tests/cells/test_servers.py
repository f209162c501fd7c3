"""Cells and a catalogue on real servers: a move, and a catalogue that is killed, hangs and comes back."""

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from tools.faults import Proxy, proxy
from tools.postgres import SAFE, Server, plain, server

from cells.cells import BRISK, CELLS, QUICK, opened, placed
from databases import fresh_name
from waylore import Waylore
from waylore.cells import admin
from waylore.cells.catalogue.postgres import PostgresCatalogue
from waylore.cells.members import Federation
from waylore.cells.move import move
from waylore.cells.open import open_cell
from waylore.cells.store import open_federated
from waylore.errors import StoreUnavailable
from waylore.store.urls import open_store
from waylore.testing.suite import EMBEDDER, KING, MODEL, QUEEN, SECRET, WORLD, canonical, day, vectors

PATIENT = replace(QUICK, read_seconds=3.0)  # a busy machine is not a catalogue that hangs


def test_a_collection_moves_between_servers(three_cells: Federation) -> None:
    name = fresh_name("notes")
    with opened(three_cells, name) as store:
        store.write(WORLD, model=MODEL)
        store.touch(facts=[KING.facts[0].id], at=day("2024-06-01"))
        before, kept, version = list(store.export()), vectors(store.export()), store.version()
        left = placed(three_cells, name).cell
        to = next(cell for cell in CELLS if cell != left)
        move(three_cells.catalogue, name, to, config=replace(three_cells.config, read_seconds=0.1))
        assert list(store.export()) == before == canonical(iter(WORLD))
        assert vectors(store.export()) == kept
        assert store.version() > version
        assert store.facts([KING.facts[0].id])[KING.facts[0].id].access_count == 1
    for cell, documents in ((left, 0), (to, len(WORLD))):
        with closing(open_cell(three_cells.catalogue.cells()[cell].url, name)) as there:
            assert there.statistics().documents == documents


# -- a catalogue that does not answer ------------------------------------------------------------------


@pytest.fixture
def catalogue_server() -> Iterator[Server]:
    with server(plain(), settings=SAFE) as started:
        yield started


@pytest.fixture
def between(catalogue_server: Server) -> Iterator[Proxy]:
    with proxy(catalogue_server.port) as made:
        yield made


def federation_of(url: str, folder: Path) -> Federation:
    """Three collections in three files, and a catalogue somewhere else."""
    catalogue = PostgresCatalogue(url, wait_seconds=2)
    for name in CELLS:
        admin.add(catalogue, name, str(folder / f"{name}.waylore"))
    federation = Federation(catalogue, open_cell, PATIENT)
    for name, told in {"a": KING, "b": QUEEN, "c": SECRET}.items():
        with opened(federation, name) as store:
            store.write([told], model=MODEL)
    return federation


def documents_found(waylore: Waylore) -> int:
    found = waylore.search("Lothair", method="chain", count_use=False)
    assert found.missing == ()
    return len(found.hits)


def test_while_the_catalogue_is_down_readers_go_on_and_writers_are_told(
    catalogue_server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"127.0.0.1:{catalogue_server.port}/postgres"
    with ExitStack() as stack:
        federation = stack.enter_context(closing(federation_of(catalogue_server.url, tmp_path)))
        waylore = stack.enter_context(closing(Waylore(open_federated(federation, "+a,b,c"), EMBEDDER)))
        assert documents_found(waylore) == 3
        catalogue_server.kill()
        with caplog.at_level(logging.WARNING, "waylore.store"):
            for _ in range(5):
                time.sleep(PATIENT.place_seconds)
                begun = time.monotonic()
                assert documents_found(waylore) == 3
                assert time.monotonic() - begun < PATIENT.read_seconds
        assert f"last known to be: the catalogue of cells: the catalogue of cells: {name}" in caplog.text
        for verb in (
            lambda: waylore.add("Another king."),
            lambda: open_federated(federation, "a"),
            lambda: open_store(f"cells+{catalogue_server.url}", "a"),
            lambda: move(federation.catalogue, "a", "west"),
        ):
            begun = time.monotonic()
            with pytest.raises(StoreUnavailable, match=f"^the catalogue of cells: {name}"):
                verb()
            assert time.monotonic() - begun < PATIENT.read_seconds
        catalogue_server.start()
        waylore.add("Another king.")
        _hears_of_a_move(federation, waylore)


def test_who_was_idle_while_the_catalogue_came_back_reads_nothing_that_has_moved(
    catalogue_server: Server, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        federation = stack.enter_context(closing(federation_of(catalogue_server.url, tmp_path)))
        waylore = stack.enter_context(closing(Waylore(open_federated(federation, "a,b,c"), EMBEDDER)))
        assert documents_found(waylore) == 3
        catalogue_server.kill()
        time.sleep(PATIENT.place_seconds)
        assert documents_found(waylore) == 3
        catalogue_server.start()
        time.sleep(PATIENT.read_seconds)
        move(federation.catalogue, "a", "west", config=BRISK)
        assert waylore.stats().documents == 3


def test_a_catalogue_that_hangs_is_waited_for_once(
    catalogue_server: Server, between: Proxy, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        federation = stack.enter_context(closing(federation_of(between.url(catalogue_server.url), tmp_path)))
        waylore = stack.enter_context(closing(Waylore(open_federated(federation, "+a,b,c"), EMBEDDER)))
        assert documents_found(waylore) == 3
        with between.hanging():
            time.sleep(PATIENT.place_seconds)
            begun = time.monotonic()
            for _ in range(20):
                assert documents_found(waylore) == 3
            assert PATIENT.read_seconds <= time.monotonic() - begun < 2 * PATIENT.read_seconds
        _hears_of_a_move(federation, waylore)


def _hears_of_a_move(federation: Federation, waylore: Waylore) -> None:
    """A catalogue that is back is read again within a moment: then what moves is found where it is."""
    documents_found(waylore)
    time.sleep(10 * PATIENT.place_seconds)
    documents_found(waylore)
    found = waylore.stats().documents
    to = next(cell for cell in CELLS if cell != placed(federation, "a").cell)
    move(federation.catalogue, "a", to, config=BRISK)
    assert waylore.stats().documents == found
