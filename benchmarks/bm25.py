"""Compare pg_textsearch with Waylore's BM25 on the passages of a set: ranking and time.

    python -m benchmarks.bm25 --data SETS --set musique --beside peerread-citations locomo --questions 200

The set is written to a SQLite store and, with the collections `--beside` it, to PostgreSQL in four ways:

- own: a table and an index for this collection alone; the best result that pg_textsearch can give
- shared: one index over all collections and a filter; the document frequencies are those of all collections
- partial: one table with an index for each collection
- marked: one index over all collections, in which every word is marked with its collection

Each of them is also measured as `+ ours`: four times as many candidates, scored again by `waylore.store.bm25`.
(The document frequencies are in memory here; a store reads them.) `exact` scores every passage. `--stores` adds
other stores of Waylore by their addresses. All are compared with SQLite, which reads at most
`bm25.MAX_POSTINGS` postings. The correlation is Spearman's over the union of the best hundred of both; a
passage that only one of them has is last in the other.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psycopg
from psycopg import sql
from scipy.stats import spearmanr
from tools.postgres.builds import find_textsearch_build
from tools.postgres.server import start_server

from waylore.evaluation.datasets import Dataset, read_dataset
from waylore.store import bm25
from waylore.store.protocol import Store
from waylore.store.urls import open_store
from waylore.text import terms
from waylore.types.author import OWNER

DEPTH = 100
CANDIDATE_FACTOR = 4  # candidates that are scored again, as a multiple of DEPTH
BATCH = 1_000
SEARCHED_COLLECTION = 1  # number of the collection that is searched
TABLE = "CREATE TABLE {} (id text, collection int, length int, packed bytea, words text)"
INDEX = "CREATE INDEX {} ON {} USING bm25 (words) WITH (text_config = 'simple', k1 = 1.2, b = 0.75)"
# The score is not selected, because PostgreSQL would compute it again for every row from its text.
SEARCH = """
    SELECT id, length, packed FROM {table} WHERE collection = {collection}
    ORDER BY words <@> to_bm25query({query}, {index}) LIMIT {limit}
"""
Rank = Callable[[str], list[str]]


@dataclass(frozen=True)
class TermCollection:
    """The terms of each passage of a collection, by passage id."""

    number: int
    passages: dict[str, list[str]]

    @cached_property
    def frequency(self) -> Counter[str]:
        return Counter(term for passage in self.passages.values() for term in set(passage))

    @cached_property
    def rows(self) -> dict[str, int]:
        return {term: row for row, term in enumerate(self.frequency)}

    @cached_property
    def average(self) -> float:
        return sum(map(len, self.passages.values())) / len(self.passages)

    @cached_property
    def candidates(self) -> list[tuple[str, int, bytes]]:
        return [(id_, len(passage), self.pack(passage)) for id_, passage in self.passages.items()]

    def pack(self, passage: list[str]) -> bytes:
        """Pack the terms of a passage as a store does."""
        return bm25.pack_terms(Counter(self.rows[term] for term in passage))

    def rank_candidates(self, question: str, candidates: list[tuple[str, int, bytes]]) -> list[str]:
        """Return the best candidates by Waylore's BM25, without those that share no term."""
        known = [(self.rows[t], self.frequency[t]) for t in set(terms(question)) if t in self.rows]
        if not (known and candidates):
            return []
        cells = [(length, packed) for _, length, packed in candidates]
        scores = bm25.score(cells, known, passages=len(self.passages), average_length=self.average)
        ranked = sorted((-round(s, 6), row[0]) for s, row in zip(scores.tolist(), candidates, strict=True) if s > 0)
        return [id_ for _, id_ in ranked[:DEPTH]]

    def rank_all(self, question: str) -> list[str]:
        """Return the best passages of the collection by Waylore's BM25."""
        return self.rank_candidates(question, self.candidates)


def build_collection(number: int, given: Dataset) -> TermCollection:
    passages = (p for c in given.pages for p in c.passages)
    return TermCollection(number, {p.id: terms(f"{p.title} {p.text}") for p in passages})


def mark_term(number: int, term: str) -> str:
    """Return a word of eleven letters for a term; each collection has another word for the same term."""
    rest = int.from_bytes(blake2b(f"{number} {term}".encode(), digest_size=6).digest(), "big")
    letters = ""
    for _ in range(11):
        rest, at = divmod(rest, 26)
        letters += chr(ord("a") + at)
    return letters


def keep_term(_: int, term: str) -> str:
    """Return the term itself."""
    return term


MapTerm = Callable[[int, str], str]


def fill_table(db: psycopg.Connection, table: str, collections: Sequence[TermCollection], word: MapTerm) -> None:
    """Create a table with the terms of all collections."""
    db.execute(sql.SQL(TABLE).format(sql.Identifier(table)))
    with db.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))) as copy:
        for one in collections:
            for id_, passage in one.passages.items():
                words = " ".join(word(one.number, term) for term in passage)
                copy.write_row((id_, one.number, len(passage), one.pack(passage), words))
    db.execute(sql.SQL("CREATE INDEX ON {} (collection)").format(sql.Identifier(table)))


def build_index(db: psycopg.Connection, table: str, index: str, number: int | None = None) -> float:
    """Build an index, for one collection if a number is given; return the seconds."""
    only = sql.SQL(" WHERE collection = {}").format(number) if number is not None else sql.SQL("")
    start = time.perf_counter()
    db.execute(sql.SQL(INDEX).format(sql.Identifier(index), sql.Identifier(table)) + only)
    db.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))
    return time.perf_counter() - start


