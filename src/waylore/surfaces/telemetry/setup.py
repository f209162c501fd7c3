"""Telemetry: what goes on inside, told to whom the settings name; to nobody, by default.

`configured` makes it once a process, from the settings. Traces (`telemetry_spans`), metrics
(`telemetry_metrics`) and logs (`telemetry_logs`) need the extra `telemetry`; this file does not, and puts them
together. Nothing here may fail or hold up what is observed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from waylore.protocols import Embedder, Observer, Vectors
from waylore.providers.optional import needing
from waylore.settings import sections as settings
from waylore.types.knowledge import Vector

if TYPE_CHECKING:  # they need the extra
    from waylore.surfaces.telemetry.metrics import Metrics
    from waylore.surfaces.telemetry.spans import Spans
from waylore.surfaces.telemetry.outcomes import quietly


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What is told beside logs: traces, metrics, or both."""

    spans: "Spans | None" = None
    metrics: "Metrics | None" = None

    def observer(self, collection: str, model: str = "") -> Observer:
        """Who is told of what is asked of one collection, which is searched with an embedding model."""
        spans = [self.spans.of(collection, model)] if self.spans else []
        return Several((*spans, *([self.metrics] if self.metrics else [])))

    @contextmanager
    def embedding(self, model: Embedder, of: str, texts: int) -> Iterator[None]:
        """Around a call of an embedder: `of` is query or passages."""
        with ExitStack() as watching:
            if self.spans:
                watching.enter_context(self.spans.embedding(model, of, texts))
            if self.metrics:
                watching.enter_context(self.metrics.embedding(of, texts))
            yield

    def flush(self) -> None:
        """Send what waits to be sent; gives up after a few seconds."""
        if self.spans:
            self.spans.flush()


@dataclass(frozen=True, slots=True)
class Several:
    """Observers as one."""

    observers: Sequence[Observer]

    @contextmanager
    def watching(self, verb: str) -> Iterator[Callable[[object], None]]:
        """Around a method of Waylore; each is told."""
        with ExitStack() as watched:
            tells = [watched.enter_context(each.watching(verb)) for each in self.observers]

            def tell(result: object) -> None:
                for each in tells:
                    with quietly():
                        each(result)

            yield tell


@dataclass(frozen=True, slots=True)
class WatchedEmbedder:
    """An embedder whose calls are told."""

    embedder: Embedder
    telemetry: Telemetry

    @property
    def name(self) -> str:
        """The embedder's own."""
        return self.embedder.name

    @property
    def dimension(self) -> int:
        """The embedder's own."""
        return self.embedder.dimension

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The embedder's own vectors."""
        with self.telemetry.embedding(self.embedder, "passages", len(texts)):
            return self.embedder.embed_passages(texts)

    def embed_query(self, text: str) -> Vector:
        """The embedder's own vector."""
        with self.telemetry.embedding(self.embedder, "query", 1):
            return self.embedder.embed_query(text)


@cache
def configured(wanted: settings.Telemetry) -> Telemetry | None:
    """What the settings ask for, made once a process; None, if they ask for nothing but their defaults."""
    if wanted == settings.Telemetry():
        return None
    with needing("telemetry needs", "telemetry"):
        from waylore.surfaces.telemetry import logs, metrics, spans  # noqa: PLC0415
    logs.set_up(wanted.logs, wanted.level)
    sent = spans.exported(wanted.traces, content=wanted.content) if wanted.traces else None
    return Telemetry(sent, metrics.Metrics() if wanted.metrics else None)


def watched(
    wanted: settings.Telemetry, collection: str, embedder: Embedder | None
) -> tuple[Embedder | None, Observer | None]:
    """An embedder whose calls are told, and who is told of what is asked of a collection; see `configured`."""
    telemetry = configured(wanted)
    if telemetry is None or not (telemetry.spans or telemetry.metrics):
        return embedder, None
    if embedder is None:
        return None, telemetry.observer(collection)
    return WatchedEmbedder(embedder, telemetry), telemetry.observer(collection, embedder.name)
