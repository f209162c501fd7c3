"""Measure an opened store: time, processor time of client and servers, recall of the vector search, and memory."""

import gc
import heapq
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil

from benchmarks import processes
from benchmarks.corpus import Matrix
from benchmarks.latency import BARE, search_bare
from benchmarks.scale.sample import Sample, make_copy_id
from waylore.evaluation.datasets import Dataset
from waylore.protocols import Embedder
from waylore.recipes import RECIPES
from waylore.retrieval.relations.connect import ConnectOptions, read_connection
from waylore.retrieval.relations.predicates import PredicateMatcher
from waylore.retrieval.relations.related import RelatedOptions, read_related
from waylore.retrieval.search import search
from waylore.store.protocol import Store
from waylore.store.reads import run_stage
from waylore.store.vectors import to_units
from waylore.types.knowledge import EPOCH
from waylore.types.search import Query

TOP_K = 10
ALL_RELATIONS = PredicateMatcher([], None)


@dataclass(frozen=True)
class Question:
    """A question in the words of a copy, and the names of two pages that answer it: none without a graph."""

    query: Query
    names: tuple[str, ...] = ()


SEARCHES: dict[str, Callable[[Store, Question], object]] = {
    BARE: lambda store, question: search_bare(store, question.query, RECIPES["hybrid"]),
    "hybrid": lambda store, question: search(store, None, question.query, RECIPES["hybrid"], now=EPOCH),
    "chain": lambda store, question: search(store, None, question.query, RECIPES["chain"], now=EPOCH),
}
GRAPH_QUESTIONS: dict[str, Callable[[Store, Question], object]] = {
    "related": lambda store, question: run_stage(
        store, read_related(Query(question.names[0]), RelatedOptions(ALL_RELATIONS))
    ),
    "connect": lambda store, question: run_stage(
        store, read_connection(Query(question.names[0]), (question.names[0], question.names[1]), ConnectOptions())
    ),
}


def count_seconds(servers: Sequence[psutil.Process]) -> float:
    """Return the processor seconds of this process and of servers, with the processes that they have started."""
    running = processes.count_seconds(processes.list_trees(servers))
    ended = [root.cpu_times() for root in servers]
    return time.process_time() + running + sum(t.children_user + t.children_system for t in ended)


def measure_memory(servers: Sequence[psutil.Process]) -> int:
    """Return the resident bytes of servers; what processes share counts once. Without servers, those of this process."""
    measured = processes.list_trees(servers) or [psutil.Process(os.getpid())]
    return sum(memory.pss for memory in processes.read_living(psutil.Process.memory_full_info, measured))


def make_questions(dataset: Dataset, samples: Sequence[Sample], embedder: Embedder) -> list[Question]:
    """Return the questions whose pages are in the sample, each in the words of a random copy."""
    random = np.random.default_rng(7)
    names = list_names(samples[0])
    copies = [(sample, copy) for sample in samples for copy in sample.numbers]
    questions = []
    for question in (q for q in dataset.questions if q.gold <= names.keys()):
        sample, copy = copies[int(random.integers(len(copies)))]
        text = sample.rename_copy(sample.mark(question.text), copy)
        ends = [sample.rename_copy(names[uri], copy) for uri in sorted(question.gold)[:2] if names[uri]]
        questions.append(Question(Query(text, embedder.embed_query(question.text)), tuple(ends)))
    return questions


def list_names(sample: Sample) -> dict[str, str]:
    """Return the marked name of each page's own entity by the page's address; it is empty without a graph."""
    own = {page.document.uri: [m.entity_id for m in page.mentions if m.is_own] for page in sample.pages}
    return {uri: sample.names[ids[0]] if ids else "" for uri, ids in own.items()}


def measure_store(
    store: Store, questions: Sequence[Question], samples: Sequence[Sample], servers: Sequence[psutil.Process]
) -> dict[str, Any]:
    """Measure all figures of a store."""
    gc.collect()
    gc.freeze()  # so that the garbage collector does not scan the sample
    before = 0 if servers else measure_memory(servers)
    pairs = [question for question in questions if len(question.names) == 2]
    measured = {name: measure_search(store, questions, run, servers) for name, run in SEARCHES.items()}
    if pairs:
        measured |= {name: measure_search(store, pairs, run, servers) for name, run in GRAPH_QUESTIONS.items()}
    return {
        "questions": len(questions),
        "milliseconds": {name: times for name, (times, _) in measured.items()},
        "processor": {name: processor for name, (_, processor) in measured.items()},
        "memory": measure_memory(servers) - before,
        "recall@10": measure_recall(store, [question.query for question in questions], samples),
    }


def measure_search(
    store: Store,
    questions: Sequence[Question],
    run: Callable[[Store, Question], object],
    servers: Sequence[psutil.Process],
) -> tuple[dict[str, float], dict[str, float]]:
    """Return p50 and p95 of the time, and the processor milliseconds of one question here and on servers.

    Each question runs once before, so that what it reads is in memory.
    """
    for question in questions:
        run(store, question)
    own, all_, seconds = time.process_time(), count_seconds(servers), []
    for question in questions:
        start = time.perf_counter()
        run(store, question)
        seconds.append(time.perf_counter() - start)
    client, both = time.process_time() - own, count_seconds(servers) - all_
    return (
        {"p50": 1e3 * float(np.median(seconds)), "p95": 1e3 * float(np.percentile(seconds, 95))},
        {"client": 1e3 * client / len(questions), "server": 1e3 * max(both - client, 0.0) / len(questions)},
    )


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
