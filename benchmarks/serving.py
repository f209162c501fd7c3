"""Measure how many requests per second `waylore serve` answers in time, on PostgreSQL and on one machine.

    python -m benchmarks.serving --data SETS --potion WEIGHTS --rates 200 100 50 --seconds 60

The benchmark starts a real PostgreSQL server and a real `waylore serve` with `--workers`. Each collection holds
the whole set. Searches use its questions. One in ten requests adds a new note, so cached answers are seldom
valid for long. Requests are sent when they are due, and waiting for a connection counts as waiting, so slow
answers do not reduce the rate. For each rate it prints the answered requests, times, errors, memory before and
after, and the processor time by process. It stops at the first rate that meets the p99 goal. `--callers 1` sends
each request when the one before is answered instead, and prints how many requests a second that gives.
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
from tools.postgres.builds import find_plain_build
from tools.postgres.server import start_server

from benchmarks.processes import count_seconds, list_trees, read_living
from waylore.engine.waylore import Waylore
from waylore.evaluation.datasets import Dataset, read_dataset
from waylore.indexing import pipeline
from waylore.protocols import Embedder
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.providers.embedders.model2vec import Model2VecEmbedder
from waylore.types.author import OWNER

MAX_CONNECTIONS = 64
CALLERS = "callers"
MAX_P99_SECONDS = 0.250  # goal of every rate
COMMAND = [sys.executable, "-c", "from waylore.surfaces.cli.__main__ import main; main()"]


@dataclass(slots=True)
class RateResult:
    """The figures of one rate, as the callers measured them."""

    rate: float
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"search": [], "add": []})
    errors: Counter[str] = field(default_factory=Counter)
    took: float = 0.0
    memory: tuple[float, float] = (0.0, 0.0)
    processor: dict[str, float] = field(default_factory=dict)

    def get_percentile(self, part: float, *kinds: str) -> float:
        """Return a percentile of the seconds, of all requests or of some kinds."""
        times = [s for kind in kinds or self.seconds for s in self.seconds[kind]]
        return float(np.percentile(times, part)) if times else float("nan")

    @property
    def answered(self) -> float:
        return sum(map(len, self.seconds.values())) / self.took

    @property
    def is_within_goal(self) -> bool:
        return not self.errors and self.get_percentile(99) < MAX_P99_SECONDS

    def __str__(self) -> str:
        times = [f"{self.get_percentile(part) * 1e3:8.0f}" for part in (50, 95, 99)]
        shares = ", ".join(f"{name} {share:.2f}" for name, share in self.processor.items())
        before, after = self.memory
        rates = f"{self.rate:6.0f}/s {self.answered:8.1f}/s {''.join(times)} ms"
        errors = ", ".join(f"{n} × {what}" for what, n in self.errors.items()) or "none"
        return f"{rates}   errors: {errors}   memory {before:.0f} → {after:.0f} MB   cores: {shares}"

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        kinds = {kind: {f"p{p}": self.get_percentile(p, kind) * 1e3 for p in (50, 95, 99)} for kind in self.seconds}
        return {
            "rate": self.rate,
            "answered": self.answered,
            "milliseconds": kinds | {"all": {f"p{p}": self.get_percentile(p) * 1e3 for p in (50, 95, 99)}},
            "errors": dict(self.errors),
            "megabytes": self.memory,
            "cores": self.processor,
        }


@dataclass(frozen=True, slots=True)
class Service:
    """A running service: its address, an API key, its collections, and its processes."""

    url: str
    key: str
    collections: tuple[str, ...]
    processes: dict[str, psutil.Process]

    def list_processes(self, name: str) -> list[psutil.Process]:
        """Return a process and its children; our own process started all others and is counted alone."""
        root = self.processes[name]
        return [root] if name == CALLERS else list_trees([root])

    def measure_megabytes(self) -> float:
        """Return the memory of the service's own processes; shared pages count once for each process."""
        return sum(m.rss for m in read_living(psutil.Process.memory_info, self.list_processes("service"))) / 1e6

    def read_processor_seconds(self) -> dict[str, float]:
        """Return the processor time so far, by process."""
        return {name: count_seconds(self.list_processes(name)) for name in self.processes}


