"""Run an OTLP collector on loopback for tests and benchmarks. It stores the spans that it receives, or hangs.

python -m tools.collector    print its address and collect until stdin is closed
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
    """The received spans and the attributes of their resource."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.spans: list[Span] = []
        self.resource: dict[str, Plain] = {}
        self.requests = 0
        self.may_answer = threading.Event()

    def add_request(self, body: bytes) -> None:
        """Store the spans of an export request."""
        request = ExportTraceServiceRequest.FromString(body)
        for of_resource in request.resource_spans:
            self.resource = {each.key: to_plain(each.value) for each in of_resource.resource.attributes}
            for of_scope in of_resource.scope_spans:
                self.spans.extend(of_scope.spans)

    def find_spans(self, name: str) -> list[Span]:
        """Return the spans with this name."""
        return [span for span in self.spans if span.name == name]


def read_attributes(span: Span) -> dict[str, Plain]:
    """Return the attributes of a span as Python values."""
    return {each.key: to_plain(each.value) for each in span.attributes}


def to_plain(value: AnyValue) -> Plain:
    """Convert an OTLP value to a Python value."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [to_plain(each) for each in value.array_value.values]
    found: str | int | float | bool = getattr(value, kind or "string_value")
    return found


@contextmanager
def start_collector(*, hangs: bool = False) -> Iterator[Collector]:
    """Run a collector in a thread. If `hangs`, it reads requests and does not answer until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Receive an export request."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.requests += 1
            if hangs:
                collector.may_answer.wait()
            collector.add_request(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.may_answer.set()
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    with start_collector() as running:
        print(running.address, flush=True)
        sys.stdin.read()
