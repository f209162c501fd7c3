"""How the SQLite store's reading verbs take to growth, beside plain SQL on the same file in the same run.

    python -m benchmarks.store_growth --sizes 10000 100000 1000000 --folder growth --json growth.json

Passages of realistic length with ten facts each and 384 dimensions (benchmarks/corpus.py), a file for each
size. Every verb is asked `--questions` times and p50 and p95 are printed, beside the bare
query (the same rows by hand-written SQL through the same driver: no filters, no domain types); `sql` is the
verb's own SQL alone, also as a ratio to the bare query, so that what filters cost is told from what objects cost. `dense` is
compared with exact search for recall. A second run measures the files that are there. A million takes about
an hour to load and 13 GB.
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

from benchmarks.corpus import DIMENSION, Corpus, Matrix, name
from waylore.store import vectors as codes
from waylore.store.sqlite.file import SQL, connect
from waylore.store.sqlite.scope import Scopes, any_of, by_ids
from waylore.store.sqlite.store import SqliteStore
from waylore.text import terms
from waylore.types.identity import entity_id
from waylore.types.search import Filter

BATCH = 1_000
TOP = 40
MODEL = "synthetic"

BARE = {
    "lexical": "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?",
    "entities_by_names": """SELECT e.id, e.passages, p.name, p.type, p.description FROM carray(?) w
        CROSS JOIN names n ON n.collection = 1 AND n.name = w.value CROSS JOIN entities e ON e.row = n.entity
        CROSS JOIN profiles p ON p.entity = e.row AND p.document IN (SELECT document FROM profiles WHERE entity = e.row LIMIT 8)""",
    "facts_of_entities": """SELECT e.id, f.id, f.subject_id, f.object_id, s.* FROM carray(?) i
        CROSS JOIN entities e ON e.collection = 1 AND e.id = i.value
        CROSS JOIN facts f ON f.row IN (SELECT fact FROM edges WHERE entity = e.row AND access = 1 ORDER BY strength DESC, tie LIMIT 50)
        CROSS JOIN supports s ON s.fact = f.row LEFT JOIN usage u ON u.kind = 'fact' AND u.row = f.row""",
    "facts_of_passages": """SELECT p.id, f.id, f.subject_id, f.object_id, s.* FROM carray(?) i
        CROSS JOIN passages p ON p.collection = 1 AND p.id = i.value
        CROSS JOIN supports s INDEXED BY supports_of_passage ON s.passage = p.row CROSS JOIN facts f ON f.row = s.fact
        LEFT JOIN usage u ON u.kind = 'fact' AND u.row = f.row""",
    "passages_of_entities": """SELECT m.entity_id, m.passage_id, m.count, m.is_own FROM carray(?) i
        CROSS JOIN entities e ON e.collection = 1 AND e.id = i.value
        CROSS JOIN mentions m ON m.entity = e.row AND m.access = 1 AND (m.is_own, m.count, m.tie, m.passage) IN (
          SELECT is_own, count, tie, passage FROM mentions WHERE entity = e.row AND access = 1
          ORDER BY is_own DESC, count DESC, tie LIMIT 20)""",
    "entities_of_passages": """SELECT m.entity_id, m.passage_id, m.count, m.is_own FROM passages p
        CROSS JOIN mentions m INDEXED BY mentions_of_passage ON m.passage = p.row
        WHERE p.collection = 1 AND p.id IN carray(?)""",
    "documents": "SELECT * FROM documents WHERE collection = 1 AND id IN carray(?)",
    "passages": "SELECT * FROM passages WHERE collection = 1 AND id IN carray(?)",
    "entities": """SELECT e.*, p.* FROM entities e CROSS JOIN profiles p ON p.entity = e.row AND p.document IN (
        SELECT document FROM profiles WHERE entity = e.row LIMIT 8) WHERE e.collection = 1 AND e.id IN carray(?)""",
    "facts": """SELECT f.id, f.subject_id, f.object_id, s.* FROM facts f CROSS JOIN supports s ON s.fact = f.row
        LEFT JOIN usage u ON u.kind = 'fact' AND u.row = f.row WHERE f.collection = 1 AND f.id IN carray(?)""",
    "statistics": "SELECT * FROM collections WHERE name = 'default'",
}  # fmt: skip


def grow(store: SqliteStore, corpus: Corpus, size: int) -> None:
    """Add pages until there are `size`."""
    have, start, before = store.statistics().documents, time.time(), store.statistics().documents
    while have < size:
        count = min(BATCH, size - have)
        store.write(list(corpus.contributions(have, count)), model=MODEL)
        have += count
        rate = (have - before) / (time.time() - start)
        left = (size - have) / rate
        print(
            f"\r  {have:,} of {size:,} pages, {rate:,.0f} a second, {left:,.0f} s left   ",
            end="",
            file=sys.stderr,
        )
    print(file=sys.stderr)


def percentiles(run: Callable[[int], Any], questions: int) -> tuple[float, float]:
    """Milliseconds at the median and at 95 %; the first few calls warm up."""
    for i in range(3):
        run(i)
    times = []
    for i in range(questions):
        start = time.perf_counter()
        run(i)
        times.append(1000 * (time.perf_counter() - start))
    return float(np.percentile(times, 50)), float(np.percentile(times, 95))


def measured(questions: int, **runs: Callable[[int], Any]) -> dict[str, float]:
    """Percentiles of the verb, of the bare query, and of the verb's own SQL, in turns on the same pages."""
    rounds = [{name: percentiles(run, questions) for name, run in runs.items()} for _ in range(2)]
    best = {name: min(r[name] for r in rounds) for name in runs}
    return {
        f"{name}_{p}": value
        for name, pair in best.items()
        for p, value in zip(("p50", "p95"), pair, strict=True)
    }


