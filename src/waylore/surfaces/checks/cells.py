"""Check whether a cell allows moves of collections, and find slots that moves have left on it."""

from collections.abc import Iterator

from waylore.cells.catalogue.protocol import Catalogue, Cell, CollectionPlacement
from waylore.errors import StoreError
from waylore.surfaces.checks.findings import Finding

ALLOW_REPLICATION = "run ALTER SYSTEM SET wal_level = 'logical' there, and restart the server"


def check_moves(catalogue: Catalogue, cell: Cell) -> Iterator[Finding]:
    """Check a cell on a server."""
    from waylore.cells.replication.inspect import inspect_server  # noqa: PLC0415 (optional driver)

    try:
        level, slots = inspect_server(cell.url)
    except StoreError:  # the check of the store reports it
        return
    if level != "logical":
        message = f"wal_level of cell {cell.name} is {level}, so moves away from it copy documents one by one"
        yield Finding("cells", "note", message, ALLOW_REPLICATION)
    placements = catalogue.find_placements(catalogue.list_collections(cell.name)) if slots else {}
    moving = [placement for placement in placements.values() if placement.state != "active"]
    for slot in slots:
        of = next((placement for placement in moving if slot.is_of(placement.collection)), None)
        yield _describe_slot(cell, slot.name, slot.bytes, of)


def _describe_slot(cell: Cell, name: str, size: int, of: CollectionPlacement | None) -> Finding:
    kept = f"cell {cell.name} keeps {size / 1e6:,.1f} MB of its log for"
    if of is None:
        message = f"{kept} the slot {name}, which belongs to no move; its disk will fill up"
        return Finding("cells", "wrong", message, f"run SELECT pg_drop_replication_slot('{name}') there")
    command = f"waylore collections move {of.collection}"
    other = f"`{command} {of.other}` continues it, `{command} {of.cell}` cancels it"
    return Finding("cells", "note", f"{kept} the move of {of.collection}", f"if the move does not run: {other}")
