"""Load a sample's copies into the stores of one engine, and open them. Interrupted loads continue.

A load is a list of steps with their times. What is open has the address of a store, the processes of its servers, and
the bytes of its tables.
"""

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import apsw
import httpx
import psutil
import psycopg
from tools.postgres.builds import find_plain_build
from tools.postgres.server import Server, Settings, start_persistent_server
from tools.qdrant.server import QdrantServer, start_qdrant
from tools.waiting import wait_until

from benchmarks.scale.disk import measure_folder
from benchmarks.scale.measure import count_seconds
from benchmarks.scale.multiply import COPY, VECTORS, Progress, build_database, read_steps
from benchmarks.scale.sample import Sample
from benchmarks.tenants.databases import SERVER_SETTINGS, ensure_reader_role
from waylore.cells import admin
from waylore.cells.open import create_catalogue
from waylore.errors import NotFound
from waylore.store.postgres.candidates.admin import IndexAdmin
from waylore.store.sqlite.store import SqliteStore
from waylore.types.author import OWNER

CELLS = ("east", "north", "west")
BATCH = 1_000
GRAPH_SECONDS = 3_600.0  # that an index has to build its graphs
SETTINGS: Settings = {**SERVER_SETTINGS, "maintenance_work_mem": "5GB"}  # holds the graph of 3.3 million vectors
SETTINGS_OF_CELL: Settings = {"shared_buffers": "1500MB", "max_wal_size": "256MB"}
NO_SETTINGS: Settings = {}
TABLES = """SELECT relname, pg_total_relation_size(oid) FROM pg_class
    WHERE relnamespace = 'waylore'::regnamespace AND relkind = 'r'"""
Step = tuple[float, float, int]  # seconds, processor seconds, passages


@dataclass(frozen=True)
class Loaded:
    """A store with all copies."""

    url: str
    collections: str
    servers: Sequence[psutil.Process]
    steps: Mapping[str, Step]  # by kind
    tables: Mapping[str, int]  # bytes of each table with its indexes


def report(started: float, step: str) -> None:
    """Print a step and the time since the start."""
    print(f"  {time.perf_counter() - started:6.0f} s  {step[:110]}", file=sys.stderr, flush=True)


@contextmanager
def load_postgres(folder: Path, samples: Sequence[Sample]) -> Iterator[Loaded]:
    """Load a server."""
    [sample] = samples
    with start_cell(folder, sample) as server:
        yield open_servers([server], samples, server.build_url("postgres", user="reader"))


