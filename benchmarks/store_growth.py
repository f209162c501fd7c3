"""Measure the reading verbs of the SQLite store while it grows, beside plain SQL on the same file.

    python -m benchmarks.store_growth --sizes 10000 100000 1000000 --folder growth --json growth.json

The passages have a realistic length, ten facts each and 384 dimensions (benchmarks/corpus.py), with a file for
each size. Every verb is called `--questions` times, and p50 and p95 are printed beside those of the bare query.
The bare query reads the same rows by hand-written SQL through the same driver, without filters and without
domain types. `sql` is the verb's own SQL alone, as a ratio to the bare query. It separates the cost of filters
from the cost of objects. Vector search is compared with exact search for recall. A second run measures the
existing files. A million passages take about an hour to load and 13 GB.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from benchmarks.corpus import Corpus, Matrix, make_name
from waylore.store import vectors as codes
from waylore.store.rows import make_sort_key
from waylore.store.sqlite.file import SQL, connect
from waylore.store.sqlite.scope import ScopeCache, bind_fact_filter, match_any, run_by_ids
from waylore.store.sqlite.store import SqliteStore
from waylore.text import terms
from waylore.types.author import OWNER
from waylore.types.identity import entity_id
from waylore.types.search import FactFilter, Filter

BATCH_PAGES = 1_000
TOP_K = 40
MODEL = "synthetic"

BARE = {
    "lexical": "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?",
    "entities_by_names": """SELECT e.id, e.passages, p.name, p.type, p.description FROM carray(?) w
        CROSS JOIN names n ON n.collection = 1 AND n.name = w.value CROSS JOIN entities e ON e.row = n.entity
        CROSS JOIN profiles p ON p.entity = e.row AND p.document IN (SELECT document FROM profiles WHERE entity = e.row LIMIT 8)""",
    "facts_of_entities": """SELECT e.id, s.*, k.pack, (
          SELECT CAST(group_concat(codes, '' ORDER BY part) AS BLOB) FROM statement_vectors v WHERE v.row = s.passage) FROM carray(?) i
        CROSS JOIN entities e ON e.collection = 1 AND e.id = i.value
        CROSS JOIN assertions s ON s.collection = 1 AND s.fact IN (
          SELECT fact FROM edges WHERE entity = e.row AND access = 1 ORDER BY strength DESC, fact LIMIT 50)
        CROSS JOIN packs k ON k.row = s.passage""",
    "facts_of_passages": """SELECT p.id, p.text, k.pack, (
          SELECT CAST(group_concat(codes, '' ORDER BY part) AS BLOB) FROM statement_vectors v WHERE v.row = p.row) FROM carray(?) i
        CROSS JOIN passages p ON p.collection = 1 AND p.id = i.value
        CROSS JOIN packs k ON k.row = p.row""",
    "passages_of_entities": """SELECT e.id, m.passage, m.count, m.is_own FROM carray(?) i
        CROSS JOIN entities e ON e.collection = 1 AND e.id = i.value
        CROSS JOIN mentions m ON m.entity = e.row AND m.access = 1 AND (m.is_own, m.count, m.tie, m.passage) IN (
          SELECT is_own, count, tie, passage FROM mentions WHERE entity = e.row AND access = 1
          ORDER BY is_own DESC, count DESC, tie LIMIT 20)""",
    "entities_of_passages": """SELECT p.id, k.pack FROM passages p CROSS JOIN packs k ON k.row = p.row
        WHERE p.collection = 1 AND p.id IN carray(?)""",
    "documents": "SELECT * FROM documents WHERE collection = 1 AND id IN carray(?)",
    "passages": "SELECT * FROM passages WHERE collection = 1 AND id IN carray(?)",
    "entities": """SELECT e.*, p.* FROM entities e CROSS JOIN profiles p ON p.entity = e.row AND p.document IN (
        SELECT document FROM profiles WHERE entity = e.row LIMIT 8) WHERE e.collection = 1 AND e.id IN carray(?)""",
    "facts": """SELECT s.*, k.pack FROM assertions s CROSS JOIN packs k ON k.row = s.passage
        WHERE s.collection = 1 AND s.fact IN carray(?)""",
    "statistics": "SELECT * FROM collections WHERE name = 'default'",
}  # fmt: skip


def fill_store(store: SqliteStore, corpus: Corpus, size: int) -> None:
    """Add pages until the store has `size`."""
    have, start, before = store.statistics().documents, time.time(), store.statistics().documents
    while have < size:
        count = min(BATCH_PAGES, size - have)
        store.write(list(corpus.make_documents(have, count)), author=OWNER, model=MODEL)
        have += count
        rate = (have - before) / (time.time() - start)
        left = (size - have) / rate
        print(
            f"\r  {have:,} of {size:,} pages, {rate:,.0f} per second, {left:,.0f} s left   ",
            end="",
            file=sys.stderr,
        )
    print(file=sys.stderr)


def measure_percentiles(run: Callable[[int], Any], questions: int) -> tuple[float, float]:
    """Return p50 and p95 in milliseconds; the first few calls warm up."""
    for i in range(3):
        run(i)
    times = []
    for i in range(questions):
        start = time.perf_counter()
        run(i)
        times.append(1000 * (time.perf_counter() - start))
    return float(np.percentile(times, 50)), float(np.percentile(times, 95))


def measure_runs(questions: int, **runs: Callable[[int], Any]) -> dict[str, float]:
    """Return the percentiles of the verb, of the bare query and of the verb's own SQL, run in turns."""
    rounds = [{name: measure_percentiles(run, questions) for name, run in runs.items()} for _ in range(2)]
    best = {name: min(r[name] for r in rounds) for name in runs}
    return {f"{name}_{p}": value for name, pair in best.items() for p, value in zip(("p50", "p95"), pair, strict=True)}


