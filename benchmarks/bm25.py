"""How near pg_textsearch comes to our BM25 on the passages of a set, and how long either takes.

    python -m benchmarks.bm25 --data SETS --set musique --beside peerread-citations locomo --questions 200

The set goes into a SQLite store and, with the collections `--beside` it, into PostgreSQL in four ways:

- own: a table and an index for this collection alone; the best that pg_textsearch can do
- shared: one index over all collections, and a filter; document frequencies are those of all of them
- partial: one table, and in it an index for each collection
- marked: one index over all collections in which every word is marked with its collection

and each of them again `+ ours`: four times as many candidates, scored anew by `waylore.store.bm25` (its document
frequencies are at hand here; a store reads them). `exact` scores every passage. `--stores` adds stores of ours,
by their addresses. All are compared with SQLite, which reads no more than `lexicon.REACH` postings. The rank
correlation is Spearman's over the union of both best hundred; who is in one of them only is last in the other.
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
from tools.postgres import server, textsearch

from waylore.evaluation.datasets import Dataset, load
from waylore.store import bm25
from waylore.store.protocol import Store
from waylore.store.urls import open_store
from waylore.text import terms

DEPTH = 100
WIDER = 4  # times as many candidates are scored anew
BATCH = 1_000
ASKED = 1  # the number of the collection that is asked
TABLE = "CREATE TABLE {} (id text, collection int, length int, packed bytea, words text)"
INDEX = "CREATE INDEX {} ON {} USING bm25 (words) WITH (text_config = 'simple', k1 = 1.2, b = 0.75)"
# The score is not asked for: it would be computed anew for every row, from its text.
SEARCH = """
    SELECT id, length, packed FROM {table} WHERE collection = {collection}
    ORDER BY words <@> to_bm25query({query}, {index}) LIMIT {limit}
"""
Rank = Callable[[str], list[str]]


@dataclass(frozen=True)
class Collection:
    """A collection as BM25 sees it: the terms of each passage, by its identity."""

    number: int
    said: dict[str, list[str]]

    @cached_property
    def frequency(self) -> Counter[str]:
        return Counter(term for said in self.said.values() for term in set(said))

    @cached_property
    def rows(self) -> dict[str, int]:
        return {term: row for row, term in enumerate(self.frequency)}

    @cached_property
    def average(self) -> float:
        return sum(map(len, self.said.values())) / len(self.said)

    @cached_property
    def candidates(self) -> list[tuple[str, int, bytes]]:
        return [(id_, len(said), self.packed(said)) for id_, said in self.said.items()]

    def packed(self, said: list[str]) -> bytes:
        return bm25.packed(Counter(self.rows[term] for term in said))

    def scored(self, question: str, candidates: list[tuple[str, int, bytes]]) -> list[str]:
        """The best of the candidates by our own BM25; those that share no term are left out."""
        known = [(self.rows[t], self.frequency[t]) for t in set(terms(question)) if t in self.rows]
        if not (known and candidates):
            return []
        cells = [(length, packed) for _, length, packed in candidates]
        scores = bm25.bm25(cells, known, passages=len(self.said), average_length=self.average)
        ranked = sorted(
            (-round(s, 6), row[0]) for s, row in zip(scores.tolist(), candidates, strict=True) if s > 0
        )
        return [id_ for _, id_ in ranked[:DEPTH]]

    def everything(self, question: str) -> list[str]:
        return self.scored(question, self.candidates)


def collection(number: int, given: Dataset) -> Collection:
    passages = (p for c in given.contributions for p in c.passages)
    return Collection(number, {p.id: terms(f"{p.title} {p.text}") for p in passages})


def marked(number: int, term: str) -> str:
    """A word of eleven letters for a term of one collection; another collection has another word for it."""
    rest = int.from_bytes(blake2b(f"{number} {term}".encode(), digest_size=6).digest(), "big")
    letters = ""
    for _ in range(11):
        rest, at = divmod(rest, 26)
        letters += chr(ord("a") + at)
    return letters


def plain(_: int, term: str) -> str:
    return term


Word = Callable[[int, str], str]


def fill(db: psycopg.Connection, table: str, collections: Sequence[Collection], word: Word) -> None:
    db.execute(sql.SQL(TABLE).format(sql.Identifier(table)))
    with db.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))) as copy:
        for one in collections:
            for id_, said in one.said.items():
                words = " ".join(word(one.number, term) for term in said)
                copy.write_row((id_, one.number, len(said), one.packed(said), words))
    db.execute(sql.SQL("CREATE INDEX ON {} (collection)").format(sql.Identifier(table)))


def build(db: psycopg.Connection, table: str, index: str, number: int | None = None) -> float:
    """Build an index, of one collection if a number is given; return how many seconds it took."""
    only = sql.SQL(" WHERE collection = {}").format(number) if number is not None else sql.SQL("")
    start = time.perf_counter()
    db.execute(sql.SQL(INDEX).format(sql.Identifier(index), sql.Identifier(table)) + only)
    db.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))
    return time.perf_counter() - start


@dataclass(frozen=True)
class Way:
    """A way to ask PostgreSQL."""

    db: psycopg.Connection
    asked: Collection
    table: str
    index: str
    word: Word = plain

    def rank(self, question: str) -> list[str]:
        return [id_ for id_, _, _ in self.rows(question, DEPTH)]

    def rank_anew(self, question: str) -> list[str]:
        return self.asked.scored(question, self.rows(question, WIDER * DEPTH))

    def rows(self, question: str, limit: int) -> list[tuple[str, int, bytes]]:
        words = " ".join(self.word(ASKED, t) for t in dict.fromkeys(terms(question)))
        asked = sql.SQL(SEARCH).format(
            query=words, index=self.index, table=sql.Identifier(self.table), collection=ASKED, limit=limit
        )
        return self.db.execute(asked).fetchall()


def by_store(store: Store, question: str) -> list[str]:
    return [scored.id for scored in store.lexical(question, top_k=DEPTH)]


def correlation(one: list[str], other: list[str]) -> float:
    """Spearman's, over whatever is in either."""
    union = sorted({*one, *other})
    if len(union) < 2:
        return 1.0
    places = [{id_: rank for rank, id_ in enumerate(ranking)} for ranking in (one, other)]
    return float(spearmanr(*([place.get(id_, DEPTH) for id_ in union] for place in places)).statistic)


