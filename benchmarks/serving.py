"""How many requests a second `waylore serve` answers in time, on PostgreSQL, with all of it on this machine.

    python -m benchmarks.serving --data SETS --potion WEIGHTS --rates 200 100 50 --seconds 60

A real server of each: PostgreSQL, and `waylore serve` with as many workers as asked for. Each collection holds the whole
set; searches ask its questions, one in ten requests adds a new note (so that kept answers are seldom good for long).
Requests are sent when they are due, and waiting for a connection counts as waiting: nothing is asked more
slowly because answers are slow. Printed for each rate: what was answered, times, errors, memory before and after, and
which processes the processor time went to. The first rate that holds p99 is the answer, and the rest are left out.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import numpy as np
import psutil
from tools.postgres import plain, server

from waylore.engine.waylore import Waylore
from waylore.evaluation.datasets import Dataset, load
from waylore.indexing import pipeline
from waylore.protocols import Embedder
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.providers.embedders.model2vec import Model2VecEmbedder

CONNECTIONS = 64
CALLERS = "callers"
GOAL = 0.250  # seconds: the p99 that a rate must hold
COMMAND = [sys.executable, "-c", "from waylore.surfaces.cli.__main__ import main; main()"]


@dataclass(slots=True)
class Run:
    """What callers saw at one rate."""

    rate: float
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"search": [], "add": []})
    errors: Counter[str] = field(default_factory=Counter)
    took: float = 0.0
    memory: tuple[float, float] = (0.0, 0.0)
    processor: dict[str, float] = field(default_factory=dict)

    def percentile(self, part: float, *kinds: str) -> float:
        times = [s for kind in kinds or self.seconds for s in self.seconds[kind]]
        return float(np.percentile(times, part)) if times else float("nan")

    @property
    def answered(self) -> float:
        return sum(map(len, self.seconds.values())) / self.took

    @property
    def holds(self) -> bool:
        return not self.errors and self.percentile(99) < GOAL

    def __str__(self) -> str:
        times = [f"{self.percentile(part) * 1e3:8.0f}" for part in (50, 95, 99)]
        shares = ", ".join(f"{name} {share:.2f}" for name, share in self.processor.items())
        before, after = self.memory
        told = f"{self.rate:6.0f}/s {self.answered:8.1f}/s {''.join(times)} ms"
        errors = ", ".join(f"{n} × {what}" for what, n in self.errors.items()) or "none"
        return f"{told}   errors: {errors}   memory {before:.0f} → {after:.0f} MB   cores: {shares}"

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        kinds = {kind: {f"p{p}": self.percentile(p, kind) * 1e3 for p in (50, 95, 99)} for kind in self.seconds}
        return {
            "rate": self.rate,
            "answered": self.answered,
            "milliseconds": kinds | {"all": {f"p{p}": self.percentile(p) * 1e3 for p in (50, 95, 99)}},
            "errors": dict(self.errors),
            "megabytes": self.memory,
            "cores": self.processor,
        }


@dataclass(frozen=True, slots=True)
class Service:
    """A service that runs: where, the key to it, its collections, and the processes behind it."""

    url: str
    key: str
    collections: tuple[str, ...]
    processes: dict[str, psutil.Process]

    def tree(self, name: str) -> list[psutil.Process]:
        """A process with all that it started; ours started all of them, and is counted alone."""
        root = self.processes[name]
        return [root] if name == CALLERS else [root, *root.children(recursive=True)]

    def memory(self) -> float:
        """What the service's own processes take, in MB: pages that they share count once for each."""
        return sum(p.memory_info().rss for p in self.tree("service")) / 1e6

    def processor(self) -> dict[str, float]:
        """Seconds of processor time so far, by whom."""
        return {name: sum(_seconds(p) for p in self.tree(name)) for name in self.processes}


def _seconds(process: psutil.Process) -> float:
    with_children = process.cpu_times()
    return float(with_children.user + with_children.system)


@contextmanager
def running(dataset: Dataset, options: argparse.Namespace) -> Iterator[Service]:
    """PostgreSQL, filled, and the service on it."""
    names = tuple(f"tenant-{n}" for n in range(options.collections))
    with TemporaryDirectory() as folder, server(plain()) as postgres:
        for name in names:
            fill(postgres.url, name, dataset, embedder(options))
        environment = {**os.environ, **settings(options, postgres.url, folder)}

        def waylore(*arguments: str) -> str:
            call = [*COMMAND, *arguments]
            done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, check=True)
            return done.stdout

        made = json.loads(waylore("keys", "create", "load", "--scope", "admin", "--json"))
        with (Path(folder) / "log").open("wb") as log:
            service = subprocess.Popen([*COMMAND, "serve"], cwd=folder, env=environment, stdout=log, stderr=log)
            try:
                url = f"http://127.0.0.1:{options.port}"
                asyncio.run(ready(url, made["token"], names))
                root = psutil.Process(postgres.pid)
                yield Service(
                    url,
                    made["token"],
                    names,
                    {"service": psutil.Process(service.pid), "PostgreSQL": root, CALLERS: psutil.Process()},
                )
            finally:
                service.terminate()
                service.wait(30)


