"""An OTLP collector on loopback, for tests and benchmarks: keeps the spans that come, or hangs, as it is told.

    python -m tools.collector

as a process of its own prints its address, and takes what comes until its stdin closes.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Plain = str | int | float | bool | list["Plain"]


class Collector:
    """What came: spans, and what they say of where they come from."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.spans: list[Span] = []
        self.resource: dict[str, Plain] = {}
        self.is_hanging = threading.Event()
        self.may_go = threading.Event()

    def take(self, body: bytes) -> None:
        """Keep what a request holds."""
        request = ExportTraceServiceRequest.FromString(body)
        for of_resource in request.resource_spans:
            self.resource = {each.key: plain(each.value) for each in of_resource.resource.attributes}
            for of_scope in of_resource.scope_spans:
                self.spans.extend(of_scope.spans)

    def named(self, name: str) -> list[Span]:
        """The spans of a name."""
        return [span for span in self.spans if span.name == name]


def attributes(span: Span) -> dict[str, Plain]:
    """The attributes of a span as plain values."""
    return {each.key: plain(each.value) for each in span.attributes}


def plain(value: AnyValue) -> Plain:
    """A value as Python has it."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(each) for each in value.array_value.values]
    found: str | int | float | bool = getattr(value, kind or "string_value")
    return found


@contextmanager
def collecting(*, hangs: bool = False) -> Iterator[Collector]:
    """A collector in a thread; one that hangs reads what comes and never answers, until the end."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Take an export."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if hangs:
                collector.is_hanging.set()
                collector.may_go.wait()
            collector.take(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.may_go.set()
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    with collecting() as it:
        print(it.address, flush=True)
        sys.stdin.read()
