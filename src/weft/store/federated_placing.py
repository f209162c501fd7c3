"""Where the collections of a federated store live: remembered for a moment by readers, asked for by writers.

A writer asks before and after he writes. If the collection did not move in between, nor stood still to be
moved, whoever moves it will see what he wrote; otherwise he writes again where it lives now. So no write is
lost, and no writer holds a lock. Nobody waits for a mover that died: its stop ends by itself.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from weft.config import Cells
from weft.errors import NotFound, StoreUnavailable
from weft.store.catalogue import Catalogue, Cell, Placed

PAUSE = 0.01  # seconds between two looks at a move


class Places:
    """Where some collections live, or all of them."""

    def __init__(self, catalogue: Catalogue, collections: Sequence[str] | None, config: Cells) -> None:
        self._catalogue = catalogue
        self._collections = collections
        self._config = config
        self._lock = threading.Lock()
        self._version = -1
        self._until = 0.0
        self._placed: Mapping[str, Placed] = {}
        self._cells: Mapping[str, Cell] = {}

    def now(self) -> Mapping[str, Placed]:
        """Where they live, as it was at most a moment ago."""
        with self._lock:
            begun = time.monotonic()
            if begun >= self._until:
                self._look()
                self._until = begun + self._config.place_seconds
            return self._placed

    def url(self, cell: str) -> str:
        """The address of a cell."""
        if cell not in self._cells:
            self._cells = self._catalogue.cells()
        return self._cells[cell].url

    def writable(self, collection: str) -> Placed:
        """Where a collection lives at this moment; waits while a move keeps writers from it."""
        deadline = time.monotonic() + self._config.wait_seconds
        while not (placed := found(self._catalogue, collection)).is_writable:
            if time.time() > placed.until:
                self._catalogue.change(placed, resumed(placed))
            elif time.monotonic() > deadline:
                raise StoreUnavailable(f"{collection} is being moved to {placed.other}: try again in a moment")
            else:
                time.sleep(PAUSE)
        return placed

    def _look(self) -> None:
        version = self._catalogue.version()
        if version != self._version:
            every = self._collections is None
            names = self._catalogue.names() if every else self._collections or ()
            placed = self._catalogue.placed(names)
            self._placed = {name: placed[name] for name in names if name in placed}
            self._cells = self._catalogue.cells()
            self._version = version


def found(catalogue: Catalogue, collection: str) -> Placed:
    """Where a collection lives at this moment."""
    placed = catalogue.placed([collection])
    if collection not in placed:
        raise NotFound(f"there is no collection {collection!r} in the catalogue; open it alone to make it")
    return placed[collection]


def resumed(placed: Placed) -> Placed:
    """A move that let writers wait, and lets them write again."""
    return replace(placed, state="copying" if placed.state == "stopped" else "leaving")


def is_same_place(one: Placed, other: Placed) -> bool:
    """Whether a collection did not move meanwhile, not even there and back: `base` grows with every move."""
    return (one.cell, one.base) == (other.cell, other.base)