def fill(url: str, collection: str, dataset: Dataset, embedder: Embedder) -> None:
    """Write the whole set to a collection."""
    with Waylore.open(url, collection=collection, embedder=embedder) as memory:
        for few in pipeline.batches(dataset.contributions, 256):
            pipeline.write(memory._store, embedder, few)


def embedder(options: argparse.Namespace) -> Embedder:
    """The same that the service has."""
    return Model2VecEmbedder(options.potion) if options.potion else HashingEmbedder(quiet=True)


def settings(options: argparse.Namespace, url: str, folder: str) -> dict[str, str]:
    """What the service is told: no limit of requests, for one caller sends them all."""
    model = (
        {"WAYLORE_EMBEDDING_PROVIDER": "model2vec", "WAYLORE_EMBEDDING_PATH": str(options.potion.resolve())}
        if options.potion
        else {"WAYLORE_EMBEDDING_PROVIDER": "hashing"}
    )
    return model | {
        "WAYLORE_STORE": url,
        "WAYLORE_HTTP_PORT": str(options.port),
        "WAYLORE_HTTP_WORKERS": str(options.workers),
        "WAYLORE_HTTP_RATE": "0",
        "WAYLORE_HTTP_SPOOL": folder,
        "OPENBLAS_NUM_THREADS": "1",
    }


async def ready(url: str, key: str, collections: tuple[str, ...]) -> None:
    """Wait until it answers, then tell it of the collections."""
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
        for _ in range(300):
            try:
                async with session.get(f"{url}/readyz") as answer:
                    if answer.status == 200:
                        break
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)
        for name in collections:
            async with session.put(f"{url}/v1/collections/{name}", json={}) as answer:
                answer.raise_for_status()


async def loaded(service: Service, questions: list[str], rate: float, seconds: float, adds: float) -> Run:
    """Send requests at a rate, for so long; wait for the last answer."""
    run, chance, sent = Run(rate), Random(7), 0
    limit = aiohttp.TCPConnector(limit=CONNECTIONS)
    headers = {"Authorization": f"Bearer {service.key}"}
    async with (
        aiohttp.ClientSession(connector=limit, headers=headers) as session,
        asyncio.TaskGroup() as requests,
    ):
        begun = due = time.perf_counter()
        while due < begun + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            collection = f"{service.url}/v1/collections/{chance.choice(service.collections)}"
            if chance.random() < adds:
                note = f"Note {sent}: {chance.choice(questions)} Asked at {time.time():.3f} by caller {sent}."
                requests.create_task(_sent(session, f"{collection}/documents", {"text": note}, "add", due, run))
            else:
                ask = {"query": chance.choice(questions)}
                requests.create_task(_sent(session, f"{collection}/search", ask, "search", due, run))
            sent += 1
            due += chance.expovariate(rate)
    run.took = time.perf_counter() - begun
    return run


async def _sent(
    session: aiohttp.ClientSession, url: str, body: dict[str, str], kind: str, due: float, run: Run
) -> None:
    try:
        async with session.post(url, json=body) as answer:
            await answer.read()
            if answer.status >= 400:
                run.errors[f"{kind} {answer.status}"] += 1
    except (aiohttp.ClientError, TimeoutError) as error:
        run.errors[f"{kind} {type(error).__name__}"] += 1
    run.seconds[kind].append(time.perf_counter() - due)


def measured(service: Service, questions: list[str], rate: float, options: argparse.Namespace) -> Run:
    """One rate, with what it cost."""
    memory, before = service.memory(), service.processor()
    run = asyncio.run(loaded(service, questions, rate, options.seconds, options.adds))
    run.memory = (memory, service.memory())
    run.processor = {name: (after - before[name]) / run.took for name, after in service.processor().items()}
    return run


def main(arguments: list[str] | None = None) -> int:
    """Try each rate in turn until one holds."""
    options = _options(arguments)
    dataset = load(options.data / options.set)
    questions = [question.text for question in dataset.questions]
    with running(dataset, options) as service:
        asyncio.run(loaded(service, questions, 10, min(options.seconds, 10), options.adds))  # warm
        print("   asked  answered      p50     p95     p99")
        runs = []
        for rate in options.rates:
            runs.append(measured(service, questions, rate, options))
            print(runs[-1], flush=True)
            if runs[-1].holds:
                break
    if options.json:
        options.json.write_text(json.dumps([run.as_json() for run in runs]), encoding="utf-8")
    best = next((run for run in runs if run.holds), None)
    print(
        f"{best.rate:.0f} requests a second hold p99 under {GOAL * 1e3:.0f} ms"
        if best
        else "no rate holds; give lower ones"
    )
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument("--set", default="musique-train100")
    parser.add_argument("--potion", type=Path, help="a folder with potion's weights; else words are hashed")
    parser.add_argument("--rates", type=float, nargs="+", default=[200, 100, 70, 50, 40, 30, 20])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--adds", type=float, default=0.1, help="the share of requests that add something")
    parser.add_argument("--collections", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--port", type=int, default=18_080)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
