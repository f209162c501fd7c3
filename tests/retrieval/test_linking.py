"""A question links the entities that it names, on a real store: longest names, each word once, none hidden."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from waylore.config import LinkingConfig, WalkConfig
from waylore.retrieval.graph.linking import LinkedEntity, link_entities, weigh_seeds
from waylore.retrieval.graph.walk import read_entity_facts, read_passage_facts
from waylore.store.reads import read_together, run_stage
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.world import EMBEDDER, MODEL, PUBLIC, QUEEN, WORLD, page, question
from waylore.types.author import OWNER
from waylore.types.columns import unique_facts
from waylore.types.knowledge import NewFact, Source
from waylore.types.search import Filter, Query


def find_links(store: SqliteStore, query: Query, config: LinkingConfig) -> tuple[LinkedEntity, ...]:
    return run_stage(store, link_entities(query, config))


def make_facts(*names: str, type_: str = "") -> list[NewFact]:
    return [NewFact(name, "is known to", "us", subject_type=type_, is_value=True) for name in names]


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
    names += ["The Who", "Łódź", "Ermengarde of Tours", "1984", "npm", "Stop", "Running", "GET", "login"]
    store.write([page("A list of names.", *make_facts(*names))], author=OWNER, model=MODEL)
    store.write([page("Code.", *make_facts("install", "scripts", type_="code"))], author=OWNER, model=MODEL)
    store.write([page("A secret name.", *make_facts("Project Falcon"), labels=["spies"])], author=OWNER, model=MODEL)
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
        ("How do I stop npm from running install scripts?", ["npm"]),
        ("How do I GET it?", ["GET"]),
        ("What does Running do, and what is `install`?", ["Running", "install"]),
        ("How To Stop Npm From Running", ["npm"]),
        ("What are `scripts`?", ["scripts"]),
        ("Who owns what the login needs?", ["login"]),
        ("Who wrote 1984 in lodz or Łódź?", ["1984", "Łódź"]),
        ("who is the who", []),
        ("What of Project Falcon?", []),
        ("", []),
    ],
)
def test_question_links_named_entities(store: SqliteStore, asked: str, named: list[str]) -> None:
    links = find_links(store, Query(asked, where=Filter(labels=frozenset())), LinkingConfig())
    assert sorted(found.entity.name for found in links) == sorted(named)


@pytest.mark.parametrize(
    ("facts", "source", "linked"),
    [
        ([NewFact("user", "lives_in", "Lisbon", source="user_edit")], "user_edit", ["user"]),
        ([NewFact("User", "likes", "tea", source="conversation")], "conversation", ["User"]),
        ([NewFact("User", "has", "Password", source="file")], "file", []),
        ([NewFact("User", "has", "Password", source="file", subject_type="person")], "file", ["User"]),
    ],
)
def test_first_person_means_the_remembered_user(
    tmp_path: Path, facts: list[NewFact], source: Source, linked: list[str]
) -> None:
    store = SqliteStore(tmp_path / "user.waylore")
    store.write([page("A text.", *facts, source=source)], author=OWNER, model=MODEL)
    for asked in ("Where do I live?", "Where does the user live?"):
        links = find_links(store, Query(asked), LinkingConfig())
        assert [link.entity.name for link in links] == linked
    store.close()


def test_longer_names_win_and_count_words(store: SqliteStore) -> None:
    links = find_links(store, Query("Lothair II and the New York Times and York"), LinkingConfig())
    assert [(found.entity.name, found.words) for found in links] == [
        ("New York Times", 3),
        ("Lothair II", 2),
        ("York", 1),
    ]


def test_max_name_words_is_respected(store: SqliteStore) -> None:
    links = find_links(store, Query("the New York Times"), LinkingConfig(max_name_words=2))
    assert [found.entity.name for found in links] == ["New York"]


def test_nearest_names_are_fallback(store: SqliteStore) -> None:
    vector = EMBEDDER.embed_passages(["ermengarde tours"])[0]
    near = find_links(store, Query("whom do we mean?", vector), LinkingConfig())
    assert [(found.entity.name, found.words) for found in near] == [("Ermengarde of Tours", 0)]
    named = find_links(store, Query("York?", vector), LinkingConfig())
    assert [found.entity.name for found in named] == ["York"]


def test_nearest_facts_add_seeds(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "world.waylore")
    store.write(WORLD, author=OWNER, model=MODEL)
    query = Query("Who was the mother of Lothair II?", question("lothair ii mother"), PUBLIC)
    links = find_links(store, query, LinkingConfig())
    near = read_together(
        read_passage_facts(query, [QUEEN.passages[0].id], WalkConfig(), per_passage=50),
        read_entity_facts(query, [found.entity.id for found in links], WalkConfig()),
    )
    facts = unique_facts(run_stage(store, near))
    typed = {facts.make(place).predicate for place in range(facts.size) if facts.is_typed[place]}
    assert typed == {"rules", "mother", "born", "spouse"}
    begun = weigh_seeds(query, links, facts, LinkingConfig(max_facts=1))
    names = {e.name: begun[e.id] for e in store.entities(list(begun)).values()}
    assert names.keys() == {"Lothair II", "Ermengarde of Tours"}
    assert names["Lothair II"] > names["Ermengarde of Tours"]  # named in two words, not only lent
    store.close()


def test_distant_names_are_not_linked(store: SqliteStore) -> None:
    assert find_links(store, Query("zebra crossing", question("zebra crossing")), LinkingConfig()) == ()
    hidden = Query("falcon project", EMBEDDER.embed_passages(["falcon project"])[0], Filter(labels=frozenset()))
    assert "Project Falcon" not in {found.entity.name for found in find_links(store, hidden, LinkingConfig())}
