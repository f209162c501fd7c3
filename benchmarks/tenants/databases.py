"""Create the databases that `benchmarks.tenants` measures: one for each size, from a sample of a set.

They are stored in a folder for later runs. Nothing is measured here.
"""

import sys
import time
from dataclasses import dataclass, replace

import numpy as np
import psycopg
from psycopg import sql
from tools.postgres.server import FAST_SETTINGS, Server, Settings

from benchmarks.corpus import Matrix
from benchmarks.scale.multiply import Progress, build_database
from benchmarks.scale.sample import Sample, thin_page
from waylore.evaluation.datasets import Dataset
from waylore.indexing.pipeline import embed_documents, embed_texts
from waylore.protocols import Embedder
from waylore.types.knowledge import Embeddable, IndexedDocument
from waylore.types.search import Filter

MAX_SAMPLE_PASSAGES = 2_000  # written through the store; larger tenants get copies
TENTH_FILTER = Filter(labels=frozenset(["few"]))  # matches a tenth of the pages
SERVER_SETTINGS: Settings = {
    **FAST_SETTINGS,
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
class DatabaseSize:
    """The size of a database: its passages, spread evenly over its tenants, and the maximum facts of a page."""

    passages: int
    tenants: int
    facts: int

    @property
    def passages_per_tenant(self) -> int:
        return self.passages // self.tenants

    @property
    def sample_passages(self) -> int:
        return min(MAX_SAMPLE_PASSAGES, self.passages_per_tenant)

    @property
    def copies(self) -> int:
        return self.passages_per_tenant // self.sample_passages

    @property
    def database(self) -> str:
        return f"passages_{self.passages}_tenants_{self.tenants}_facts_{self.facts}"

    @property
    def alone(self) -> "DatabaseSize":
        """The size of a database with only one of the tenants."""
        return replace(self, passages=self.passages_per_tenant, tenants=1)

    def __str__(self) -> str:
        return f"{self.passages:,} passages, {self.tenants:,} tenant{'s' * (self.tenants > 1)}"


def select_pages(dataset: Dataset, size: DatabaseSize) -> list[IndexedDocument]:
    """Select pages, those with answers first, so that a small tenant can answer some questions.

    A tenth of the pages has the label `few`, the others have `many`.
    """
    answers = dict.fromkeys(uri for question in dataset.questions for uri in sorted(question.gold))
    order = {uri: place for place, uri in enumerate(answers)}
    pages = sorted(dataset.pages, key=lambda c: order.get(c.document.uri, len(order)))
    return [
        thin_page(
            replace(c, document=replace(c.document, labels=frozenset(["many" if i % 10 else "few"]))),
            size.facts,
        )
        for i, c in enumerate(pages[: size.sample_passages])
    ]


def make_sample(dataset: Dataset, size: DatabaseSize, embedder: Embedder) -> Sample:
    """Make the sample that the database is built from."""
    return Sample(
        embed_documents(select_pages(dataset, size), embedder),
        embedder.name,
        size.copies,
        size.tenants,
        embed_pool(dataset, embedder) if size.copies > 1 else None,
    )


def embed_pool(dataset: Dataset, embedder: Embedder) -> Matrix:
    """Embed all passages and facts of the set."""
    parts: list[Embeddable] = []
    for page in dataset.pages:
        parts += [*page.passages, *page.facts]
    return np.stack(list(embed_texts(parts, embedder).values()))


def ensure_database(server: Server, size: DatabaseSize, sample: Sample) -> None:
    """Create the database unless it exists; an unfinished one is continued."""
    name, unready = sql.Identifier(size.database), sql.Identifier(f"{size.database}_unready")
    with psycopg.connect(server.url, autocommit=True) as db:
        if db.execute("SELECT 1 FROM pg_database WHERE datname = %s", [size.database]).fetchone():
            return
        if not db.execute("SELECT 1 FROM pg_database WHERE datname = %s", [f"{size.database}_unready"]).fetchone():
            db.execute(sql.SQL("CREATE DATABASE {} STRATEGY file_copy").format(unready))
        start = time.perf_counter()

        def report(step: str) -> None:
            print(f"  {time.perf_counter() - start:6.0f} s  {step}", file=sys.stderr, flush=True)

        report(str(size))
        build_database(server.build_url(f"{size.database}_unready"), sample, Progress(report))
        report("done")
        db.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(unready, name))


def ensure_reader_role(server: Server) -> None:
    """Create the role that searches. It owns no tables, so opening a store builds no index."""
    with psycopg.connect(server.url, autocommit=True) as db:
        if not db.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reader'").fetchone():
            db.execute("CREATE ROLE reader LOGIN IN ROLE waylore_app")
