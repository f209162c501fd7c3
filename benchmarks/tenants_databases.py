"""The databases that `benchmarks.tenants` measures: one for each size, made of a sample of a set, kept in a folder."""

import sys
import time
from dataclasses import dataclass, replace

import numpy as np
import psycopg
from psycopg import sql
from tools.postgres import HASTY, Server, Settings

from benchmarks.corpus import Matrix
from benchmarks.multiplying import Sample, build, thinned
from waylore.evaluation.datasets import Dataset
from waylore.indexing.pipeline import embedded, vectors_of
from waylore.protocols import Embedder
from waylore.types.knowledge import Contribution, Embeddable
from waylore.types.search import Filter

SAMPLE = 2_000  # passages that are written through the store, at the most
FEW = Filter(labels=frozenset(["few"]))  # lets a tenth through
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
    return Sample(
        embedded(pages(dataset, size), embedder),
        embedder.name,
        size.copies,
        size.tenants,
        pool(dataset, embedder) if size.copies > 1 else None,
    )


def pool(dataset: Dataset, embedder: Embedder) -> Matrix:
    """The vectors of all that the set's passages and facts say."""
    parts: list[Embeddable] = []
    for page in dataset.contributions:
        parts += [*page.passages, *page.facts]
    return np.stack(list(vectors_of(parts, embedder).values()))


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
            db.execute("CREATE ROLE reader LOGIN IN ROLE waylore_app")
