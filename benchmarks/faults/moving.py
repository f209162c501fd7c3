"""A collection moves between two PostgreSQL cells while it is written and searched; also by a mover that is killed."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tools.faults import is_done_before_killed
from tools.postgres import SAFE, plain, servers

from benchmarks.faults import notes
from benchmarks.faults.load import Load, Report
from benchmarks.faults.notes import Ledger, Settled, settled
from benchmarks.faults.servers import Size, with_password
from waylore.cells import admin
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import FederatedStore, open_federated
from waylore.config import Cells
from waylore.engine.waylore import Waylore

ROOT = Path(__file__).parents[2]
HERE, THERE = "east", "west"
CONFIG = Cells(place_seconds=0.2, batch=64)
WRITES, SEARCHES = 20.0, 50.0  # a second, at the full size


@dataclass(frozen=True, slots=True)
class Pair:
    """Two cells, and a collection that begins in the first."""

    file: Path
    catalogue: SqliteCatalogue
    waylore: Waylore
    store: FederatedStore
    load: Load

    def report(self, fault: str, since: float, there: str) -> Report:
        """What callers saw, whether all of it is in one cell, and nothing in the other."""
        found = settled(self.waylore, self.store, self.load.waylores[0][1])
        left = HERE if there == THERE else THERE
        strays = [f"{there} does not have it"] * (self.catalogue.placed(["notes"])["notes"].cell != there)
        strays += [f"{left} still has {number} documents" for number in [self._held(left)] if number]
        return self.load.report(fault, Settled(found.lost, (*found.wrong, *strays)), since)

    def _held(self, cell: str) -> int:
        store = open_cell(self.catalogue.cells()[cell].url, "notes")
        try:
            return len(list(store.export()))
        finally:
            store.close()


@contextmanager
def pair(size: Size) -> Iterator[Pair]:
    """Two servers with a collection in the first, and the load that it is to bear."""
    share = size.searches / Size().searches
    with TemporaryDirectory() as folder, servers(plain(), 2, settings=SAFE) as started:
        file = Path(folder) / "catalogue.waylore"
        catalogue = SqliteCatalogue(file)
        for name, one in zip((HERE, THERE), started, strict=True):
            admin.add(catalogue, name, with_password(one.url))
        federation = Federation(SqliteCatalogue(file), open_cell, CONFIG)
        store = open_federated(federation, "notes")
        with notes.opened(store) as waylore:
            load = Load([(waylore, Ledger())], searches=share * SEARCHES, writes=share * WRITES)
            load.methods = ("chain", "hybrid", "keyword", "keyword", "keyword", "keyword", "get", "get", "get")
            load.fill(size.notes)
            yield Pair(file, catalogue, waylore, store, load)
        federation.close()
        catalogue.close()


def moved(size: Size) -> Report:
    """The collection moves there and back, as often as asked for."""
    with pair(size) as two:
        took = []
        with two.load.running():
            for number in range(size.times):
                time.sleep(0.5)
                begun = time.monotonic()
                there = HERE if number % 2 else THERE
                subprocess.run(_mover(two.file, there), cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
                took.append(time.monotonic() - begun)
            since = time.monotonic()
            time.sleep(1.0)
        report = two.report(f"moved to another cell ({size.times}x)", since, there)
        report.notes.append(f"a move took {max(took):.1f} s; {_waits(two.load)}")
        return report


def mover_killed(size: Size) -> Report:
    """The mover is killed with SIGKILL at random moments, and another goes on."""
    chance, killed = Random(11), 0
    with pair(size) as two:
        with two.load.running():
            for _ in range(2 * size.times):
                killed += not is_done_before_killed(_mover(two.file, THERE), ROOT, chance.uniform(0.0, 3.0))
            subprocess.run(_mover(two.file, THERE), cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
            since = time.monotonic()
            time.sleep(1.0)
        report = two.report(f"mover killed ({killed}x), another goes on", since, THERE)
        report.notes.append(_waits(two.load))
        return report


def _mover(catalogue: Path, there: str) -> list[str]:
    """A process of its own, as an operator would start one."""
    return [sys.executable, "-m", "benchmarks.faults.mover", str(catalogue), "notes", there]


def _waits(load: Load) -> str:
    searches = [r.seconds for r in load.requests if r.kind != "write"]
    writes = [r.seconds for r in load.requests if r.kind == "write"]
    return f"the longest search took {max(searches):.2f} s, the longest write {max(writes):.2f} s"
