"""A walk on a real store reaches connected passages, sees nothing hidden, and respects its limits."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from waylore.config import ResolutionConfig, TrustConfig, WalkConfig
from waylore.retrieval.graph.walk import Neighbourhood, gather, walk
from waylore.store.reads import run_stage
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.world import KING, LOTHAIR, MODEL, PUBLIC, QUEEN, SECRET, WORLD, day, page, question
from waylore.types.author import OWNER
from waylore.types.columns import FactColumns, MentionColumns
from waylore.types.identity import entity_id
from waylore.types.knowledge import NewFact, Vector
from waylore.types.search import Filter, Query, Scored

NOW = day("2024-05-02")


class CountingStore(SqliteStore):
    """A store that counts calls and rows."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.given: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def facts_of_entities(self, entities: Sequence[str], **options: Any) -> Any:
        found = super().facts_of_entities(entities, **options)
        self.calls["facts"] += 1
        self.given["facts"] += sum(map(len, found.values()))
        return found

    def find_similar_entities(self, keys: Mapping[str, Sequence[str]], **options: Any) -> Any:
        self.calls["alike"] += 1
        assert len(keys) <= 1 + ResolutionConfig().max_reached
        return super().find_similar_entities(keys, **options)

    def nearby(self, vector: Vector, entities: Sequence[str], **options: Any) -> Any:
        found, near = super().nearby(vector, entities, **options)
        self.calls["mentions"] += 1
        self.given["mentions"] += sum(map(len, found.values()))
        return found, near


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CountingStore]:
    store = CountingStore(tmp_path / "test.waylore")
    store.write(WORLD, author=OWNER, model=MODEL)
    yield store
    store.close()


def gather_neighbourhood(store: SqliteStore, where: Filter, **options: Any) -> Neighbourhood:
    query = Query("Where is the mother of Lothair II buried?", question("mother buried"), where)
    hybrid = [Scored(KING.passages[0].id, 1.0)]
    config = WalkConfig(max_hops=2, **options)
    stage = gather(
        query, {LOTHAIR: 1.0}, FactColumns(), hybrid, MentionColumns(), config=config, resolution=ResolutionConfig()
    )
    return run_stage(store, stage)


def list_predicates(neighbourhood: Neighbourhood) -> set[str]:
    facts = neighbourhood.facts
    return {facts.make(place).predicate for place in range(facts.size)}


def test_two_hops_reach_passage_of_mother(store: CountingStore) -> None:
    walked = walk(gather_neighbourhood(store, PUBLIC), (), config=WalkConfig(), trust=TrustConfig(), now=NOW)
    assert [s.id for s in walked.passages] == [KING.passages[0].id, QUEEN.passages[0].id]
    assert walked.entities[LOTHAIR] == max(walked.entities.values())
    assert sum(walked.entities.values()) + sum(s.score for s in walked.passages) == pytest.approx(1.0)


def test_walk_sees_nothing_hidden(store: CountingStore) -> None:
    seen = gather_neighbourhood(store, PUBLIC)
    assert SECRET.passages[0].id not in seen.passage_cosines
    assert not list_predicates(seen) & {"codename"}
    assert entity_id("Falcon") not in seen.mentions.entities
    assert SECRET.passages[0].id in gather_neighbourhood(store, Filter(labels=frozenset({"spies"}))).passage_cosines


def test_walk_follows_given_predicates_only(store: CountingStore) -> None:
    seen = gather_neighbourhood(store, Filter(), predicates=("mother",))
    assert list_predicates(seen) == {"mother"}


def test_walk_respects_read_limits(store: CountingStore) -> None:
    """Check one read of facts per hop, one of merges and one of mentions, each capped on any hub."""
    claims = [NewFact("Lothair II", "met", f"Person {i}") for i in range(400)]
    claims += [NewFact(f"Person {i}", "met", f"Person {i + 1}") for i in range(399)]
    store.write([page("Lothair II met everyone.", *claims)], author=OWNER, model=MODEL)
    config = WalkConfig(facts_per_entity=7, passages_per_entity=3, frontier=5, max_entities=11)
    gather_neighbourhood(store, Filter(), facts_per_entity=7, passages_per_entity=3, frontier=5, max_entities=11)
    assert store.calls == {"facts": 3, "alike": 1, "mentions": 1}
    assert store.given["facts"] <= config.facts_per_entity * (1 + config.frontier)
    assert store.given["mentions"] <= config.passages_per_entity * config.max_entities