@contextmanager
def start_filled_service(dataset: Dataset, options: argparse.Namespace) -> Iterator[Service]:
    """Start PostgreSQL, fill it, and start the service on it; stop both at the end."""
    names = tuple(f"tenant-{n}" for n in range(options.collections))
    with TemporaryDirectory() as folder, start_server(find_plain_build()) as postgres:
        for name in names:
            fill_collection(postgres.url, name, dataset, create_embedder(options))
        environment = {**os.environ, **build_settings(options, postgres.url, folder)}

        def run_waylore(*arguments: str) -> str:
            call = [*COMMAND, *arguments]
            done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, check=True)
            return done.stdout

        made = json.loads(run_waylore("keys", "create", "load", "--scope", "admin", "--json"))
        with (Path(folder) / "log").open("wb") as log:
            service = subprocess.Popen([*COMMAND, "serve"], cwd=folder, env=environment, stdout=log, stderr=log)
            try:
                url = f"http://127.0.0.1:{options.port}"
                asyncio.run(prepare_service(url, made["token"], names))
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


def fill_collection(url: str, collection: str, dataset: Dataset, embedder: Embedder) -> None:
    """Write the whole set to a collection."""
    with Waylore.open(url, collection=collection, embedder=embedder) as memory:
        for few in pipeline.split_into_batches(dataset.pages, 256):
            pipeline.write(memory._store, embedder, few, author=OWNER)


def create_embedder(options: argparse.Namespace) -> Embedder:
    """Create the embedder that the service uses."""
    return Model2VecEmbedder(options.potion) if options.potion else HashingEmbedder(quiet=True)


def build_settings(options: argparse.Namespace, url: str, folder: str) -> dict[str, str]:
    """Return the environment of the service, without a rate limit, because one caller sends all requests."""
    model = (
        {"WAYLORE_EMBEDDING_PROVIDER": "model2vec", "WAYLORE_EMBEDDING_PATH": str(options.potion.resolve())}
        if options.potion
        else {"WAYLORE_EMBEDDING_PROVIDER": "hashing"}
    )
    return model | {
        "WAYLORE_STORE": url,
        "WAYLORE_HTTP_PORT": str(options.port),
        "WAYLORE_HTTP_WORKERS": str(options.workers),
        "WAYLORE_HTTP_RATE_LIMIT": "0",
        "WAYLORE_HTTP_UPLOAD_DIR": folder,
        "OPENBLAS_NUM_THREADS": "1",
    }


async def prepare_service(url: str, key: str, collections: tuple[str, ...]) -> None:
    """Wait until the service is ready, then create the collections."""
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


async def send_requests(service: Service, questions: list[str], rate: float, seconds: float, adds: float) -> RateResult:
    """Send requests at a rate for a number of seconds, and wait for the last answer."""
    run, chance, sent = RateResult(rate), Random(7), 0
    limit = aiohttp.TCPConnector(limit=MAX_CONNECTIONS)
    headers = {"Authorization": f"Bearer {service.key}"}
    async with (
        aiohttp.ClientSession(connector=limit, headers=headers) as session,
        asyncio.TaskGroup() as requests,
    ):
        start = due = time.perf_counter()
        while due < start + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            request = choose_request(service, questions, chance, sent, adds)
            requests.create_task(_send(session, *request, due, run))
            sent += 1
            due += chance.expovariate(rate)
    run.took = time.perf_counter() - start
    return run


