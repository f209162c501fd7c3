"""Test what a language model adds to stored passages, with a scripted model behind a real HTTP server."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from databases import create_database
from unit.providers.loopback import Script, fail_with, serve
from waylore import Waylore
from waylore.errors import Forbidden, ModelUnavailable, NotFound
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.providers.extractors.budget import UNLIMITED, Budget
from waylore.providers.extractors.llm import LLMExtractor
from waylore.types.author import Author

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
TEXTS = {
    "harbour.md": "Marta runs Quarry. Quarry feeds Ledger.",
    "ridge.md": "Kofi owns Ridge. Ridge needs Quarry.",
    "mill.md": "Ines built Mill. Mill grinds Corn.",
}


@pytest.fixture
def server() -> Iterator[Script]:
    with serve() as script:
        yield script


@pytest.fixture(params=["sqlite", "postgres"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Waylore]:
    """Open a collection whose documents were stored without names and facts."""
    url = create_database() if request.param == "postgres" else str(tmp_path / "enriched.waylore")
    embedder = HashingEmbedder(64, quiet=True)
    with Waylore.open(url, embedder=embedder, extractor=None, clock=lambda: NOON) as memory:
        for uri, text in TEXTS.items():
            memory.add(text, uri=uri, metadata={"page": uri})
        yield memory


def create_model(server: Script, *, budget: Budget = UNLIMITED, cache: Path | None = None) -> LLMExtractor:
    return LLMExtractor("m", base_url=server.url, budget=budget, cache=cache, retries=0, backoff=0.001, timeout=5.0)


def enrich(memory: Waylore, server: Script, **options: Any) -> Any:
    with create_model(server) as model:
        return memory.enrich(model, **options)


def list_facts(memory: Waylore, name: str) -> set[tuple[str, str, str]]:
    return {(fact.subject, fact.predicate, fact.object) for fact in memory.facts(name)}


def export(memory: Waylore) -> list[str]:
    return list(memory.export_lines())


def test_model_reads_the_passages_that_questions_reached(memory: Waylore, server: Script) -> None:
    memory.search("Who runs Quarry?", top_k=1, method="keyword")
    added = enrich(memory, server, run="one")
    assert (added.run, added.read, added.enriched, added.facts, added.entities) == ("one", 1, 1, 2, 3)
    assert len(server.requests) == 1
    assert list_facts(memory, "Quarry") == {("Marta", "runs", "Quarry"), ("Quarry", "feeds", "Ledger")}
    [fact] = memory.facts("Marta")
    assert (fact.status, fact.source) == ("staged", "system")


def test_filter_names_the_passages(memory: Waylore, server: Script) -> None:
    assert enrich(memory, server, where={"page": ["ridge.md", "mill.md"]}).read == 2
    assert list_facts(memory, "Marta") == set()
    assert list_facts(memory, "Ridge") == {("Kofi", "owns", "Ridge"), ("Ridge", "needs", "Quarry")}


def test_enrichment_names_its_passage_and_run(memory: Waylore, server: Script) -> None:
    [hit] = memory.search("Who runs Quarry?", top_k=1, method="keyword")
    enrich(memory, server, run="one")
    [fact] = memory.facts("Marta")
    found = memory.provenance(fact)
    assert (found.passage.id, found.document.uri) == (hit.id, "harbour.md")
    _, own = memory.get_passage(fact.passage_id)
    assert (own.agent, own.source, own.metadata["enriched_passage"]) == ("enrich:one", "system", hit.id)


def test_related_shows_the_passage_that_was_read(memory: Waylore, server: Script) -> None:
    enrich(memory, server, where={"page": list(TEXTS)})
    found = memory.related("Quarry", predicates=["needs"], direction="in")
    [fact] = found.facts
    assert (fact.assertion.fact.subject, fact.assertion.document.uri, found.complete) == ("Ridge", "ridge.md", True)


@pytest.mark.parametrize("method", ["keyword", "vector", "hybrid", "chain", "activation", "neighbourhood", "guided"])
def test_enrichment_is_never_a_hit(memory: Waylore, server: Script, method: str) -> None:
    before = {hit.id for hit in memory.search("What feeds Ledger?", method="hybrid", top_k=9)}
    known = memory.stats().passages
    enrich(memory, server, where={"page": list(TEXTS)})
    for question in ("What feeds Ledger?", "Marta", "Who owns what Quarry needs?", "enrich"):
        hits = memory.search(question, method=method, top_k=9).hits
        assert {hit.id for hit in hits} <= before
        assert len({hit.id for hit in hits}) == len(hits)
    assert memory.stats().passages == known
    assert [document.uri for document in memory.documents()] == sorted(TEXTS)


def test_undo_gives_the_export_before(memory: Waylore, server: Script) -> None:
    before = export(memory)
    enrich(memory, server, run="one", where={"page": "mill.md"})
    between = export(memory)
    enrich(memory, server, run="two", where={"page": ["ridge.md", "mill.md"]})
    receipt = memory.undo_enrichment("two")
    assert export(memory) == between != before
    assert len(receipt.documents) == 1
    assert memory.verify_forgotten(receipt) == ()
    memory.undo_enrichment("one")
    assert export(memory) == before
    with pytest.raises(NotFound, match="no run one"):
        memory.undo_enrichment("one")


def test_undo_removes_what_was_added_for_users(memory: Waylore, server: Script) -> None:
    memory.add("Omar sells Salt.", user="omar")
    before = export(memory)
    assert enrich(memory, server, run="one", user="omar", where={}).read == 0  # nothing was used, nothing is named
    memory.search("Omar", user="omar", method="keyword")
    assert enrich(memory, server, run="one", user="omar").facts == 1
    assert memory.facts("Omar") == ()
    assert len(memory.facts("Omar", user="omar")) == 1
    memory.undo_enrichment("one")
    assert export(memory) == before


def test_forgetting_the_document_forgets_its_enrichment(memory: Waylore, server: Script) -> None:
    enrich(memory, server, where={"page": list(TEXTS)})
    receipt = memory.forget("harbour.md")
    assert len(receipt.documents) == 2
    assert memory.verify_forgotten(receipt) == ()
    assert list_facts(memory, "Marta") == set()
    assert list_facts(memory, "Ridge")
    memory.add("Kofi sold Ridge.", uri="ridge.md")
    assert list_facts(memory, "Ridge") == set()


def test_labels_of_the_document_are_those_of_its_enrichment(memory: Waylore, server: Script) -> None:
    memory.add("Vera keeps Vault.", uri="vault.md", labels=["board"], metadata={"page": "vault.md"})
    enrich(memory, server, where={"page": "vault.md"})
    assert len(memory.facts("Vera")) == 1
    assert memory.as_author(Author("key", frozenset())).facts("Vera") == ()
    with pytest.raises(Forbidden):
        memory.as_author(Author("key", frozenset({"board"}))).enrich(create_model(server))


def test_export_contains_the_enrichment(memory: Waylore, server: Script, tmp_path: Path) -> None:
    enrich(memory, server, where={"page": list(TEXTS)})
    memory.export(tmp_path / "all.jsonl")
    with Waylore.open(tmp_path / "other.waylore", embedder=HashingEmbedder(64, quiet=True)) as other:
        other.import_(tmp_path / "all.jsonl")
        assert export(other) == export(memory)
        assert list_facts(other, "Mill") == list_facts(memory, "Mill")


def test_new_vectors_leave_out_silent_passages(tmp_path: Path, server: Script) -> None:
    path = tmp_path / "enriched.waylore"
    with Waylore.open(path, embedder=HashingEmbedder(64, quiet=True), extractor=None) as memory:
        memory.add(TEXTS["mill.md"], uri="mill.md")
        memory.search("Mill", method="keyword")
        enrich(memory, server)
    Waylore.reembed(path, embedder=HashingEmbedder(96, quiet=True))
    with Waylore.open(path, embedder=HashingEmbedder(96, quiet=True)) as memory:
        assert len(memory.search("Who built the mill?", method="vector")) == 1
        assert list_facts(memory, "Mill") == {("Ines", "built", "Mill"), ("Mill", "grinds", "Corn")}


def test_facts_that_the_passage_states_are_not_added(tmp_path: Path, server: Script) -> None:
    with Waylore.open(tmp_path / "known.waylore") as memory:
        memory.add(TEXTS["mill.md"], facts=[("Ines", "built", "Mill")], metadata={"page": "mill.md"})
        added = enrich(memory, server, where={"page": "mill.md"})
        assert (added.read, added.facts) == (1, 1)
        assert {fact.object: fact.status for fact in memory.facts("Mill")} == {"Mill": "confirmed", "Corn": "staged"}


def test_budget_ends_the_run_and_the_next_one_goes_on(memory: Waylore, server: Script) -> None:
    where = {"page": list(TEXTS)}
    with create_model(server) as model:
        [first, *_] = memory.documents()
        cost = model.estimate(memory.get(first.id).passages).tokens
    one_call = Budget(tokens=cost.sent + cost.answered + 100)
    with create_model(server, budget=one_call) as model:
        added = memory.enrich(model, where=where, run="one")
        assert model.report.tokens.sent + model.report.tokens.answered <= (one_call.tokens or 0)
    assert (added.read, added.unread) == (len(server.requests), 3 - len(server.requests))
    assert 1 <= added.read < 3
    again = enrich(memory, server, where=where, run="one")
    assert (again.read, again.known) == (3 - added.read, added.read)
    assert len(server.requests) == 3
    assert memory.stats().facts == 6


def test_interrupted_run_goes_on_without_new_calls(memory: Waylore, server: Script, tmp_path: Path) -> None:
    """The server fails for good after two answers, which are in the cache."""
    for number in range(8):
        memory.add(f"Ann{number} met Ben{number}.", uri=f"more{number}.md", metadata={"page": "more"})
    where = {"page": "more"}
    with create_model(server, cache=tmp_path / "answers") as model:
        memory.enrich(model, where=where, run="one", limit=2)
    server.faults.extend([fail_with(500)] * 20)
    with create_model(server, cache=tmp_path / "answers") as model, pytest.raises(ModelUnavailable):
        memory.enrich(model, where=where, run="one")
    server.faults.clear()
    before = len(server.requests)
    with create_model(server, cache=tmp_path / "answers") as model:
        added = memory.enrich(model, where=where, run="one")
    assert (added.known, added.read) == (2, 6)
    assert len(server.requests) == before + 6
    memory.undo_enrichment("one")
    assert memory.facts("Ann1") == ()
