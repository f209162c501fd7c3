"""Test the telemetry of real searches with a real collector, and without one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from tools.collector import Collector, read_attributes, start_collector
from tools.postgres.server import Server
from tools.waiting import HANG_SECONDS

from databases import make_name
from waylore import Waylore
from waylore.errors import ArgumentError
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import CHAIN
from waylore.store.postgres.server import read_figures
from waylore.surfaces.telemetry.metrics import Metrics
from waylore.surfaces.telemetry.setup import ObservedEmbedder, Telemetry
from waylore.surfaces.telemetry.spans import create_exporter
from waylore.types.knowledge import Vector

QUESTION = "Which secret does Mara's session service keep?"
PROGRAM = """
import sys
from waylore.surfaces.open import open_collection
from waylore.settings.load import load
with open_collection(load(store="own.waylore", embedding={"provider": "hashing"})) as waylore:
    waylore.add("The login needs the session service.", facts=[("login", "needs", "session service")])
    print(len(waylore.search("What does the login need?").hits))
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with start_collector() as started:
        yield started


@contextmanager
def send_spans(collector: Collector, *, content: bool = False) -> Iterator[Telemetry]:
    """Record metrics, and spans that are sent to a collector; at the end all of them have been sent."""
    spans = create_exporter(collector.address, content=content)
    try:
        yield Telemetry(spans, Metrics())
    finally:
        spans.provider.shutdown()


def open_observed(url: str | Path, telemetry: Telemetry, collection: str = "team") -> Waylore:
    embedder = HashingEmbedder(quiet=True)
    observer = telemetry.create_observer(collection, embedder.name)
    watched = ObservedEmbedder(embedder, telemetry)
    return Waylore.open(url, collection=collection, embedder=watched, observer=observer)


def fill(waylore: Waylore) -> str:
    waylore.add("Mara owns the session service.", facts=[("Mara", "owns", "session service")])
    return waylore.add("The login needs the session service.", facts=[("login", "needs", "session service")])


def run_program(program: str, folder: Path, **environment: str) -> tuple[list[str], str]:
    """Run a program to its end. Return its output lines and its stderr."""
    errors = folder / "stderr"
    with (
        errors.open("w") as told,
        subprocess.Popen(
            [sys.executable, "-u", "-W", "error", "-c", program],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=told,
            text=True,
        ) as run,
    ):
        assert run.stdout is not None
        lines = run.stdout.read().splitlines()
        run.wait(HANG_SECONDS)
    assert run.returncode == 0, errors.read_text()
    return lines, errors.read_text()


# -- traces --------------------------------------------------------------------------------------------


def test_search_span_has_a_span_per_stage(tmp_path: Path, collector: Collector) -> None:
    with send_spans(collector) as telemetry, open_observed(tmp_path / "own.waylore", telemetry) as waylore:
        fill(waylore)
        found = waylore.search(QUESTION)
        telemetry.flush()
        [search] = collector.find_spans("retrieval")
    told = read_attributes(search)
    assert told["gen_ai.operation.name"] == "retrieval"
    assert told["gen_ai.data_source.id"] == "team"
    assert told["gen_ai.request.model"] == HashingEmbedder(quiet=True).name
    assert (told["waylore.recipe"], told["waylore.gate"], told["waylore.hits"]) == (
        "chain",
        "open",
        len(found.hits),
    )
    assert told["waylore.rows.facts"] == found.rows_read["facts"] > 0
    spans = {span.name: span for span in collector.spans if span.trace_id == search.trace_id}
    assert set(spans) == {f"waylore.{stage.replace(' ', '_')}" for stage in found.seconds} | {"retrieval"}
    for name, span in spans.items():
        if name != "retrieval":
            check_within(span, spans)
    assert spans["waylore.walk"].parent_span_id == spans["waylore.graph"].span_id
    assert spans["waylore.vector"].parent_span_id == search.span_id
    assert read_attributes(spans["waylore.vector"])["waylore.candidates"] == found.candidates["vector"]
    assert collector.resource["service.name"] == "waylore"


def check_within(span: Span, others: dict[str, Span]) -> None:
    [parent] = [other for other in others.values() if other.span_id == span.parent_span_id]
    slack = 1_000_000  # the wall's clock is read once, and floats hold a quarter of a microsecond
    assert parent.start_time_unix_nano - slack <= span.start_time_unix_nano <= span.end_time_unix_nano
    assert span.end_time_unix_nano <= parent.end_time_unix_nano + slack


