"""Measure an opened store: time, processor time of client and servers, recall of the vector search, and memory."""

import gc
import heapq
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import psutil

from benchmarks.corpus import Matrix
from benchmarks.latency import BARE, measure_stages, search_bare
from benchmarks.scale.sample import Sample, make_copy_id
from waylore.evaluation.datasets import Dataset
from waylore.protocols import Embedder
from waylore.recipes import RECIPES
from waylore.retrieval.search import search
from waylore.store.protocol import Store
from waylore.store.vectors import to_units
from waylore.types.knowledge import EPOCH
from waylore.types.search import Query

TOP_K = 10
SEARCHES: dict[str, Callable[[Store, Query], object]] = {
    BARE: lambda store, query: search_bare(store, query, RECIPES["hybrid"]),
    "hybrid": lambda store, query: search(store, None, query, RECIPES["hybrid"], now=EPOCH),
    "chain": lambda store, query: search(store, None, query, RECIPES["chain"], now=EPOCH),
}


def count_seconds(servers: Sequence[psutil.Process]) -> float:
    """Return the processor seconds of this process and of servers, with the processes that they have started."""
    times = [each.cpu_times() for root in servers for each in (root, *root.children(recursive=True))]
    ended = [root.cpu_times() for root in servers]
    return (
        time.process_time()
        + sum(t.user + t.system for t in times)
        + sum(t.children_user + t.children_system for t in ended)
    )


def measure_memory(servers: Sequence[psutil.Process]) -> int:
    """Return the resident bytes of servers; what processes share counts once. Without servers, those of this process."""
    processes = [each for root in servers for each in (root, *root.children(recursive=True))]
    return sum(each.memory_full_info().pss for each in processes or [psutil.Process(os.getpid())])


def make_queries(dataset: Dataset, samples: Sequence[Sample], embedder: Embedder) -> list[Query]:
    """Return the questions whose pages are in the sample, each in the words of a random copy."""
    random = np.random.default_rng(7)
    sampled = {c.document.uri for c in samples[0].contributions}
    copies = [(sample, copy) for sample in samples for copy in sample.numbers]
    queries = []
    for question in (q for q in dataset.questions if q.gold <= sampled):
        sample, copy = copies[int(random.integers(len(copies)))]
        text = sample.rename_copy(sample.mark(question.text), copy)
        queries.append(Query(text, embedder.embed_query(question.text)))
    return queries


def measure_store(
    store: Store, queries: Sequence[Query], samples: Sequence[Sample], servers: Sequence[psutil.Process]
) -> dict[str, Any]:
    """Measure all figures of a store."""
    gc.collect()
    gc.freeze()  # so that the garbage collector does not scan the sample
    before = 0 if servers else measure_memory(servers)
    stages = measure_stages(store, None, list(queries), [RECIPES["hybrid"], RECIPES["chain"]])
    return {
        "questions": len(queries),
        "milliseconds": {
            name: {"p50": 1e3 * float(np.median(t["total"])), "p95": 1e3 * float(np.percentile(t["total"], 95))}
            for name, t in stages.items()
        },
        "processor": {name: measure_processor(store, queries, name, servers) for name in SEARCHES},
        "memory": measure_memory(servers) - before,
        "recall@10": measure_recall(store, queries, samples),
    }


def measure_processor(
    store: Store, queries: Sequence[Query], name: str, servers: Sequence[psutil.Process]
) -> dict[str, float]:
    """Return the processor milliseconds of one search, here and on servers."""
    own, all_ = time.process_time(), count_seconds(servers)
    for query in queries:
        SEARCHES[name](store, query)
    client, both = time.process_time() - own, count_seconds(servers) - all_
    return {"client": 1e3 * client / len(queries), "server": 1e3 * max(both - client, 0.0) / len(queries)}


def measure_recall(store: Store, queries: Sequence[Query], samples: Sequence[Sample]) -> float:
    """Return the share of the exact ten nearest that the vector search finds."""
    vectors = np.stack([query.vector for query in queries if query.vector is not None])
    exact = find_nearest(samples, vectors)
    found = [{hit.id for hit in store.dense(vector, top_k=TOP_K)} for vector in vectors]
    return float(np.mean([len(hits & best) / len(best) for hits, best in zip(found, exact, strict=True)]))


def find_nearest(samples: Sequence[Sample], vectors: Matrix) -> list[set[str]]:
    """Return the ids of the ten nearest passages of each vector, from the vectors that were loaded."""
    best: list[list[tuple[float, str, int]]] = [[] for _ in vectors]
    for sample in samples:
        ids = [p.id for page in sample.pages for p in page.passages]
        for copy in sample.numbers:
            cosines = to_units(sample.make_codes(copy)) @ vectors.T
            for of, column in enumerate(cosines.T):
                top = np.argpartition(-column, min(TOP_K, len(column) - 1))[:TOP_K]
                new = [(float(column[place]), ids[place], copy) for place in top.tolist()]
                best[of] = heapq.nlargest(TOP_K, best[of] + new)
    return [{make_copy_id(id_, copy) for _, id_, copy in nearest} for nearest in best]