def asked(rank: Rank, questions: Sequence[str]) -> tuple[list[list[str]], list[float]]:
    """The answers and how many milliseconds each took, once everything was asked before."""
    for question in questions:
        rank(question)
    found, times = [], []
    for question in questions:
        start = time.perf_counter()
        found.append(rank(question))
        times.append(1000 * (time.perf_counter() - start))
    return found, times


def report(name: str, rank: Rank, questions: Sequence[str], expected: list[list[str]]) -> None:
    found, times = asked(rank, questions)
    near = [correlation(e, f) for e, f in zip(expected, found, strict=True)]
    same = [len({*e[:10]} & {*f[:10]}) / max(len(e[:10]), 1) for e, f in zip(expected, found, strict=True)]
    p50, p95 = np.percentile(times, [50, 95])
    figures = f"{np.mean(near):.4f}  {np.min(near):7.4f}  {100 * np.mean(same):6.1f} %  {p50:6.2f}  {p95:6.2f}"
    print(f"{name:16}{figures}", flush=True)


def ways(db: psycopg.Connection, collections: Sequence[Collection]) -> dict[str, Way]:
    """Every way, filled and indexed."""
    first = collections[0]
    fill(db, "alone", [first], plain)
    fill(db, "several", collections, plain)
    fill(db, "several_partial", collections, plain)
    fill(db, "several_marked", collections, marked)
    seconds = [build(db, "alone", "own"), build(db, "several", "shared"), build(db, "several_marked", "marked")]
    partial_seconds = sum(build(db, "several_partial", f"partial_{c.number}", c.number) for c in collections)
    print(
        "seconds to build: own {:.1f}, shared {:.1f}, marked {:.1f}, partial {:.1f}".format(
            *seconds, partial_seconds
        )
    )
    return {
        "own": Way(db, first, "alone", "own"),
        "shared": Way(db, first, "several", "shared"),
        "partial": Way(db, first, "several_partial", f"partial_{ASKED}"),
        "marked": Way(db, first, "several_marked", "marked", marked),
    }


def fill_store(store: Store, given: Dataset) -> None:
    told = [replace(c, entities=(), mentions=(), facts=()) for c in given.contributions]
    for start in range(0, len(told), BATCH):
        store.write(told[start : start + BATCH], model=None)


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="musique")
    parser.add_argument("--beside", nargs="*", default=["peerread-citations", "locomo"])
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--stores", nargs="*", default=[])
    given = parser.parse_args()
    sets = [load(given.data / name, sample=given.questions) for name in (given.set, *given.beside)]
    collections = [collection(number, one) for number, one in enumerate(sets, ASKED)]
    questions = [q.text for q in sets[0].questions]
    print(", ".join(f"{one.name}: {len(c.said):,} passages" for one, c in zip(sets, collections, strict=True)))
    with TemporaryDirectory() as folder, server(textsearch()) as running:
        store = open_store(str(Path(folder) / "bm25.waylore"), "default")
        fill_store(store, sets[0])
        with psycopg.connect(running.url, autocommit=True) as db:
            db.execute("CREATE EXTENSION pg_textsearch")
            found = ways(db, collections)
            print(f"{'':16}mean      least   top 10     p50 ms  p95 ms")
            expected = asked(partial(by_store, store), questions)[0]
            report("SQLite", partial(by_store, store), questions, expected)
            report("exact", collections[0].everything, questions, expected)
            for name, way in found.items():
                report(name, way.rank, questions, expected)
                report(f"{name} + ours", way.rank_anew, questions, expected)
        for url in given.stores:
            with closing(open_store(url, "bm25")) as other:
                fill_store(other, sets[0])
                report(url, partial(by_store, other), questions, expected)
        store.close()


if __name__ == "__main__":
    main()
