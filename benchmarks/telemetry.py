"""What telemetry costs: each question is asked with it off and on, one after the other, and each is timed.

    python -m benchmarks.telemetry --data SETS --set musique-train100 --embedder hashing --folder DIR

On is all of it: a span for each stage, sent to a collector in a process of its own, and all metrics. What the
thread that asks spends is measured for each question; what the thread that sends spends is what the process has
spent beyond that, and is added to on. No answer is kept. Which of the two goes first changes with every question;
of several rounds each question's best counts in ratios, for other work of the machine hits single searches.
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
from waylore.config import Cache
from waylore.evaluation.datasets import Question, load
from waylore.evaluation.index import add_embedder_options, chosen_embedder, indexed
from waylore.protocols import Embedder
from waylore.recipes import RECIPES
from waylore.store.protocol import Store
from waylore.surfaces.telemetry.metrics import Metrics
from waylore.surfaces.telemetry.setup import Telemetry, WatchedEmbedder
from waylore.surfaces.telemetry.spans import exported
from waylore.types.search import Filter

NONE_KEPT = Cache(size=1, seconds=0)


@contextmanager
def collector() -> Iterator[str]:
    """A collector whose processor time is not ours."""
    with subprocess.Popen(
        [sys.executable, "-m", "tools.collector"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout
        yield running.stdout.readline().strip()


class Spent(NamedTuple):
    """Seconds of each search by the wall, and of the processor."""

    wall: list[float]
    processor: list[float]


def asked(waylore: Waylore, question: Question, method: str, spent: Spent) -> None:
    where = Filter(metadata={"scope": question.scope}) if question.scope else Filter()
    wall, processor = time.perf_counter(), time.thread_time()
    waylore.search(question.text, method=method, where=where, count_use=False)
    spent.processor.append(time.thread_time() - processor)
    spent.wall.append(time.perf_counter() - wall)


def measured(
    store: Store, embedder: Embedder, questions: Sequence[Question], method: str, telemetry: Telemetry
) -> tuple[Spent, Spent, float]:
    """Off, on, and the processor's seconds for sending."""
    off = Waylore(store, embedder, cache=NONE_KEPT)
    watched = WatchedEmbedder(embedder, telemetry)
    on = Waylore(store, watched, cache=NONE_KEPT, observer=telemetry.observer("default", embedder.name))
    without, with_ = Spent([], []), Spent([], [])
    began = time.process_time() - time.thread_time()
    for number, question in enumerate(questions):
        for waylore, spent in [(off, without), (on, with_)][:: -1 if number % 2 else 1]:
            asked(waylore, question, method, spent)
    telemetry.flush()
    return without, with_, time.process_time() - time.thread_time() - began


def report(off: Spent, on: Spent, sending: float, rounds: int, path: Path | None) -> None:
    """Print milliseconds a search, off and on, and how the one compares with the other."""
    told: dict[str, dict[str, float]] = {}
    for name, spent in (("off", off), ("on", on)):
        p50, p95 = np.percentile(spent.wall, [50, 95])
        told[name] = {"p50": p50, "p95": p95, "processor": least(spent.processor, rounds)}
        print(f"{name:4s}" + "".join(f"  {key} {1000 * value:.2f} ms" for key, value in told[name].items()))
    each = sending / len(on.wall)
    ratio = (told["on"]["processor"] + each) / told["off"]["processor"]
    wall = least(on.wall, rounds) / least(off.wall, rounds)
    print(f"sending: {1000 * each:.2f} ms of the processor a search")
    print(f"on / off: processor {ratio:.3f}, sending included; time to answer {wall:.3f}")
    if path:
        path.write_text(json.dumps({**told, "sending": each, "ratio": ratio, "wall": wall}), "utf-8")


def least(seconds: list[float], rounds: int) -> float:
    """The mean over questions of the best of all rounds: what a quiet machine would take."""
    return float(np.array(seconds).reshape(rounds, -1).min(axis=0).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="musique-train100")
    parser.add_argument("--method", default="chain", choices=sorted(RECIPES))
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5, help="how often all questions are asked")
    parser.add_argument("--json", type=Path)
    add_embedder_options(parser)
    options = parser.parse_args()
    embedder = chosen_embedder(options)
    dataset = load(options.data / options.set, sample=options.questions)
    questions = list(dataset.questions) * options.rounds
    with indexed(dataset, embedder, options.folder, options.store) as store, collector() as address:
        telemetry = Telemetry(exported(address), Metrics())
        gc.freeze()
        measured(store, embedder, questions[:10], options.method, telemetry)  # warms up
        spent = measured(store, embedder, questions, options.method, telemetry)
    report(*spent, options.rounds, options.json)


if __name__ == "__main__":
    main()