@dataclass(frozen=True)
class SearchMethod:
    """A way to search in PostgreSQL."""

    db: psycopg.Connection
    collection: TermCollection
    table: str
    index: str
    word: MapTerm = keep_term

    def rank(self, question: str) -> list[str]:
        """Return the best passages in the order of pg_textsearch."""
        return [id_ for id_, _, _ in self.read_rows(question, DEPTH)]

    def rerank(self, question: str) -> list[str]:
        """Return the best passages, with more candidates scored again by Waylore."""
        return self.collection.rank_candidates(question, self.read_rows(question, CANDIDATE_FACTOR * DEPTH))

    def read_rows(self, question: str, limit: int) -> list[tuple[str, int, bytes]]:
        words = " ".join(self.word(SEARCHED_COLLECTION, t) for t in dict.fromkeys(terms(question)))
        query = sql.SQL(SEARCH).format(
            query=words,
            index=self.index,
            table=sql.Identifier(self.table),
            collection=SEARCHED_COLLECTION,
            limit=limit,
        )
        return self.db.execute(query).fetchall()


def search_store(store: Store, question: str) -> list[str]:
    return [scored.id for scored in store.lexical(question, top_k=DEPTH)]


def compute_correlation(one: list[str], other: list[str]) -> float:
    """Return Spearman's rank correlation over the union of both rankings."""
    union = sorted({*one, *other})
    if len(union) < 2:
        return 1.0
    places = [{id_: rank for rank, id_ in enumerate(ranking)} for ranking in (one, other)]
    return float(spearmanr(*([place.get(id_, DEPTH) for id_ in union] for place in places)).statistic)


def time_searches(rank: Rank, questions: Sequence[str]) -> tuple[list[list[str]], list[float]]:
    """Return the answers and their times in milliseconds, after a first round to warm up."""
    for question in questions:
        rank(question)
    found, times = [], []
    for question in questions:
        start = time.perf_counter()
        found.append(rank(question))
        times.append(1000 * (time.perf_counter() - start))
    return found, times


def print_row(name: str, rank: Rank, questions: Sequence[str], expected: list[list[str]]) -> None:
    found, times = time_searches(rank, questions)
    near = [compute_correlation(e, f) for e, f in zip(expected, found, strict=True)]
    same = [len({*e[:10]} & {*f[:10]}) / max(len(e[:10]), 1) for e, f in zip(expected, found, strict=True)]
    p50, p95 = np.percentile(times, [50, 95])
    figures = f"{np.mean(near):.4f}  {np.min(near):7.4f}  {100 * np.mean(same):6.1f} %  {p50:6.2f}  {p95:6.2f}"
    print(f"{name:16}{figures}", flush=True)


def build_methods(db: psycopg.Connection, collections: Sequence[TermCollection]) -> dict[str, SearchMethod]:
    """Fill and index the tables of every method."""
    first = collections[0]
    fill_table(db, "alone", [first], keep_term)
    fill_table(db, "several", collections, keep_term)
    fill_table(db, "several_partial", collections, keep_term)
    fill_table(db, "several_marked", collections, mark_term)
    seconds = [
        build_index(db, "alone", "own"),
        build_index(db, "several", "shared"),
        build_index(db, "several_marked", "marked"),
    ]
    partial_seconds = sum(build_index(db, "several_partial", f"partial_{c.number}", c.number) for c in collections)
    print(
        "seconds to build: own {:.1f}, shared {:.1f}, marked {:.1f}, partial {:.1f}".format(*seconds, partial_seconds)
    )
    return {
        "own": SearchMethod(db, first, "alone", "own"),
        "shared": SearchMethod(db, first, "several", "shared"),
        "partial": SearchMethod(db, first, "several_partial", f"partial_{SEARCHED_COLLECTION}"),
        "marked": SearchMethod(db, first, "several_marked", "marked", mark_term),
    }


def fill_store(store: Store, given: Dataset) -> None:
    """Write the texts of a set to a store, without entities and facts."""
    texts = [replace(c, entities=(), mentions=(), facts=()) for c in given.pages]
    for start in range(0, len(texts), BATCH):
        store.write(texts[start : start + BATCH], author=OWNER, model=None)


def main() -> None:
    """Compare all methods and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--set", default="musique", help="set to search")
    parser.add_argument("--beside", nargs="*", default=["peerread-citations", "locomo"], help="sets in the same tables")
    parser.add_argument("--questions", type=int, default=200, help="number of questions")
    parser.add_argument("--stores", nargs="*", default=[], help="addresses of other stores")
    given = parser.parse_args()
    sets = [read_dataset(given.data / name, sample=given.questions) for name in (given.set, *given.beside)]
    collections = [build_collection(number, one) for number, one in enumerate(sets, SEARCHED_COLLECTION)]
    questions = [q.text for q in sets[0].questions]
    print(", ".join(f"{one.name}: {len(c.passages):,} passages" for one, c in zip(sets, collections, strict=True)))
    with TemporaryDirectory() as folder, start_server(find_textsearch_build()) as running:
        store = open_store(str(Path(folder) / "bm25.waylore"), "default")
        fill_store(store, sets[0])
        with psycopg.connect(running.url, autocommit=True) as db:
            db.execute("CREATE EXTENSION pg_textsearch")
            methods = build_methods(db, collections)
            print(f"{'':16}mean      least   top 10     p50 ms  p95 ms")
            expected = time_searches(partial(search_store, store), questions)[0]
            print_row("SQLite", partial(search_store, store), questions, expected)
            print_row("exact", collections[0].rank_all, questions, expected)
            for name, method in methods.items():
                print_row(name, method.rank, questions, expected)
                print_row(f"{name} + ours", method.rerank, questions, expected)
        for url in given.stores:
            with closing(open_store(url, "bm25")) as other:
                fill_store(other, sets[0])
                print_row(url, partial(search_store, other), questions, expected)
        store.close()


if __name__ == "__main__":
    main()
