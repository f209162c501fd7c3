"""Cells and a catalogue on real servers: a move, and a catalogue that is killed, hangs and recovers."""

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from tools.faults import Proxy, start_proxy
from tools.postgres.builds import find_plain_build
from tools.postgres.server import DURABLE_SETTINGS, Server, start_server
from tools.waiting import HANG_SECONDS, wait_until

from cells.cells import BRISK, CELLS, QUICK, get_placement, open_stores
from databases import make_name
from waylore import Waylore
from waylore.cells import admin
from waylore.cells.catalogue.postgres import PostgresCatalogue
from waylore.cells.members import Federation
from waylore.cells.move import move_collection
from waylore.cells.open import open_cell
from waylore.cells.store import FederatedStore, open_federated
from waylore.config import CellsConfig
from waylore.errors import StoreUnavailable
from waylore.store.urls import open_store
from waylore.testing.world import EMBEDDER, KING, MODEL, QUEEN, SECRET, WORLD, day, list_vectors, sort_parts
from waylore.types.author import OWNER

PATIENT = replace(QUICK, read_seconds=3.0)  # so that a busy machine does not look like a hanging catalogue
NEVER_LATE = replace(QUICK, read_seconds=HANG_SECONDS)  # a reader that waited for a read would not end in time


def test_collection_moves_between_servers(three_cells: Federation) -> None:
    name = make_name("notes")
    with open_stores(three_cells, name) as store:
        store.write(WORLD, author=OWNER, model=MODEL)
        store.count_uses(facts=[KING.facts[0].id], at=day("2024-06-01"))
        before, kept, version = list(store.export()), list_vectors(store.export()), store.version()
        left = get_placement(three_cells, name).cell
        to = next(cell for cell in CELLS if cell != left)
        move_collection(three_cells.catalogue, name, to, config=replace(three_cells.config, read_seconds=0.1))
        assert list(store.export()) == before == sort_parts(iter(WORLD))
        assert list_vectors(store.export()) == kept
        assert store.version() > version
        assert store.facts([KING.facts[0].id])[KING.facts[0].id].access_count == 1
    for cell, documents in ((left, 0), (to, len(WORLD))):
        with closing(open_cell(three_cells.catalogue.get_cells()[cell].url, name)) as there:
            assert there.statistics().documents == documents


# -- an unavailable catalogue --------------------------------------------------------------------------


@pytest.fixture
def catalogue_server() -> Iterator[Server]:
    with start_server(find_plain_build(), settings=DURABLE_SETTINGS) as started:
        yield started


@pytest.fixture
def between(catalogue_server: Server) -> Iterator[Proxy]:
    with start_proxy(catalogue_server.port) as made:
        yield made


def open_federation(url: str, folder: Path, config: CellsConfig = PATIENT) -> Federation:
    """Return a federation of three collections in three files, with the catalogue at this URL."""
    catalogue = PostgresCatalogue(url, wait_seconds=2)
    for name in CELLS:
        admin.add_cell(catalogue, name, str(folder / f"{name}.waylore"))
    federation = Federation(catalogue, open_cell, config)
    for name, told in {"a": KING, "b": QUEEN, "c": SECRET}.items():
        with open_stores(federation, name) as store:
            store.write([told], author=OWNER, model=MODEL)
    return federation


def count_hits(waylore: Waylore) -> int:
    found = waylore.search("Lothair", method="chain", record_use=False)
    assert found.missing == ()
    return len(found.hits)


def is_catalogue_away(waylore: Waylore) -> bool:
    """Return whether the last read of the catalogue failed, so that readers do not wait for it."""
    store = waylore._store
    assert isinstance(store, FederatedStore)
    return store._members._places._background_read is not None


def test_readers_continue_and_writers_fail_without_catalogue(
    catalogue_server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"127.0.0.1:{catalogue_server.port}/postgres"
    with ExitStack() as stack:
        federation = stack.enter_context(closing(open_federation(catalogue_server.url, tmp_path, NEVER_LATE)))
        waylore = stack.enter_context(closing(Waylore(open_federated(federation, "+a,b,c"), EMBEDDER)))
        assert count_hits(waylore) == 3
        catalogue_server.kill()
        with caplog.at_level(logging.WARNING, "waylore.cells"):
            for _ in range(5):
                time.sleep(NEVER_LATE.place_seconds)
                assert count_hits(waylore) == 3
        assert f"last known placements: the catalogue of cells: the catalogue of cells: {name}" in caplog.text
        for verb in (
            lambda: waylore.add("Another king."),
            lambda: open_federated(federation, "a"),
            lambda: open_store(f"cells+{catalogue_server.url}", "a"),
            lambda: move_collection(federation.catalogue, "a", "west"),
        ):
            with pytest.raises(StoreUnavailable, match=f"^the catalogue of cells: {name}"):
                verb()
        catalogue_server.start()
        waylore.add("Another king.")
        _check_move_is_noticed(federation, waylore)


def test_idle_reader_notices_moves_after_catalogue_returned(catalogue_server: Server, tmp_path: Path) -> None:
    with ExitStack() as stack:
        federation = stack.enter_context(closing(open_federation(catalogue_server.url, tmp_path)))
        waylore = stack.enter_context(closing(Waylore(open_federated(federation, "a,b,c"), EMBEDDER)))
        assert count_hits(waylore) == 3
        catalogue_server.kill()
        time.sleep(PATIENT.place_seconds)
        assert count_hits(waylore) == 3
        catalogue_server.start()
        time.sleep(PATIENT.read_seconds)
        move_collection(federation.catalogue, "a", "west", config=BRISK)
        assert waylore.stats().documents == 3


def test_hanging_catalogue_delays_readers_once(
    catalogue_server: Server, between: Proxy, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as stack:
        federation = stack.enter_context(closing(open_federation(between.build_url(catalogue_server.url), tmp_path)))
        waylore = stack.enter_context(closing(Waylore(open_federated(federation, "+a,b,c"), EMBEDDER)))
        assert count_hits(waylore) == 3
        with between.hang():
            time.sleep(PATIENT.place_seconds)
            begun = time.monotonic()
            with caplog.at_level(logging.WARNING, "waylore.cells"):
                for _ in range(20):
                    assert count_hits(waylore) == 3
            waits = caplog.text.count("last known placements")
            # Between two waits of `read_seconds`, no reader waits for at least as long.
            assert 1 <= waits <= (1 + (time.monotonic() - begun) / PATIENT.read_seconds) / 2
        _check_move_is_noticed(federation, waylore)


def _check_move_is_noticed(federation: Federation, waylore: Waylore) -> None:
    """Check that readers use a catalogue again that is back, so that they follow a move."""
    wait_until(lambda: count_hits(waylore) and not is_catalogue_away(waylore))
    found = waylore.stats().documents
    to = next(cell for cell in CELLS if cell != get_placement(federation, "a").cell)
    move_collection(federation.catalogue, "a", to, config=BRISK)
    assert waylore.stats().documents == found
