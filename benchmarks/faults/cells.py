"""Cause faults in one of three cells, each a PostgreSQL server behind a proxy, while all are searched."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tools.faults import Proxy, start_proxy
from tools.postgres.builds import find_plain_build
from tools.postgres.server import DURABLE_SETTINGS, Server, start_servers

from benchmarks.faults import notes
from benchmarks.faults.load import Load, Report, Request
from benchmarks.faults.notes import Ledger, StoreCheck, check_store
from benchmarks.faults.servers import LoadSize, add_password
from waylore.cells import admin
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import FederatedStore, open_federated
from waylore.config import CellsConfig
from waylore.engine.waylore import Waylore

NAMES = ("east", "north", "west")
FAULTY = "west"
MAX_NOTES = 1_000_000  # of a collection
CONFIG = CellsConfig(read_seconds=4.0, rest_seconds=2.0)  # the limit must exceed a stall of the disk under load
Begin = Callable[[Proxy], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class ThreeCells:
    """Three cells with a collection each, a store for each, and the load on all of them."""

    catalogue: Path
    proxies: dict[str, Proxy]
    stores: Sequence[FederatedStore]
    load: Load

    def list_places(self) -> list[str]:
        """Return the names that an error may use for a cell: its name or its address."""
        return [f"cell {name}" for name in NAMES] + [f"127.0.0.1:{p.port}" for p in self.proxies.values()]

    def check(self) -> StoreCheck:
        """Check all collections at the end."""
        found = [
            check_store(waylore, store, ledger)
            for (waylore, ledger), store in zip(self.load.waylores, self.stores, strict=True)
        ]
        return StoreCheck(tuple(x for f in found for x in f.lost), tuple(x for f in found for x in f.wrong))


@contextmanager
def start_three_cells(size: LoadSize, config: CellsConfig = CONFIG) -> Iterator[ThreeCells]:
    """Start three servers behind proxies with a collection in each, and prepare the load."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        started = stack.enter_context(start_servers(find_plain_build(), len(NAMES), settings=DURABLE_SETTINGS))
        proxies = {name: stack.enter_context(start_proxy(one.port)) for name, one in zip(NAMES, started, strict=True)}
        catalogue = create_catalogue(folder / "catalogue.waylore", proxies, started)
        federation = stack.enter_context(closing(Federation(catalogue, open_cell, config)))
        stores = [open_federated(federation, name) for name in ("a", "b", "c")]  # in the order of the cells
        waylores = [stack.enter_context(notes.open_collection(store)) for store in stores]
        ledgers = [Ledger(first=MAX_NOTES * i) for i in range(len(stores))]
        load = Load(list(zip(waylores, ledgers, strict=True)), searches=size.searches / 4, writes=size.writes / 2)
        load.methods = ("chain", "hybrid", "keyword", "keyword")
        load.fill(size.notes // len(stores))
        load.reader = stack.enter_context(notes.open_collection(open_federated(federation, "a,b,c")))
        load.reader.search("a ship", record_use=False)
        yield ThreeCells(folder / "catalogue.waylore", proxies, stores, load)


def create_catalogue(path: Path, proxies: dict[str, Proxy], started: Sequence[Server]) -> SqliteCatalogue:
    """Create a catalogue of cells that are reached through proxies."""
    made = SqliteCatalogue(path)
    for (name, between), one in zip(proxies.items(), started, strict=True):
        admin.add_cell(made, name, add_password(between.build_url(one.url)))
    return made


def hang_cell(size: LoadSize) -> Report:
    """Let a cell accept requests without answering, then continue."""
    return _run_with_fault("a cell hangs", size, lambda between: between.hang())


def refuse_cell(size: LoadSize) -> Report:
    """Let a cell refuse connections, then accept them again."""
    return _run_with_fault("a cell is gone", size, lambda between: between.refuse())


def delay_cell(size: LoadSize) -> Report:
    """Delay every answer of a cell beyond the time limit of a read, then stop."""
    seconds = CONFIG.read_seconds + 1.0
    return _run_with_fault("a cell answers too late", size, lambda between: between.delay(seconds))


def _run_with_fault(fault: str, size: LoadSize, begin: Begin) -> Report:
    """Cause a fault in one cell for a while; meanwhile all cells are written to and searched as one."""
    with start_three_cells(size) as cells:
        load = cells.load
        with load.run():
            time.sleep(size.seconds / 6)
            with begin(cells.proxies[FAULTY]):
                begun = time.monotonic()
                time.sleep(max(size.seconds / 2, 1.5 * CONFIG.read_seconds))
                ended = time.monotonic()
            since = time.monotonic()
            time.sleep(size.seconds / 3 + CONFIG.read_seconds + CONFIG.rest_seconds)  # a read of the fault, then a rest
        report = load.report(fault, cells.check(), since)
        report.notes += _describe_waits([r for r in load.requests if begun <= r.begun < ended and r.kind != "write"])
        return report


def _describe_waits(meanwhile: Sequence[Request]) -> list[str]:
    """Describe how long callers waited during the fault."""
    took = sorted(r.seconds for r in meanwhile)
    quick = [r for r in meanwhile if "is not read for" in " ".join(r.missing)]
    return [
        f"during the fault {sum(bool(r.missing) for r in meanwhile)} of {len(meanwhile)} searches were partial, "
        f"the longest took {took[-1]:.2f} s (limit of a cell: {CONFIG.read_seconds:g} s); "
        f"{len(quick)} did not wait for the cell"
    ]


def slow_cell(size: LoadSize) -> Report:
    """Delay one answer in twenty of a cell, and compare searches with and without a second try."""
    seconds = 0.5
    with start_three_cells(size) as cells:
        load = cells.load
        with cells.proxies[FAULTY].delay(seconds, share=0.05):
            unhedged = _time_unhedged(cells, max(size.notes // 10, 5))
            hedged = [_time_search(load.reader) for _ in range(max(size.notes // 10, 5))]
            with load.run():
                time.sleep(size.seconds / 2)
                since = time.monotonic()
                time.sleep(1.0)
        report = load.report("a cell is sometimes slow", cells.check(), since)
        report.notes.append(
            f"with one answer in twenty {seconds:g} s late, a search takes {np.median(hedged):.2f} s with second "
            f"tries and {np.median(unhedged):.2f} s without"
        )
        return report


def _time_unhedged(cells: ThreeCells, number: int) -> list[float]:
    """Return the seconds of searches without a second try."""
    config = replace(CONFIG, hedge_seconds=60.0)
    with (
        closing(Federation(SqliteCatalogue(cells.catalogue), open_cell, config)) as federation,
        notes.open_collection(open_federated(federation, "a,b,c")) as single,
    ):
        single.search("a ship", record_use=False)
        return [_time_search(single) for _ in range(number)]


def _time_search(waylore: Waylore | None) -> float:
    assert waylore is not None
    begun = time.monotonic()
    waylore.search(f"Which ship lies at Pier 3, at {begun}?", record_use=False)
    return time.monotonic() - begun
