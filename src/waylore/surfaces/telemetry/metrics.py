"""Metrics, through prometheus_client: how long, how much, how often, in labels of few values.

Neither collections nor questions are labels: there may be a million of them. Where several processes answer
(`shared`), each writes files of its own in one folder, and whoever is asked adds them up. Nothing here opens a
port.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from waylore.recipes import RECIPES
from waylore.settings.load import handed_down, of_library
from waylore.store.monitoring import read_pools
from waylore.surfaces.error_kinds import kind_of
from waylore.surfaces.telemetry.outcomes import lost, quietly
from waylore.types.results import Receipt
from waylore.types.search import Found

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client's own name
POOL_SECONDS = 1.0  # between two looks at the pools
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """What is counted in this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._verbs = self._timed("verb", "What was asked of Waylore, by method and outcome", "verb", "outcome")
        self._searches = self._timed("search", "Searches by recipe, kept answers left out", "recipe")
        self._stages = self._timed("stage", "Stages of a search; some go side by side", "recipe", "stage")
        self._embeddings = self._timed("embedding", "Calls of the embedder", "of", "outcome")
        self._requests = self._timed("http", "HTTP requests by route and status", "method", "route", "status")
        self._in_flight = self._gauge("http_in_flight", "HTTP requests that are being answered")
        self._texts = self._counter("embedded_texts", "Texts given to the embedder", "of")
        self._rows = self._counter("rows", "What the store gave to searches, by kind", "kind")
        self._gate = self._counter("gate", "Whether the graph was walked, and if not, why", "decision")
        self._answers = self._counter("answers", "Answers, kept from before or made", "kept")
        self._lost = self._counter("lost", "Answers in part: what could not be searched", "stage")
        self._forgotten = self._counter("forgotten", "What was forgotten, by kind", "kind")
        self._pool = self._gauge("pool_connections", "Connections to PostgreSQL, by state", "state")
        self._waiting = self._gauge("pool_waiting", "Who waits for a connection")
        self._waited = self._counter("pool_wait_seconds", "Waited for connections")
        self._pool_errors = self._counter("pool_errors", "Connections not had in time, not made, or lost", "of")
        self._looking = Lock()
        self._looked = 0.0
        self._before: Mapping[str, int] = {}

    # -- what is told ----------------------------------------------------------------------------------

    @contextmanager
    def watching(self, verb: str) -> Iterator[Callable[[object], None]]:
        """Around a method of Waylore."""
        with self._timing(lambda outcome: self._verbs.labels(verb, outcome)):
            yield self._told
        self._look_at_pools()

    @contextmanager
    def embedding(self, of: str, texts: int) -> Iterator[None]:
        """Around a call of the embedder."""
        with self._timing(lambda outcome: self._embeddings.labels(of, outcome)):
            yield
        with quietly():
            self._texts.labels(of).inc(texts)

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """Around an HTTP request."""
        with quietly():
            self._in_flight.inc()
        try:
            yield
        finally:
            with quietly():
                self._in_flight.dec()

    def request(self, method: str, route: str, status: str, seconds: float) -> None:
        """An HTTP request was answered."""
        with quietly():
            self._requests.labels(method, route, status).observe(seconds)

    def exposition(self, accepted: str = "") -> tuple[bytes, str]:
        """All metrics as Prometheus reads them, of all processes that share them, and their content type."""
        self._looked = 0.0
        self._look_at_pools()
        encode, content_type = choose_encoder(accepted)
        is_shared = getattr(values.ValueClass, "_multiprocess", False)  # decided when it was imported
        return encode(_of_all_processes() if is_shared else self.registry), content_type

    # -- how -------------------------------------------------------------------------------------------

    def _timed(self, name: str, what: str, *labels: str) -> Histogram:
        return Histogram(f"waylore_{name}_seconds", what, labels, registry=self.registry, buckets=SECONDS)

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f"waylore_{name}", what, labels, registry=self.registry)

    def _gauge(self, name: str, what: str, *labels: str) -> Gauge:
        return Gauge(f"waylore_{name}", what, labels, registry=self.registry, multiprocess_mode="livesum")

    @contextmanager
    def _timing(self, labelled: Callable[[str], Histogram]) -> Iterator[None]:
        began, outcome = time.perf_counter(), "ok"
        try:
            yield
        except BaseException as error:
            outcome = kind_of(error).name if isinstance(error, Exception) else "stopped"
            raise
        finally:
            with quietly():
                labelled(outcome).observe(time.perf_counter() - began)

    def _told(self, result: object) -> None:
        if isinstance(result, Found):
            self._searched(result)
        if isinstance(result, Receipt):
            for kind in ("documents", "passages", "entities", "facts"):
                self._forgotten.labels(kind).inc(len(getattr(result, kind)))

    def _searched(self, found: Found) -> None:
        self._answers.labels("yes" if found.is_kept else "no").inc()
        self._gate.labels(found.gate).inc()
        for stage in lost(found):
            self._lost.labels(stage).inc()
        if found.is_kept:
            return
        recipe = found.recipe if found.recipe in RECIPES else "own"
        for stage, seconds in found.seconds.items():
            self._stages.labels(recipe, stage).observe(seconds)
        if found.began:
            first = min(found.began.values())
            last = max(began + found.seconds[stage] for stage, began in found.began.items())
            self._searches.labels(recipe).observe(last - first)
        for kind, count in found.rows.items():
            self._rows.labels(kind).inc(count)

    def _look_at_pools(self) -> None:
        now = time.monotonic()
        if now - self._looked < POOL_SECONDS or not self._looking.acquire(blocking=False):
            return
        try:
            self._looked = now
            with quietly():
                self._pools_are(read_pools())
        finally:
            self._looking.release()

    def _pools_are(self, figures: Mapping[str, int]) -> None:
        """The states as they are; what the pools count is counted on from what they said before."""
        if not figures and not self._before:
            return
        for state, name in (("open", "pool_size"), ("free", "pool_available"), ("most", "pool_max")):
            self._pool.labels(state).set(figures.get(name, 0))
        self._waiting.set(figures.get("requests_waiting", 0))
        more = {name: max(0, count - self._before.get(name, 0)) for name, count in figures.items()}
        self._waited.inc(more.get("requests_wait_ms", 0) / 1000)
        for of, name in (
            ("wait", "requests_errors"),
            ("making", "connections_errors"),
            ("use", "connections_lost"),
        ):
            self._pool_errors.labels(of).inc(more.get(name, 0))
        self._before = figures


@contextmanager
def shared() -> Iterator[None]:
    """Processes that are started within share their metrics; a folder that the user named is left to him."""
    if of_library(FOLDER):
        yield
        return
    with TemporaryDirectory(prefix="waylore-metrics-") as folder, handed_down(FOLDER, folder):
        yield


def _of_all_processes() -> CollectorRegistry:
    """What all processes wrote; gauges of those that are gone are dropped first."""
    folder = Path(of_library(FOLDER))
    for pid in {int(file.stem.rsplit("_", 1)[1]) for file in folder.glob("gauge_live*.db")}:
        if not _is_alive(pid):
            mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    return registry


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
