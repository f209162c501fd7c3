"""Telemetry of real searches, as a real collector receives it; and what happens if there is none."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from tools.collector import Collector, attributes, collecting
from tools.postgres import Server

from databases import fresh_name
from waylore import Waylore
from waylore.errors import QueryError
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import CHAIN
from waylore.store.postgres.server import figures
from waylore.surfaces.telemetry.metrics import Metrics
from waylore.surfaces.telemetry.setup import Telemetry, WatchedEmbedder
from waylore.surfaces.telemetry.spans import SEND_SECONDS, exported
from waylore.types.knowledge import Vector

QUESTION = "Which secret does Mara's session service keep?"
PROGRAM = """
import sys
from waylore.surfaces.open import opened
from waylore.settings.load import load
with opened(load(store="own.waylore", embedding={"provider": "hashing"})) as waylore:
    waylore.add("The login needs the session service.", facts=[("login", "needs", "session service")])
    print(len(waylore.search("What does the login need?").hits))
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as started:
        yield started


def open_watched(url: str | Path, telemetry: Telemetry, collection: str = "team") -> Waylore:
    embedder = HashingEmbedder(quiet=True)
    observer = telemetry.observer(collection, embedder.name)
    watched = WatchedEmbedder(embedder, telemetry)
    return Waylore.open(url, collection=collection, embedder=watched, observer=observer)


def fill(waylore: Waylore) -> str:
    waylore.add("Mara owns the session service.", facts=[("Mara", "owns", "session service")])
    return waylore.add("The login needs the session service.", facts=[("login", "needs", "session service")])


def asked(program: str, folder: Path, **environment: str) -> tuple[list[str], str, float]:
    """What a process of its own prints, what it says on stderr, and how long it takes."""
    began = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines(), run.stderr, time.monotonic() - began


# -- traces --------------------------------------------------------------------------------------------


def test_a_search_is_a_span_with_a_span_below_it_for_each_stage(tmp_path: Path, collector: Collector) -> None:
    telemetry = Telemetry(exported(collector.address))
    with open_watched(tmp_path / "own.waylore", telemetry) as waylore:
        fill(waylore)
        found = waylore.search(QUESTION)
    telemetry.flush()
    [search] = collector.named("retrieval")
    told = attributes(search)
    assert told["gen_ai.operation.name"] == "retrieval"
    assert told["gen_ai.data_source.id"] == "team"
    assert told["gen_ai.request.model"] == HashingEmbedder(quiet=True).name
    assert (told["waylore.recipe"], told["waylore.gate"], told["waylore.hits"]) == (
        "chain",
        "open",
        len(found.hits),
    )
    assert told["waylore.rows.facts"] == found.rows["facts"] > 0
    spans = {span.name: span for span in collector.spans if span.trace_id == search.trace_id}
    assert set(spans) == {f"waylore.{stage.replace(' ', '_')}" for stage in found.seconds} | {"retrieval"}
    for name, span in spans.items():
        if name != "retrieval":
            check_within(span, spans)
    assert spans["waylore.walk"].parent_span_id == spans["waylore.graph"].span_id
    assert spans["waylore.dense"].parent_span_id == search.span_id
    assert attributes(spans["waylore.dense"])["waylore.candidates"] == found.candidates["dense"]
    assert collector.resource["service.name"] == "waylore"


def check_within(span: Span, others: dict[str, Span]) -> None:
    [parent] = [other for other in others.values() if other.span_id == span.parent_span_id]
    slack = 1_000_000  # the wall's clock is read once, and floats hold a quarter of a microsecond
    assert parent.start_time_unix_nano - slack <= span.start_time_unix_nano <= span.end_time_unix_nano
    assert span.end_time_unix_nano <= parent.end_time_unix_nano + slack


def test_writing_and_forgetting_are_spans_of_memory(tmp_path: Path, collector: Collector) -> None:
    telemetry = Telemetry(exported(collector.address))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.md").write_text("The cache is owned by Ada.")
    with open_watched(tmp_path / "own.waylore", telemetry) as waylore:
        waylore.add_files(tmp_path / "docs")
        waylore.forget(fill(waylore))
        waylore.facts("Mara")
    telemetry.flush()
    verbs = {attributes(span).get("waylore.verb"): span for span in collector.spans}
    assert verbs["add_files"].name == verbs["add"].name == "upsert_memory"
    assert verbs["forget"].name == "delete_memory"
    assert attributes(verbs["forget"])["gen_ai.memory.record.count"] == 1
    assert attributes(verbs["facts"])["gen_ai.memory.record.count"] == 1
    below = [
        span for span in collector.named("embeddings") if span.parent_span_id == verbs["add_files"].span_id
    ]
    assert below, "the threads that embed go on with the trace"
    assert attributes(below[0])["gen_ai.request.model"] == HashingEmbedder(quiet=True).name


