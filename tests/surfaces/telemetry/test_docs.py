"""Test that the page on telemetry lists exactly the spans, attributes, metrics and settings of the code."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from prometheus_client.metrics import MetricWrapperBase

from waylore import Waylore
from waylore.errors import ArgumentError
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import RECIPES
from waylore.retrieval import scale
from waylore.retrieval.parts import PART
from waylore.settings.sections import TelemetrySettings as Wanted
from waylore.surfaces.telemetry import spans as telemetry_spans
from waylore.surfaces.telemetry.metrics import Metrics
from waylore.surfaces.telemetry.outcomes import FALLIBLE_STAGES
from waylore.surfaces.telemetry.setup import ObservedEmbedder, Telemetry
from waylore.types.knowledge import Vector
from waylore.types.search import GateOutcome

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "telemetry.md").read_text("utf-8")
RETRIEVAL = Path(__file__).parents[3] / "src" / "waylore" / "retrieval"


class SpanRecorder(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


class Reversing:
    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [float(number) for number, _ in enumerate(texts)]


class Failing(HashingEmbedder):
    def embed_query(self, text: str) -> Vector:
        raise OSError("down")


def read_table(heading: str) -> dict[str, str]:
    """Return the names in the first column of a table, each with its row."""
    _, _, after = PAGE.partition(f"| {heading} |")
    rows = after.split("\n\n")[0].splitlines()[2:]
    return {name: row for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> list[ReadableSpan]:
    """Return the spans of every method, every recipe and a request."""
    folder, kept = tmp_path_factory.mktemp("telemetry"), SpanRecorder()
    telemetry = Telemetry(telemetry_spans.create_spans(kept, content=True))
    (folder / "docs").mkdir()
    (folder / "docs" / "one.md").write_text("Ada owns the cache.")
    embedder = ObservedEmbedder(HashingEmbedder(quiet=True), telemetry)
    scale._measured.pop(embedder.name, None)  # another test may have measured it, and then it has no span
    observer = telemetry.create_observer("team", embedder.name)
    with Waylore.open(folder / "own.waylore", embedder=embedder, observer=observer) as waylore:
        waylore.add_files(folder / "docs")
        waylore.add("Mara owns the session service.", facts=[("Mara", "owns", "session service")])
        waylore.add_facts([("Paper A", "cites", "Paper B")])
        for method in RECIPES:
            waylore.search("Does Mara own what Paper A cites?", method=method)
        waylore.search("Who owns the session service?", reranker=Reversing())
        waylore.facts("Mara")
        waylore.export(folder / "export")
        waylore.forget(waylore.add("Soon gone."))
        with pytest.raises(ArgumentError):
            waylore.search("")
    with Waylore.open(folder / "own.waylore", embedder=Failing(quiet=True), observer=observer) as waylore:
        waylore.search("Does Mara own it?")
    assert telemetry.spans
    with telemetry.spans.observe_request("GET", {}) as span:
        span.set_attribute("waylore.request.id", "r")
        telemetry_spans.finish_request(span, "GET", "/v1/…", "200")
    return kept.spans


def test_page_lists_spans(spans: list[ReadableSpan]) -> None:
    assert {span.name for span in spans} == set(read_table("Span"))


def test_page_lists_attributes(spans: list[ReadableSpan]) -> None:
    assert {name for span in spans for name in span.attributes or {}} == set(read_table("Attribute"))


def test_page_lists_metrics_with_labels() -> None:
    metrics = Metrics()
    found = {
        each._name + ("_total" if each._type == "counter" else ""): each._labelnames
        for each in metrics.registry._collector_to_names
        if isinstance(each, MetricWrapperBase)
    }
    rows = read_table("Metric")
    assert set(rows) == set(found)
    for name, labels in found.items():
        assert tuple(re.findall(r"`([^`]+)`", rows[name].split("|")[2])) == labels


def test_page_lists_settings_and_decisions() -> None:
    assert set(read_table("Setting")) == {f"telemetry.{name}" for name in Wanted.model_fields}
    assert all(f"`{decision}`" in PAGE for decision in (*get_args(GateOutcome), *FALLIBLE_STAGES, "cells"))


def test_every_stage_that_can_fail_has_its_own_word() -> None:
    sources = [path.read_text("utf-8") for path in RETRIEVAL.rglob("*.py")]
    named = {name for source in sources for name in re.findall(r'(?:run_stage\(\s*|stage=)"([^"]+)"', source)}
    assert {"vector", "rewrite", "stating"} < named
    assert named <= {*FALLIBLE_STAGES, ""}
    assert PART in FALLIBLE_STAGES
