"""Results as plain values are what the models describe, with each fact once, and have plain types only."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import RECIPES
from waylore.surfaces import wire
from waylore.types.knowledge import Metadata
from waylore.types.plain import dump_fact, dump_indexed_document
from waylore.types.search import SearchResult

NOW = datetime(2026, 1, 31, 12, 30, 15, 250_000, tzinfo=UTC)
QUESTION = "Who can help with the login?"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    embedder = HashingEmbedder(quiet=True)
    with Waylore.open(tmp_path / "memory.waylore", embedder=embedder, clock=lambda: NOW) as memory:
        fact = {"subject": "login", "predicate": "needs", "object": "session service", "valid_from": "2025-05-01"}
        memory.add("The login needs the session service.", title="Login", uri="login.md", facts=[fact])
        metadata: Metadata = {"team": "core", "year": 2026, "share": 0.5, "is_new": True, "tags": ["a", "b"]}
        owns = ("Mara", "owns", "session service")
        memory.add("Mara looks after tokens.", metadata=metadata, labels=["staff", "ops"], facts=[owns])
        memory.add("Mara lives in Bergen.", facts=[("Mara", "lives in", "Bergen")])
        yield memory


def check(model: type[wire.Wire], plain: dict[str, Any]) -> None:
    """Check that plain values are the JSON that a model describes, and have no types besides those of JSON."""
    assert model.model_validate(plain).model_dump(mode="json") == plain
    assert {type(value) for value in list_values(plain)} <= {str, int, float, bool, type(None)}
    assert json.loads(json.dumps(plain)) == plain


def list_values(plain: Any) -> Iterator[object]:
    if type(plain) is dict:
        for key, value in plain.items():
            yield key
            yield from list_values(value)
    elif type(plain) is list:
        for value in plain:
            yield from list_values(value)
    else:
        yield plain


@pytest.mark.parametrize("method", RECIPES)
@pytest.mark.parametrize("explain", [False, True])
def test_search_result_is_what_its_model_describes(memory: Waylore, method: str, explain: bool) -> None:
    result = memory.search(QUESTION, method=method)
    plain = result.to_dict(explain=explain)
    assert plain["hits"]
    check(wire.SearchResult, plain)
    assert {hit["explanation"] is None for hit in plain["hits"]} == {not explain}


def test_hit_alone_has_the_facts_of_its_path(memory: Waylore) -> None:
    result = memory.search(QUESTION)
    assert any(hit.path and hit.path.steps for hit in result)
    for hit, plain in zip(result, result.to_dict(explain=True)["hits"], strict=True):
        facts = {fact.id: dump_fact(fact) for fact in hit.path.facts} if hit.path else {}
        assert hit.to_dict(explain=True) == {**plain, "facts": list(facts.values())}


def find_steps(result: SearchResult) -> tuple[list[str], list[str]]:
    """Return the ids of the facts of all steps, and those of the facts that are written."""
    plain = result.to_dict()
    steps = [step["fact_id"] for hit in plain["hits"] if hit["path"] for step in hit["path"]["steps"]]
    return steps, [fact["id"] for fact in plain["facts"]]


@pytest.mark.parametrize("shown", [0, 1, None])
def test_each_fact_is_written_once(memory: Waylore, shown: int | None) -> None:
    """Paths may have facts that are not among the shown ones, whose number is limited."""
    found = memory.search(QUESTION)
    result = replace(found, facts=found.facts[:shown])
    steps, written = find_steps(result)
    assert len(set(steps)) > 1
    assert set(steps) <= set(written)
    assert set(Counter(written).values()) == {1}
    assert written[: len(result.facts)] == [fact.id for fact in result.facts]
    assert set(written) == {fact.id for fact in result.facts} | set(steps)


def test_context_is_what_its_model_describes(memory: Waylore) -> None:
    check(wire.Context, memory.context(QUESTION).to_dict())


def test_graph_document_and_statistics_are_what_their_models_describe(memory: Waylore) -> None:
    around = memory.related("login", hops=2)
    assert around.facts[0].branches
    check(wire.Related, around.to_dict())
    for document in memory.documents():
        check(wire.IndexedDocument, dump_indexed_document(memory.get(document.id)))
    check(wire.Statistics, memory.stats().to_dict())
    check(wire.Related, memory.related("login", hops=2, predicates="keeps").to_dict())
    check(wire.Connection, memory.connect("login", "Sessions").to_dict())
    check(wire.EntityList, memory.list_entities().to_dict())


def test_times_in_other_zones_keep_their_offset(memory: Waylore) -> None:
    [fact] = memory.facts("login")
    moment = datetime.fromisoformat("2026-01-31T12:00:00+02:00")
    check(wire.Fact, dump_fact(replace(fact, valid_from=moment)))
