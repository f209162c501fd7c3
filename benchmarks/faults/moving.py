"""Move a collection between two PostgreSQL cells while it is written and searched, also with killed movers."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.postgres.builds import find_plain_build
from tools.postgres.server import DURABLE_SETTINGS, start_servers

from benchmarks.faults import notes
from benchmarks.faults.load import Load, Report
from benchmarks.faults.notes import Ledger, StoreCheck, check_store
from benchmarks.faults.servers import LoadSize, add_password
from waylore.cells import admin
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.open import open_cell
from waylore.cells.store import FederatedStore, open_federated
from waylore.config import CellsConfig
from waylore.engine.waylore import Waylore

ROOT = Path(__file__).parents[2]
FIRST_CELL, SECOND_CELL = "east", "west"
CONFIG = CellsConfig(place_seconds=0.2, stop_seconds=5.0, batch=64)
BUSY_SECONDS = 15.0  # that a read may take on the busy machine of a sample
KILLS = 20
SAMPLE_PLACES = (40, 60)  # of 90: while rows are copied, and while the new cell follows
SETTINGS = {**DURABLE_SETTINGS, "wal_level": "logical"}
WRITES, SEARCHES = 20.0, 50.0  # per second, at the full size


@dataclass(frozen=True, slots=True)
class TwoCells:
    """Two cells, and a collection that is in the first one at the start."""

    file: Path
    read_seconds: float
    catalogue: SqliteCatalogue
    waylore: Waylore
    store: FederatedStore
    load: Load

    def report(self, fault: str, since: float, cell: str) -> Report:
        """Build the report, and check that the collection is in `cell` and that the other cell is empty."""
        found = check_store(self.waylore, self.store, self.load.waylores[0][1])
        other = FIRST_CELL if cell == SECOND_CELL else SECOND_CELL
        strays = [f"the collection is not in {cell}"] * (
            self.catalogue.find_placements(["notes"])["notes"].cell != cell
        )
        strays += [f"{other} still has {number} documents" for number in [self._count_documents(other)] if number]
        return self.load.report(fault, StoreCheck(found.lost, (*found.wrong, *strays)), since)

    def build_mover_command(self, cell: str, place: int = 0) -> list[str]:
        """Return the command of a mover, which runs in a process of its own and is killed at a place."""
        arguments = [str(self.file), "notes", cell, str(self.read_seconds), str(place)]
        return [sys.executable, "-m", "benchmarks.faults.mover", *arguments]

    def move(self, cell: str) -> int:
        """Move the collection, and return the number of places where the mover could have been killed."""
        command = self.build_mover_command(cell)
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return int(run.stderr.splitlines()[-1])

    def _count_documents(self, cell: str) -> int:
        store = open_cell(self.catalogue.get_cells()[cell].url, "notes")
        try:
            return len(list(store.export()))
        finally:
            store.close()


@contextmanager
def start_two_cells(size: LoadSize) -> Iterator[TwoCells]:
    """Start two servers with a collection in the first one, and prepare the load."""
    share = size.searches / LoadSize().searches
    with (
        TemporaryDirectory() as folder,
        start_servers(find_plain_build(), 2, settings=SETTINGS) as started,
    ):
        file = Path(folder) / "catalogue.waylore"
        catalogue = SqliteCatalogue(file)
        for name, one in zip((FIRST_CELL, SECOND_CELL), started, strict=True):
            admin.add_cell(catalogue, name, add_password(one.url))
        config = CONFIG if size.times > 1 else replace(CONFIG, read_seconds=BUSY_SECONDS)
        with closing(catalogue), closing(Federation(SqliteCatalogue(file), open_cell, config)) as federation:
            store = open_federated(federation, "notes")
            with notes.open_collection(store) as waylore:
                load = Load([(waylore, Ledger())], searches=share * SEARCHES, writes=share * WRITES)
                load.methods = ("chain", "hybrid", "keyword", "keyword", "keyword", "keyword", "get", "get", "get")
                load.fill(size.notes)
                yield TwoCells(file, config.read_seconds, catalogue, waylore, store, load)


def move_collection(size: LoadSize) -> Report:
    """Move the collection there and back, `size.times` times."""
    with start_two_cells(size) as two:
        took = []
        with two.load.run():
            for number in range(size.times):
                time.sleep(0.5)
                begun = time.monotonic()
                cell = FIRST_CELL if number % 2 else SECOND_CELL
                two.move(cell)
                took.append(time.monotonic() - begun)
            since = time.monotonic()
            time.sleep(1.0)
        report = two.report(f"moved to another cell ({size.times}x)", since, cell)
        report.notes.append(f"a move took {max(took):.1f} s; {_describe_waits(two.load)}")
        return report


def kill_mover(size: LoadSize) -> Report:
    """Kill the mover with SIGKILL at places all over a move; each time another mover continues."""
    with start_two_cells(size) as two:
        with two.load.run():
            cell, killed, places = _kill_everywhere(two) if size.times > 1 else _kill_some(two)
            since = time.monotonic()
            time.sleep(1.0)
        report = two.report(f"mover killed ({killed}x), another continues", since, cell)
        report.notes.append(f"{places} places; {_describe_waits(two.load)}")
        return report


def _kill_everywhere(two: TwoCells) -> tuple[str, int, int]:
    """Move there and back; each time the mover is killed once, at another place, and another one continues."""
    places, cell, killed = two.move(SECOND_CELL), SECOND_CELL, 0
    for number in range(KILLS):
        cell = FIRST_CELL if cell == SECOND_CELL else SECOND_CELL
        killed += _run_killed(two.build_mover_command(cell, 1 + (places - 1) * number // (KILLS - 1)))
        two.move(cell)
    return cell, killed, places


def _kill_some(two: TwoCells) -> tuple[str, int, int]:
    """Kill some movers of one move."""
    killed = sum(_run_killed(two.build_mover_command(SECOND_CELL, place)) for place in SAMPLE_PLACES)
    return SECOND_CELL, killed, two.move(SECOND_CELL)


def _run_killed(command: Sequence[str]) -> bool:
    """Run a mover that kills itself, and return whether it did."""
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    return run.returncode == -signal.SIGKILL


def _describe_waits(load: Load) -> str:
    searches = [r.seconds for r in load.requests if r.kind != "write"]
    writes = [r.seconds for r in load.requests if r.kind == "write"]
    return f"the longest search took {max(searches):.2f} s, the longest write {max(writes):.2f} s"
