"""Measure what large collections in the same database cost a small one.

    python -m benchmarks.partial_indexes --large 0 10 100 1000

Each large collection has tables of vectors of its own, with an HNSW index (`waylore.store.postgres.vector_indexes`).
Beside it stands what the store did before: a partial index for each of them on the shared table. PostgreSQL opens every
index of a table when it plans a statement or adds a row. The large collections are empty, and no search uses their
indexes. Vector search, reading vectors by id and writing are measured in a collection with `--passages`, which needs no
index. The fastest of `--times` calls is printed.
"""

import argparse
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
from psycopg import sql
from tools.postgres.builds import find_plain_build
from tools.postgres.server import start_server

from benchmarks.corpus import DIMENSION, Corpus
from waylore.store.postgres import vector_indexes as indexing
from waylore.store.postgres.search import MAX_EXACT_PASSAGES
from waylore.store.postgres.store import PostgresStore
from waylore.types.author import OWNER
from waylore.types.results import Statistics

MODEL = "synthetic"
LARGE = Statistics(0, MAX_EXACT_PASSAGES + 1, 0, 0, 0, MODEL, DIMENSION, 0)
ADD_COLLECTION = "INSERT INTO waylore.collections (collection, name) VALUES (%s, %s)"


def add_own_tables(db: psycopg.Connection[Any], number: int) -> None:
    """Give an empty collection tables of its own, as the store does."""
    db.execute(ADD_COLLECTION, (number, f"large {number}"))
    indexing.build_indexes(db, number, LARGE)


def add_partial_index(db: psycopg.Connection[Any], number: int) -> None:
    """Create an index of one collection on the shared table."""
    statement = indexing.SQL["index_passage_vectors"].replace("CONCURRENTLY ", "")
    links = indexing.INDEX_LINKS["passage_vectors"]
    parts = {"dimension": DIMENSION, "collection": number, "links": links, "tried": 4 * links}
    name = sql.Identifier(f"hnsw_{number:016x}_passage_{DIMENSION}")
    table = sql.SQL("passage_vectors")
    literals = {part: sql.Literal(value) for part, value in parts.items()}
    db.execute(sql.SQL(statement).format(name=name, table=table, **literals))


WAYS = {"own tables": add_own_tables, "partial indexes": add_partial_index}


def measure_fastest(run: Callable[[int], object], times: int) -> float:
    """Return the milliseconds of the fastest call; other work on the machine can only add to it."""
    taken = []
    for i in range(times):
        start = time.perf_counter()
        run(i)
        taken.append(1000 * (time.perf_counter() - start))
    return min(taken)


def measure_small(url: str, corpus: Corpus, passages: int, times: int) -> tuple[float, float, float]:
    """Return the milliseconds of a vector search, of 80 vectors by id, and of writing one page."""
    vectors = corpus.make_vectors(times)
    with closing(PostgresStore(url, "small")) as store:
        ids = [hit.id for hit in store.dense(vectors[0], top_k=80)]
        dense = measure_fastest(lambda i: store.dense(vectors[i], top_k=80), times)
        cosines = measure_fastest(lambda i: store.cosines(vectors[i], ids), times)
        pages = [list(corpus.make_documents(passages + i, 1)) for i in range(times)]
        write = measure_fastest(lambda i: store.write(pages[i], author=OWNER, model=MODEL), times)
        store.forget([document.document.id for page in pages for document in page], author=OWNER)
    return dense, cosines, write


def main() -> None:
    """Measure with a growing number of large collections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", type=int, nargs="+", default=[0, 10, 100, 1_000], help="numbers of collections")
    parser.add_argument("--passages", type=int, default=1_000, help="passages of the small collection")
    parser.add_argument("--times", type=int, default=40, help="calls of each kind")
    options = parser.parse_args()
    corpus = Corpus()
    print(f"{'large':>6}  {'way':16}{'dense, ms':>10}{'by id, ms':>10}{'one page written, ms':>22}")
    with start_server(find_plain_build(), settings={"max_locks_per_transaction": 1_024}) as started:
        urls = {way: started.build_url(way.replace(" ", "_")) for way in WAYS}
        for way, url in urls.items():
            with psycopg.connect(started.url, autocommit=True) as db:
                db.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(way.replace(" ", "_"))))
            with closing(PostgresStore(url, "small")) as store:
                store.write(list(corpus.make_documents(0, options.passages)), author=OWNER, model=MODEL)
        for have, wanted in zip([0, *sorted(options.large)], sorted(options.large), strict=False):
            for way, add in WAYS.items():
                with psycopg.connect(urls[way], autocommit=True) as db:
                    db.execute("SET search_path = waylore, public")
                    for number in range(have, wanted):
                        add(db, number)
                found = measure_small(urls[way], corpus, options.passages, options.times)
                print(f"{wanted:>6,}  {way:16}" + "{:>10.1f}{:>10.1f}{:>22.1f}".format(*found), flush=True)


if __name__ == "__main__":
    main()
