"""Federations over real SQLite files or real servers, and cells that hang, are slow or fail on demand."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from waylore.cells import admin as operating
from waylore.cells.catalogue.postgres import PostgresCatalogue
from waylore.cells.catalogue.protocol import CollectionPlacement
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import FederatedStore, open_federated
from waylore.config import CellsConfig
from waylore.errors import StoreUnavailable
from waylore.store.protocol import Store
from waylore.types.author import OWNER
from waylore.types.knowledge import IndexedDocument

CELLS = ("east", "north", "west")
QUICK = CellsConfig(read_seconds=1.0, hedge_seconds=0.1, rest_seconds=0.4, place_seconds=0.02, batch=8)
BRISK = CellsConfig(read_seconds=0.05, place_seconds=0.02, stop_seconds=0.5, batch=4)


def create_catalogue(folder: Path, cells: Sequence[str] = CELLS) -> SqliteCatalogue:
    """Create a catalogue of cells in one folder."""
    made = SqliteCatalogue(folder / "catalogue.waylore")
    for name in cells:
        operating.add_cell(made, name, str(folder / f"{name}.waylore"))
    return made


def create_on_servers(urls: Sequence[str]) -> Federation:
    """Create a federation whose cells are servers. The catalogue is on the first of them."""
    made = PostgresCatalogue(urls[0])
    for name, url in zip(CELLS, urls, strict=True):
        operating.add_cell(made, name, url)
    return Federation(made, open_cell)


def create_federation(
    folder: Path, parts: Mapping[str, Sequence[IndexedDocument]], model: str | None, config: CellsConfig = QUICK
) -> Federation:
    """Create a federation with these collections, each in the next cell."""
    federation = Federation(create_catalogue(folder), open_cell, config)
    for name, contributions in parts.items():
        store = open_federated(federation, name)
        store.write(contributions, author=OWNER, model=model)
        store.close()
    return federation


@contextmanager
def open_stores(federation: Federation, collections: str) -> Iterator[FederatedStore]:
    """Open a store over some collections, and close it after the block."""
    store = open_federated(federation, collections)
    try:
        yield store
    finally:
        store.close()


class FaultyCells:
    """Opens cells, and can make each of them hang, answer late or fail."""

    def __init__(self) -> None:
        self.hanging: set[str] = set()
        self.late: dict[str, float] = {}
        self.gone: set[str] = set()
        self.calls: list[tuple[str, str]] = []
        self._released = threading.Event()

    def open(self, url: str, collection: str) -> Store:
        """Open a cell's store whose every call comes through `_pass`."""
        self._pass(url, "open")
        return InterceptedStore(open_cell(url, collection), lambda verb: self._pass(url, verb))

    def release(self) -> None:
        """End all hanging and late calls."""
        self._released.set()

    def list_calls(self, cell: str, start: int) -> list[str]:
        """Return the methods that were called in a cell, from the call with number `start` on."""
        return [verb for name, verb in self.calls[start:] if name == cell]

    def _pass(self, url: str, verb: str) -> None:
        name = Path(url).stem
        self.calls.append((name, verb))
        self._released.wait(None if name in self.hanging else self.late.get(name, 0.0))
        if name in self.gone:
            raise StoreUnavailable(f"{name} cannot be reached")


class InterceptedStore:
    """A store that calls `passing` with the name of each method before it runs it."""

    def __init__(self, store: Store, passing: Callable[[str], None]) -> None:
        self._store = store
        self._passing = passing

    def __getattr__(self, verb: str) -> Any:
        real = getattr(self._store, verb)

        def called(*arguments: Any, **options: Any) -> Any:
            self._passing(verb)
            return real(*arguments, **options)

        return called


def get_placement(federation: Federation, collection: str) -> CollectionPlacement:
    """Return the placement of a collection."""
    return federation.catalogue.find_placements([collection])[collection]
