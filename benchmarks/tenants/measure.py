"""Measure one database of `benchmarks.tenants`: time, processor time, round trips, recall and bytes."""

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
from tools.faults import start_proxy
from tools.postgres.server import Server

from benchmarks.latency import BARE, measure_stages, search_bare
from benchmarks.processes import count_seconds
from benchmarks.scale.sample import Sample, name_tenant
from benchmarks.tenants.databases import TENTH_FILTER, DatabaseSize
from waylore.evaluation.datasets import Dataset
from waylore.protocols import Embedder
from waylore.recipes import RECIPES
from waylore.retrieval.search import search
from waylore.store.postgres.scope import compute_key
from waylore.store.postgres.store import PostgresStore
from waylore.types.knowledge import EPOCH
from waylore.types.search import Filter, Query

MAX_SEARCHED_TENANTS = 20
WARM_UP_CALLS = 6  # psycopg prepares a statement after five runs
Figures = dict[str, Any]


@dataclass(frozen=True)
class TenantQueries:
    """The questions of each tenant."""

    by_tenant: dict[int, list[Query]]

    @property
    def all(self) -> list[tuple[int, Query]]:
        return [(number, query) for number, queries in self.by_tenant.items() for query in queries]


def assign_questions(dataset: Dataset, size: DatabaseSize, sample: Sample, embedder: Embedder) -> TenantQueries:
    """Assign the questions whose pages are in the sample to tenants, in the words of a random copy."""
    random = np.random.default_rng(7)
    sampled = {c.document.uri for c in sample.contributions}
    tenants = random.permutation(size.tenants)[:MAX_SEARCHED_TENANTS].tolist()
    queries: dict[int, list[Query]] = defaultdict(list)
    for place, question in enumerate(q for q in dataset.questions if q.gold <= sampled):
        text = sample.rename_copy(sample.mark(question.text), int(random.integers(size.copies)))
        queries[tenants[place % len(tenants)]].append(Query(text, embedder.embed_query(question.text)))
    return TenantQueries(dict(queries))


@contextmanager
def open_stores(url: str, tenants: Sequence[int]) -> Iterator[dict[int, PostgresStore]]:
    with ExitStack() as stack:
        yield {n: stack.enter_context(closing(PostgresStore(url, name_tenant(n)))) for n in tenants}


SEARCHES: dict[str, Callable[[PostgresStore, Query], object]] = {
    BARE: lambda store, query: search_bare(store, query, RECIPES["hybrid"]),
    "hybrid": lambda store, query: search(store, None, query, RECIPES["hybrid"], now=EPOCH),
    "chain": lambda store, query: search(store, None, query, RECIPES["chain"], now=EPOCH),
}


def measure_database(server: Server, size: DatabaseSize, workload: TenantQueries) -> Figures:
    """Measure all figures of one database."""
    with open_stores(server.build_url(size.database, user="reader"), list(workload.by_tenant)) as stores:
        workload = keep_graph_questions(stores, workload)
        found: Figures = {"milliseconds": measure_milliseconds(stores, workload.by_tenant)}
        found["processor"] = {name: measure_processor(server, stores, workload, name) for name in SEARCHES}
    found["round_trips"] = count_round_trips(server, size, workload)
    found["recall@10"] = {
        "everything": measure_recall(server, size, workload, Filter()),
        "a tenth": measure_recall(server, size, workload, TENTH_FILTER),
    }
    found["questions"] = len(workload.all)
    found["bytes a passage"] = measure_bytes(server, size)
    return found


def keep_graph_questions(stores: dict[int, PostgresStore], workload: TenantQueries) -> TenantQueries:
    """Keep the questions that use the graph; for the others a chain search equals a hybrid search."""
    kept = {
        number: [q for q in queries if not search(stores[number], None, q, RECIPES["chain"], now=EPOCH).skip_reason]
        for number, queries in workload.by_tenant.items()
    }
    if not any(kept.values()):
        raise SystemExit("no question names an entity of this sample; pass more --questions")
    return TenantQueries({number: queries for number, queries in kept.items() if queries})


