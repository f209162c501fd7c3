"""Operate cells: add, list and drain them. `move` moves a single collection."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from waylore.cells.catalogue.protocol import Catalogue, Cell
from waylore.cells.measure import measure_cells
from waylore.cells.members import OpenCell
from waylore.cells.move import copy_collection, empty_old_cell
from waylore.cells.open import open_cell
from waylore.config import CellsConfig
from waylore.errors import ArgumentError, ConfigError, NotFound
from waylore.store.urls import open_store, parse_url


@dataclass(frozen=True, slots=True)
class CellInfo:
    """A cell and the collections that are in it, or move into or out of it."""

    cell: Cell
    collections: tuple[str, ...]


def add_cell(catalogue: Catalogue, name: str, url: str) -> Cell:
    """Open a cell, and add it or activate it again if it was drained. A missing file is created."""
    cells = catalogue.get_cells()
    parsed = parse_url(url)
    cell = Cell(name, f"sqlite:///{parsed.path.resolve()}" if parsed.is_file else url)
    others = [other.name for other in cells.values() if other.url == cell.url and other.name != name]
    if others or (name in cells and cells[name].url != cell.url):
        raise ConfigError(f"cell name {name} or its URL is in use; the cells are {', '.join(cells)}")
    open_store(cell.url).close()
    catalogue.set_cell(cell)
    measure_cells(catalogue, [name])
    return cell


def list_cells(catalogue: Catalogue) -> tuple[CellInfo, ...]:
    """Return all cells by name, with their collections."""
    return tuple(CellInfo(cell, catalogue.list_collections(cell.name)) for cell in catalogue.get_cells().values())


def drain_cell(
    catalogue: Catalogue,
    name: str,
    *,
    at_once: int = 4,
    open_cell: OpenCell = open_cell,
    config: CellsConfig = CellsConfig(),  # noqa: B008
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[str, ...]:
    """Move all collections out of a cell and place no new ones in it. Return the moved collections.

    `at_once` collections move at the same time; one after another if the cell is a file. Run it again to resume an
    interrupted drain.
    """
    cells = catalogue.get_cells()
    if name not in cells:
        raise NotFound(f"no cell {name!r}; the cells are {', '.join(cells)}")
    if at_once < 1:
        raise ArgumentError(f"at_once must be at least 1, not {at_once}")
    catalogue.set_cell(replace(cells[name], state="draining"))
    collections = catalogue.list_collections(name)
    measure_cells(catalogue, list(cells))
    threads = at_once if parse_url(cells[name].url).is_server else 1
    with catalogue.lock_moves():
        _run_all(partial(_leave_cell, catalogue, name, open_cell, config, progress), collections, threads)
        # By now reads of all but the last collections have ended, so no wait is needed.
        empty = partial(empty_old_cell, catalogue, open_cell=open_cell, config=config)
        _run_all(empty, collections, threads)
    return collections


def _run_all(call: Callable[[str], None], collections: Sequence[str], threads: int) -> None:
    """Call a function for all collections, some at a time. After an error, start no further call."""
    pool = ThreadPoolExecutor(threads, "waylore moving")
    try:
        for _ in pool.map(call, collections):
            pass
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_cell(
    catalogue: Catalogue,
    leaving: str,
    open_cell: OpenCell,
    config: CellsConfig,
    progress: Callable[[str], None],
    collection: str,
) -> None:
    to = _choose_target(catalogue, collection, leaving)
    progress(f"{collection} → {to}")
    copy_collection(catalogue, collection, to, open_cell=open_cell, config=config)
    measure_cells(catalogue, [to])


def _choose_target(catalogue: Catalogue, collection: str, leaving: str) -> str:
    """Return the target of the move if one was started, else the active cell with the fewest bytes."""
    placement = catalogue.find_placements([collection])[collection]
    if placement.cell != leaving:
        return placement.cell
    cells = catalogue.get_cells()
    if placement.other in cells and cells[placement.other].state == "active":
        return placement.other
    to = catalogue.choose_cell()
    if to is None:
        raise ConfigError("no other active cell to move to; add one with waylore cells add")
    return to
