"""Moves a collection to another cell while it is read and written; killed at any moment, it can be begun again.

It copies until nothing differs, and compares what the new cell gives back row by row. Then writers wait for a
moment, the last changes follow, and the catalogue is told; readers are given time to hear of it before writers
go on, and the old cell is emptied last. So the collection is whole in the cell that the catalogue names, at any
moment. Uses of facts move too, but for those that are counted while it moves; uses of passages, which nothing
reads, do not, nor vectors that are staged for another model (`reembed` makes them again).
"""

import time
from dataclasses import dataclass, replace

from weft.config import Cells
from weft.errors import ConfigError, StoreUnavailable
from weft.store import open_cell
from weft.store.base import Store
from weft.store.catalogue import Catalogue, Placed, State
from weft.store.federated_members import OpenCell
from weft.store.federated_placing import found, resumed
from weft.store.sweeping import emptied, is_equal, sweep

ROUNDS = 20  # stops of writers before a move gives up


@dataclass(frozen=True, slots=True)
class _Move:
    """A move under way."""

    catalogue: Catalogue
    collection: str
    opening: OpenCell
    config: Cells

    def now(self) -> Placed:
        """How far it is."""
        return found(self.catalogue, self.collection)

    def store(self, cell: str) -> Store:
        """The collection in one of the cells."""
        cells = self.catalogue.cells()
        return self.opening(cells[cell].url, self.collection)

    def become(self, placed: Placed, state: State, *, seconds: float = 0.0) -> Placed | None:
        """The next state; None, if somebody else changed it."""
        until = time.time() + seconds if seconds else 0.0
        return self.catalogue.change(placed, replace(placed, state=state, until=until))


def move(
    catalogue: Catalogue,
    collection: str,
    to: str,
    *,
    opening: OpenCell = open_cell,
    config: Cells = Cells(),  # noqa: B008
) -> None:
    """Move a collection to a cell; go on where an interrupted move stopped. One at a time for a catalogue."""
    cells = catalogue.cells()
    if to not in cells:
        raise ConfigError(f"there is no cell {to!r}: there are {', '.join(cells)}")
    moving = _Move(catalogue, collection, opening, config)
    with catalogue.moving():
        _settle(moving, to)
        if moving.now().cell == to:
            return
        if cells[to].state != "active":
            raise ConfigError(f"cell {to} is being drained: choose another")
        _carry(moving, to)
        _settle(moving, to)


# -- before and after ----------------------------------------------------------------------------------


def _settle(moving: _Move, to: str) -> None:
    """Finish an older move: what is left in a cell that the collection has left, or never came to, goes."""
    placed = moving.now()
    while placed.state == "stopped":
        placed = moving.catalogue.change(placed, resumed(placed)) or moving.now()
    while placed.state == "opening":
        time.sleep(moving.config.place_seconds)  # until all readers know
        placed = moving.catalogue.change(placed, resumed(placed)) or moving.now()
    is_to_be_emptied = placed.state == "leaving" or (placed.state == "copying" and placed.other != to)
    if is_to_be_emptied:
        if placed.state == "leaving":
            time.sleep(moving.config.read_seconds)  # until reads that began before are over
        _empty(moving, placed.other)
        moving.catalogue.change(placed, replace(placed, state="active", other=""))


def _empty(moving: _Move, cell: str) -> None:
    store = moving.store(cell)
    try:
        emptied(store, moving.config.batch)
    finally:
        store.close()


# -- there ---------------------------------------------------------------------------------------------


def _carry(moving: _Move, to: str) -> None:
    """Copy, and switch when nothing differs."""
    placed = moving.now()
    if placed.state == "active":
        moving.catalogue.change(placed, replace(placed, state="copying", other=to))
    source, target = moving.store(placed.cell), moving.store(to)
    try:
        sweep(source, target, moving.config.batch, is_whole=True)
        for _ in range(ROUNDS):
            _follow(source, target, moving.config)
            if _switched(moving, source, target):
                return
    finally:
        source.close()
        target.close()
    raise StoreUnavailable(
        f"{moving.collection} is written faster than it can be compared in {moving.config.stop_seconds:g} s: "
        "run the move again when there is less to do, or raise stop_seconds"
    )


def _follow(source: Store, target: Store, config: Cells) -> None:
    """Copy what changed meanwhile, until little does."""
    for _ in range(config.sweeps):
        if sweep(source, target, config.batch) < config.batch // 8:
            return


def _switched(moving: _Move, source: Store, target: Store) -> bool:
    """Stop writers, copy the last changes, and let the collection live in the new cell; False to try again."""
    stopped = moving.become(moving.now(), "stopped", seconds=moving.config.stop_seconds)
    if stopped is None:
        return False
    try:
        while differences_remain(source, target, moving.config):
            if time.time() > stopped.until:
                return False
        version = stopped.base + source.version() + 1
        after = replace(stopped, cell=stopped.other, other=stopped.cell, state="opening", base=version)
        until = time.time() + 2 * moving.config.place_seconds + 1.0
        opening = moving.catalogue.change(stopped, replace(after, until=until))
    finally:
        if moving.now().version == stopped.version:
            moving.catalogue.change(stopped, resumed(stopped))
    return opening is not None


def differences_remain(source: Store, target: Store, config: Cells) -> bool:
    """Copy what differs while nobody writes; whether there was anything, or the counts are not equal yet."""
    return bool(sweep(source, target, config.batch)) or not is_equal(source, target)