async def send_in_turn(service: Service, questions: list[str], callers: int, seconds: float, adds: float) -> RateResult:
    """Let some callers each send their next request when they have the answer to the one before."""
    run, start = RateResult(0), time.perf_counter()

    async def call(number: int, session: aiohttp.ClientSession) -> None:
        chance = Random(number)
        while (due := time.perf_counter()) < start + seconds:
            await _send(session, *choose_request(service, questions, chance, number, adds), due, run)

    headers = {"Authorization": f"Bearer {service.key}"}
    async with aiohttp.ClientSession(headers=headers) as session, asyncio.TaskGroup() as group:
        for number in range(callers):
            group.create_task(call(number, session))
    run.took = time.perf_counter() - start
    run.rate = run.answered
    return run


def choose_request(
    service: Service, questions: list[str], chance: Random, sent: int, adds: float
) -> tuple[str, dict[str, str], str]:
    """Choose a search or, for a share of the requests, a note to add; return address, body and kind."""
    collection = f"{service.url}/v1/collections/{chance.choice(service.collections)}"
    if chance.random() < adds:
        note = f"Note {sent}: {chance.choice(questions)} Asked at {time.time():.3f} by caller {sent}."
        return f"{collection}/documents", {"text": note}, "add"
    return f"{collection}/search", {"query": chance.choice(questions)}, "search"


async def _send(
    session: aiohttp.ClientSession, url: str, body: dict[str, str], kind: str, due: float, run: RateResult
) -> None:
    try:
        async with session.post(url, json=body) as answer:
            await answer.read()
            if answer.status >= 400:
                run.errors[f"{kind} {answer.status}"] += 1
    except (aiohttp.ClientError, TimeoutError) as error:
        run.errors[f"{kind} {type(error).__name__}"] += 1
    run.seconds[kind].append(time.perf_counter() - due)


def measure_rate(service: Service, questions: list[str], rate: float, options: argparse.Namespace) -> RateResult:
    """Measure one rate, with memory and processor time."""
    memory, before = service.measure_megabytes(), service.read_processor_seconds()
    if options.callers:
        run = asyncio.run(send_in_turn(service, questions, options.callers, options.seconds, options.adds))
    else:
        run = asyncio.run(send_requests(service, questions, rate, options.seconds, options.adds))
    run.memory = (memory, service.measure_megabytes())
    after = service.read_processor_seconds()
    run.processor = {name: (after[name] - before[name]) / run.took for name in after}
    return run


def main(arguments: list[str] | None = None) -> int:
    """Measure the rates in order until one meets the goal."""
    options = _parse_options(arguments)
    dataset = read_dataset(options.data / options.set)
    questions = [question.text for question in dataset.questions]
    with start_filled_service(dataset, options) as service:
        asyncio.run(send_requests(service, questions, 10, min(options.seconds, 10), options.adds))  # warm
        print("    sent  answered      p50     p95     p99")
        runs = []
        for rate in [0.0] if options.callers else options.rates:
            runs.append(measure_rate(service, questions, rate, options))
            print(runs[-1], flush=True)
            if runs[-1].is_within_goal:
                break
    if options.json:
        options.json.write_text(json.dumps([run.to_json() for run in runs]), encoding="utf-8")
    best = next((run for run in runs if run.is_within_goal), None)
    print(
        f"with {best.rate:.0f} requests per second p99 is below {MAX_P99_SECONDS * 1e3:.0f} ms"
        if best
        else "no rate meets the goal; pass lower rates"
    )
    return 0


def _parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--set", default="musique-train100", help="name of the set")
    parser.add_argument("--potion", type=Path, help="folder with the weights of potion, default: hashing embedder")
    parser.add_argument(
        "--rates", type=float, nargs="+", default=[200, 100, 70, 50, 40, 30, 20], help="requests per second"
    )
    parser.add_argument("--callers", type=int, help="callers that send one request after the other, instead of rates")
    parser.add_argument("--seconds", type=float, default=60, help="duration of each rate")
    parser.add_argument("--adds", type=float, default=0.1, help="share of requests that add a note")
    parser.add_argument("--collections", type=int, default=4, help="number of collections")
    parser.add_argument("--workers", type=int, default=2, help="workers of the service")
    parser.add_argument("--port", type=int, default=18_080, help="port of the service")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