@pytest.mark.parametrize("content", [False, True])
def test_questions_and_texts_are_told_only_if_asked_for(
    content: bool, tmp_path: Path, collector: Collector
) -> None:
    telemetry = Telemetry(exported(collector.address, content=content))
    with open_watched(tmp_path / "own.waylore", telemetry) as waylore:
        fill(waylore)
        waylore.search(QUESTION)
        with pytest.raises(QueryError):
            waylore.search(QUESTION, top_k=-1)
    telemetry.flush()
    everything = " ".join(str(span) for span in collector.spans)
    assert ("secret" in everything) == content
    assert ("owns the session" in everything) == content


def test_an_answer_that_was_kept_says_so_and_has_no_stages(tmp_path: Path, collector: Collector) -> None:
    telemetry = Telemetry(exported(collector.address))
    with open_watched(tmp_path / "own.waylore", telemetry) as waylore:
        fill(waylore)
        assert not waylore.search(QUESTION).is_kept
        assert waylore.search(QUESTION).is_kept
    telemetry.flush()
    made, kept = collector.named("retrieval")
    assert [attributes(span)["waylore.is_kept"] for span in (made, kept)] == [False, True]
    assert [span.name for span in collector.spans if span.trace_id == kept.trace_id] == ["retrieval"]


def test_an_error_is_told_by_its_kind(tmp_path: Path, collector: Collector) -> None:
    telemetry = Telemetry(exported(collector.address))
    with open_watched(tmp_path / "own.waylore", telemetry) as waylore, pytest.raises(QueryError):
        waylore.search(" ")
    telemetry.flush()
    [search] = collector.named("retrieval")
    assert attributes(search)["error.type"] == "query"
    assert search.status.code == Status.STATUS_CODE_ERROR
    assert search.status.message == ""
    assert not search.events


def test_what_was_lost_is_an_error_of_its_stage_alone(tmp_path: Path, collector: Collector) -> None:
    class Broken(HashingEmbedder):
        def embed_query(self, text: str) -> Vector:
            raise OSError("the model's server is down")

    telemetry = Telemetry(exported(collector.address), Metrics())
    embedder = WatchedEmbedder(Broken(quiet=True), telemetry)
    with Waylore.open(
        tmp_path / "own.waylore", embedder=embedder, observer=telemetry.observer("team")
    ) as waylore:
        fill(waylore)
        waylore.search(QUESTION)
    telemetry.flush()
    [search] = collector.named("retrieval")
    assert attributes(search)["waylore.lost"] == ["dense"]
    assert search.status.code == Status.STATUS_CODE_UNSET
    assert value(telemetry, "waylore_lost_total", stage="dense") == 1
    assert value(telemetry, "waylore_embedding_seconds_count", of="query", outcome="error") == 1


# -- a collector that does not take them ---------------------------------------------------------------


def test_a_collector_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    with collecting(hangs=True) as collector:
        telemetry = Telemetry(exported(collector.address))
        with open_watched(tmp_path / "own.waylore", telemetry) as waylore:
            fill(waylore)
            waylore.search("warm")
            quick = [_seconds_of_search(waylore, number) for number in range(5)]
            lines, _, seconds = asked(PROGRAM, tmp_path, WAYLORE_TELEMETRY_TRACES=collector.address)
        assert collector.is_hanging.is_set()
    assert max(quick) < SEND_SECONDS / 3
    assert lines[0] == "1"
    assert seconds < SEND_SECONDS + 10


def _seconds_of_search(waylore: Waylore, number: int) -> float:
    began = time.perf_counter()
    waylore.search(f"{QUESTION} {number}")
    return time.perf_counter() - began


def test_no_collector_costs_a_line_on_stderr(tmp_path: Path) -> None:
    lines, told, seconds = asked(PROGRAM, tmp_path, WAYLORE_TELEMETRY_TRACES="http://127.0.0.1:9")
    assert lines[0] == "1"
    assert "Failed to export spans" in told
    assert seconds < SEND_SECONDS + 10