def test_writing_and_forgetting_have_spans(tmp_path: Path, collector: Collector) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.md").write_text("The cache is owned by Ada.")
    with send_spans(collector) as telemetry, open_observed(tmp_path / "own.waylore", telemetry) as waylore:
        waylore.add_files(tmp_path / "docs")
        waylore.forget(fill(waylore))
        waylore.facts("Mara")
    verbs = {read_attributes(span).get("waylore.verb"): span for span in collector.spans}
    assert verbs["add_files"].name == verbs["add"].name == "upsert_memory"
    assert verbs["forget"].name == "delete_memory"
    assert read_attributes(verbs["forget"])["gen_ai.memory.record.count"] == 1
    assert read_attributes(verbs["facts"])["gen_ai.memory.record.count"] == 1
    below = [span for span in collector.find_spans("embeddings") if span.parent_span_id == verbs["add_files"].span_id]
    assert below, "the threads that embed continue the trace"
    assert read_attributes(below[0])["gen_ai.request.model"] == HashingEmbedder(quiet=True).name


@pytest.mark.parametrize("content", [False, True])
def test_content_is_recorded_only_if_enabled(content: bool, tmp_path: Path, collector: Collector) -> None:
    with (
        send_spans(collector, content=content) as telemetry,
        open_observed(tmp_path / "own.waylore", telemetry) as waylore,
    ):
        fill(waylore)
        waylore.search(QUESTION)
        with pytest.raises(ArgumentError):
            waylore.search(QUESTION, top_k=-1)
    everything = " ".join(str(span) for span in collector.spans)
    assert ("secret" in everything) == content
    assert ("owns the session" in everything) == content


def test_cached_answer_has_no_stage_spans(tmp_path: Path, collector: Collector) -> None:
    with send_spans(collector) as telemetry, open_observed(tmp_path / "own.waylore", telemetry) as waylore:
        fill(waylore)
        assert not waylore.search(QUESTION).from_cache
        assert waylore.search(QUESTION).from_cache
    made, kept = collector.find_spans("retrieval")
    assert [read_attributes(span)["waylore.from_cache"] for span in (made, kept)] == [False, True]
    assert [span.name for span in collector.spans if span.trace_id == kept.trace_id] == ["retrieval"]


def test_error_is_recorded_by_kind(tmp_path: Path, collector: Collector) -> None:
    with (
        send_spans(collector) as telemetry,
        open_observed(tmp_path / "own.waylore", telemetry) as waylore,
        pytest.raises(ArgumentError),
    ):
        waylore.search(" ")
    [search] = collector.find_spans("retrieval")
    assert read_attributes(search)["error.type"] == "argument"
    assert search.status.code == Status.STATUS_CODE_ERROR
    assert search.status.message == ""
    assert not search.events


def test_failed_stage_is_an_error_of_its_stage_only(tmp_path: Path, collector: Collector) -> None:
    class Broken(HashingEmbedder):
        def embed_query(self, text: str) -> Vector:
            raise OSError("the model's server is down")

    with send_spans(collector) as telemetry:
        embedder = ObservedEmbedder(Broken(quiet=True), telemetry)
        observer = telemetry.create_observer("team")
        with Waylore.open(tmp_path / "own.waylore", embedder=embedder, observer=observer) as waylore:
            fill(waylore)
            waylore.search(QUESTION)
    [search] = collector.find_spans("retrieval")
    assert read_attributes(search)["waylore.failed_stages"] == ["vector"]
    assert search.status.code == Status.STATUS_CODE_UNSET
    assert value(telemetry, "waylore_failed_stages_total", stage="vector") == 1
    assert value(telemetry, "waylore_embedding_seconds_count", kind="query", outcome="error") == 1


# -- a collector that does not take them ---------------------------------------------------------------


def test_hanging_collector_delays_no_search(tmp_path: Path) -> None:
    with (
        start_collector(hangs=True) as collector,
        send_spans(collector) as telemetry,
        open_observed(tmp_path / "own.waylore", telemetry) as waylore,
    ):
        fill(waylore)
        for number in range(20):
            waylore.search(f"{QUESTION} {number}")
        assert collector.requests < 20  # a search that waits for the collector sends a request of its own


def test_hanging_collector_delays_exit_for_a_while_only(tmp_path: Path) -> None:
    with start_collector(hangs=True) as collector:
        lines, _ = run_program(PROGRAM, tmp_path, WAYLORE_TELEMETRY_OTLP_ENDPOINT=collector.address)
        assert collector.requests == 1  # it was sent once, and the program ended while the collector hung
    assert lines[0] == "1"