@dataclass(frozen=True)
class Verb:
    """How a verb is asked for things by identity, and the query that is its own SQL."""

    asked: str
    run: Callable[[SqliteStore, list[str]], Any]
    query: str
    bound: dict[str, Any] = field(default_factory=dict)


HELD = {"statuses": '["staged", "confirmed"]', "as_of": None}
VERBS = {
    "facts_of_entities": Verb("entities", lambda s, i: s.facts_of_entities(i, per_entity=50), "facts_of_entities", {**HELD, "cap": 50}),
    "facts_of_passages": Verb("passages", lambda s, i: s.facts_of_passages(i, per_passage=50), "facts_of_passages", HELD),
    "passages_of_entities": Verb("entities", lambda s, i: s.passages_of_entities(i, per_entity=20), "mentions_of_entities", {"cap": 20}),
    "entities_of_passages": Verb("passages", lambda s, i: s.entities_of_passages(i, per_passage=20), "mentions_of_passages"),
    "documents": Verb("documents", lambda s, i: s.documents(i), "documents"),
    "passages": Verb("passages", lambda s, i: s.passages(i), "passages", {"vectors": False}),
    "facts": Verb("facts", lambda s, i: s.facts(i), "facts", HELD),
}  # fmt: skip


def measure(store: SqliteStore, path: Path, corpus: Corpus, size: int, questions: int) -> dict[str, Any]:
    """Every reading verb at this size."""
    db = connect(str(path), busy_seconds=60)
    scope = Scopes(db, "default").of(Filter())
    asked, vectors = Asked(store, size, questions), corpus.vectors(questions)

    def bare(query: str, *values: Any) -> Any:
        return db.execute(BARE[query], values).fetchall()

    def words(text: str) -> str:
        known = db.execute(SQL["terms"], {"collection": 1, "terms": apsw.carray(tuple(set(terms(text))))})
        return any_of(str(row) for _, row, _ in known)

    rows: dict[str, Any] = {
        "lexical": measured(
            questions,
            verb=lambda i: store.lexical(asked.texts[i], top_k=TOP),
            bare=lambda i: bare("lexical", words(asked.texts[i]), TOP),
        ),
        "dense": measured(questions, verb=lambda i: store.dense(vectors[i], top_k=TOP)),
        "nearest_entities": measured(questions, verb=lambda i: store.nearest_entities(vectors[i], top_k=3)),
        "entities_by_names": measured(
            questions,
            verb=lambda i: store.entities_by_names(asked.names[i]),
            bare=lambda i: bare("entities_by_names", apsw.carray(tuple(n.lower() for n in asked.names[i]))),
        ),
        "entities": measured(
            questions,
            verb=lambda i: store.entities(asked.entities[i]),
            bare=lambda i: bare("entities", blobs(asked.entities[i])),
        ),
        "statistics": measured(questions, verb=lambda _: store.statistics(), bare=lambda _: bare("statistics")),
    }
    rows["dense"]["recall@10"] = recall(store, db, vectors[: min(questions, 50)])
    for verb_name, verb in VERBS.items():
        ids: list[list[str]] = getattr(asked, verb.asked)
        rows[verb_name] = measured(
            questions,
            verb=lambda i, v=verb, ids=ids: v.run(store, ids[i]),  # type: ignore[misc]
            bare=lambda i, n=verb_name, ids=ids: bare(n, blobs(ids[i])),  # type: ignore[misc]
            sql=lambda i, v=verb, ids=ids: by_ids(db, v.query, ids[i], **scope.bindings, **v.bound),  # type: ignore[misc]
        )
    db.close()
    return rows