@dataclass(frozen=True)
class Verb:
    """A verb that reads by id, the kind of ids that it takes, and the query that is its own SQL."""

    ids: str
    run: Callable[[SqliteStore, list[str]], Any]
    query: str
    bound: dict[str, Any] = field(default_factory=dict)


FACT_BINDINGS = bind_fact_filter(FactFilter())
VERBS = {
    "facts_of_entities": Verb("entities", lambda s, i: s.facts_of_entities(i, per_entity=50), "facts_of_entities", {**FACT_BINDINGS, "cap": 50}),
    "facts_of_passages": Verb("passages", lambda s, i: s.facts_of_passages(i, per_passage=50), "packs_of_passages", {"vectors": True}),
    "passages_of_entities": Verb("entities", lambda s, i: s.passages_of_entities(i, per_entity=20), "mentions_of_entities", {"cap": 20}),
    "entities_of_passages": Verb("passages", lambda s, i: s.entities_of_passages(i, per_passage=20), "packs_of_passages", {"vectors": False}),
    "documents": Verb("documents", lambda s, i: s.documents(i), "documents"),
    "passages": Verb("passages", lambda s, i: s.passages(i), "passages", {"vectors": False}),
}  # fmt: skip


def measure_verbs(store: SqliteStore, path: Path, corpus: Corpus, size: int, questions: int) -> dict[str, Any]:
    """Measure every reading verb at this size."""
    db = connect(str(path), busy_seconds=60)
    scope = ScopeCache(db, "default").get(Filter())
    arguments, vectors = Arguments(store, size, questions), corpus.make_vectors(questions)

    def bare(query: str, *values: Any) -> Any:
        return db.execute(BARE[query], values).fetchall()

    def words(text: str) -> str:
        known = db.execute(SQL["terms"], {"collection": 1, "terms": apsw.carray(tuple(set(terms(text))))})
        return match_any(str(row) for _, row, *_ in known)

    rows: dict[str, Any] = {
        "lexical": measure_runs(
            questions,
            verb=lambda i: store.lexical(arguments.texts[i], top_k=TOP_K),
            bare=lambda i: bare("lexical", words(arguments.texts[i]), TOP_K),
        ),
        "dense": measure_runs(questions, verb=lambda i: store.dense(vectors[i], top_k=TOP_K)),
        "nearest_entities": measure_runs(questions, verb=lambda i: store.nearest_entities(vectors[i], top_k=3)),
        "entities_by_names": measure_runs(
            questions,
            verb=lambda i: store.entities_by_names(arguments.names[i]),
            bare=lambda i: bare("entities_by_names", apsw.carray(tuple(n.lower() for n in arguments.names[i]))),
        ),
        "entities": measure_runs(
            questions,
            verb=lambda i: store.entities(arguments.entities[i]),
            bare=lambda i: bare("entities", to_blobs(arguments.entities[i])),
        ),
        "facts": measure_runs(
            questions,
            verb=lambda i: store.facts(arguments.facts[i]),
            bare=lambda i: bare("facts", to_keys(arguments.facts[i])),
        ),
        "statistics": measure_runs(questions, verb=lambda _: store.statistics(), bare=lambda _: bare("statistics")),
    }
    rows["dense"]["recall@10"] = measure_recall(store, db, vectors[: min(questions, 50)])
    for verb_name, verb in VERBS.items():
        ids: list[list[str]] = getattr(arguments, verb.ids)
        rows[verb_name] = measure_runs(
            questions,
            verb=lambda i, v=verb, ids=ids: v.run(store, ids[i]),  # type: ignore[misc]
            bare=lambda i, n=verb_name, ids=ids: bare(n, to_blobs(ids[i])),  # type: ignore[misc]
            sql=lambda i, v=verb, ids=ids: run_by_ids(db, v.query, ids[i], **scope.bindings, **v.bound),  # type: ignore[misc]
        )
    db.close()
    return rows


def to_blobs(ids: list[str]) -> Any:
    """Convert ids to the form that the driver takes."""
    return apsw.carray(tuple(bytes.fromhex(i) for i in ids))


def to_keys(facts: list[str]) -> Any:
    """Convert ids of facts to the keys by which they are stored."""
    return apsw.carray(np.array([make_sort_key(bytes.fromhex(id_)) for id_ in facts], np.int64))