def test_missing_collector_is_logged(tmp_path: Path) -> None:
    lines, told = run_program(PROGRAM, tmp_path, WAYLORE_TELEMETRY_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert lines[0] == "1"
    assert told.count("Failed to export spans") == 1


def test_command_sends_spans_before_exit(tmp_path: Path, collector: Collector) -> None:
    run_program(PROGRAM, tmp_path, WAYLORE_TELEMETRY_OTLP_ENDPOINT=collector.address + "/")
    assert len(collector.find_spans("retrieval")) == 1
    assert len(collector.find_spans("upsert_memory")) == 1


# -- off, and without the extra ------------------------------------------------------------------------


def test_telemetry_is_not_loaded_by_default(tmp_path: Path) -> None:
    lines, told = run_program(PROGRAM, tmp_path)
    assert not {"opentelemetry", "prometheus_client", "structlog"} & set(lines[-1].split())
    assert told == ""


def test_missing_extra_is_named(tmp_path: Path) -> None:
    program = f"""
import sys
from waylore.errors import ConfigError
sys.modules["structlog"] = None
try:
    exec({PROGRAM!r})
except ConfigError as error:
    print(error)
"""
    lines, _ = run_program(program, tmp_path, WAYLORE_TELEMETRY_METRICS="true")
    assert lines == ["telemetry needs the extra telemetry: pip install 'waylore[telemetry]'"]


# -- metrics -------------------------------------------------------------------------------------------


def value(telemetry: Telemetry, name: str, **labels: str) -> float | None:
    assert telemetry.metrics
    return telemetry.metrics.registry.get_sample_value(name, labels)


def test_searches_are_counted_by_recipe_and_stage(tmp_path: Path) -> None:
    telemetry = Telemetry(metrics=Metrics())
    with open_observed(tmp_path / "own.waylore", telemetry) as waylore:
        document = fill(waylore)
        first = waylore.search(QUESTION)
        waylore.search(QUESTION)
        waylore.search(QUESTION, method="hybrid")
        waylore.forget(document)
        with pytest.raises(ArgumentError):
            waylore.search("")
    assert value(telemetry, "waylore_search_seconds_count", recipe="chain") == 1
    assert value(telemetry, "waylore_stage_seconds_count", recipe="chain", stage="walk") == 1
    assert value(telemetry, "waylore_stage_seconds_sum", recipe="chain", stage="walk") == first.seconds["walk"]
    assert value(telemetry, "waylore_answers_total", from_cache="yes") == 1
    assert value(telemetry, "waylore_answers_total", from_cache="no") == 2
    assert value(telemetry, "waylore_gate_total", decision="open") == 2
    assert value(telemetry, "waylore_gate_total", decision="unused") == 1
    assert (value(telemetry, "waylore_rows_total", kind="facts") or 0) >= first.rows_read["facts"] > 0
    assert value(telemetry, "waylore_verb_seconds_count", verb="search", outcome="ok") == 3
    assert value(telemetry, "waylore_verb_seconds_count", verb="search", outcome="argument") == 1
    assert value(telemetry, "waylore_forgotten_total", kind="documents") == 1
    assert value(telemetry, "waylore_embedding_seconds_count", kind="query", outcome="ok") == 2


def test_labels_contain_no_content(tmp_path: Path) -> None:
    telemetry = Telemetry(metrics=Metrics())
    with open_observed(tmp_path / "own.waylore", telemetry, "tenant of somebody") as waylore:
        fill(waylore)
        for number in range(3):
            waylore.search(QUESTION, method=replace(CHAIN, name=f"tried out {number}"))
    assert value(telemetry, "waylore_search_seconds_count", recipe="own") == 3
    assert telemetry.metrics
    told = telemetry.metrics.expose()[0].decode()
    assert not [word for word in ("tenant", "Mara", "secret", "tried") if word in told]


def test_pool_metrics_are_recorded(postgres: Server) -> None:
    telemetry = Telemetry(metrics=Metrics())
    with open_observed(postgres.url, telemetry, make_name("team")) as waylore:
        fill(waylore)
        waylore.search(QUESTION)
        assert telemetry.metrics
        told = telemetry.metrics.expose()[0].decode()
        assert value(telemetry, "waylore_pool_connections", state="open") == read_figures()["pool_size"] >= 1
        assert value(telemetry, "waylore_pool_connections", state="max") == 16
    assert "waylore_pool_wait_seconds_total" in told


def test_failing_telemetry_does_not_fail_the_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    metrics._gate = None  # type: ignore[assignment]  # as a full disk would break it, in the middle
    with open_observed(tmp_path / "own.waylore", Telemetry(metrics=metrics)) as waylore:
        fill(waylore)
        assert waylore.search(QUESTION).hits
    assert "telemetry could not be recorded" in caplog.text
