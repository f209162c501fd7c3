"""Measure what telemetry costs: search each question with telemetry off and on, one after the other.

    python -m benchmarks.telemetry --data SETS --set musique-train100 --embedder hashing --folder DIR

With telemetry on, there is a span for each stage, sent to a collector in another process, and all metrics. The
processor time of the searching thread is measured for each question. The processor time of the sending thread
is the rest of the process, and is added to "on". The answer cache is off. Off and on alternate in going first.
Ratios use the best of several rounds for each question, because other work on the machine disturbs single
searches.
"""

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from waylore import Waylore
from waylore.config import CacheConfig
from waylore.evaluation.datasets import EvaluationQuestion, read_dataset
from waylore.evaluation.index import add_embedder_options, create_embedder, open_indexed
from waylore.protocols import Embedder
from waylore.recipes import RECIPES
from waylore.store.protocol import Store
from waylore.surfaces.telemetry.metrics import Metrics
from waylore.surfaces.telemetry.setup import ObservedEmbedder, Telemetry
from waylore.surfaces.telemetry.spans import create_exporter
from waylore.types.search import Filter

NO_CACHE = CacheConfig(size=1, seconds=0)


@contextmanager
def start_collector() -> Iterator[str]:
    """Start a collector in another process, so that its processor time is not counted; yield its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "tools.collector"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout
        yield running.stdout.readline().strip()


class SearchTimes(NamedTuple):
    """Wall time and processor time of each search, in seconds."""

    wall: list[float]
    processor: list[float]


def time_search(waylore: Waylore, question: EvaluationQuestion, method: str, times: SearchTimes) -> None:
    where = Filter(metadata={"scope": question.scope}) if question.scope else Filter()
    wall, processor = time.perf_counter(), time.thread_time()
    waylore.search(question.text, method=method, where=where, record_use=False)
    times.processor.append(time.thread_time() - processor)
    times.wall.append(time.perf_counter() - wall)


def measure_searches(
    store: Store, embedder: Embedder, questions: Sequence[EvaluationQuestion], method: str, telemetry: Telemetry
) -> tuple[SearchTimes, SearchTimes, float]:
    """Return the times without telemetry, the times with it, and the processor seconds for sending."""
    off = Waylore(store, embedder, cache=NO_CACHE)
    watched = ObservedEmbedder(embedder, telemetry)
    on = Waylore(store, watched, cache=NO_CACHE, observer=telemetry.create_observer("default", embedder.name))
    without, with_ = SearchTimes([], []), SearchTimes([], [])
    before = time.process_time() - time.thread_time()
    for number, question in enumerate(questions):
        for waylore, times in [(off, without), (on, with_)][:: -1 if number % 2 else 1]:
            time_search(waylore, question, method, times)
    telemetry.flush()
    return without, with_, time.process_time() - time.thread_time() - before


def print_report(off: SearchTimes, on: SearchTimes, sending: float, rounds: int, path: Path | None) -> None:
    """Print the milliseconds per search with telemetry off and on, and their ratio."""
    figures: dict[str, dict[str, float]] = {}
    for name, times in (("off", off), ("on", on)):
        p50, p95 = np.percentile(times.wall, [50, 95])
        figures[name] = {"p50": p50, "p95": p95, "processor": compute_least_mean(times.processor, rounds)}
        print(f"{name:4s}" + "".join(f"  {key} {1000 * value:.2f} ms" for key, value in figures[name].items()))
    each = sending / len(on.wall)
    ratio = (figures["on"]["processor"] + each) / figures["off"]["processor"]
    wall = compute_least_mean(on.wall, rounds) / compute_least_mean(off.wall, rounds)
    print(f"sending: {1000 * each:.2f} ms of processor time per search")
    print(f"on / off: processor {ratio:.3f}, sending included; wall time {wall:.3f}")
    if path:
        path.write_text(json.dumps({**figures, "sending": each, "ratio": ratio, "wall": wall}), "utf-8")


def compute_least_mean(seconds: list[float], rounds: int) -> float:
    """Return the mean over questions of the best round, which is the time on a quiet machine."""
    return float(np.array(seconds).reshape(rounds, -1).min(axis=0).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--set", default="musique-train100", help="name of the set")
    parser.add_argument("--method", default="chain", choices=sorted(RECIPES))
    parser.add_argument("--questions", type=int, default=100, help="number of questions")
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds over all questions")
    parser.add_argument("--json", type=Path, help="file for the figures")
    add_embedder_options(parser)
    options = parser.parse_args()
    embedder = create_embedder(options)
    dataset = read_dataset(options.data / options.set, sample=options.questions)
    questions = list(dataset.questions) * options.rounds
    with open_indexed(dataset, embedder, options.folder, options.store) as store, start_collector() as address:
        telemetry = Telemetry(create_exporter(address), Metrics())
        gc.freeze()
        measure_searches(store, embedder, questions[:10], options.method, telemetry)  # warms up
        times = measure_searches(store, embedder, questions, options.method, telemetry)
    print_report(*times, options.rounds, options.json)


if __name__ == "__main__":
    main()
