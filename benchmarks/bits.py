"""Why vectors are found by bits in NumPy and not by sqlite-vec, and what the bits lose on real vectors.

    python -m benchmarks.bits --size 1000000
    python -m benchmarks.bits --data DATA/musique --model .cache/models/bge-small --cache .cache/vectors

The first compares a scan of 384-bit codes with sqlite-vec's vec0 over the same codes, for growing k. The second
embeds a set's passages and facts (vectors are kept in the cache) and prints how many of the exact ten nearest are
among the 2,000 nearest by bits. On two cores MuSiQue's 119,000 texts take about 15 minutes the first time.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import sqlite_vec

from benchmarks.corpus import Matrix
from waylore.evaluation.datasets import load
from waylore.providers.embedders.cached import CachedEmbedder
from waylore.providers.embedders.fastembed import FastEmbedder
from waylore.store.sqlite.search import CANDIDATES
from waylore.store.vectors import BLOCK, bits, distances

DIMENSION = 384
CHUNK = 512


def milliseconds(run: Callable[[], Any]) -> float:
    """The median of five runs, after one to warm up."""
    run()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        times.append(1000 * (time.perf_counter() - start))
    return float(np.median(times))


def compare(size: int) -> None:
    """A scan in NumPy against vec0, on random codes."""
    random = np.random.default_rng(7)
    codes = random.integers(0, 2**63, (size - size % BLOCK or BLOCK, DIMENSION // 64), dtype=np.uint64)
    planes = [np.ascontiguousarray(codes[i : i + BLOCK].T).tobytes() for i in range(0, len(codes), BLOCK)]
    query, live = random.integers(0, 2**63, DIMENSION // 64, dtype=np.uint64), b"\xff" * (BLOCK // 8)

    def scan(k: int) -> Any:
        far = np.concatenate([distances(block, live, query) for block in planes])
        return np.argpartition(far, min(k, len(far) - 1))[:k]

    with tempfile.TemporaryDirectory() as folder:
        db = apsw.Connection(str(Path(folder) / "vec0.db"))
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        db.execute(f"CREATE VIRTUAL TABLE codes USING vec0 (bits bit[{DIMENSION}])")
        with db:
            db.executemany("INSERT INTO codes (bits) VALUES (vec_bit(?))", ((row.tobytes(),) for row in codes))
        nearest = "SELECT rowid FROM codes WHERE bits MATCH vec_bit(?) AND k = ?"
        for k in (10, 100, 1_000):
            vec0 = milliseconds(lambda k=k: db.execute(nearest, (query.tobytes(), k)).fetchall())  # type: ignore[misc]
            ours = milliseconds(lambda k=k: scan(k))  # type: ignore[misc]
            print(f"{len(codes):,} codes, k = {k:>5}: vec0 {vec0:8.1f} ms, scan {ours:6.1f} ms")
        db.close()


def recall(vectors: Matrix, questions: Matrix) -> float:
    """The share of the exact ten nearest that are among the nearest by bits."""
    codes, asked = bits(vectors), bits(questions)
    found = []
    for code, question in zip(asked, questions, strict=True):
        best = np.argsort(-(vectors @ question))[:10]
        far = np.bitwise_count(codes ^ code).sum(axis=1)
        limit = np.partition(far, min(CANDIDATES, len(far) - 1))[min(CANDIDATES, len(far) - 1)]
        found.append(float((far[best] <= limit).mean()))
    return float(np.mean(found))


def measure(data: Path, model: Path, cache: Path) -> None:
    """Recall over the passages and the facts of a set."""
    given = load(data, sample=200)
    with CachedEmbedder(FastEmbedder(path=model), cache) as embedder:
        questions = np.stack([embedder.embed_query(q.text) for q in given.questions])
        for kind in ("passages", "facts"):
            texts = list(dict.fromkeys(p.embeddable for c in given.contributions for p in getattr(c, kind)))
            chunks = [embedder.embed_passages(texts[i : i + CHUNK]) for i in range(0, len(texts), CHUNK)]
            found = recall(np.concatenate(chunks), questions)
            print(f"{given.name}, {len(texts):,} {kind}: {100 * found:.2f} % of the exact best ten", flush=True)


def main() -> None:
    """Compare, or measure."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--size", type=int, default=1_000_000)
    arguments.add_argument("--data", type=Path)
    arguments.add_argument("--model", type=Path, default=Path(".cache/models/bge-small"))
    arguments.add_argument("--cache", type=Path, default=Path(".cache/vectors"))
    given = arguments.parse_args()
    if given.data:
        measure(given.data, given.model, given.cache)
    else:
        compare(given.size)


if __name__ == "__main__":
    main()
