"""Traces, through OpenTelemetry: a span for what is asked, below it one for each stage of a search.

Stages interleave, so their spans are made when the answer is there, from when each began and how long it took.
Names are those of OpenTelemetry's conventions for generative AI where these have one, else `waylore.…`. Questions,
texts and messages of errors are left out, unless `content` asks for questions and texts. Spans are sent in
batches by a thread of its own; whoever cannot be reached costs spans, and never a search.
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
from waylore.indexing.files.progress import Added
from waylore.indexing.importers.dispatch import Imported
from waylore.protocols import Embedder
from waylore.surfaces.error_kinds import kind_of
from waylore.surfaces.telemetry.outcomes import lost
from waylore.types.results import Receipt
from waylore.types.search import Found

OPERATION = "gen_ai.operation.name"
OPERATIONS = {
    "search": "retrieval",
    "facts": "search_memory",
    "graph": "search_memory",
    "get": "search_memory",
    "add": "upsert_memory",
    "add_files": "upsert_memory",
    "add_facts": "upsert_memory",
    "import_from": "upsert_memory",
    "import_": "upsert_memory",
    "forget": "delete_memory",
}  # of a method of Waylore; the others have none
SEND_SECONDS = 3.0  # for a batch; a command that ends waits as long for the last one
PATH = "/v1/traces"
SCOPE = InstrumentationScope("waylore", __version__)
PROPAGATOR = TraceContextTextMapPropagator()


@dataclass(frozen=True, slots=True)
class Spans:
    """Makes spans of what is asked of a collection."""

    provider: TracerProvider
    processor: SpanProcessor
    tracer: Tracer
    content: bool = False
    common: tuple[tuple[str, str], ...] = ()

    def of(self, collection: str, model: str) -> "Spans":
        """The same, of one collection and its embedding model."""
        known = {"gen_ai.data_source.id": collection, "gen_ai.request.model": model}
        return replace(self, common=tuple((name, value) for name, value in known.items() if value))

    @contextmanager
    def watching(self, verb: str) -> Iterator[Callable[[object], None]]:
        """A span around a method of Waylore; what it returns is told in attributes, its stages in spans below."""
        to_wall = time.time_ns() - time.perf_counter_ns()
        known = {"waylore.verb": verb, **dict(self.common)}
        if verb in OPERATIONS:
            known[OPERATION] = OPERATIONS[verb]
        with self.span(OPERATIONS.get(verb, f"waylore.{verb}"), known) as span:
            yield partial(self._told, span, to_wall)

    @contextmanager
    def embedding(self, model: Embedder, of: str, texts: int) -> Iterator[None]:
        """A span around the embedding of passages within another; that of a question is a stage already."""
        if of == "query" or not trace.get_current_span().is_recording():
            yield
            return
        known: dict[str, AttributeValue] = {
            OPERATION: "embeddings",
            "gen_ai.request.model": model.name,
            "gen_ai.embeddings.dimension.count": model.dimension,
            "waylore.texts": texts,
        }
        with self.span("embeddings", known):
            yield

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """A span around an HTTP request, below that of the caller, if its headers say so."""
        token = attach(PROPAGATOR.extract(headers))
        try:
            with self.span(method, {"http.request.method": method}, SpanKind.SERVER) as span:
                yield span
        finally:
            detach(token)

    @contextmanager
    def span(
        self, name: str, known: Mapping[str, AttributeValue], kind: SpanKind = SpanKind.INTERNAL
    ) -> Iterator[Span]:
        """A span that is current within, and says of which kind an error was, not what it said."""
        with self.tracer.start_as_current_span(
            name, kind=kind, attributes=known, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as error:
                failed(span, kind_of(error).name if isinstance(error, Exception) else type(error).__name__)
                raise

    def flush(self) -> None:
        """Send what waits to be sent."""
        self.provider.force_flush()

    # -- what is told of a result ----------------------------------------------------------------------

    def _told(self, span: Span, to_wall: int, result: object) -> None:
        if not span.is_recording():
            return
        span.set_attributes(_attributes(result))
        if isinstance(result, Found):
            if self.content:
                span.set_attributes(_content(result))
            if not result.is_kept:
                self._stages(span.get_span_context(), to_wall, result)

    def _stages(self, search: SpanContext, to_wall: int, found: Found) -> None:
        """A span for each stage; those that went on within `graph` are below it."""
        graph, failures = search, lost(found)
        began = found.began.get("graph", math.inf)
        ended = began + found.seconds.get("graph", 0.0)
        for stage, start in sorted(found.began.items(), key=lambda each: each[1]):
            end = start + found.seconds[stage]
            parent = graph if began <= start and end <= ended else search
            known = _of_stage(found, stage, failures)
            made = self._stage(stage, known, parent, (to_wall + int(start * 1e9), to_wall + int(end * 1e9)))
            if stage == "graph":
                graph = made

    def _stage(
        self, stage: str, known: Mapping[str, AttributeValue], parent: SpanContext, times: tuple[int, int]
    ) -> SpanContext:
        """Made as it is when it has ended: a sixth of what starting and ending it would cost."""
        id_ = self.provider.id_generator.generate_span_id()
        own = SpanContext(parent.trace_id, id_, False, parent.trace_flags, parent.trace_state)
        self.processor.on_end(
            ReadableSpan(
                f"waylore.{stage.replace(' ', '_')}",
                own,
                parent,
                self.provider.resource,
                known,
                status=Status(StatusCode.ERROR if "error.type" in known else StatusCode.UNSET),
                start_time=times[0],
                end_time=times[1],
                instrumentation_scope=SCOPE,
            )
        )
        return own


class Fixed(Resource):
    """Where spans come from; the exporter asks for its hash with every span, which is JSON made anew."""

    def __hash__(self) -> int:
        return id(self)


def made(processor: SpanProcessor, *, content: bool = False) -> Spans:
    """Spans that are given to a processor when they end."""
    own = Resource({"service.name": "waylore", "service.version": __version__})
    resource = Resource.create().merge(own).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=Fixed(resource.attributes, resource.schema_url))
    provider.add_span_processor(processor)
    return Spans(provider, processor, provider.get_tracer(SCOPE.name, SCOPE.version), content)


def exported(address: str, *, content: bool = False) -> Spans:
    """Spans that go to an OTLP address; so do those that other libraries make, if nobody else takes them."""
    endpoint = address if address.endswith(PATH) else address.rstrip("/") + PATH
    spans = made(BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=SEND_SECONDS)), content=content)
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(spans.provider)
    return spans


def failed(span: Span, kind: str) -> None:
    """Mark a span as failed."""
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)


def answered(span: Span, method: str, route: str, status: str) -> None:
    """Say on the span of an HTTP request which route answered it, and how."""
    span.update_name(f"{method} {route}")
    span.set_attribute("http.route", route)
    if status.isdigit():
        span.set_attribute("http.response.status_code", int(status))
    if status.startswith("5"):
        failed(span, status)


def _attributes(result: object) -> dict[str, AttributeValue]:
    match result:
        case Found():
            return _of_search(result)
        case Receipt():
            went = {"passages": result.passages, "entities": result.entities, "facts": result.facts}
            told = {f"waylore.forgotten.{kind}": len(ids) for kind, ids in went.items()}
            return {"gen_ai.memory.record.count": len(result.documents), **told}
        case Added():
            return {"gen_ai.memory.record.count": result.documents, "waylore.refused": len(result.refusals)}
        case Imported():
            return {"gen_ai.memory.record.count": result.documents, "waylore.refused": result.refused}
        case _:
            return {"gen_ai.memory.record.count": _number(result)}


def _number(result: object) -> int:
    """How many: of facts or documents that are returned, or as the method itself says."""
    if isinstance(result, tuple):
        return len(result)
    return result if isinstance(result, int) else 1


def _of_search(found: Found) -> dict[str, AttributeValue]:
    told: dict[str, AttributeValue] = {
        "waylore.recipe": found.recipe,
        "waylore.gate": found.gate,
        "waylore.is_kept": found.is_kept,
        "waylore.hits": len(found.hits),
        "waylore.entities": len(found.entities),
    }
    if found.confidence is not None:
        told["waylore.confidence"] = found.confidence
    if failures := lost(found):
        told["waylore.lost"] = failures
    return told | {f"waylore.rows.{kind}": count for kind, count in found.rows.items()}


def _of_stage(found: Found, stage: str, failures: Sequence[str]) -> dict[str, AttributeValue]:
    told: dict[str, AttributeValue] = {}
    if stage == "embedding":
        told[OPERATION] = "embeddings"
    if stage in failures:
        told["error.type"] = "lost"
    if stage in found.candidates:
        told["waylore.candidates"] = found.candidates[stage]
    return told


def _content(found: Found) -> dict[str, AttributeValue]:
    documents = [{"id": hit.passage.id, "score": hit.score, "content": hit.passage.text} for hit in found.hits]
    return {
        "gen_ai.retrieval.query.text": found.query,
        "gen_ai.retrieval.documents": json.dumps(documents, ensure_ascii=False),
    }