class Arguments:
    """Arguments of the verbs: twenty random items per call, spread over the file."""

    def __init__(self, store: SqliteStore, size: int, questions: int) -> None:
        random = np.random.default_rng(size)
        numbers = random.integers(0, size, (questions, 20))
        self.names = [[make_name(n) for n in group] for group in numbers.tolist()]
        self.entities = [[entity_id(n) for n in group] for group in self.names]
        mentions = [store.passages_of_entities(group, per_entity=1) for group in self.entities]
        self.passages = [[m.passage_id for ms in found.values() for m in ms] for found in mentions]
        passages = [store.passages(group) for group in self.passages]
        self.documents = [[p.document_id for p in found.values()] for found in passages]
        facts = [store.facts_of_passages(group, per_passage=2) for group in self.passages]
        self.facts = [[f.id for fs in found.values() for f in fs] for found in facts]
        self.texts = [self._make_question(random, [p.text for p in found.values()]) for found in passages]

    def _make_question(self, random: np.random.Generator, texts: list[str]) -> str:
        """Return eight words of a page, because a question repeats words of its answer."""
        words = texts[0].split()
        return " ".join(words[i] for i in random.integers(0, len(words), 8))


def measure_recall(store: SqliteStore, db: apsw.Connection, vectors: Matrix) -> float:
    """Return the share of the exact ten nearest that the store finds."""
    best: list[list[tuple[float, bytes]]] = [[] for _ in vectors]
    found = db.execute("SELECT p.id, v.vector FROM passages p JOIN passage_vectors v ON v.row = p.row")
    while chunk := [row for _, row in zip(range(20_000), found, strict=False)]:
        scores = vectors @ codes.from_int8([blob for _, blob in chunk]).T
        for i, row in enumerate(scores):
            top = np.argsort(-row)[:10]
            best[i] = sorted([*best[i], *((-float(row[t]), chunk[t][0]) for t in top)])[:10]
    hits = [
        len({s.id for s in store.dense(v, top_k=10)} & {id_.hex() for _, id_ in true}) / 10
        for v, true in zip(vectors, best, strict=True)
    ]
    return float(np.mean(hits))


def format_table(results: dict[int, dict[str, Any]]) -> str:
    """Format a line for each verb: medians, and their ratios to the bare query and from size to size."""
    sizes = sorted(results)
    head = "".join(f"{f'{size:,}':>12} {'p95':>7} {'bare':>7} {'ratio':>6} {'sql':>6}" for size in sizes)
    lines = [f"{'ms':22}{head}   growth (bare's)"]
    for verb, first in results[sizes[0]].items():
        cells, last = "", results[sizes[-1]][verb]
        for row in (results[size][verb] for size in sizes):
            bare = row.get("bare_p50")
            against = f"{bare:>7.2f} {row['verb_p50'] / bare:>6.2f}" if bare else f"{'':>14}"
            sql = f"{row['sql_p50'] / bare:>6.2f}" if bare and "sql_p50" in row else f"{'':>6}"
            cells += f"{row['verb_p50']:>12.2f} {row['verb_p95']:>7.2f} {against} {sql}"
        growth = f"{last['verb_p50'] / first['verb_p50']:>6.2f}x"
        bares = f" ({last['bare_p50'] / first['bare_p50']:.2f}x)" if "bare_p50" in first else ""
        lines.append(f"{verb:22}{cells}   {growth}{bares}")
    recalls = ", ".join(f"{results[size]['dense']['recall@10']:.3f} at {size:,}" for size in sizes)
    return "\n".join([*lines, f"dense recall@10 against exact: {recalls}"])


def grow_files(folder: Path, sizes: list[int], corpus: Corpus) -> Iterator[tuple[int, Path]]:
    """Yield a file for each size, grown from a copy of the smaller one; a complete file is used as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    before: Path | None = None
    for size in sorted(sizes):
        path = folder / f"{size}.waylore"
        if before is not None and not path.exists():
            shutil.copyfile(before, path)
        store = SqliteStore(path)
        fill_store(store, corpus, size)
        store.close()
        before = path
        yield size, path


def main() -> None:
    """Fill the stores, measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="passages")
    arguments.add_argument("--folder", type=Path, default=Path("growth"), help="folder of the files")
    arguments.add_argument("--questions", type=int, default=200, help="calls of each verb")
    arguments.add_argument("--like", type=Path, help="file with real vectors (.npy) to mix instead of synthetic ones")
    arguments.add_argument("--json", type=Path, help="file for the figures")
    arguments.add_argument("--only-load", action="store_true", help="fill the files without measuring")
    given = arguments.parse_args()
    corpus = Corpus(like=np.load(given.like).astype(np.float32) if given.like else None)
    results = {}
    for size, path in grow_files(given.folder, given.sizes, corpus):
        if given.only_load:
            continue
        store = SqliteStore(path)
        results[size] = measure_verbs(store, path, corpus, size, given.questions)
        store.close()
        print(f"\n{path.stat().st_size / 1e9:.2f} GB at {size:,} passages\n" + format_table(results), flush=True)
        if given.json:
            given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
