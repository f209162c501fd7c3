"""Set up telemetry by the settings: traces, metrics and logs. By default it is off.

`configure` does this once in a process. Spans, metrics and logs need the extra `telemetry`. This module does not, and
imports them only when they are used. Telemetry must neither fail nor delay the observed call.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from waylore.protocols import Embedder, Observer, Vectors, embed_queries
from waylore.providers.optional import require_extra
from waylore.settings.sections import TelemetrySettings
from waylore.surfaces.telemetry.outcomes import log_errors
from waylore.types.knowledge import Vector

if TYPE_CHECKING:  # these modules need the extra
    from waylore.surfaces.telemetry.metrics import Metrics
    from waylore.surfaces.telemetry.spans import Spans


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Traces, metrics, or both."""

    spans: "Spans | None" = None
    metrics: "Metrics | None" = None

    def create_observer(self, collection: str, model: str = "") -> Observer:
        """Return the observer of a collection with an embedding model."""
        spans = [self.spans.bind(collection, model)] if self.spans else []
        return CompositeObserver((*spans, *([self.metrics] if self.metrics else [])))

    @contextmanager
    def observe_embedding(self, model: Embedder, kind: str, texts: int) -> Iterator[None]:
        """Record a call of an embedder; `kind` is query or passages."""
        with ExitStack() as stack:
            if self.spans:
                stack.enter_context(self.spans.observe_embedding(model, kind, texts))
            if self.metrics:
                stack.enter_context(self.metrics.observe_embedding(kind, texts))
            yield

    def flush(self) -> None:
        """Send the waiting spans, for at most a few seconds."""
        if self.spans:
            self.spans.flush()


@dataclass(frozen=True, slots=True)
class CompositeObserver:
    """Several observers as one."""

    observers: Sequence[Observer]

    @contextmanager
    def observe(self, verb: str) -> Iterator[Callable[[object], None]]:
        """Record a method of Waylore with each observer."""
        with ExitStack() as stack:
            callbacks = [stack.enter_context(each.observe(verb)) for each in self.observers]

            def record(result: object) -> None:
                for callback in callbacks:
                    with log_errors():
                        callback(result)

            yield record


@dataclass(frozen=True, slots=True)
class ObservedEmbedder:
    """An embedder whose calls are recorded."""

    embedder: Embedder
    telemetry: Telemetry

    @property
    def name(self) -> str:
        """The name of the embedder."""
        return self.embedder.name

    @property
    def dimension(self) -> int:
        """The dimension of the embedder."""
        return self.embedder.dimension

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of passages."""
        with self.telemetry.observe_embedding(self.embedder, "passages", len(texts)):
            return self.embedder.embed_passages(texts)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query."""
        with self.telemetry.observe_embedding(self.embedder, "query", 1):
            return self.embedder.embed_query(text)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of queries."""
        with self.telemetry.observe_embedding(self.embedder, "query", len(texts)):
            return embed_queries(self.embedder, texts)


@cache
def configure(settings: TelemetrySettings) -> Telemetry | None:
    """Set up telemetry once in this process. Return None if all settings have their defaults."""
    if settings == TelemetrySettings():
        return None
    with require_extra("telemetry needs", "telemetry"):
        from waylore.surfaces.telemetry import logs, metrics, spans  # noqa: PLC0415
    logs.set_up(settings.log_format, settings.log_level)
    endpoint, content = settings.otlp_endpoint, settings.capture_content
    exporter = spans.create_exporter(endpoint, content=content) if endpoint else None
    return Telemetry(exporter, metrics.Metrics() if settings.metrics else None)


def instrument(
    settings: TelemetrySettings, collection: str, embedder: Embedder | None
) -> tuple[Embedder | None, Observer | None]:
    """Return an embedder whose calls are recorded, and the observer of a collection; see `configure`."""
    telemetry = configure(settings)
    if telemetry is None or not (telemetry.spans or telemetry.metrics):
        return embedder, None
    if embedder is None:
        return None, telemetry.create_observer(collection)
    return ObservedEmbedder(embedder, telemetry), telemetry.create_observer(collection, embedder.name)