def measure_milliseconds(
    stores: dict[int, PostgresStore], queries: dict[int, list[Query]]
) -> dict[str, dict[str, float]]:
    """Return p50, p95 and the median of each stage, in milliseconds."""
    taken: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number, of_tenant in queries.items():
        for name, stages in measure_stages(
            stores[number], None, of_tenant, [RECIPES["hybrid"], RECIPES["chain"]]
        ).items():
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


def measure_processor(
    server: Server, stores: dict[int, PostgresStore], workload: TenantQueries, name: str
) -> dict[str, float]:
    """Return the processor milliseconds of one search, on the server and in this process."""
    for number, query in workload.all[:WARM_UP_CALLS]:
        SEARCHES[name](stores[number], query)
    server_before, client_before = read_server_seconds(server), time.process_time()
    for number, query in workload.all:
        SEARCHES[name](stores[number], query)
    count = len(workload.all) / 1000
    return {
        "server": (read_server_seconds(server) - server_before) / count,
        "client": (time.process_time() - client_before) / count,
    }


def read_server_seconds(server: Server) -> float:
    """Return the processor seconds that the processes of the server have used so far."""
    return count_seconds(psutil.Process(server.pid).children())


def count_round_trips(server: Server, size: DatabaseSize, workload: TenantQueries) -> dict[str, float]:
    """Return the median number of round trips of each search."""
    number, queries = next(iter(workload.by_tenant.items()))
    with (
        start_proxy(server.port) as between,
        open_stores(between.build_url(server.build_url(size.database, user="reader")), [number]) as stores,
    ):
        trips: dict[str, list[int]] = defaultdict(list)
        for name, run in SEARCHES.items():
            for query in queries * (WARM_UP_CALLS // len(queries) + 1):
                run(stores[number], query)
            for query in queries:
                before = between.round_trips
                run(stores[number], query)
                trips[name].append(between.round_trips - before)
    return {name: float(np.median(counts)) for name, counts in trips.items()}


def measure_recall(
    server: Server, size: DatabaseSize, workload: TenantQueries, where: Filter, limit: int = 30
) -> float:
    """Return the share of the exact ten nearest that match the filter and that the store finds."""
    exact = """SELECT v.id FROM waylore.passage_vectors v WHERE v.collection = %s AND (%s::text[] IS NULL OR v.access IN (
        SELECT a.access FROM waylore.accesses a WHERE a.collection = v.collection AND a.labels && %s))
        ORDER BY v.vector <=> %s, v.id LIMIT 10"""
    labels = None if where.labels is None else sorted(where.labels)
    hits = []
    with (
        psycopg.connect(server.build_url(size.database), autocommit=True) as db,
        open_stores(server.build_url(size.database, user="reader"), list(workload.by_tenant)) as stores,
    ):
        register_vector(db)
        db.execute("SET enable_indexscan = off; SET max_parallel_workers_per_gather = 2; SET jit = off")
        for number, query in workload.all[:limit]:
            assert query.vector is not None  # every question has one
            near = (compute_key(name_tenant(number)), labels, labels, HalfVector(query.vector))
            expected = {id_.hex for (id_,) in db.execute(exact, near)}
            found = {s.id for s in stores[number].dense(query.vector, top_k=10, where=where)}
            hits.append(len(found & expected) / max(len(expected), 1))
    return float(np.mean(hits))


def measure_bytes(server: Server, size: DatabaseSize) -> dict[str, dict[str, float]]:
    """Return the bytes on disk per passage of each table and each index."""
    query = """SELECT t.relname, coalesce(i.relname, 'rows'), pg_table_size(coalesce(i.oid, t.oid))
        FROM pg_class t CROSS JOIN LATERAL (
          SELECT x.indexrelid AS oid, x.indexrelid::regclass::text AS relname FROM pg_index x WHERE x.indrelid = t.oid
          UNION ALL SELECT NULL, NULL) i
        WHERE t.relnamespace = 'waylore'::regnamespace AND t.relkind = 'r'"""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    with psycopg.connect(server.build_url(size.database)) as db:
        for table, part, taken in db.execute(query):
            found[table][part.removeprefix("waylore.")] = taken / size.passages
    return dict(found)
