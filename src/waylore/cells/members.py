"""The collections of a federated store: read all of them at once, write one of them.

This module decides when an answer may be partial and when a write is complete. `store/partial.py` and
`placement.py` explain the reasons. It does not know which calls run, nor how their answers are merged.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import replace
from functools import partial, reduce
from typing import TypeVar

from waylore.cells.catalogue.protocol import Catalogue, CollectionPlacement
from waylore.cells.channels import Channel, PendingRead, Workers, settle
from waylore.cells.measure import find_due, measure_cells
from waylore.cells.placement import CollectionPlaces, is_same_place
from waylore.config import CellsConfig
from waylore.errors import ConfigError, StoreError, StoreUnavailable
from waylore.store.partial import get_left_out
from waylore.store.protocol import Store
from waylore.store.receipts import record_as

T = TypeVar("T")
OpenCell = Callable[[str, str], Store]  # called with the URL of a cell and the name of a collection
StoreCall = Callable[[CollectionPlacement, Store], T]


class Federation:
    """A catalogue, the function that opens its cells, and one channel to each cell.

    All stores of a process should share one federation, so that they share channels and breakers.
    """

    def __init__(self, catalogue: Catalogue, open_cell: OpenCell, config: CellsConfig = CellsConfig()) -> None:  # noqa: B008
        self.catalogue = catalogue
        self.open_cell = open_cell
        self.config = config
        # The catalogue's breaker rests only briefly: a process that misses a move reads a cell that is being emptied.
        self.catalogue_channel = Channel("the catalogue of cells", replace(config, rest_seconds=config.place_seconds))
        self._channels: dict[str, Channel] = {}
        self._lock = threading.Lock()
        self._measuring: threading.Thread | None = None

    def place(self, collection: str) -> None:
        """Place a collection in a cell if it is new. From time to time the cells are measured afterwards."""
        if collection in self.catalogue.find_placements([collection]):
            return
        self.catalogue.place(collection)
        due = find_due(self.catalogue)
        if due and (self._measuring is None or not self._measuring.is_alive()):
            self._measuring = threading.Thread(target=measure_cells, args=(self.catalogue, due), daemon=True)
            self._measuring.start()

    def get_channel(self, cell: str) -> Channel:
        """Return the channel to a cell."""
        with self._lock:
            if cell not in self._channels:
                self._channels[cell] = Channel(f"cell {cell}", self.config)
            return self._channels[cell]

    def close(self) -> None:
        """Stop the threads and close the catalogue. Stores must be closed separately."""
        if self._measuring is not None:
            self._measuring.join(self.config.read_seconds)
        for channel in (*self._channels.values(), self.catalogue_channel):
            channel.stop()
        self.catalogue.close()


class Members:
    """The collections of one store, or all of the catalogue if `collections` is None.

    `written` is the collection for writes; empty if the store is read-only.
    """

    def __init__(self, federation: Federation, collections: Sequence[str] | None, written: str) -> None:
        self.written = written
        self.is_one = collections is not None and len(collections) == 1
        self.federation = federation
        self._places = CollectionPlaces(federation.catalogue, collections, federation.catalogue_channel)
        self._stores: dict[tuple[str, str], tuple[int, Store]] = {}
        self._lock = threading.Lock()  # guards `_stores`
        self._is_closed = False

    def read_all(self, call: StoreCall[T], *, only: str = "", attempts: int = 2) -> list[T]:
        """Run a call on every collection, or on `only` one. Return the answers in the order of their names.

        Pass `attempts=1` for a call that changes data. Cells that do not answer are left out if the caller accepts
        partial answers; otherwise StoreUnavailable is raised.
        """
        missing = get_left_out()
        placements = [p for name, p in self._places.get_placements().items() if only in ("", name)]
        readable = [p for p in placements if not missing or p.cell not in missing]
        reads = [(p.cell, self._start_read(call, p, attempts)) for p in readable]
        settle([read for _, read in reads])
        failed = {cell: str(read.error) for cell, read in reads if isinstance(read.error, StoreUnavailable)}
        answered = [read for cell, read in reads if cell not in failed]
        if (placements and not answered) or (failed and missing is None):
            raise _make_error(failed or missing or {}, [read for _, read in reads])
        if missing is not None:
            missing |= failed
        return [read.answer for read in answered]

    def write(
        self,
        call: Callable[[Store], T],
        *,
        combine: Callable[[T, T], T],
        undo: Callable[[Store], object] = lambda _: None,
    ) -> T:
        """Write to the collection for writes, and write again in its new cell if it moved in the meantime.

        `combine` merges the answers of two writes. `undo` removes a write from a cell that the collection has
        left.
        """
        answers: list[T] = []
        placement = self._places.wait_until_writable(self.require_written())
        while True:
            store = self._open_store(placement)
            try:
                answers.append(call(store))
            except Exception:
                if is_same_place(placement, self._places.wait_until_writable(self.written)):
                    raise
            before, placement = placement, self._places.wait_until_writable(self.written)
            if is_same_place(before, placement):
                return reduce(combine, answers)
            if before.cell not in (placement.cell, placement.other):  # the mover empties `other` itself
                with suppress(StoreError), record_as(""):
                    undo(store)

    def require_written(self) -> str:
        """Return the collection for writes. Raise ConfigError if there is none."""
        if not self.written:
            raise ConfigError(
                "several collections are open and none is marked for writing; open one alone, or mark one "
                "with + (+NAME,…)"
            )
        return self.written

    def open_all(self) -> list[Store]:
        """Return the store of every collection, in the order of their names, without channel or time limit."""
        return [self._open_store(placement) for placement in self._places.get_placements().values()]

    def close(self) -> None:
        """Close all open stores. A cell that hangs delays this by at most `read_seconds`."""
        with self._lock:
            stores, self._stores, self._is_closed = self._stores, {}, True
        workers = Workers("closing", len(stores))  # without the channels, which may refuse calls of a failed cell
        wait([workers.submit(store.close) for _, store in stores.values()], timeout=self.federation.config.read_seconds)
        workers.stop()

    def _start_read(self, call: StoreCall[T], placement: CollectionPlacement, attempts: int) -> PendingRead[T]:
        channel = self.federation.get_channel(placement.cell)
        return channel.start_read(partial(self._run, call, placement), attempts=attempts)

    def _run(self, call: StoreCall[T], placement: CollectionPlacement) -> T:
        return call(placement, self._open_store(placement))

    def _open_store(self, placement: CollectionPlacement) -> Store:
        """Return the store of a collection in its cell.

        It is opened again if the channel's threads were abandoned in the meantime, because its connections may hang.
        """
        key = (placement.cell, placement.collection)
        generation = self.federation.get_channel(placement.cell).generation
        opened, store = self._stores.get(key, (-1, None))
        if store is not None and opened == generation:
            return store
        fresh = self.federation.open_cell(self._places.get_url(placement.cell), placement.collection)
        kept, unused = self._keep_store(key, generation, fresh)
        if unused is not None:
            threading.Thread(target=unused.close, daemon=True).start()  # closing may hang
        if kept is None:
            raise StoreUnavailable("the store was closed while a cell was opened; open it again")
        return kept

    def _keep_store(self, key: tuple[str, str], generation: int, fresh: Store) -> tuple[Store | None, Store | None]:
        """Keep an opened store, unless another thread was faster. Return the store to use and the store to close.

        After `close` no store may be used: a late attempt must not leave connections open.
        """
        with self._lock:
            if self._is_closed:
                return None, fresh
            opened, store = self._stores.get(key, (-1, None))
            if store is not None and opened >= generation:
                return store, fresh
            self._stores[key] = (generation, fresh)
            return fresh, store


def _make_error(failed: Mapping[str, str], reads: Sequence[PendingRead[T]]) -> StoreUnavailable:
    error = StoreUnavailable("; ".join(failed.values()))
    error.__cause__ = next((read.error for read in reads if read.error), None)
    return error