def blobs(ids: list[str]) -> Any:
    """Identities as the driver takes them."""
    return apsw.carray(tuple(bytes.fromhex(i) for i in ids))


class Asked:
    """What the verbs are asked: twenty random things at a time, wherever they lie in the file."""

    def __init__(self, store: SqliteStore, size: int, questions: int) -> None:
        random = np.random.default_rng(size)
        numbers = random.integers(0, size, (questions, 20))
        self.names = [[name(n) for n in group] for group in numbers.tolist()]
        self.entities = [[entity_id(n) for n in group] for group in self.names]
        mentions = [store.passages_of_entities(group, per_entity=1) for group in self.entities]
        self.passages = [[m.passage_id for ms in found.values() for m in ms] for found in mentions]
        passages = [store.passages(group) for group in self.passages]
        self.documents = [[p.document_id for p in found.values()] for found in passages]
        facts = [store.facts_of_passages(group, per_passage=2) for group in self.passages]
        self.facts = [[f.id for fs in found.values() for f in fs] for found in facts]
        self.texts = [self._question(random, [p.text for p in found.values()]) for found in passages]

    def _question(self, random: np.random.Generator, texts: list[str]) -> str:
        """Eight words of a page, as a question repeats words of what answers it."""
        words = texts[0].split()
        return " ".join(words[i] for i in random.integers(0, len(words), 8))


def recall(store: SqliteStore, db: apsw.Connection, vectors: Matrix) -> float:
    """How many of the true ten nearest `dense` finds."""
    best: list[list[tuple[float, bytes]]] = [[] for _ in vectors]
    found = db.execute("SELECT p.id, v.vector FROM passages p JOIN passage_vectors v ON v.row = p.row")
    while chunk := [row for _, row in zip(range(20_000), found, strict=False)]:
        scores = vectors @ codes.unhalved((blob for _, blob in chunk), DIMENSION).T
        for i, row in enumerate(scores):
            top = np.argsort(-row)[:10]
            best[i] = sorted([*best[i], *((-float(row[t]), chunk[t][0]) for t in top)])[:10]
    hits = [
        len({s.id for s in store.dense(v, top_k=10)} & {id_.hex() for _, id_ in true}) / 10
        for v, true in zip(vectors, best, strict=True)
    ]
    return float(np.mean(hits))


def table(results: dict[int, dict[str, Any]]) -> str:
    """What was measured, a verb a line: medians, and their ratio to the bare query and from size to size."""
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


def grown(folder: Path, sizes: list[int], corpus: Corpus) -> Iterator[tuple[int, Path]]:
    """A file for each size, each grown from a copy of the one before; a file that is whole is taken as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    before: Path | None = None
    for size in sorted(sizes):
        path = folder / f"{size}.waylore"
        if before is not None and not path.exists():
            shutil.copyfile(before, path)
        store = SqliteStore(path)
        grow(store, corpus, size)
        store.close()
        before = path
        yield size, path


def main() -> None:
    """Load, measure, print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    arguments.add_argument("--folder", type=Path, default=Path("growth"))
    arguments.add_argument("--questions", type=int, default=200)
    arguments.add_argument("--like", type=Path, help="real vectors (.npy) to mix instead of made-up ones")
    arguments.add_argument("--json", type=Path)
    arguments.add_argument("--only-load", action="store_true")
    given = arguments.parse_args()
    corpus = Corpus(like=np.load(given.like).astype(np.float32) if given.like else None)
    results = {}
    for size, path in grown(given.folder, given.sizes, corpus):
        if given.only_load:
            continue
        store = SqliteStore(path)
        results[size] = measure(store, path, corpus, size, given.questions)
        store.close()
        print(f"\n{path.stat().st_size / 1e9:.2f} GB at {size:,} passages\n" + table(results), flush=True)
        if given.json:
            given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
