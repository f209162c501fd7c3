"""Build a PostgreSQL database of any size from a small sample, by copying the rows that Waylore wrote with SQL.

A million passages take an hour through `store.write`. Here only the sample is written that way. Then each table
is filled with copies of its rows, for each tenant and within a tenant. Each copy has ids and texts of its own
(`benchmarks.scale.sample`). The vectors of copies are mixed from a pool of other vectors, because nearly equal
vectors would make a vector index that no search can leave. Counters and frequencies are correct:
`store.find_remains` finds nothing. The words and vectors of tenants are interleaved, as if the tenants had
written in turns. Copies are written in pieces, a transaction each, and indexes are built at the end, one after another.
A run that was interrupted continues behind the last of these steps. Nothing is measured here but the time of steps.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import psycopg
from pgvector.psycopg import register_vector

from benchmarks.scale.copies import Connection, copy_rows, number_terms, read_sample, write_piece
from benchmarks.scale.sample import Sample
from benchmarks.scale.sql import (
    CREATE_SAMPLE,
    CREATE_STEPS,
    DROP_SAMPLE,
    INSERT_ACCESSES,
    SELECT_CONSTRAINTS,
    SELECT_INDEXES,
    TABLES,
    UPDATE_COUNTERS,
)
from waylore.store.postgres import vector_indexes as indexing
from waylore.store.postgres.scope import compute_key
from waylore.store.postgres.search import MAX_EXACT_PASSAGES
from waylore.store.postgres.store import PostgresStore
from waylore.types.author import OWNER
from waylore.types.results import Statistics

BATCH_PAGES = 250
PIECE_PASSAGES = 50_000  # of a transaction, at least one copy
WRITE, COPY, INDEX, VECTORS = "write", "copy", "index", "vectors"  # first words of the names of steps


@dataclass(frozen=True)
class Progress:
    """What watches a build: `report` gets the name of each step, `count_seconds` returns processor seconds so far."""

    report: Callable[[str], None] = lambda _: None
    count_seconds: Callable[[], float] = time.process_time


SILENT = Progress()


def build_database(url: str, sample: Sample, progress: Progress = SILENT, *, with_vector_indexes: bool = True) -> None:
    """Fill an empty database with all copies of a sample and index it; `url` must be that of a superuser.

    If a run was interrupted, call it again with the same sample.
    """
    db: Connection
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(CREATE_STEPS)
        run = partial(run_step, db, progress)
        if is_done(db, "clean"):
            return
        run(f"{WRITE} the sample", partial(_write_sample, url, sample), len(sample.pages))
        db.execute("SET search_path = waylore, public; SET jit = off; SET max_parallel_workers_per_gather = 0")
        register_vector(db)
        run("prepare", partial(_prepare, db, sample))
        last = copy_pieces(db, sample, progress)
        run("count", partial(db.execute, UPDATE_COUNTERS, {"copies": sample.copies, "next_term": last + 1}))
        for (statement,) in db.execute("SELECT statement FROM sample.indexes ORDER BY number").fetchall():
            run(f"{INDEX} {statement}", partial(db.execute, statement))
        run(f"{INDEX} vacuum", partial(db.execute, "VACUUM ANALYZE"))
        if with_vector_indexes:
            run(VECTORS, partial(build_vector_indexes, db, sample), sample.passages)
        run("clean", partial(db.execute, DROP_SAMPLE))
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CHECKPOINT")


def is_done(db: Connection, name: str) -> bool:
    """Return whether a step is done."""
    return db.execute("SELECT 1 FROM sample.steps WHERE step = %s", [name]).fetchone() is not None


def run_step(db: Connection, progress: Progress, name: str, work: Callable[[], object], passages: int = 0) -> None:
    """Do a step and record it with its time, unless it is done. Both are one transaction, if PostgreSQL allows it."""
    if is_done(db, name):
        return
    progress.report(name)
    started, used = time.perf_counter(), progress.count_seconds()

    def finish() -> None:
        work()
        spent = (time.perf_counter() - started, progress.count_seconds() - used)
        db.execute("INSERT INTO sample.steps VALUES (%s, %s, %s, %s)", [name, *spent, passages])

    if name in (VECTORS, f"{INDEX} vacuum") or name.startswith(WRITE):  # these do no harm if they run again
        finish()
    else:
        with db.transaction():
            finish()


def read_steps(url: str) -> dict[str, tuple[float, float, int]]:
    """Return the seconds, processor seconds and passages of all steps, by the first word of their names."""
    query = """SELECT split_part(step, ' ', 1), sum(seconds), sum(processor), sum(passages)::int8
        FROM sample.steps GROUP BY 1"""
    with psycopg.connect(url) as db:
        return {kind: (seconds, processor, passages) for kind, seconds, processor, passages in db.execute(query)}


def copy_pieces(db: Connection, sample: Sample, progress: Progress) -> int:
    """Write all copies that are not written, piece by piece, and return the highest number of a term."""
    rows = read_sample(db, sample)
    numbered = number_terms(rows)
    per_piece = max(PIECE_PASSAGES // (len(sample.pages) * sample.tenants), 1)
    last = 0
    for start in range(0, sample.copies, per_piece):
        copies = sample.numbers[start : start + per_piece]
        terms = [next(numbered) for _ in copies]
        last = terms[-1][1]
        work = partial(write_piece, db, rows, dict(zip(copies, (numbers for numbers, _ in terms), strict=True)))
        passages = len(copies) * len(sample.pages) * sample.tenants
        run_step(db, progress, f"{COPY} {copies[0]} to {copies[-1]}", work, passages)
    return last


def _write_sample(url: str, sample: Sample) -> None:
    with closing(PostgresStore(url, sample.collections[0])) as store:
        for start in range(0, len(sample.pages), BATCH_PAGES):
            store.write(sample.pages[start : start + BATCH_PAGES], author=OWNER, model=sample.model)


def _prepare(db: Connection, sample: Sample) -> None:
    """Copy the sample aside, empty all tables, and drop the indexes."""
    for statement in CREATE_SAMPLE:
        db.execute(statement)
    with db.cursor().copy("COPY collections (collection, name) FROM STDIN") as rows:
        for name in sample.collections[1:]:
            rows.write_row((compute_key(name), name))
    db.execute("CREATE TABLE sample.tenants AS SELECT collection, mark FROM collections ORDER BY mark")
    copy_rows(db, "sample.grains (id, grain)", sample.entity_grains.items())
    copy_rows(db, "sample.fact_grains (id, grain)", sample.fact_grains.items())
    copy_rows(db, "sample.indexes (number, statement)", enumerate(_drop_indexes(db)))
    db.execute(f"TRUNCATE {', '.join(TABLES)}")
    db.execute(INSERT_ACCESSES, {"copies": sample.copies})
    db.execute("ANALYZE")


def _drop_indexes(db: Connection) -> list[str]:
    """Drop the indexes and return the statements that create them again."""
    constraints, indexes = list(db.execute(SELECT_CONSTRAINTS)), list(db.execute(SELECT_INDEXES))
    for table, name, _ in constraints:
        db.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')
    for name, _ in indexes:
        db.execute(f"DROP INDEX {name}")
    statements = [
        f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition}' for table, name, definition in constraints
    ]
    return statements + [definition for _, definition in indexes]


def build_vector_indexes(db: Connection, sample: Sample) -> None:
    """Build a vector index for each tenant that searches by one."""
    largest = sample.copies * len(sample.pages)
    if largest <= MAX_EXACT_PASSAGES:
        return
    known = Statistics(0, largest, 0, 0, 0, sample.model, sample.codes.shape[1], 0)
    for name in sample.collections:
        indexing.build_indexes(db, compute_key(name), known)
