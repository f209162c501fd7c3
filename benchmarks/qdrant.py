"""Measure a collection with an index on Qdrant: recall and latency beside PostgreSQL alone, lag, and the loss of a peer.

    python -m benchmarks.qdrant --passages 20000 --questions 50
    python -m benchmarks.qdrant --passages 20000 --questions 50 --peers 3

A PostgreSQL server and the peers of a Qdrant cluster are started on this machine and removed at the end. Recall@10 is
compared with exact search: the cosine and the BM25 score of every passage. With several peers, the first one, which
clients ask, is killed while documents are written and questions asked, and started again.
"""

import argparse
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from tools.postgres.builds import find_plain_build
from tools.postgres.server import start_server
from tools.qdrant.server import QdrantServer, start_cluster, start_qdrant
from tools.waiting import wait_until

from benchmarks.corpus import Corpus, Matrix
from waylore.errors import WayloreError
from waylore.store.partial import partial_answers
from waylore.store.postgres.candidates.admin import IndexAdmin
from waylore.store.postgres.store import PostgresStore
from waylore.types.author import OWNER
from waylore.types.search import Ranking

MODEL, NAME, TOP_K, BATCH = "synthetic", "corpus", 10, 500
LOAD_SECONDS = 8.0  # under load before a peer is killed, without it, and after it is back


@dataclass
class Questions:
    """Vectors and words to search for, with the best ten of exact search."""

    vectors: Matrix
    texts: list[str]
    ids: list[str]  # of all passages
    near: list[set[str]] = field(default_factory=list)
    worded: list[set[str]] = field(default_factory=list)


@dataclass
class Load:
    """What happened under load."""

    searches: int = 0
    without_index: int = 0
    failed: int = 0
    written: int = 0
    lags: list[float] = field(default_factory=list)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.qdrant", description=__doc__)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--peers", type=int, default=1)
    options = parser.parse_args(arguments)
    with start_server(find_plain_build()) as postgres, start_peers(options.peers) as peers:
        with closing(PostgresStore(postgres.url, NAME)) as store:
            questions = load(store, options.passages, options.questions)
            measure(store, questions, "PostgreSQL alone")
        with closing(IndexAdmin(postgres.url, NAME)) as admin:
            url = ",".join(peer.url for peer in peers)
            replicas = 2 if len(peers) > 1 else 1
            admin.create(url, shards=2 * len(peers), replicas=replicas)
            started = time.perf_counter()
            sent = sum(step.sent for step in admin.feed())
            seconds = time.perf_counter() - started
            print(f"built: {sent:,} items in {seconds:,.1f} s, {sent / seconds:,.0f} a second")
            with closing(PostgresStore(postgres.url, NAME)) as store:
                measure(store, questions, f"with Qdrant, {len(peers)} peers")
                measure_lag(store, admin, questions)
                if len(peers) > 1:
                    lose_peer(store, admin, peers, questions)
    return 0


@contextmanager
def start_peers(number: int) -> Iterator[list[QdrantServer]]:
    if number > 1:
        with start_cluster(number) as peers:
            yield peers
    else:
        with start_qdrant() as one:
            yield [one]


def load(store: PostgresStore, passages: int, number: int) -> Questions:
    """Write the corpus, and find the best ten of each question by exact search."""
    corpus = Corpus()
    ids: list[str] = []
    started = time.perf_counter()
    for first in range(0, passages, BATCH):
        ids += write_documents(store, corpus, first, min(BATCH, passages - first))
    print(f"loaded {passages:,} passages in {time.perf_counter() - started:,.0f} s", flush=True)
    texts = [" ".join(corpus.make_text().split()[:6]) for _ in range(number)]
    questions = Questions(corpus.make_vectors(number), texts, ids)
    search_exactly(store, questions)
    return questions


def write_documents(store: PostgresStore, corpus: Corpus, first: int, count: int) -> list[str]:
    """Write documents, and return the ids of their passages."""
    made = list(corpus.make_documents(first, count))
    store.write(made, author=OWNER, model=MODEL)
    return [passage.id for document in made for passage in document.passages]


def search_exactly(store: PostgresStore, questions: Questions) -> None:
    """Score every passage for each question, and keep the best ten."""
    questions.near = [take_best(questions.ids, partial(store.cosines, v)) for v in questions.vectors]
    questions.worded = [take_best(questions.ids, partial(store.word_scores, t)) for t in questions.texts]


def take_best(ids: Sequence[str], score: Callable[[Sequence[str]], Mapping[str, float]]) -> set[str]:
    scores = {id_: each for at in range(0, len(ids), 5_000) for id_, each in score(ids[at : at + 5_000]).items()}
    best = sorted(scores, key=lambda id_: (-scores[id_], id_))[:TOP_K]
    return {id_ for id_ in best if scores[id_] > 0}


