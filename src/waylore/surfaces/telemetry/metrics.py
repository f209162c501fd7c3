"""Collect metrics with prometheus_client: durations, amounts and counts, with labels of few values.

Collections and questions are not labels, because there may be a million of them. If several processes serve
(`share_metrics`), each writes its own files in one folder, and the process that answers `/metrics` adds them up.
This module opens no port.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from waylore.recipes import RECIPES
from waylore.settings.load import read_variable, set_variable
from waylore.store.monitoring import read_lag, read_pools
from waylore.surfaces.error_kinds import find_kind
from waylore.surfaces.telemetry.outcomes import list_failed_stages, log_errors
from waylore.types.results import Receipt
from waylore.types.search import SearchResult

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client's own name
POOL_SECONDS = 1.0  # minimum time between two reads of the connection pools
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._verbs = self._histogram("verb", "Calls of Waylore's methods", "verb", "outcome")
        self._searches = self._histogram("search", "Searches by recipe, without cached answers", "recipe")
        self._stages = self._histogram("stage", "Stages of a search; some run together", "recipe", "stage")
        self._embeddings = self._histogram("embedding", "Calls of the embedder", "kind", "outcome")
        self._requests = self._histogram("http", "HTTP requests by route and status", "method", "route", "status")
        self._in_flight = self._gauge("http_in_flight", "HTTP requests in progress")
        self._texts = self._counter("embedded_texts", "Texts passed to the embedder", "kind")
        self._rows = self._counter("rows", "Rows that the store returned to searches", "kind")
        self._gate = self._counter("gate", "Decisions of the gate to use the graph", "decision")
        self._answers = self._counter("answers", "Answers of searches, cached or computed", "from_cache")
        self._failed_stages = self._counter("failed_stages", "Stages that failed in partial answers", "stage")
        self._forgotten = self._counter("forgotten", "Removed items", "kind")
        self._pool = self._gauge("pool_connections", "Connections to PostgreSQL, by state", "state")
        self._waiting = self._gauge("pool_waiting", "Threads that wait for a connection")
        self._waited = self._counter("pool_wait_seconds", "Time spent waiting for connections")
        self._pool_errors = self._counter(
            "pool_errors", "Connections that were not available in time, could not be made, or were lost", "cause"
        )
        self._index_pending = self._gauge(
            "index_pending", "Changes that search indexes do not have yet", mode="livemax"
        )
        self._index_lag = self._gauge("index_lag_seconds", "Age of the oldest of these changes", mode="livemax")
        self._pool_lock = Lock()
        self._pools_read_at = 0.0
        self._last_figures: Mapping[str, int] = {}

    # -- record ----------------------------------------------------------------------------------------

    @contextmanager
    def observe(self, verb: str) -> Iterator[Callable[[object], None]]:
        """Record a method of Waylore."""
        with self._time(lambda outcome: self._verbs.labels(verb, outcome)):
            yield self._record
        self._read_pools()

    @contextmanager
    def observe_embedding(self, kind: str, texts: int) -> Iterator[None]:
        """Record a call of the embedder; `kind` is query or passages."""
        with self._time(lambda outcome: self._embeddings.labels(kind, outcome)):
            yield
        with log_errors():
            self._texts.labels(kind).inc(texts)

    @contextmanager
    def count_in_flight(self) -> Iterator[None]:
        """Count an HTTP request as in progress."""
        with log_errors():
            self._in_flight.inc()
        try:
            yield
        finally:
            with log_errors():
                self._in_flight.dec()

    def record_request(self, method: str, route: str, status: str, seconds: float) -> None:
        """Record an HTTP request that has ended."""
        with log_errors():
            self._requests.labels(method, route, status).observe(seconds)

    def expose(self, accepted: str = "") -> tuple[bytes, str]:
        """Return the metrics of all processes that share them in the format of Prometheus, and the content type."""
        self._pools_read_at = 0.0
        self._read_pools()
        encode, content_type = choose_encoder(accepted)
        is_shared = getattr(values.ValueClass, "_multiprocess", False)  # set when the library was imported
        return encode(_collect_all_processes() if is_shared else self.registry), content_type

    # -- metrics ---------------------------------------------------------------------------------------

    def _histogram(self, name: str, help_text: str, *labels: str) -> Histogram:
        return Histogram(f"waylore_{name}_seconds", help_text, labels, registry=self.registry, buckets=SECONDS)

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"waylore_{name}", help_text, labels, registry=self.registry)

    def _gauge(self, name: str, help_text: str, *labels: str, mode: Literal["livesum", "livemax"] = "livesum") -> Gauge:
        return Gauge(f"waylore_{name}", help_text, labels, registry=self.registry, multiprocess_mode=mode)

    @contextmanager
    def _time(self, choose_labels: Callable[[str], Histogram]) -> Iterator[None]:
        started, outcome = time.perf_counter(), "ok"
        try:
            yield
        except BaseException as error:
            outcome = find_kind(error).name if isinstance(error, Exception) else "interrupted"
            raise
        finally:
            with log_errors():
                choose_labels(outcome).observe(time.perf_counter() - started)

    def _record(self, result: object) -> None:
        if isinstance(result, SearchResult):
            self._record_search(result)
        if isinstance(result, Receipt):
            for kind in ("documents", "passages", "entities", "facts"):
                self._forgotten.labels(kind).inc(len(getattr(result, kind)))

    def _record_search(self, result: SearchResult) -> None:
        self._answers.labels("yes" if result.from_cache else "no").inc()
        self._gate.labels(result.gate).inc()
        for stage in list_failed_stages(result):
            self._failed_stages.labels(stage).inc()
        if result.from_cache:
            return
        recipe = result.recipe if result.recipe in RECIPES else "own"
        for stage, seconds in result.seconds.items():
            self._stages.labels(recipe, stage).observe(seconds)
        if result.started:
            first = min(result.started.values())
            last = max(start + result.seconds[stage] for stage, start in result.started.items())
            self._searches.labels(recipe).observe(last - first)
        for kind, count in result.rows_read.items():
            self._rows.labels(kind).inc(count)

    def _read_pools(self) -> None:
        now = time.monotonic()
        if now - self._pools_read_at < POOL_SECONDS or not self._pool_lock.acquire(blocking=False):
            return
        try:
            self._pools_read_at = now
            with log_errors():
                self._record_pools(read_pools())
                lag = read_lag()
                self._index_pending.set(lag.pending)
                self._index_lag.set(lag.seconds)
        finally:
            self._pool_lock.release()

    def _record_pools(self, figures: Mapping[str, int]) -> None:
        """Set the gauges, and add what the pools have counted since the last read."""
        if not figures and not self._last_figures:
            return
        for state, name in (("open", "pool_size"), ("free", "pool_available"), ("max", "pool_max")):
            self._pool.labels(state).set(figures.get(name, 0))
        self._waiting.set(figures.get("requests_waiting", 0))
        more = {name: max(0, count - self._last_figures.get(name, 0)) for name, count in figures.items()}
        self._waited.inc(more.get("requests_wait_ms", 0) / 1000)
        for cause, name in (
            ("wait", "requests_errors"),
            ("connect", "connections_errors"),
            ("use", "connections_lost"),
        ):
            self._pool_errors.labels(cause).inc(more.get(name, 0))
        self._last_figures = figures


@contextmanager
def share_metrics() -> Iterator[None]:
    """Let processes that are started inside share their metrics. A folder that the user has set is not changed."""
    if read_variable(FOLDER):
        yield
        return
    with TemporaryDirectory(prefix="waylore-metrics-") as folder, set_variable(FOLDER, folder):
        yield


def _collect_all_processes() -> CollectorRegistry:
    """Return the metrics of all processes, without the gauges of processes that have ended."""
    folder = Path(read_variable(FOLDER))
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
