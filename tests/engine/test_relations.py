"""Test questions about the graph on a folder of services: what depends on one, who owns it, how two are connected."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from waylore import Filter, NewFact, Waylore
from waylore.engine.arguments import FactLike
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.retrieval.relations import connect

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SERVICES: list[FactLike] = [
    ("Billing", "needs", "Quarry"),
    ("Ledger", "relies on", "Billing"),
    ("Quarry", "is used by", "Search"),
    ("Atlas", "is built on", "Quarry Store"),
    ("Quarry Store", "same_as", "Quarry"),
    ("Mara", "owns", "Quarry"),
    {"subject": "Kofi", "predicate": "leads", "object": "Mara", "subject_type": "person"},
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with Waylore.open(tmp_path / "a.waylore", clock=lambda: NOW) as memory:
        memory.add_facts(SERVICES, source="file")
        yield memory


def test_related_finds_dependents_in_other_words(memory: Waylore) -> None:
    answer = memory.related("quarry", predicates="depends on", direction="in", hops=3)
    found = {(str(fact), fact.entity.name if fact.entity else "") for fact in answer}
    assert found == {
        ("←needs— Billing", "Billing"),
        ("←relies on— Ledger", "Ledger"),
        ("—is used by→ Search", "Search"),
        ("←is built on— Atlas", "Atlas"),
    }
    assert (answer.complete, answer.total, str(answer.extent)) == (True, 4, "all 4")
    assert {entity.name for entity in answer.entities} == {"Quarry", "Quarry Store"}
    assert [each.predicate for each in answer.unmatched] == ["owns"]
    assert [each.predicate for each in answer.predicates if each.is_inverse] == ["is used by"]


def test_fact_between_names_of_one_thing_lists_its_subject(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore") as memory:
        memory.add_facts([("Ada", "same_as", "Byron"), ("Ada", "knows", "Byron")])
        assert [entity.name for entity in memory.list_entities(object="Ada")] == ["Ada"]
        assert [str(fact) for fact in memory.related("Ada", direction="in")] == ["←knows— Ada"]


def test_related_shows_first_facts_and_counts_all(memory: Waylore) -> None:
    memory.add_facts([("Hub", "supplies", f"Harbour {number}") for number in range(70)], source="file")
    answer = memory.related("Hub")
    assert (answer.complete, answer.shown, answer.total, str(answer.extent)) == (False, 50, 70, "50 of 70")
    assert memory.related("Hub", limit=70).complete


def test_fact_has_its_quote_and_what_superseded_it(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore", clock=lambda: NOW) as memory:
        memory.remember("I live in Oslo.", user="ann", at="2026-01-10", facts=[("ann", "lives_in", "Oslo")])
        memory.remember("I moved to Bergen.", user="ann", at="2026-03-10", facts=[("ann", "lives_in", "Bergen")])
        answer = memory.related("ann", user="ann")
        told = {fact.assertion.fact.object: fact for fact in answer}
        assert told["Oslo"].end is not None
        assert (told["Oslo"].end.kind, told["Oslo"].end.at.date().isoformat()) == ("changed", "2026-03-10")
        assert told["Oslo"].end.by is not None
        assert told["Oslo"].end.by.quote == "I moved to Bergen."
        assert (told["Bergen"].end, told["Bergen"].assertion.quote) == (None, "I moved to Bergen.")
        held = memory.related("ann", user="ann", as_of="2026-02-01")
        assert [fact.assertion.fact.object for fact in held] == ["Oslo"]
        assert memory.related("ann").total == 0


@pytest.mark.parametrize("moment", [None, "2025-06-01", "2026-02-01", "2026-04-01", "2026-05-01"])
def test_related_holds_what_facts_hold(tmp_path: Path, moment: str | None) -> None:
    with Waylore.open(tmp_path / "a.waylore", clock=lambda: NOW, single_valued="sails") as memory:
        for day, place in [("2026-01-10", "Oslo"), ("2026-03-10", "Bergen"), ("2026-04-10", "Oslo")]:
            memory.add_facts([("Ada", "lives_in", place), ("Ada", "sails", place)], at=day)
        memory.add_facts([("Ada", "not lives_in", "Oslo")], at="2026-04-20")
        held = {fact.id for fact in memory.facts("Ada", as_of=moment) if not fact.is_denial}
        answer = memory.related("Ada", as_of=moment)
        assert {fact.assertion.fact.id for fact in answer} == held
        assert answer.complete


def test_ambiguous_name_returns_candidates(memory: Waylore) -> None:
    page = memory.add("Mercury is near the sun.", facts=[("Mercury", "orbits", "Sun")])
    indexed = memory.get(page)
    assert indexed.entities
    memory.add_facts([("Freddie Mercury", "leads", "Queen"), ("Queen", "plays", "Wembley")])
    memory.mark_same("Freddie Mercury", "Mercury")
    memory.mark_distinct("Freddie Mercury", "Mercury")
    assert memory.related("Mercury").total == 1
    found = memory.list_entities(name="freddie mercury")
    assert [entity.name for entity in found] == ["Freddie Mercury"]
    by_id = memory.related(found.entities[0].id)
    assert [str(fact) for fact in by_id] == ["—leads→ Queen"]


def test_alias_of_two_things_is_ambiguous(tmp_path: Path) -> None:
    notes = "# Notes\n\n*Open Policy Agent* (OPA) is a tool.\n"
    more = "# More\n\nThe *Ocean Patrol Agency* (OPA) sails.\n"
    for name, text in {"a.md": notes, "b.md": more}.items():
        (tmp_path / name).write_text(text)
    with Waylore.open(tmp_path / "a.waylore") as memory:
        memory.add_files([tmp_path / "a.md", tmp_path / "b.md"])
        answer = memory.related("OPA")
        entities = {entity.name for entity in memory.list_entities(name="OPA")}
        assert answer.candidates or len(answer.entities) > 1, entities
        assert answer.complete == (not answer.candidates)


def test_words_of_a_name_find_it(memory: Waylore) -> None:
    assert memory.related("the store of Quarry").entities == memory.related("Quarry Store").entities != ()


def test_connect_names_each_step(memory: Waylore) -> None:
    answer = memory.connect("Atlas", "Kofi")
    assert [str(path) for path in answer.paths] == [
        "Atlas —is built on→ Quarry Store —same_as→ Quarry ←owns— Mara ←leads— Kofi"
    ]
    assert answer.paths[0].hops == 3
    assert [step.kind for step in answer.paths[0].steps] == ["typed", "same", "typed", "typed"]


def test_connect_quotes_a_sentence_that_names_both(memory: Waylore) -> None:
    statement = "Orion talks to Quarry every night."
    memory.add(statement, facts=[NewFact("Orion", "", "Quarry", statement, is_pair=True)])
    [path] = memory.connect("Orion", "Mara").paths
    assert [step.kind for step in path.steps] == ["quoted", "typed"]
    assert path.steps[0].assertion.quote == "Orion talks to Quarry every night."


def test_connect_says_how_much_was_looked_at(memory: Waylore) -> None:
    memory.add_facts([("Zeno", "knows", "Lothair")], source="file")
    answer = memory.connect("Zeno", "Mara")
    assert (answer.paths, answer.exhaustive) == ((), True)
    assert str(answer) == "no path within 4 hops; 2 entities and 1 facts were read, and there are no others"
    assert memory.connect("Zeno", "Nobody").unknown == ("Nobody",)


def test_path_over_a_hub_does_not_read_the_hub(memory: Waylore) -> None:
    memory.add_facts([("Hub", "supplies", f"Harbour {number}") for number in range(1_500)], source="file")
    answer = memory.connect("Harbour 3", "Harbour 1400")
    assert str(answer.paths[0]) == "Harbour 3 ←supplies— Hub —supplies→ Harbour 1400"
    assert answer.facts < 10
    hub = memory.related("Hub", predicates="ships", limit=1_000)
    assert (hub.complete, hub.extent.is_exact) == (False, False)
    most = memory.related("Hub", limit=1_000)
    assert (most.shown, str(most.extent)) == (1_000, "1,000 of at least 1,000")


def test_two_hubs_with_more_facts_than_are_read_are_not_searched_exhaustively(
    memory: Waylore, monkeypatch: pytest.MonkeyPatch
) -> None:
    strong = [NewFact(hub, "supplies", f"{hub} {number}", weight=9) for hub in ("East", "West") for number in range(5)]
    memory.add_facts([*strong, NewFact("East", "knows", "West", weight=1)], source="file")
    assert str(memory.connect("East", "West").paths[0]) == "East —knows→ West"
    monkeypatch.setattr(connect, "FACTS_PER_ENTITY", 3)
    cut = memory.connect("East", "West")
    assert (cut.paths, cut.exhaustive) == ((), False)
    assert "so a path may exist" in str(cut)


def test_entities_are_listed_by_type_and_relation(memory: Waylore) -> None:
    assert [entity.name for entity in memory.list_entities(type="Person")] == ["Kofi"]
    owners = memory.list_entities(predicate="maintains", object="Quarry")
    assert ([entity.name for entity in owners], owners.complete) == (["Mara"], True)
    assert memory.list_entities(object="Nobody").total == 0


def test_pages_have_every_entity_once(memory: Waylore) -> None:
    found, after = [], ""
    while True:
        page = memory.list_entities(after=after, limit=3)
        found += [entity.id for entity in page]
        after = page.after
        if not after:
            break
    assert len(found) == len(set(found)) == page.total == memory.list_entities(limit=100).shown


def test_hidden_facts_are_not_counted(memory: Waylore) -> None:
    memory.add_facts([("Vault", "needs", "Quarry"), ("Vault", "knows", "Zeno")], labels=["secret"], source="file")
    public = Filter(labels=frozenset())
    assert memory.related("Quarry", where=public).total == memory.related("Quarry").total - 1
    assert memory.connect("Zeno", "Quarry", where=public).unknown == ("Zeno",)
    assert memory.list_entities(where=public).total == memory.list_entities().total - 2


def test_vectors_are_used_for_unknown_predicates(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=HashingEmbedder(64, quiet=True)) as memory:
        memory.add_facts([("Ada", "sails along with", "Byron"), ("Ada", "paints", "Kiel")])
        answer = memory.related("Ada", predicates="sails along")
        assert [each.predicate for each in answer.unmatched] == ["paints"]
