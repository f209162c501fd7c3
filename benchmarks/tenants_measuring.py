"""What `benchmarks.tenants` measures of one database: time, processor time, round trips, recall and bytes."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector
from tools.faults import proxy
from tools.postgres import Server

from benchmarks.latency import BARE, bare, measured
from benchmarks.multiplying import Sample, tenant
from benchmarks.tenants_databases import FEW, Size
from waylore.evaluation.datasets import Dataset
from waylore.protocols import Embedder
from waylore.recipes import RECIPES
from waylore.retrieval.search import search
from waylore.store.postgres.scope import key_of
from waylore.store.postgres.store import PostgresStore
from waylore.types.knowledge import EPOCH
from waylore.types.search import Filter, Query

ASKED = 20  # tenants that are asked, at the most
WARMED = 6  # times that a statement runs before it is prepared, and once more
Figures = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """Questions by the tenant that each goes to."""

    queries: dict[int, list[Query]]

    @property
    def all(self) -> list[tuple[int, Query]]:
        return [(number, query) for number, queries in self.queries.items() for query in queries]


def asked(dataset: Dataset, size: Size, made_of: Sample, embedder: Embedder) -> Asked:
    """The questions whose pages are there, as the copy would put them that each goes to."""
    random = np.random.default_rng(7)
    there = {c.document.uri for c in made_of.contributions}
    tenants = random.permutation(size.tenants)[:ASKED].tolist()
    queries: dict[int, list[Query]] = defaultdict(list)
    for place, question in enumerate(q for q in dataset.questions if q.gold <= there):
        text = made_of.said(made_of.marked(question.text), int(random.integers(size.copies)))
        queries[tenants[place % len(tenants)]].append(Query(text, embedder.embed_query(question.text)))
    return Asked(dict(queries))


@contextmanager
def opened(url: str, tenants: Sequence[int]) -> Iterator[dict[int, PostgresStore]]:
    with ExitStack() as stack:
        yield {n: stack.enter_context(closing(PostgresStore(url, tenant(n)))) for n in tenants}


SEARCHES: dict[str, Callable[[PostgresStore, Query], object]] = {
    BARE: lambda store, query: bare(store, query, RECIPES["hybrid"]),
    "hybrid": lambda store, query: search(store, None, query, RECIPES["hybrid"], now=EPOCH),
    "chain": lambda store, query: search(store, None, query, RECIPES["chain"], now=EPOCH),
}


def measure(server: Server, size: Size, of: Asked) -> Figures:
    """Everything of one database."""
    with opened(server.url_of(size.database, user="reader"), list(of.queries)) as stores:
        of = walked(stores, of)
        found: Figures = {"milliseconds": seconds(stores, of.queries)}
        found["processor"] = {name: processor(server, stores, of, name) for name in SEARCHES}
    found["round_trips"] = round_trips(server, size, of)
    found["recall@10"] = {
        "everything": recall(server, size, of, Filter()),
        "a tenth": recall(server, size, of, FEW),
    }
    found["questions"] = len(of.all)
    found["bytes a passage"] = bytes_a_passage(server, size)
    return found


def walked(stores: dict[int, PostgresStore], of: Asked) -> Asked:
    """The questions that name something known: without one, a chain search is a hybrid one."""
    those = {
        number: [q for q in queries if not search(stores[number], None, q, RECIPES["chain"], now=EPOCH).skipped]
        for number, queries in of.queries.items()
    }
    if not any(those.values()):
        raise SystemExit("no question names anything in this sample: give more --questions")
    return Asked({number: queries for number, queries in those.items() if queries})


def seconds(stores: dict[int, PostgresStore], queries: dict[int, list[Query]]) -> dict[str, dict[str, float]]:
    """p50, p95 and the median of each stage, in milliseconds."""
    taken: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number, of_tenant in queries.items():
        for name, stages in measured(stores[number], of_tenant, [RECIPES["hybrid"], RECIPES["chain"]]).items():
            for stage, times in stages.items():
                taken[name][stage].extend(1000 * t for t in times)
    return {
        name: {
            "p50": float(np.median(stages["total"])),
            "p95": float(np.percentile(stages["total"], 95)),
            **{stage: float(np.median(times)) for stage, times in stages.items() if stage != "total"},
        }
        for name, stages in taken.items()
    }


def processor(server: Server, stores: dict[int, PostgresStore], of: Asked, name: str) -> dict[str, float]:
    """Milliseconds of a processor that one search takes, on the server and here."""
    for number, query in of.all[:WARMED]:
        SEARCHES[name](stores[number], query)
    there, here = spent(server), time.process_time()
    for number, query in of.all:
        SEARCHES[name](stores[number], query)
    count = len(of.all) / 1000
    return {"server": (spent(server) - there) / count, "client": (time.process_time() - here) / count}


def spent(server: Server) -> float:
    """Seconds of a processor that the processes of a server that serve someone have used."""
    pid = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    times = [process.cpu_times() for process in psutil.Process(pid).children()]
    return float(sum(t.user + t.system for t in times))


def round_trips(server: Server, size: Size, of: Asked) -> dict[str, float]:
    """How often a search asks the server for an answer, at the median."""
    number, queries = next(iter(of.queries.items()))
    with (
        proxy(server.port) as between,
        opened(between.url(server.url_of(size.database, user="reader")), [number]) as stores,
    ):
        turns: dict[str, list[int]] = defaultdict(list)
        for name, ask in SEARCHES.items():
            for query in queries * (WARMED // len(queries) + 1):
                ask(stores[number], query)
            for query in queries:
                before = between.turns
                ask(stores[number], query)
                turns[name].append(between.turns - before)
    return {name: float(np.median(counted)) for name, counted in turns.items()}


def recall(server: Server, size: Size, of: Asked, where: Filter, most: int = 30) -> float:
    """How many of the ten nearest that the filter lets through `dense` finds."""
    exactly = """SELECT v.id FROM waylore.passage_vectors v WHERE v.collection = %s AND (%s::text[] IS NULL OR v.access IN (
        SELECT a.access FROM waylore.accesses a WHERE a.collection = v.collection AND a.labels && %s))
        ORDER BY v.vector <=> %s, v.id LIMIT 10"""
    labels = None if where.labels is None else sorted(where.labels)
    hits = []
    with (
        psycopg.connect(server.url_of(size.database), autocommit=True) as db,
        opened(server.url_of(size.database, user="reader"), list(of.queries)) as stores,
    ):
        register_vector(db)
        db.execute("SET enable_indexscan = off; SET max_parallel_workers_per_gather = 2; SET jit = off")
        for number, query in of.all[:most]:
            assert query.vector is not None  # every question has one
            near = (key_of(tenant(number)), labels, labels, HalfVector(query.vector))
            expected = {id_.hex for (id_,) in db.execute(exactly, near)}
            found = {s.id for s in stores[number].dense(query.vector, top_k=10, where=where)}
            hits.append(len(found & expected) / max(len(expected), 1))
    return float(np.mean(hits))


def bytes_a_passage(server: Server, size: Size) -> dict[str, dict[str, float]]:
    """What each table, and each index of it, takes on disk for one passage."""
    query = """SELECT t.relname, coalesce(i.relname, 'rows'), pg_table_size(coalesce(i.oid, t.oid))
        FROM pg_class t CROSS JOIN LATERAL (
          SELECT x.indexrelid AS oid, x.indexrelid::regclass::text AS relname FROM pg_index x WHERE x.indrelid = t.oid
          UNION ALL SELECT NULL, NULL) i
        WHERE t.relnamespace = 'waylore'::regnamespace AND t.relkind = 'r'"""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    with psycopg.connect(server.url_of(size.database)) as db:
        for table, part, taken in db.execute(query):
            found[table][part.removeprefix("waylore.")] = taken / size.passages
    return dict(found)