def test_a_command_sends_its_spans_before_it_ends(tmp_path: Path, collector: Collector) -> None:
    asked(PROGRAM, tmp_path, WAYLORE_TELEMETRY_TRACES=collector.address + "/")
    assert len(collector.named("retrieval")) == 1
    assert len(collector.named("upsert_memory")) == 1


# -- off, and without the extra ------------------------------------------------------------------------


def test_nothing_is_loaded_unless_it_is_asked_for(tmp_path: Path) -> None:
    lines, told, _ = asked(PROGRAM, tmp_path)
    assert not {"opentelemetry", "prometheus_client", "structlog"} & set(lines[-1].split())
    assert told == ""


def test_who_lacks_the_extra_is_told_what_to_install(tmp_path: Path) -> None:
    program = f"""
import sys
from waylore.errors import ConfigError
sys.modules["structlog"] = None
try:
    exec({PROGRAM!r})
except ConfigError as error:
    print(error)
"""
    lines, _, _ = asked(program, tmp_path, WAYLORE_TELEMETRY_METRICS="true")
    assert lines == ["telemetry needs structlog: pip install 'waylore[telemetry]'"]


# -- metrics -------------------------------------------------------------------------------------------


def value(telemetry: Telemetry, name: str, **labels: str) -> float | None:
    assert telemetry.metrics
    return telemetry.metrics.registry.get_sample_value(name, labels)


def test_searches_are_counted_by_recipe_stage_gate_and_cache(tmp_path: Path) -> None:
    telemetry = Telemetry(metrics=Metrics())
    with open_watched(tmp_path / "own.waylore", telemetry) as waylore:
        document = fill(waylore)
        first = waylore.search(QUESTION)
        waylore.search(QUESTION)
        waylore.search(QUESTION, method="hybrid")
        waylore.forget(document)
        with pytest.raises(QueryError):
            waylore.search("")
    assert value(telemetry, "waylore_search_seconds_count", recipe="chain") == 1
    assert value(telemetry, "waylore_stage_seconds_count", recipe="chain", stage="walk") == 1
    assert value(telemetry, "waylore_stage_seconds_sum", recipe="chain", stage="walk") == first.seconds["walk"]
    assert value(telemetry, "waylore_answers_total", kept="yes") == 1
    assert value(telemetry, "waylore_answers_total", kept="no") == 2
    assert value(telemetry, "waylore_gate_total", decision="open") == 2
    assert value(telemetry, "waylore_gate_total", decision="unused") == 1
    assert (value(telemetry, "waylore_rows_total", kind="facts") or 0) >= first.rows["facts"] > 0
    assert value(telemetry, "waylore_verb_seconds_count", verb="search", outcome="ok") == 3
    assert value(telemetry, "waylore_verb_seconds_count", verb="search", outcome="query") == 1
    assert value(telemetry, "waylore_forgotten_total", kind="documents") == 1
    assert value(telemetry, "waylore_embedding_seconds_count", of="query", outcome="ok") == 2


def test_labels_are_few_and_never_a_name_or_a_question(tmp_path: Path) -> None:
    telemetry = Telemetry(metrics=Metrics())
    with open_watched(tmp_path / "own.waylore", telemetry, "tenant of somebody") as waylore:
        fill(waylore)
        for number in range(3):
            waylore.search(QUESTION, recipe=replace(CHAIN, name=f"tried out {number}"))
    assert value(telemetry, "waylore_search_seconds_count", recipe="own") == 3
    assert telemetry.metrics
    told = telemetry.metrics.exposition()[0].decode()
    assert not [word for word in ("tenant", "Mara", "secret", "tried") if word in told]


def test_the_pool_of_a_server_is_told(postgres: Server) -> None:
    telemetry = Telemetry(metrics=Metrics())
    with open_watched(postgres.url, telemetry, fresh_name("team")) as waylore:
        fill(waylore)
        waylore.search(QUESTION)
        assert telemetry.metrics
        told = telemetry.metrics.exposition()[0].decode()
        assert value(telemetry, "waylore_pool_connections", state="open") == figures()["pool_size"] >= 1
        assert value(telemetry, "waylore_pool_connections", state="most") == 16
    assert "waylore_pool_wait_seconds_total" in told


def test_telling_that_fails_fails_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    metrics._gate = None  # type: ignore[assignment]  # as a full disk would break it, in the middle
    with open_watched(tmp_path / "own.waylore", Telemetry(metrics=metrics)) as waylore:
        fill(waylore)
        assert waylore.search(QUESTION).hits
    assert "telemetry could not be recorded" in caplog.text
