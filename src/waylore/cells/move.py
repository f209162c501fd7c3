"""Moves a collection to another cell while it is read and written; killed at any moment, it can be begun again.

It copies until nothing differs, and compares what the new cell gives back row by row. Then writers wait for a
moment, the last changes follow, and the catalogue is told; readers are given time to hear of it before writers
go on, and the old cell is emptied last. So the collection is whole in the cell that the catalogue names, at any
moment. Uses of facts move too, but for those that are counted while it moves; uses of passages, which nothing
reads, do not, nor vectors that are staged for another model (`reembed` makes them again).
"""

import time
from dataclasses import dataclass, replace

from waylore.cells.catalogue.protocol import Catalogue, Placed, State
from waylore.cells.members import OpenCell
from waylore.cells.open import open_cell
from waylore.cells.placement import found, resumed
from waylore.cells.sync import emptied, is_equal, sweep
from waylore.config import Cells
from waylore.errors import ConfigError, StoreUnavailable
from waylore.store.protocol import Store

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

    def become(self, placed: Placed, state: State, *, until: float = 0.0) -> Placed | None:
        """The next state; None, if somebody else changed it."""
        return self.catalogue.change(placed, replace(placed, state=state, until=until))


def move(
    catalogue: Catalogue,
    collection: str,
    to: str,
    *,
    opening: OpenCell = open_cell,
    config: Cells = Cells(),  # noqa: B008
) -> None:
    """Move a collection to a cell; go on where an interrupted move stopped. One at a time for a catalogue.

    To move it to where it lives is to call off a move that was begun.
    """
    carry(catalogue, collection, to, opening=opening, config=config)
    leave(catalogue, collection, opening=opening, config=config)


def carry(catalogue: Catalogue, collection: str, to: str, *, opening: OpenCell, config: Cells) -> None:
    """The first part of a move: copy the collection, and let it live in the new cell."""
    cells = catalogue.cells()
    if to not in cells:
        raise ConfigError(f"there is no cell {to!r}: there are {', '.join(cells)}")
    moving = _Move(catalogue, collection, opening, config)
    with catalogue.moving():
        _finish(moving)
        _call_off(moving, to)
        if moving.now().cell == to:
            return
        if cells[to].state != "active":
            raise ConfigError(f"cell {to} is being drained: choose another")
        _carry(moving, to)
        _open(moving)


def leave(catalogue: Catalogue, collection: str, *, opening: OpenCell, config: Cells) -> None:
    """The second part of a move: empty the old cell, when reads that began before are over."""
    with catalogue.moving():
        _finish(_Move(catalogue, collection, opening, config))


# -- before and after ----------------------------------------------------------------------------------


def _open(moving: _Move) -> None:
    """Let writers write in the new cell, when all readers know of it."""
    while (placed := moving.now()).state == "opening":
        time.sleep(moving.config.place_seconds)
        moving.become(placed, "leaving", until=time.time())


def _finish(moving: _Move) -> None:
    """Empty the cell that the collection has left, if it has left one."""
    _open(moving)
    placed = moving.now()
    if placed.state == "leaving":
        time.sleep(max(placed.until + moving.config.read_seconds - time.time(), 0.0))
        _empty(moving, placed)


def _call_off(moving: _Move, to: str) -> None:
    """Take back a move that was begun to elsewhere."""
    while (placed := moving.now()).state == "stopped":
        moving.catalogue.change(placed, resumed(placed))
    if placed.state == "copying" and placed.other != to:
        _empty(moving, placed)


def _empty(moving: _Move, placed: Placed) -> None:
    """Forget everything in the cell where the collection does not live."""
    store = moving.store(placed.other)
    try:
        emptied(store, moving.config.batch)
    finally:
        store.close()
    moving.catalogue.change(placed, replace(placed, state="active", other=""))


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
            equal_at = _follow(source, target, moving.config)
            if _switched(moving, source, target, equal_at):
                return
    finally:
        source.close()
        target.close()
    raise StoreUnavailable(
        f"{moving.collection} is written faster than it can be compared in {moving.config.stop_seconds:g} s: "
        "run the move again when there is less to do, or raise stop_seconds"
    )


def _follow(source: Store, target: Store, config: Cells) -> int | None:
    """Copy what changed meanwhile, until little does; return the version at which nothing differed, if any."""
    for _ in range(config.sweeps):
        version = source.version()
        changed = sweep(source, target, config.batch)
        if changed < max(config.batch // 8, 1):
            return None if changed else version
    return None


def _switched(moving: _Move, source: Store, target: Store, equal_at: int | None) -> bool:
    """Stop writers, copy the last changes, and let the collection live in the new cell; False to try again.

    If nothing was written since the two were equal there is nothing to compare, and the stop is short.
    """
    stopped = moving.become(moving.now(), "stopped", until=time.time() + moving.config.stop_seconds)
    if stopped is None:
        return False
    try:
        while source.version() != equal_at and _differ(source, target, moving.config):
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


def _differ(source: Store, target: Store, config: Cells) -> bool:
    """Copy what differs while nobody writes; whether there was anything, or the counts are not equal yet."""
    return bool(sweep(source, target, config.batch)) or not is_equal(source, target)