@contextmanager
def load_cells(folder: Path, samples: Sequence[Sample]) -> Iterator[Loaded]:
    """Load a server for each sample, and make a catalogue of them."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(start_cell(folder / name, sample, SETTINGS_OF_CELL))
            for name, sample in zip(CELLS, samples, strict=True)
        ]
        url = f"sqlite:///{(folder / 'catalogue').resolve()}"
        make_catalogue(url, [server.build_url("postgres", user="reader") for server in servers], samples)
        yield open_servers(servers, samples, f"cells+{url}")


@contextmanager
def load_qdrant(folder: Path, samples: Sequence[Sample]) -> Iterator[Loaded]:
    """Load a server without vector indexes, and an index on Qdrant, which an interrupted run starts anew."""
    [sample] = samples
    with start_cell(folder, sample, with_vector_indexes=False) as server, start_qdrant() as index:
        roots = [psutil.Process(server.pid), psutil.Process(index.pid)]
        started, used = time.perf_counter(), count_seconds(roots)
        sent = feed_index(server, index, sample)
        spent = (time.perf_counter() - started, count_seconds(roots) - used, sent)
        loaded = open_servers([server], samples, server.build_url("postgres", user="reader"))
        tables = {**loaded.tables, "qdrant": measure_folder(index.storage)}
        yield replace(loaded, servers=roots, steps={**loaded.steps, VECTORS: spent}, tables=tables)


def feed_index(server: Server, index: QdrantServer, sample: Sample) -> int:
    """Send everything to an index, and return the number of items."""
    with closing(IndexAdmin(server.url, sample.collections[0])) as administration:
        with suppress(NotFound):
            administration.drop(is_forced=True)
        administration.create(index.url)
        sent = sum(step.sent for step in administration.feed())
    with httpx.Client(base_url=index.url) as client:
        wait_until(partial(has_graphs, client), seconds=GRAPH_SECONDS)
    return sent


def has_graphs(client: httpx.Client) -> bool:
    """Return whether an index has built the graphs of all of its vectors: it does so after it has confirmed the points."""
    names = [one["name"] for one in client.get("/collections").json()["result"]["collections"]]
    return all(client.get(f"/collections/{name}").json()["result"]["status"] == "green" for name in names)


@contextmanager
def load_sqlite(folder: Path, samples: Sequence[Sample]) -> Iterator[Loaded]:
    """Write a file through the store."""
    [sample] = samples
    path = folder / "scale.waylore"
    with closing(SqliteStore(path, sample.collections[0])) as store:
        write_copies(store, sample, folder / "steps.jsonl")
    yield Loaded(str(path), sample.collections[0], [], read_step_file(folder / "steps.jsonl"), measure_file(path))


LOADS: Mapping[str, Callable[[Path, Sequence[Sample]], AbstractContextManager[Loaded]]] = {
    "postgres": load_postgres,
    "cells": load_cells,
    "qdrant": load_qdrant,
    "sqlite": load_sqlite,
}

# -- servers -------------------------------------------------------------------------------------------


@contextmanager
def start_cell(
    folder: Path, sample: Sample, settings: Settings = NO_SETTINGS, *, with_vector_indexes: bool = True
) -> Iterator[Server]:
    """Start a server with all copies of a sample; the first time it is loaded."""
    with start_persistent_server(find_plain_build(), folder, settings={**SETTINGS, **settings}) as server:
        roots = [psutil.Process(server.pid)]
        progress = Progress(partial(report, time.perf_counter()), partial(count_seconds, roots))
        build_database(server.url, sample, progress, with_vector_indexes=with_vector_indexes)
        ensure_reader_role(server)
        yield server


def open_servers(servers: Sequence[Server], samples: Sequence[Sample], url: str) -> Loaded:
    """Return what servers have loaded."""
    steps: dict[str, Step] = {}
    tables: Counter[str] = Counter()
    for server in servers:
        for kind, step in read_steps(server.url).items():
            steps[kind] = tuple(map(sum, zip(steps.get(kind, (0, 0, 0)), step, strict=True)))  # type: ignore[assignment]
        with psycopg.connect(server.url) as db:
            tables.update(dict(db.execute(TABLES).fetchall()))
    collections = ",".join(name for sample in samples for name in sample.collections)
    return Loaded(url, collections, [psutil.Process(server.pid) for server in servers], steps, tables)


def make_catalogue(url: str, urls: Sequence[str], samples: Sequence[Sample]) -> None:
    """List cells in a catalogue, each with the collection of its sample."""
    with closing(create_catalogue(url)) as catalogue:
        for name, cell, sample in zip(CELLS, urls, samples, strict=True):
            admin.add_cell(catalogue, name, cell)
            placed = catalogue.place(sample.collections[0])
            catalogue.change(placed, replace(placed, cell=name))


# -- files ---------------------------------------------------------------------------------------------


def write_copies(store: SqliteStore, sample: Sample, record: Path) -> None:
    """Write the copies that a file lacks, and record the time of each."""
    size, started = len(sample.pages), time.perf_counter()
    for place, copy in enumerate(sample.numbers):
        have = store.statistics().documents - place * size
        if have >= size:
            continue
        report(started, f"{COPY} {copy}")
        begun, used = time.perf_counter(), time.process_time()
        documents = islice(sample.make_documents(copy), max(have, 0), None)
        while batch := list(islice(documents, BATCH)):
            store.write(batch, author=OWNER, model=sample.model)
        spent = (time.perf_counter() - begun, time.process_time() - used, size - max(have, 0))
        with record.open("a", encoding="utf-8") as file:
            file.write(json.dumps([COPY, *spent]) + "\n")


def read_step_file(record: Path) -> dict[str, Step]:
    """Return the sums of recorded steps by kind."""
    found: dict[str, list[Step]] = defaultdict(list)
    for line in record.read_text("utf-8").splitlines():
        kind, seconds, processor, passages = json.loads(line)
        found[kind].append((seconds, processor, passages))
    return {
        kind: (sum(s for s, _, _ in steps), sum(p for _, p, _ in steps), sum(n for *_, n in steps))
        for kind, steps in found.items()
    }


def measure_file(path: Path) -> dict[str, int]:
    """Return the bytes of each table of a file, with its indexes."""
    query = """SELECT coalesce((SELECT tbl_name FROM sqlite_schema s WHERE s.name = d.name), d.name), sum(d.pgsize)
        FROM dbstat d WHERE d.aggregate = TRUE GROUP BY 1"""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        return dict(db.execute(query))