def measure(store: PostgresStore, questions: Questions, name: str) -> None:
    """Print recall@10 and the latency of the three searches."""
    for text, vector in zip(questions.texts[:5], questions.vectors, strict=False):  # connections and plans
        store.lexical(text, top_k=TOP_K), store.dense(vector, top_k=TOP_K), store.nearest_entities(vector, top_k=TOP_K)
    near, dense = time_each(lambda v: store.dense(v, top_k=TOP_K), questions.vectors)
    worded, lexical = time_each(lambda t: store.lexical(t, top_k=TOP_K), questions.texts)
    _, names = time_each(lambda v: store.nearest_entities(v, top_k=TOP_K), questions.vectors)
    print(f"{name}:")
    print(f"  vector  recall@10 {compute_recall(near, questions.near):.4f}  {format_times(dense)}")
    print(f"  words   recall@10 {compute_recall(worded, questions.worded):.4f}  {format_times(lexical)}")
    print(f"  names                     {format_times(names)}", flush=True)


def time_each(search: Callable[..., Ranking], asked: Sequence[object] | Matrix) -> tuple[list[Ranking], list[float]]:
    found, times = [], []
    for each in asked:
        started = time.perf_counter()
        found.append(search(each))
        times.append(time.perf_counter() - started)
    return found, times


def compute_recall(found: Sequence[Ranking], expected: Sequence[set[str]]) -> float:
    """Return the share of the best ten that were found."""
    pairs = [(len({s.id for s in ranking} & best), len(best)) for ranking, best in zip(found, expected, strict=True)]
    return sum(hits for hits, _ in pairs) / max(sum(all_ for _, all_ in pairs), 1)


def format_times(times: Sequence[float]) -> str:
    return f"p50 {np.percentile(times, 50) * 1e3:6.1f} ms  p95 {np.percentile(times, 95) * 1e3:6.1f} ms"


def measure_lag(store: PostgresStore, admin: IndexAdmin, questions: Questions) -> None:
    """Print how long a document takes from its commit until the index has it."""
    corpus, lags = Corpus(seed=11), []
    for number in range(10):
        questions.ids += write_documents(store, corpus, 10_000_000 + number, 1)
        committed = time.perf_counter()
        wait_until(lambda: admin.read_status().pending == 0)
        lags.append(time.perf_counter() - committed)
    print(f"lag of one document: {format_times(lags)}")


def lose_peer(store: PostgresStore, admin: IndexAdmin, peers: Sequence[QdrantServer], questions: Questions) -> None:
    """Kill a peer under load and start it again; print what callers noticed, and compare the hits of all peers."""
    load, ends = Load(), threading.Event()
    threads = [
        threading.Thread(target=ask, args=(store, questions, load, ends)),
        threading.Thread(target=write, args=(store, questions, load, ends)),
        threading.Thread(target=watch, args=(admin, load, ends)),
    ]
    for thread in threads:
        thread.start()
    time.sleep(LOAD_SECONDS)
    peers[0].kill()
    time.sleep(LOAD_SECONDS)
    peers[0].start()
    time.sleep(LOAD_SECONDS)
    ends.set()
    for thread in threads:
        thread.join()
    wait_until(lambda: admin.read_status().pending == 0)
    print(f"the peer that clients ask was killed under load, and started again {LOAD_SECONDS:g} s later:")
    print(f"  {load.searches:,} searches, {load.failed} failed, {load.without_index} answered by PostgreSQL alone")
    print(f"  {load.written:,} documents written; the index was at most {max(load.lags):,.1f} s behind")
    search_exactly(store, questions)
    answers = [collect(store, questions, number) for number in range(len(peers))]
    recall = compute_recall(answers[0][: len(questions.texts)], questions.near)
    print(f"  afterwards recall@10 {recall:.4f} by vector; equal hits from every peer: {answers[1:] == answers[:-1]}")
    status = admin.read_status()
    print(f"  {status.points:,} points for {status.items:,} items", flush=True)


def collect(store: PostgresStore, questions: Questions, peer: int) -> list[Ranking]:
    """Return the hits of all questions, asked through one peer."""
    [index] = store._indexes._opened.values()
    index._cluster._preferred = peer
    return [
        *(store.dense(vector, top_k=TOP_K) for vector in questions.vectors),
        *(store.lexical(text, top_k=TOP_K) for text in questions.texts),
    ]


def ask(store: PostgresStore, questions: Questions, load: Load, ends: threading.Event) -> None:
    while not ends.is_set():
        for text, vector in zip(questions.texts, questions.vectors, strict=True):
            if ends.is_set():
                return
            try:
                with partial_answers() as left_out:
                    store.dense(vector, top_k=TOP_K)
                    store.lexical(text, top_k=TOP_K)
                load.without_index += bool(left_out)
            except WayloreError as error:
                print(f"  failed: {error}", file=sys.stderr)
                load.failed += 1
            load.searches += 1


def write(store: PostgresStore, questions: Questions, load: Load, ends: threading.Event) -> None:
    corpus = Corpus(seed=13)
    while not ends.wait(0.1):
        questions.ids += write_documents(store, corpus, 20_000_000 + load.written, 1)
        load.written += 1


def watch(admin: IndexAdmin, load: Load, ends: threading.Event) -> None:
    load.lags.append(0.0)
    while not ends.wait(0.2):
        load.lags.append(admin.read_status().seconds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
