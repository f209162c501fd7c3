"""How long searches take on PostgreSQL, by how much is in the tables and how many tenants it belongs to.

    python -m benchmarks.tenants --data SETS --model WEIGHTS --vectors DIR --folder DIR
        --passages 100000 1000000 --tenants 1 1000 --json tenants.json

A database for each pair, made of a sample of the set (`benchmarks.multiplying`) and kept in the folder: the first
run loads, later ones only measure. A tenant has passages / tenants of them; what it would take alone, in tables of its
own, is measured as well. Each question goes to a tenant and a copy by lot, as the role that applications have. Printed
are p50 and p95 of bare hybrid, hybrid and chain, the ratios, the round trips on the wire, the processor time
that the server and this process spend on a search, recall@10 of `dense` against an exact scan, for one who may see
everything and for one who may see a tenth, and bytes a passage. Quality is not measured here.

A page keeps its first `--facts`, so that a million fit on a small disk. The index of the names' vectors is not
built: none of these searches asks for it.
"""

import argparse
import gc
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector
from psycopg import sql
from tools.faults import proxy
from tools.postgres import HASTY, Server, Settings, kept, plain

from benchmarks.latency import BARE, bare, measured
from benchmarks.multiplying import Sample, build, tenant, thinned
from weft.config import RECIPES
from weft.evaluation.datasets import Dataset, load
from weft.evaluation.indexing import add_embedder_options, chosen_embedder
from weft.indexing.pipeline import embedded
from weft.models import Embedder
from weft.retrieval.search import search
from weft.store.postgres import PostgresStore
from weft.store.postgres_scope import key_of
from weft.types import EPOCH, Contribution, Filter, Query

SAMPLE = 2_000  # passages that are written through the store, at the most
ASKED = 20  # tenants that are asked, at the most
FEW = Filter(labels=frozenset(["few"]))  # lets a tenth through
WARMED = 6  # times that a statement runs before it is prepared, and once more
SETTINGS: Settings = {
    **HASTY,
    "wal_level": "minimal",
    "max_wal_senders": 0,
    "max_wal_size": "1GB",
    "shared_buffers": "4GB",
    "effective_cache_size": "16GB",
    "work_mem": "64MB",
    "maintenance_work_mem": "3GB",
    "random_page_cost": "1.1",
    "autovacuum": "off",
    "shared_preload_libraries": "pg_stat_statements",
}
Figures = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """So many passages in the tables, the same number for each tenant."""

    passages: int
    tenants: int
    facts: int

    @property
    def each(self) -> int:
        return self.passages // self.tenants

    @property
    def sampled(self) -> int:
        return min(SAMPLE, self.each)

    @property
    def copies(self) -> int:
        return self.each // self.sampled

    @property
    def database(self) -> str:
        return f"passages_{self.passages}_tenants_{self.tenants}_facts_{self.facts}"

    @property
    def alone(self) -> "Size":
        """One such tenant, in tables of its own."""
        return replace(self, passages=self.each, tenants=1)

    def __str__(self) -> str:
        return f"{self.passages:,} passages, {self.tenants:,} tenant{'s' * (self.tenants > 1)}"


# -- the databases -----------------------------------------------------------------------------------------


def pages(dataset: Dataset, size: Size) -> list[Contribution]:
    """The pages that questions ask for first, so that a small tenant can answer some; a tenth is for few."""
    asked = dict.fromkeys(uri for question in dataset.questions for uri in sorted(question.gold))
    order = {uri: place for place, uri in enumerate(asked)}
    chosen = sorted(dataset.contributions, key=lambda c: order.get(c.document.uri, len(order)))[: size.sampled]
    return [
        thinned(
            replace(c, document=replace(c.document, labels=frozenset(["many" if i % 10 else "few"]))),
            size.facts,
        )
        for i, c in enumerate(chosen)
    ]


def sample(dataset: Dataset, size: Size, embedder: Embedder) -> Sample:
    """What the database is made of."""
    return Sample(embedded(pages(dataset, size), embedder), embedder.name, size.copies, size.tenants)


def ensure(server: Server, size: Size, made_of: Sample) -> None:
    """Make the database, unless it is there; one that was not finished is made anew."""
    name, unready = sql.Identifier(size.database), sql.Identifier(f"{size.database}_unready")
    with psycopg.connect(server.url, autocommit=True) as db:
        if db.execute("SELECT 1 FROM pg_database WHERE datname = %s", [size.database]).fetchone():
            return
        db.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(unready))
        db.execute(sql.SQL("CREATE DATABASE {} STRATEGY file_copy").format(unready))
        start = time.perf_counter()

        def tell(what: str) -> None:
            print(f"  {time.perf_counter() - start:6.0f} s  {what}", file=sys.stderr, flush=True)

        tell(str(size))
        build(server.url_of(f"{size.database}_unready"), made_of, tell)
        tell("done")
        db.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(unready, name))


