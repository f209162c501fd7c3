"""Kill the primary of a cell, or of the catalogue of cells, under load; its replica takes over.

A primary acknowledges a write after its replica has it on disk. What notices the death and promotes the replica in
production is Patroni or a managed service. Here it is this module, which waits for `DETECTION_SECONDS` first.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import pairwise

from tools.postgres.builds import find_plain_build
from tools.postgres.replicas import ServerPair, start_pair
from tools.postgres.server import DURABLE_SETTINGS, start_server

from benchmarks.faults import notes
from benchmarks.faults.load import Load, Report
from benchmarks.faults.notes import Ledger, check_store
from benchmarks.faults.servers import LoadSize, add_password
from waylore.cells import admin
from waylore.cells.catalogue.postgres import PostgresCatalogue
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import FederatedStore, open_federated
from waylore.config import CellsConfig
from waylore.engine.waylore import Waylore

CONFIG = CellsConfig(read_seconds=15.0)  # a busy machine may need seconds for a read, and promotion takes one or two
DETECTION_SECONDS = 1.0
METHODS = ("keyword",)


def fail_over_cell(size: LoadSize) -> Report:
    """Kill the primary of a cell."""
    with ExitStack() as stack:
        pair = stack.enter_context(start_pair(find_plain_build(), settings=DURABLE_SETTINGS))
        catalogue = stack.enter_context(start_server(find_plain_build(), settings=DURABLE_SETTINGS))
        return _fail_over("the primary of a cell is killed", pair, catalogue.url, pair.build_url(), size)


def fail_over_catalogue(size: LoadSize) -> Report:
    """Kill the primary of the catalogue of cells."""
    with ExitStack() as stack:
        pair = stack.enter_context(start_pair(find_plain_build(), settings=DURABLE_SETTINGS))
        cell = stack.enter_context(start_server(find_plain_build(), settings=DURABLE_SETTINGS))
        return _fail_over("the primary of the catalogue is killed", pair, pair.build_url(), cell.url, size)


def _fail_over(fault: str, pair: ServerPair, catalogue: str, cell: str, size: LoadSize) -> Report:
    """Kill the primary under load and promote its replica."""
    with open_cells(catalogue, cell) as (waylore, store):
        load = Load([(waylore, Ledger())], searches=size.searches, writes=size.writes, methods=METHODS)
        load.fill(size.notes)
        with load.run():
            time.sleep(size.seconds / 3)
            killed = time.monotonic()
            pair.primary.kill()
            time.sleep(DETECTION_SECONDS)
            begun = time.monotonic()
            pair.promote()
            since = time.monotonic()
            time.sleep(size.seconds * 2 / 3)
        report = load.report(fault, check_store(waylore, store, load.waylores[0][1]), since)
        report.notes.append(f"the promotion took {since - begun:.2f} s; {_describe_gaps(load, killed)}")
        return report


@contextmanager
def open_cells(catalogue: str, cell: str) -> Iterator[tuple[Waylore, FederatedStore]]:
    """Create a catalogue with one cell, and open a collection in it."""
    with closing(Federation(PostgresCatalogue(add_password(catalogue)), open_cell, CONFIG)) as federation:
        admin.add_cell(federation.catalogue, "east", add_password(cell))
        store = open_federated(federation, "notes")
        with notes.open_collection(store) as waylore:
            yield waylore, store


def _describe_gaps(load: Load, killed: float) -> str:
    """Describe the longest time without an answer that began before the end of the load, after the kill."""
    searches = [r.ended for r in load.requests if r.is_answered and not r.missing and r.kind != "write"]
    writes = [r.ended for r in load.requests if r.is_answered and r.kind == "write"]
    return (
        f"the longest time without an answered search was {_find_gap(searches, killed):.2f} s, "
        f"without an acknowledged write {_find_gap(writes, killed):.2f} s"
    )


def _find_gap(ends: Sequence[float], killed: float) -> float:
    """Return the longest pause between two ends, from the last one before the kill on."""
    ordered = sorted(ends)
    first = max([end for end in ordered if end <= killed], default=killed)
    after = [first, *(end for end in ordered if end > first)]
    return max((later - earlier for earlier, later in pairwise(after)), default=float("inf"))
