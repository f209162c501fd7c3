"""A question links to what it names, on a real store: the longest names, each word once, and nothing hidden."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from waylore.config import Linking, Walk
from waylore.retrieval.graph.linking import Link, link, seeds
from waylore.retrieval.graph.walk import facts_in, facts_of
from waylore.store.reads import answered, together
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.suite import EMBEDDER, MODEL, PUBLIC, QUEEN, WORLD, page, question
from waylore.types.knowledge import Claim
from waylore.types.search import Filter, Query


def linked(store: SqliteStore, query: Query, config: Linking) -> tuple[Link, ...]:
    return answered(store, link(query, config))


def knows(*names: str) -> list[Claim]:
    return [Claim(name, "is known to", "us", is_value=True) for name in names]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    path: Path = tmp_path_factory.mktemp("linking") / "test.waylore"
    store = SqliteStore(path)
    names = [
        "New York",
        "York",
        "New York Times",
        "Lothair II",
        "film",
        "Film Noir",
        "C++",
        "Go",
        "北京大学",
        "北京",
    ]
    names += ["The Who", "Łódź", "Ermengarde of Tours", "1984"]
    store.write([page("A list of names.", *knows(*names))], model=MODEL)
    store.write([page("A secret name.", *knows("Project Falcon"), labels=["spies"])], model=MODEL)
    yield store
    store.close()


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("Who owns the New York Times?", ["New York Times"]),
        ("Is York older than New York?", ["New York", "York"]),
        ("Was York near York?", ["York", "York"]),
        ("LOTHAIR  ii's mother, Ermengarde of Tours", ["Ermengarde of Tours", "Lothair II"]),
        ("Which film is it?", []),
        ("What is Film Noir?", ["Film Noir"]),
        ("Is c++ faster than go?", ["C++"]),
        ("我想去北京大学学习", ["北京大学"]),
        ("北京在哪里?", ["北京"]),
        ("Who wrote 1984 in lodz or Łódź?", ["1984", "Łódź"]),
        ("who is the who", []),
        ("What of Project Falcon?", []),
        ("", []),
    ],
)
def test_a_question_links_to_what_it_names(store: SqliteStore, asked: str, named: list[str]) -> None:
    links = linked(store, Query(asked, where=Filter(labels=frozenset())), Linking())
    assert sorted(found.entity.name for found in links) == sorted(named)


def test_longer_names_come_first_and_say_how_long_they_are(store: SqliteStore) -> None:
    links = linked(store, Query("Lothair II and the New York Times and York"), Linking())
    assert [(found.entity.name, found.words) for found in links] == [
        ("New York Times", 3),
        ("Lothair II", 2),
        ("York", 1),
    ]


def test_names_may_be_no_longer_than_configured(store: SqliteStore) -> None:
    links = linked(store, Query("the New York Times"), Linking(longest_name=2))
    assert [found.entity.name for found in links] == ["New York"]


def test_the_nearest_names_are_asked_for_only_if_none_is_found(store: SqliteStore) -> None:
    vector = EMBEDDER.embed_passages(["ermengarde tours"])[0]
    near = linked(store, Query("whom do we mean?", vector), Linking())
    assert [(found.entity.name, found.words) for found in near] == [("Ermengarde of Tours", 0)]
    named = linked(store, Query("York?", vector), Linking())
    assert [found.entity.name for found in named] == ["York"]


def test_facts_near_the_question_lend_their_ends_to_the_walk(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "world.waylore")
    store.write(WORLD, model=MODEL)
    query = Query("Who was the mother of Lothair II?", question("lothair ii mother"), PUBLIC)
    links = linked(store, query, Linking())
    near = together(
        facts_in(query, [QUEEN.passages[0].id], Walk(), per_passage=50),
        facts_of(query, [found.entity.id for found in links], Walk()),
    )
    facts = {f.id: f for told in answered(store, near) for fs in told.values() for f in fs}
    assert {f.predicate for f in facts.values()} == {"rules", "mother", "born", "spouse"}
    begun = seeds(query, links, facts, Linking(facts=1))
    names = {e.name: begun[e.id] for e in store.entities(list(begun)).values()}
    assert names.keys() == {"Lothair II", "Ermengarde of Tours"}
    assert names["Lothair II"] > names["Ermengarde of Tours"]  # named in two words, not only lent
    store.close()


def test_what_is_not_near_enough_is_not_linked(store: SqliteStore) -> None:
    assert linked(store, Query("zebra crossing", question("zebra crossing")), Linking()) == ()
    hidden = Query("falcon project", EMBEDDER.embed_passages(["falcon project"])[0], Filter(labels=frozenset()))
    assert "Project Falcon" not in {found.entity.name for found in linked(store, hidden, Linking())}