def ensure_reader(server: Server) -> None:
    """The role that asks: it owns nothing, so that opening a store builds no index."""
    with psycopg.connect(server.url, autocommit=True) as db:
        if not db.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reader'").fetchone():
            db.execute("CREATE ROLE reader LOGIN IN ROLE weft_app")


# -- what is asked -----------------------------------------------------------------------------------------


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


# -- what is measured --------------------------------------------------------------------------------------


def measure(server: Server, size: Size, of: Asked) -> Figures:
    """Everything of one database."""
    url = server.url_of(size.database, user="reader")
    warmed = dict(list(of.queries.items())[:1])
    with opened(url, list(of.queries)) as stores:
        seconds(stores, warmed)
        found: Figures = {"milliseconds": seconds(stores, of.queries)}
        found["processor"] = {name: processor(server, stores, of, name) for name in SEARCHES}
    found["round_trips"] = round_trips(server, size, of)
    found["recall@10"] = {
        "everything": recall(server, size, of, Filter()),
        "a tenth": recall(server, size, of, FEW),
    }
    found["bytes a passage"] = bytes_a_passage(server, size)
    return found


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
    """How often a search waits for the server, at the median: once for each time that it speaks after it listened."""
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
    exactly = """SELECT v.id FROM weft.passage_vectors v WHERE v.collection = %s AND (%s::text[] IS NULL OR v.access IN (
        SELECT a.access FROM weft.accesses a WHERE a.collection = v.collection AND a.labels && %s))
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
        WHERE t.relnamespace = 'weft'::regnamespace AND t.relkind = 'r'"""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    with psycopg.connect(server.url_of(size.database)) as db:
        for table, part, taken in db.execute(query):
            found[table][part.removeprefix("weft.")] = taken / size.passages
    return dict(found)


# -- the report --------------------------------------------------------------------------------------------


def table(results: dict[Size, Figures]) -> str:
    """A line for each database, and what the goals are about."""
    head = "ms, p50 (p95)".ljust(34) + "".join(f"{name:>18}" for name in SEARCHES)
    lines = [head + f"{'chain / bare':>14}{'trips':>7}{'cpu ms':>8}{'recall':>8}{'a tenth':>9}"]
    for size, found in results.items():
        times = found["milliseconds"]
        cells = [f"{times[name]['p50']:.1f} ({times[name]['p95']:.1f})" for name in SEARCHES]
        ratio = times["chain"]["p50"] / times[BARE]["p50"]
        recalls = found["recall@10"]
        lines.append(
            f"{size!s:34}"
            + "".join(f"{cell:>18}" for cell in cells)
            + f"{ratio:>13.2f}x{found['round_trips']['chain']:>7.0f}{found['processor']['chain']['server']:>8.1f}"
            + f"{recalls['everything']:>8.3f}{recalls['a tenth']:>9.3f}"
        )
    return "\n".join([*lines, *compared(results)])


def compared(results: dict[Size, Figures]) -> Iterator[str]:
    """p50 with many tenants against that of one: with as many passages, and with as many as each of them has."""
    for size, found in results.items():
        one = replace(size, tenants=1)
        for against, other in ((f"one tenant of {one.passages:,}", one), ("such a tenant alone", size.alone)):
            if size.tenants > 1 and other in results:
                ratios = [
                    f"{name} {found['milliseconds'][name]['p50'] / results[other]['milliseconds'][name]['p50']:.2f}x"
                    for name in SEARCHES
                ]
                yield f"{size}, against {against}: {', '.join(ratios)}"


def wanted(options: argparse.Namespace) -> list[Size]:
    """The sizes asked for, and each tenant of many alone; one that cannot be made of whole copies is refused."""
    pairs = [Size(p, t, options.facts) for p in options.passages for t in options.tenants]
    sizes = dict.fromkeys([*(size.alone for size in pairs if size.tenants > 1), *pairs])
    for size in sizes:
        if not size.each or size.each % size.sampled:
            raise SystemExit(f"{size}: give each tenant up to {SAMPLE:,} passages, or a multiple of that")
    return list(sizes)


def main() -> None:
    """Load what is not there, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="musique")
    parser.add_argument("--passages", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--tenants", type=int, nargs="+", default=[1, 1_000])
    parser.add_argument("--facts", type=int, default=4, help="that a page keeps")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--load-only", action="store_true")
    parser.add_argument("--json", type=Path)
    add_embedder_options(parser)
    options = parser.parse_args()
    embedder, dataset = chosen_embedder(options), load(options.data / options.set, sample=options.questions)
    results: dict[Size, Figures] = {}
    with (
        TemporaryDirectory() as passing,
        kept(plain(), options.folder or Path(passing), settings=SETTINGS) as server,
    ):
        for size in wanted(options):
            made_of = sample(dataset, size, embedder)
            ensure(server, size, made_of)
            ensure_reader(server)
            if not options.load_only:
                gc.freeze()
                results[size] = measure(server, size, asked(dataset, size, made_of, embedder))
    print(table(results))
    if options.json:
        told = {size.database: figures for size, figures in results.items()}
        options.json.write_text(json.dumps(told, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
