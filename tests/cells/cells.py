"""Federations over real SQLite files or real servers, and stores that hang, dawdle or are gone on demand."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from waylore.cells import admin as operating
from waylore.cells.catalogue.postgres import PostgresCatalogue
from waylore.cells.catalogue.protocol import Placed
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import FederatedStore, open_federated
from waylore.config import Cells
from waylore.errors import StoreUnavailable
from waylore.store.protocol import Store
from waylore.types.knowledge import Contribution

CELLS = ("east", "north", "west")
QUICK = Cells(read_seconds=1.0, hedge_seconds=0.1, rest_seconds=0.4, place_seconds=0.02, batch=8)
BRISK = Cells(read_seconds=0.05, place_seconds=0.02, stop_seconds=0.5, batch=4)


def catalogue(folder: Path, cells: Sequence[str] = CELLS) -> SqliteCatalogue:
    """A catalogue of cells in one folder."""
    made = SqliteCatalogue(folder / "catalogue.waylore")
    for name in cells:
        operating.add(made, name, str(folder / f"{name}.waylore"))
    return made


def on_servers(urls: Sequence[str]) -> Federation:
    """A federation whose cells are servers, with its catalogue on the first of them."""
    made = PostgresCatalogue(urls[0])
    for name, url in zip(CELLS, urls, strict=True):
        operating.add(made, name, url)
    return Federation(made, open_cell)


def spread(
    folder: Path, parts: Mapping[str, Sequence[Contribution]], model: str | None, config: Cells = QUICK
) -> Federation:
    """A federation with these collections, which come to its cells one after another."""
    federation = Federation(catalogue(folder), open_cell, config)
    for name, contributions in parts.items():
        store = open_federated(federation, name)
        store.write(contributions, model=model)
        store.close()
    return federation


@contextmanager
def opened(federation: Federation, collections: str) -> Iterator[FederatedStore]:
    """A store over some collections."""
    store = open_federated(federation, collections)
    try:
        yield store
    finally:
        store.close()


class Cabling:
    """Opens cells, and can cut each of them off: it hangs, answers late, or refuses."""

    def __init__(self) -> None:
        self.hanging: set[str] = set()
        self.late: dict[str, float] = {}
        self.gone: set[str] = set()
        self.calls: list[tuple[str, str]] = []
        self._released = threading.Event()

    def open(self, url: str, collection: str) -> Store:
        """A cell's store whose every verb comes through here."""
        self._pass(url, "open")
        return Cut(open_cell(url, collection), lambda verb: self._pass(url, verb))

    def release(self) -> None:
        """Let everyone go who hangs."""
        self._released.set()

    def _pass(self, url: str, verb: str) -> None:
        name = Path(url).stem
        self.calls.append((name, verb))
        if name in self.hanging:
            self._released.wait(60)
        time.sleep(self.late.get(name, 0.0))
        if name in self.gone:
            raise StoreUnavailable(f"{name} cannot be reached")


class Cut:
    """A real store behind a line that may be cut."""

    def __init__(self, store: Store, passing: Callable[[str], None]) -> None:
        self._store = store
        self._passing = passing

    def __getattr__(self, verb: str) -> Any:
        real = getattr(self._store, verb)

        def called(*arguments: Any, **options: Any) -> Any:
            self._passing(verb)
            return real(*arguments, **options)

        return called


def placed(federation: Federation, collection: str) -> Placed:
    """Where a collection lives."""
    return federation.catalogue.placed([collection])[collection]
