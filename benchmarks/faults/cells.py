"""Faults of one cell of three, each a PostgreSQL server behind a proxy, while all are searched as one."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tools.faults import Proxy, proxy
from tools.postgres import SAFE, Server, plain, servers

from benchmarks.faults import notes
from benchmarks.faults.load import Load, Report, Request
from benchmarks.faults.notes import Ledger, Settled, settled
from benchmarks.faults.servers import Size, with_password
from waylore.cells import admin
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import FederatedStore, open_federated
from waylore.config import Cells
from waylore.engine.waylore import Waylore

NAMES = ("east", "north", "west")
FAULTY = "west"
NUMBERS = 1_000_000  # of notes that a collection may have
CONFIG = Cells(read_seconds=2.0, rest_seconds=2.0)
Begin = Callable[[Proxy], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Trio:
    """Three cells with a collection each, and one store over all of them."""

    federation: Federation
    proxies: dict[str, Proxy]
    stores: Sequence[FederatedStore]
    load: Load

    def places(self) -> list[str]:
        """What an error may call a cell: the name is what an operator knows it by."""
        return [f"cell {name}" for name in NAMES] + [f"127.0.0.1:{p.port}" for p in self.proxies.values()]

    def settled(self) -> Settled:
        """What is wrong with the collections in the end."""
        found = [
            settled(waylore, store, ledger)
            for (waylore, ledger), store in zip(self.load.waylores, self.stores, strict=True)
        ]
        return Settled(tuple(x for f in found for x in f.lost), tuple(x for f in found for x in f.wrong))


@contextmanager
def federated(size: Size, config: Cells = CONFIG) -> Iterator[Trio]:
    """Three servers behind proxies, a collection in each, and the load that they are to bear."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        started = stack.enter_context(servers(plain(), len(NAMES), settings=SAFE))
        proxies = {name: stack.enter_context(proxy(one.port)) for name, one in zip(NAMES, started, strict=True)}
        federation = Federation(catalogue(folder, proxies, started), open_cell, config)
        stack.callback(federation.close)
        stores = [open_federated(federation, name) for name in ("a", "b", "c")]  # in the order of the cells
        waylores = [stack.enter_context(notes.opened(store)) for store in stores]
        ledgers = [Ledger(first=NUMBERS * i) for i in range(len(stores))]
        load = Load(
            list(zip(waylores, ledgers, strict=True)), searches=size.searches / 4, writes=size.writes / 2
        )
        load.methods = ("chain", "hybrid", "keyword", "keyword")
        load.fill(size.notes // len(stores))
        load.reader = stack.enter_context(notes.opened(open_federated(federation, "a,b,c")))
        load.reader.search("a ship", count_use=False)
        yield Trio(federation, proxies, stores, load)


def catalogue(folder: Path, proxies: dict[str, Proxy], started: Sequence[Server]) -> SqliteCatalogue:
    """A catalogue of cells that are reached over proxies."""
    made = SqliteCatalogue(folder / "catalogue.waylore")
    for (name, between), one in zip(proxies.items(), started, strict=True):
        admin.add(made, name, with_password(between.url(one.url)))
    return made


def hanging(size: Size) -> Report:
    """A cell takes what is sent and says nothing, then goes on."""
    return _one_faulty("a cell hangs", size, lambda between: between.hanging())


def gone(size: Size) -> Report:
    """A cell refuses connections, then takes them again."""
    return _one_faulty("a cell is gone", size, lambda between: between.refusing())


def late(size: Size) -> Report:
    """Every answer of a cell comes later than a read may take, then as before."""
    seconds = CONFIG.read_seconds + 1.0
    return _one_faulty("a cell answers too late", size, lambda between: between.delaying(seconds))


def _one_faulty(fault: str, size: Size, begin: Begin) -> Report:
    """One cell has a fault for a while; all are written, and searched as one."""
    with federated(size) as trio:
        load = trio.load
        with load.running():
            time.sleep(size.seconds / 6)
            with begin(trio.proxies[FAULTY]):
                begun = time.monotonic()
                time.sleep(max(size.seconds / 2, 2.5 * CONFIG.read_seconds))
                ended = time.monotonic()
            since = time.monotonic()
            time.sleep(size.seconds / 3 + CONFIG.rest_seconds)
        report = load.report(fault, trio.settled(), since)
        report.notes += _waits([r for r in load.requests if begun <= r.begun < ended and r.kind != "write"])
        return report


def _waits(meanwhile: Sequence[Request]) -> list[str]:
    """How long callers waited while the cell was faulty."""
    took = sorted(r.seconds for r in meanwhile)
    quick = [r for r in meanwhile if "left alone" in " ".join(r.missing)]
    return [
        f"meanwhile {sum(bool(r.missing) for r in meanwhile)} of {len(meanwhile)} searches were partial, "
        f"the longest took {took[-1]:.2f} s (a cell may take {CONFIG.read_seconds:g} s); "
        f"{len(quick)} did not wait for it at all"
    ]


def slow(size: Size) -> Report:
    """One answer in twenty of a cell is late: a second try answers instead; compared with none."""
    seconds = 0.5
    with federated(size) as trio:
        load = trio.load
        single = _patient(trio)
        with trio.proxies[FAULTY].delaying(seconds, share=0.05):
            unhedged = [_seconds(single) for _ in range(max(size.notes // 10, 5))]
            hedged = [_seconds(load.reader) for _ in range(max(size.notes // 10, 5))]
            single.close()
            with load.running():
                time.sleep(size.seconds / 2)
                since = time.monotonic()
                time.sleep(1.0)
        report = load.report("a cell is sometimes slow", trio.settled(), since)
        report.notes.append(
            f"one answer in twenty comes {seconds:g} s late: a search takes {np.median(hedged):.2f} s with second "
            f"tries, {np.median(unhedged):.2f} s without"
        )
        return report


def _patient(trio: Trio) -> Waylore:
    config = replace(CONFIG, hedge_seconds=60.0)
    federation = Federation(trio.federation.catalogue, open_cell, config)
    made = notes.opened(open_federated(federation, "a,b,c"))
    made.search("a ship", count_use=False)
    return made


def _seconds(waylore: Waylore | None) -> float:
    assert waylore is not None
    begun = time.monotonic()
    waylore.search(f"Which ship lies at Pier 3, at {begun}?", count_use=False)
    return time.monotonic() - begun
