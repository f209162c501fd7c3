"""Record traces with OpenTelemetry: a span for each call, and below it one for each stage of a search.

Stages interleave, so their spans are created after the search, from the start and the duration of each stage. Names
follow OpenTelemetry's conventions for generative AI if these have one, else `waylore.…`. Spans contain no error
messages, and questions and texts only with `content`. A thread sends spans in batches. If the collector cannot be
reached, spans are lost, but no search fails.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from opentelemetry import trace
from opentelemetry.context import attach, detach
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from waylore import __version__
from waylore.indexing.files.progress import AddReport
from waylore.indexing.importers.dispatch import ImportReport
from waylore.protocols import Embedder
from waylore.surfaces.error_kinds import find_kind
from waylore.surfaces.telemetry.outcomes import list_failed_stages
from waylore.types.results import Receipt
from waylore.types.search import SearchResult

OPERATION = "gen_ai.operation.name"
OPERATIONS = {
    "search": "retrieval",
    "facts": "search_memory",
    "graph": "search_memory",
    "timeline": "search_memory",
    "profile": "search_memory",
    "changes": "search_memory",
    "provenance": "search_memory",
    "get": "search_memory",
    "add": "upsert_memory",
    "add_files": "upsert_memory",
    "add_facts": "upsert_memory",
    "import_": "upsert_memory",
    "forget": "delete_memory",
}  # operation name by method of Waylore; other methods have none
SEND_SECONDS = 3.0  # time limit of a batch; a command waits this long for the last batch
PATH = "/v1/traces"
SCOPE = InstrumentationScope("waylore", __version__)
PROPAGATOR = TraceContextTextMapPropagator()


@dataclass(frozen=True, slots=True)
class Spans:
    """Creates the spans of a collection."""

    provider: TracerProvider
    processor: SpanProcessor
    tracer: Tracer
    content: bool = False
    common: tuple[tuple[str, str], ...] = ()

    def bind(self, collection: str, model: str) -> "Spans":
        """Return these spans with the names of a collection and its embedding model."""
        names = {"gen_ai.data_source.id": collection, "gen_ai.request.model": model}
        return replace(self, common=tuple((name, value) for name, value in names.items() if value))

    @contextmanager
    def observe(self, verb: str) -> Iterator[Callable[[object], None]]:
        """Record a method of Waylore: its result in attributes, the stages of a search in spans below."""
        to_wall = time.time_ns() - time.perf_counter_ns()
        attributes = {"waylore.verb": verb, **dict(self.common)}
        if verb in OPERATIONS:
            attributes[OPERATION] = OPERATIONS[verb]
        with self.start_span(OPERATIONS.get(verb, f"waylore.{verb}"), attributes) as span:
            yield partial(self._record, span, to_wall)

    @contextmanager
    def observe_embedding(self, model: Embedder, kind: str, texts: int) -> Iterator[None]:
        """Record the embedding of passages inside another span. The embedding of a question is a stage already."""
        if kind == "query" or not trace.get_current_span().is_recording():
            yield
            return
        attributes: dict[str, AttributeValue] = {
            OPERATION: "embeddings",
            "gen_ai.request.model": model.name,
            "gen_ai.embeddings.dimension.count": model.dimension,
            "waylore.texts": texts,
        }
        with self.start_span("embeddings", attributes):
            yield

    @contextmanager
    def observe_request(self, method: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """Record an HTTP request, below the span of the client if the headers name one."""
        token = attach(PROPAGATOR.extract(headers))
        try:
            with self.start_span(method, {"http.request.method": method}, SpanKind.SERVER) as span:
                yield span
        finally:
            detach(token)

    @contextmanager
    def start_span(
        self, name: str, attributes: Mapping[str, AttributeValue], kind: SpanKind = SpanKind.INTERNAL
    ) -> Iterator[Span]:
        """Start a span and make it the current one. It records the kind of an error, but not its message."""
        with self.tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as error:
                mark_failed(span, find_kind(error).name if isinstance(error, Exception) else type(error).__name__)
                raise

    def flush(self) -> None:
        """Send the spans that were not sent yet."""
        self.provider.force_flush()

    # -- results ---------------------------------------------------------------------------------------

    def _record(self, span: Span, to_wall: int, result: object) -> None:
        if not span.is_recording():
            return
        span.set_attributes(_describe_result(result))
        if isinstance(result, SearchResult):
            if self.content:
                span.set_attributes(_describe_content(result))
            if not result.from_cache:
                self._add_stages(span.get_span_context(), to_wall, result)

    def _add_stages(self, search: SpanContext, to_wall: int, result: SearchResult) -> None:
        """Add a span for each stage. Stages that ran inside `graph` are below it."""
        graph, failures = search, list_failed_stages(result)
        graph_start = result.started.get("graph", math.inf)
        graph_end = graph_start + result.seconds.get("graph", 0.0)
        for stage, start in sorted(result.started.items(), key=lambda each: each[1]):
            end = start + result.seconds[stage]
            parent = graph if graph_start <= start and end <= graph_end else search
            attributes = _describe_stage(result, stage, failures)
            times = (to_wall + int(start * 1e9), to_wall + int(end * 1e9))
            added = self._add_stage(stage, attributes, parent, times)
            if stage == "graph":
                graph = added

    def _add_stage(
        self, stage: str, attributes: Mapping[str, AttributeValue], parent: SpanContext, times: tuple[int, int]
    ) -> SpanContext:
        """Add a span that has already ended. This takes a sixth of the time of starting and ending one."""
        id_ = self.provider.id_generator.generate_span_id()
        own = SpanContext(parent.trace_id, id_, False, parent.trace_flags, parent.trace_state)
        self.processor.on_end(
            ReadableSpan(
                f"waylore.{stage.replace(' ', '_')}",
                own,
                parent,
                self.provider.resource,
                attributes,
                status=Status(StatusCode.ERROR if "error.type" in attributes else StatusCode.UNSET),
                start_time=times[0],
                end_time=times[1],
                instrumentation_scope=SCOPE,
            )
        )
        return own


class HashedResource(Resource):
    """A resource with a cheap hash. The exporter hashes it for every span, by default as JSON."""

    def __hash__(self) -> int:
        return id(self)


def create_spans(processor: SpanProcessor, *, content: bool = False) -> Spans:
    """Return spans that are passed to a processor when they end."""
    own = Resource({"service.name": "waylore", "service.version": __version__})
    resource = Resource.create().merge(own).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=HashedResource(resource.attributes, resource.schema_url))
    provider.add_span_processor(processor)
    return Spans(provider, processor, provider.get_tracer(SCOPE.name, SCOPE.version), content)


def create_exporter(address: str, *, content: bool = False) -> Spans:
    """Return spans that are sent to an OTLP address.

    Spans of other libraries are sent there too, if the application has set no tracer provider.
    """
    endpoint = address if address.endswith(PATH) else address.rstrip("/") + PATH
    spans = create_spans(BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=SEND_SECONDS)), content=content)
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(spans.provider)
    return spans


def mark_failed(span: Span, kind: str) -> None:
    """Mark a span as failed."""
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)


def finish_request(span: Span, method: str, route: str, status: str) -> None:
    """Add the route and the status to the span of an HTTP request."""
    span.update_name(f"{method} {route}")
    span.set_attribute("http.route", route)
    if status.isdigit():
        span.set_attribute("http.response.status_code", int(status))
    if status.startswith("5"):
        mark_failed(span, status)


def _describe_result(result: object) -> dict[str, AttributeValue]:
    match result:
        case SearchResult():
            return _describe_search(result)
        case Receipt():
            removed = {"passages": result.passages, "entities": result.entities, "facts": result.facts}
            counts = {f"waylore.forgotten.{kind}": len(ids) for kind, ids in removed.items()}
            return {"gen_ai.memory.record.count": len(result.documents), **counts}
        case AddReport():
            return {"gen_ai.memory.record.count": result.documents, "waylore.skipped": result.skipped_count}
        case ImportReport():
            return {"gen_ai.memory.record.count": result.documents, "waylore.skipped": result.skipped_count}
        case _:
            return {"gen_ai.memory.record.count": _count_records(result)}


def _count_records(result: object) -> int:
    """Return the number of returned facts or documents, or the number that the method returned."""
    if isinstance(result, tuple):
        return len(result)
    return result if isinstance(result, int) else 1


def _describe_search(result: SearchResult) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        "waylore.recipe": result.recipe,
        "waylore.gate": result.gate,
        "waylore.from_cache": result.from_cache,
        "waylore.hits": len(result.hits),
        "waylore.entities": len(result.entities),
    }
    if result.confidence is not None:
        attributes["waylore.confidence"] = result.confidence
    if failures := list_failed_stages(result):
        attributes["waylore.failed_stages"] = failures
    return attributes | {f"waylore.rows.{kind}": count for kind, count in result.rows_read.items()}


def _describe_stage(result: SearchResult, stage: str, failures: Sequence[str]) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {}
    if stage == "embedding":
        attributes[OPERATION] = "embeddings"
    if stage in failures:
        attributes["error.type"] = "failed"
    if stage in result.candidates:
        attributes["waylore.candidates"] = result.candidates[stage]
    return attributes


def _describe_content(result: SearchResult) -> dict[str, AttributeValue]:
    documents = [{"id": hit.passage.id, "score": hit.score, "content": hit.passage.text} for hit in result.hits]
    return {
        "gen_ai.retrieval.query.text": result.query,
        "gen_ai.retrieval.documents": json.dumps(documents, ensure_ascii=False),
    }
