"""Compare the scan of bit codes in NumPy with sqlite-vec, and measure the recall of bit codes on real vectors.

    python -m benchmarks.bits --size 1000000
    python -m benchmarks.bits --data DATA/musique --model .cache/models/bge-small --cache .cache/vectors

The first command compares a scan of 384-bit codes with sqlite-vec's vec0 on the same codes, for several k. The
second embeds the passages and facts of a set (vectors are cached) and prints how many of the exact ten nearest
are among the 2,000 nearest by bits. On two cores the 119,000 texts of MuSiQue take about 15 minutes the first
time.
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
from waylore.evaluation.datasets import read_dataset
from waylore.providers.embedders.cached import CachedEmbedder
from waylore.providers.embedders.fastembed import FastEmbedder
from waylore.store.sqlite.search import MIN_CANDIDATES
from waylore.store.vectors import BLOCK_ROWS, compute_distances, to_bits

DIMENSION = 384
CHUNK_TEXTS = 512


def measure_milliseconds(run: Callable[[], Any]) -> float:
    """Return the median time of five runs, after one run to warm up."""
    run()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        times.append(1000 * (time.perf_counter() - start))
    return float(np.median(times))


def compare_scans(size: int) -> None:
    """Compare a scan in NumPy with vec0 on random codes."""
    random = np.random.default_rng(7)
    codes = random.integers(0, 2**63, (size - size % BLOCK_ROWS or BLOCK_ROWS, DIMENSION // 64), dtype=np.uint64)
    planes = [np.ascontiguousarray(codes[i : i + BLOCK_ROWS].T).tobytes() for i in range(0, len(codes), BLOCK_ROWS)]
    query, live = random.integers(0, 2**63, DIMENSION // 64, dtype=np.uint64), b"\xff" * (BLOCK_ROWS // 8)

    def scan(k: int) -> Any:
        far = np.concatenate([compute_distances(block, live, query) for block in planes])
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
            vec0 = measure_milliseconds(lambda k=k: db.execute(nearest, (query.tobytes(), k)).fetchall())  # type: ignore[misc]
            ours = measure_milliseconds(lambda k=k: scan(k))  # type: ignore[misc]
            print(f"{len(codes):,} codes, k = {k:>5}: vec0 {vec0:8.1f} ms, scan {ours:6.1f} ms")
        db.close()


def measure_recall(vectors: Matrix, questions: Matrix) -> float:
    """Return the share of the exact ten nearest that are among the nearest by bits."""
    codes, question_codes = to_bits(vectors), to_bits(questions)
    found = []
    for code, question in zip(question_codes, questions, strict=True):
        best = np.argsort(-(vectors @ question))[:10]
        far = np.bitwise_count(codes ^ code).sum(axis=1)
        limit = np.partition(far, min(MIN_CANDIDATES, len(far) - 1))[min(MIN_CANDIDATES, len(far) - 1)]
        found.append(float((far[best] <= limit).mean()))
    return float(np.mean(found))


def measure_dataset(data: Path, model: Path, cache: Path) -> None:
    """Print the recall on the passages and on the facts of a set."""
    given = read_dataset(data, sample=200)
    with CachedEmbedder(FastEmbedder(path=model), cache) as embedder:
        questions = np.stack([embedder.embed_query(q.text) for q in given.questions])
        for kind in ("passages", "facts"):
            texts = list(dict.fromkeys(p.embeddable for c in given.pages for p in getattr(c, kind)))
            chunks = [embedder.embed_passages(texts[i : i + CHUNK_TEXTS]) for i in range(0, len(texts), CHUNK_TEXTS)]
            found = measure_recall(np.concatenate(chunks), questions)
            print(f"{given.name}, {len(texts):,} {kind}: {100 * found:.2f} % of the exact best ten", flush=True)


def main() -> None:
    """Run one of the two measurements."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--size", type=int, default=1_000_000, help="number of random codes")
    arguments.add_argument("--data", type=Path, help="folder of a set; measures recall")
    arguments.add_argument("--model", type=Path, default=Path(".cache/models/bge-small"), help="folder of weights")
    arguments.add_argument("--cache", type=Path, default=Path(".cache/vectors"), help="folder of cached vectors")
    given = arguments.parse_args()
    if given.data:
        measure_dataset(given.data, given.model, given.cache)
    else:
        compare_scans(given.size)


if __name__ == "__main__":
    main()
