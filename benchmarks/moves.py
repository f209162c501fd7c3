"""Move collections between PostgreSQL cells, by logical replication and document by document, and drain a cell.

    python -m benchmarks.moves                          about four minutes
    python -m benchmarks.moves --documents 24000
    python -m benchmarks.faults moved mover_killed      moves under load, killed at twenty places

Three servers keep what they acknowledge. The log of the first one does not allow logical replication, so a move away
from it copies documents. The collection then moves on by replication, there and back. The answers before and after a
move by replication must be equal to the last digit. Copying documents gives passages new numbers, and a question of
common words only is answered from the 2,000 newest passages, so that some of its answers may change. Copying is timed
until the new cell is the place, emptying the old cell after that.
"""

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import psycopg
from tools.postgres.builds import find_plain_build
from tools.postgres.server import DURABLE_SETTINGS, Server, start_server, start_servers

from benchmarks.faults import notes
from benchmarks.faults.notes import EMBEDDER, Note, index_note
from waylore.cells import admin
from waylore.cells.catalogue.protocol import CellState
from waylore.cells.catalogue.sqlite import SqliteCatalogue
from waylore.cells.members import Federation
from waylore.cells.move import copy_collection, empty_old_cell
from waylore.cells.open import open_cell
from waylore.cells.store import open_federated
from waylore.config import CellsConfig
from waylore.indexing import pipeline
from waylore.types.author import OWNER

CONFIG = CellsConfig(place_seconds=0.1, read_seconds=1.0)  # nobody reads during a move
PATIENT = replace(CONFIG, read_seconds=60.0)  # on a busy machine
METHODS = ("keyword", "hybrid", "chain", "deep")
QUESTIONS = 25
BATCH = 500
LOGICAL = {**DURABLE_SETTINGS, "wal_level": "logical", "max_replication_slots": 20, "max_wal_senders": 20}


@contextmanager
def start_cells() -> Iterator[tuple[Federation, tuple[Server, ...]]]:
    """Start three cells: `old` without logical replication, `east` and `west` with it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        old = stack.enter_context(start_server(find_plain_build(), settings=DURABLE_SETTINGS))
        servers = (old, *stack.enter_context(start_servers(find_plain_build(), 2, settings=LOGICAL)))
        catalogue = SqliteCatalogue(folder / "catalogue.waylore")
        federation = stack.enter_context(closing(Federation(catalogue, open_cell, PATIENT)))
        for name, server in zip(("old", "east", "west"), servers, strict=True):
            admin.add_cell(catalogue, name, server.url)
        yield federation, servers


def set_state(federation: Federation, cell: str, state: CellState) -> None:
    """Let a cell take new collections, or not."""
    federation.catalogue.set_cell(replace(federation.catalogue.get_cells()[cell], state=state))


def fill(federation: Federation, collection: str, documents: int) -> None:
    """Write notes into a new collection."""
    with closing(open_federated(federation, collection)) as store:
        for first in range(0, documents, BATCH):
            batch = [index_note(Note(number)) for number in range(first, min(first + BATCH, documents))]
            pipeline.write(store, EMBEDDER, batch, author=OWNER)


def read_answers(federation: Federation, collection: str, documents: int) -> list[object]:
    """Return the answers to some questions with every kind of search, with scores to the last digit."""
    chance = Random(3)
    answers: list[object] = []
    with notes.open_collection(open_federated(federation, collection)) as waylore:
        for number in chance.sample(range(documents), min(QUESTIONS, documents)):
            for method in METHODS:
                found = waylore.search(Note(number).text, method=method, record_use=False)
                assert not found.missing
                answers.append([(hit.passage.id, hit.score, str(hit.path)) for hit in found.hits])
    return answers


def measure(call: Callable[[], object]) -> float:
    """Return how many seconds a call takes."""
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


def time_move(federation: Federation, to: str) -> tuple[float, float]:
    """Move the collection, and return the seconds of copying and of emptying, without waits for readers."""
    catalogue = federation.catalogue
    with catalogue.lock_moves():
        copying = measure(lambda: copy_collection(catalogue, "notes", to, open_cell=open_cell, config=CONFIG))
        time.sleep(CONFIG.read_seconds)
        emptying = measure(lambda: empty_old_cell(catalogue, "notes", open_cell=open_cell, config=CONFIG))
    return copying, emptying


def count_slots(servers: Sequence[Server]) -> int:
    """Return how many replication slots, publications and subscriptions are left on all servers."""
    left = 0
    for server in servers:
        with psycopg.connect(server.url) as db:
            for table in ("pg_replication_slots", "pg_publication", "pg_subscription"):
                left += db.execute(f"SELECT count(*) FROM {table}".encode()).fetchall()[0][0]
    return left


def compare_moves(federation: Federation, documents: int) -> bool:
    """Print the speed of both ways to move; return whether the answers stayed equal."""
    for cell in ("east", "west"):  # so that the collection is placed in the cell that cannot publish
        set_state(federation, cell, "draining")
    fill(federation, "notes", documents)
    for cell in ("east", "west"):
        set_state(federation, cell, "active")
    before = read_answers(federation, "notes", documents)
    head = "copied in s | documents a second | emptied in s | equal answers"
    print(f"| {documents} documents | {head} |\n|---|---:|---:|---:|---:|")
    rates, are_equal = [], []
    for name, to in (("document by document", "east"), ("by replication", "west"), ("by replication, back", "east")):
        copying, emptying = time_move(federation, to)
        after = read_answers(federation, "notes", documents)
        equal = sum(one == other for one, other in zip(before, after, strict=True))
        rates.append(documents / copying)
        are_equal.append(before == after)
        print(f"| {name} | {copying:.1f} | {rates[-1]:.0f} | {emptying:.1f} | {equal} of {len(after)} |", flush=True)
        before = after
    print(f"\nreplication is {rates[1] / rates[0]:.1f} times as fast")
    return all(are_equal[1:])


def compare_drains(federation: Federation, collections: int, documents: int) -> bool:
    """Drain a cell of many small collections, four at a time and then one at a time; return whether all are whole."""
    names = [f"tenant{number:03}" for number in range(collections)]
    for cell in ("old", "west"):
        set_state(federation, cell, "draining")
    for name in names:
        fill(federation, name, documents)
    before = [read_answers(federation, name, documents) for name in names[:5]]
    is_equal = True
    for at_once, cell, to in ((4, "east", "west"), (1, "west", "east")):
        set_state(federation, to, "active")
        catalogue = federation.catalogue
        seconds = measure(lambda: admin.drain_cell(catalogue, cell, at_once=at_once, config=CONFIG))  # noqa: B023
        moved = len(catalogue.list_collections(to))
        is_equal &= moved >= collections and not catalogue.list_collections(cell)
        is_equal &= [read_answers(federation, name, documents) for name in names[:5]] == before
        print(f"drained {moved} collections, {at_once} at a time, in {seconds:.1f} s: {moved / seconds:.1f} a second")
    return is_equal


def main() -> int:
    """Print the comparison; return 1 if an answer changed or something was left on a server."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--collections", type=int, default=200, help="to drain")
    parser.add_argument("--size", type=int, default=5, help="documents of each collection to drain")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    with start_cells() as (federation, servers):
        is_good = compare_moves(federation, given.documents)
        is_good &= compare_drains(federation, given.collections, given.size)
        left = count_slots(servers)
        print(f"slots, publications and subscriptions left: {left}")
    return not is_good or bool(left)


if __name__ == "__main__":
    sys.exit(main())
