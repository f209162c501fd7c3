"""Measure the bytes of cells. The figures decide where new and drained collections are placed."""

import logging
import time
from collections.abc import Sequence

from waylore.cells.catalogue.protocol import Catalogue
from waylore.errors import WayloreError
from waylore.store.urls import parse_url, require_driver

MEASURE_SECONDS = 600.0  # age at which a cell is measured again when a collection is placed
log = logging.getLogger(__name__)


def find_due(catalogue: Catalogue) -> list[str]:
    """Return the active cells that were not measured for a while."""
    before = time.time() - MEASURE_SECONDS
    return [
        cell.name for cell in catalogue.get_cells().values() if cell.state == "active" and cell.measured_at < before
    ]


def measure_cells(catalogue: Catalogue, names: Sequence[str]) -> None:
    """Record the bytes of cells. If a cell cannot be read or the catalogue cannot be changed, the old figure stays."""
    for cell in [cell for name, cell in catalogue.get_cells().items() if name in names]:
        try:
            catalogue.record_bytes(cell.name, _read_bytes(cell.url))
        except (WayloreError, OSError) as error:
            log.warning("cell %s was not measured, collections are placed by older figures: %s", cell.name, error)


def _read_bytes(url: str) -> int:
    """Return the bytes of a database; 0 for an engine of another package, whose size is unknown."""
    parsed = parse_url(url)
    if parsed.is_file:
        return parsed.path.stat().st_size
    if not parsed.is_server:
        return 0
    with require_driver():
        from waylore.cells.replication.rows import read_bytes  # noqa: PLC0415 (optional driver)
    return read_bytes(url)
