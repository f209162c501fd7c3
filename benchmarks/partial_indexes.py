"""Measure what vector indexes of other collections on the same table cost a small collection.

    python -m benchmarks.partial_indexes --indexes 0 100 1000 10000

Each large collection has a partial HNSW index (`waylore.store.postgres.vector_indexes`). PostgreSQL looks at
every index of a table when it plans a query or adds a row. So the benchmark creates indexes for empty
collections, and measures vector search and writing in a collection with `--passages`, which needs no index. No
search uses the indexes. The fastest of `--times` calls is printed.
"""

import argparse
import time
from collections.abc import Callable
from contextlib import closing

import psycopg
from psycopg import sql
from tools.postgres.builds import find_plain_build
from tools.postgres.server import start_server

from benchmarks.corpus import DIMENSION, Corpus
from waylore.store.postgres.store import PostgresStore
from waylore.store.postgres.vector_indexes import INDEX_LINKS
from waylore.store.sql import load_queries
from waylore.types.author import OWNER

SQL = load_queries("waylore.store.postgres")
MODEL = "synthetic"


def add_indexes(db: psycopg.Connection, have: int, wanted: int) -> None:
    """Create indexes as the store does, but not concurrently, because there are no other connections."""
    statement = SQL["index_passage_vectors"].replace("CONCURRENTLY ", "")
    for number in range(have, wanted):
        db.execute(
            sql.SQL(statement).format(
                name=sql.Identifier(f"hnsw_{number:016x}_passage_{DIMENSION}"),
                dimension=sql.Literal(DIMENSION),
                collection=sql.Literal(number),
                links=sql.Literal(INDEX_LINKS["passage_vectors"]),
                tried=sql.Literal(4 * INDEX_LINKS["passage_vectors"]),
            )
        )


def measure_fastest(run: Callable[[int], object], times: int) -> float:
    """Return the milliseconds of the fastest call; other work on the machine can only add to it."""
    taken = []
    for i in range(times):
        start = time.perf_counter()
        run(i)
        taken.append(1000 * (time.perf_counter() - start))
    return min(taken)


def main() -> None:
    """Measure with a growing number of indexes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--indexes", type=int, nargs="+", default=[0, 100, 1_000, 10_000], help="numbers of indexes")
    parser.add_argument("--passages", type=int, default=1_000, help="passages of the small collection")
    parser.add_argument("--times", type=int, default=20, help="calls of each kind")
    options = parser.parse_args()
    corpus, have, written = Corpus(), 0, options.passages
    vectors = corpus.make_vectors(options.times)
    print(f"{'indexes':>8}{'dense, ms':>12}{'one page written, ms':>22}")
    with start_server(find_plain_build(), settings={"max_locks_per_transaction": 1_024}) as started:
        with closing(PostgresStore(started.url, "small")) as store:
            store.write(list(corpus.make_documents(0, options.passages)), author=OWNER, model=MODEL)
        for wanted in sorted(options.indexes):
            with psycopg.connect(started.url, autocommit=True) as db:
                add_indexes(db, have, wanted)
            have = wanted
            with closing(PostgresStore(started.url, "small")) as store:
                dense = measure_fastest(lambda i: store.dense(vectors[i], top_k=80), options.times)
                pages = [list(corpus.make_documents(written + i, 1)) for i in range(options.times)]
                write = measure_fastest(lambda i: store.write(pages[i], author=OWNER, model=MODEL), options.times)  # noqa: B023
                written += len(pages)
            print(f"{wanted:>8,}{dense:>12.1f}{write:>22.1f}", flush=True)


if __name__ == "__main__":
    main()
