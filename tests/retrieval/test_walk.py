"""A walk on a real store: it reaches what is connected, sees nothing hidden, and reads no more than it may."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from waylore.config import Resolution, Trust, Walk
from waylore.retrieval.graph.walk import Neighbourhood, gather, walk
from waylore.store.reads import answered
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.suite import KING, LOTHAIR, MODEL, PUBLIC, QUEEN, SECRET, WORLD, day, page, question
from waylore.types.identity import entity_id
from waylore.types.knowledge import Claim, Vector
from waylore.types.search import Filter, Query, Scored

NOW = day("2024-05-02")


class Counting(SqliteStore):
    """A store that counts what it gives."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.given: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def facts_of_entities(self, entities: Sequence[str], **options: Any) -> Any:
        found = super().facts_of_entities(entities, **options)
        self.calls["facts"] += 1
        self.given["facts"] += sum(map(len, found.values()))
        return found

    def alike(self, asked: Mapping[str, Sequence[str]], **options: Any) -> Any:
        self.calls["alike"] += 1
        assert len(asked) <= 1 + Resolution().ends
        return super().alike(asked, **options)

    def nearby(self, vector: Vector, entities: Sequence[str], **options: Any) -> Any:
        found, near = super().nearby(vector, entities, **options)
        self.calls["mentions"] += 1
        self.given["mentions"] += sum(map(len, found.values()))
        return found, near


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Counting]:
    store = Counting(tmp_path / "test.waylore")
    store.write(WORLD, model=MODEL)
    yield store
    store.close()


def reached(store: SqliteStore, where: Filter, **options: Any) -> Neighbourhood:
    query = Query("Where is the mother of Lothair II buried?", question("mother buried"), where)
    hybrid = [Scored(KING.passages[0].id, 1.0)]
    config = Walk(max_hops=2, **options)
    stage = gather(query, {LOTHAIR: 1.0}, {}, hybrid, {}, config=config, resolution=Resolution())
    return answered(store, stage)


def test_two_hops_lead_to_the_passage_of_the_mother(store: Counting) -> None:
    walked = walk(reached(store, PUBLIC), (), config=Walk(), trust=Trust(), now=NOW)
    assert [s.id for s in walked.passages] == [KING.passages[0].id, QUEEN.passages[0].id]
    assert walked.entities[LOTHAIR] == max(walked.entities.values())
    assert sum(walked.entities.values()) + sum(s.score for s in walked.passages) == pytest.approx(1.0)


def test_a_walk_sees_nothing_that_its_caller_may_not(store: Counting) -> None:
    seen = reached(store, PUBLIC)
    assert SECRET.passages[0].id not in seen.passage_cosines
    assert not {f.predicate for f in seen.facts.values()} & {"codename"}
    assert entity_id("Falcon") not in {m.entity_id for m in seen.mentions}
    assert SECRET.passages[0].id in reached(store, Filter(labels=frozenset({"spies"}))).passage_cosines


def test_a_walk_may_be_kept_to_some_predicates(store: Counting) -> None:
    seen = reached(store, Filter(), predicates=("mother",))
    assert {f.predicate for f in seen.facts.values()} == {"mother"}


def test_a_walk_reads_no_more_than_it_may(store: Counting) -> None:
    """One call for facts a hop, one for what is the same, one for mentions; each capped, whatever the hub."""
    claims = [Claim("Lothair II", "met", f"Person {i}") for i in range(400)]
    claims += [Claim(f"Person {i}", "met", f"Person {i + 1}") for i in range(399)]
    store.write([page("Lothair II met everyone.", *claims)], model=MODEL)
    config = Walk(facts_per_entity=7, passages_per_entity=3, frontier=5, max_entities=11)
    reached(store, Filter(), facts_per_entity=7, passages_per_entity=3, frontier=5, max_entities=11)
    assert store.calls == {"facts": 3, "alike": 1, "mentions": 1}
    assert store.given["facts"] <= config.facts_per_entity * (1 + config.frontier)
    assert store.given["mentions"] <= config.passages_per_entity * config.max_entities
