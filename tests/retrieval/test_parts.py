"""A question that asks for several things is searched in parts too, and their passages join those of the whole."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from retrieval.worlds import DrawnDocument, fill_store, index_world, list_ids, search_store
from waylore.config import PartsConfig
from waylore.protocols import Vectors
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import CHAIN, RECIPES
from waylore.retrieval.parts import PART, split_question
from waylore.store.sqlite.store import SqliteStore
from waylore.types.search import Filter

QUESTION = "Which storm sank the ferry Engine, and how many lamps has the lighthouse of Mull?"
PARTS = ["Which storm sank the ferry Engine", "how many lamps has the lighthouse of Mull"]
WORLD = [
    DrawnDocument("The ferry Engine sank in the storm of the winter."),
    DrawnDocument("The lighthouse of Mull has nine lamps."),
    *(DrawnDocument(f"The ferry Engine and the storm {n}.") for n in range(30)),
    DrawnDocument("The lighthouse of Mull has ten secret lamps.", labels=frozenset({"spies"})),
]
EVERYONE, SPIES = Filter(labels=frozenset()), Filter(labels=frozenset({"spies"}))


class CountingEmbedder(HashingEmbedder):
    """Records the questions of each call. It fails for parts if it is broken."""

    def __init__(self, *, is_broken: bool = False) -> None:
        super().__init__(64, quiet=True)
        self.is_broken = is_broken
        self.calls: list[list[str]] = []

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        if self.is_broken:
            raise OSError("the model does not answer")
        return super().embed_queries(texts)


@pytest.fixture(scope="module")
def store() -> Iterator[SqliteStore]:
    embedder = HashingEmbedder(64, quiet=True)
    with fill_store(index_world(WORLD, embedder=embedder), SqliteStore, model=embedder.name) as store:
        yield store


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (QUESTION, PARTS),
        ("Slack is down. Where do we meet?", ["Slack is down", "Where do we meet"]),
        ("Who owns the mirror? Which hours does it run?", ["Who owns the mirror", "Which hours does it run"]),
        ("谁拥有这个镜像？它何时运行？", ["谁拥有这个镜像", "它何时运行"]),
        ("Which film is older, Meet Dr. Who And The Robots or How They Grew And How It Ended?", []),
        ("Which film is older, Who Is Your Brother? or The Last Harbour?", []),
        ("Who keeps it and at what cost does it run?", ["Who keeps it", "at what cost does it run"]),
        ("Who wrote A. B. White and which?", []),  # the second part is too short
        ("What do E. B. White and Dan Masterson have in common?", []),
        ("Who met Ada, Bob and Eve?", []),
        ("Why?", []),
        ("", []),
        (" ".join(["Who is it? Where is it now?"] * 20), []),  # a text, not a question
    ],
)
def test_question_is_split_before_words_that_ask(question: str, parts: list[str]) -> None:
    assert split_question(question, PartsConfig()) == parts


def test_number_of_parts_is_bounded() -> None:
    assert len(split_question("Who is it now? " * 10, PartsConfig())) == PartsConfig().max_parts


def test_passages_of_both_parts_rise(store: SqliteStore) -> None:
    embedder = CountingEmbedder()
    found = search_store(store, QUESTION, CHAIN, embedder=embedder, where=EVERYONE)
    whole = search_store(store, QUESTION, replace(CHAIN, asks_parts=False), embedder=embedder, where=EVERYONE)
    wanted = {WORLD[0].text, WORLD[1].text}
    assert {hit.text for hit in found.hits[:2]} == wanted
    assert {hit.text for hit in whole.hits[:2]} != wanted
    assert embedder.calls == [PARTS]  # in one call
    assert {p.query for hit in found.hits[:2] for p in hit.placements if p.search == PART} == set(PARTS)
    assert all(hit.score == pytest.approx(sum(p.share for p in hit.placements)) for hit in found.hits)


def test_order_does_not_depend_on_number_of_hits(store: SqliteStore) -> None:
    few, many = (
        search_store(store, QUESTION, replace(CHAIN, top_k=top_k), embedder=CountingEmbedder(), where=EVERYONE)
        for top_k in (3, 50)
    )
    assert [(hit.id, hit.score) for hit in few.hits] == [(hit.id, hit.score) for hit in many.hits][:3]


def test_hidden_passages_change_nothing(store: SqliteStore) -> None:
    with fill_store(
        index_world(WORLD[:-1], embedder=CountingEmbedder()), SqliteStore, model=store.statistics().model
    ) as bare:
        seen, alone = (
            search_store(s, QUESTION, CHAIN, embedder=CountingEmbedder(), where=EVERYONE) for s in (store, bare)
        )
    assert [(hit.id, hit.score) for hit in seen.hits] == [(hit.id, hit.score) for hit in alone.hits]
    hits = search_store(store, QUESTION, CHAIN, embedder=CountingEmbedder(), where=SPIES).hits
    assert any("secret" in hit.text for hit in hits[:3])


def test_whole_question_answers_if_parts_cannot_be_embedded(store: SqliteStore) -> None:
    whole = search_store(store, QUESTION, replace(CHAIN, asks_parts=False), embedder=CountingEmbedder())
    found = search_store(store, QUESTION, CHAIN, embedder=CountingEmbedder(is_broken=True))
    assert list_ids(found) == list_ids(whole)
    assert found.missing == (f"{PART}: the model does not answer",)
    assert search_store(store, QUESTION, CHAIN, embedder=None).hits


@pytest.mark.parametrize("name", ["hybrid", "keyword", "vector", "graph_only", "specified"])
def test_other_recipes_ask_the_whole_question_only(name: str, store: SqliteStore) -> None:
    embedder = CountingEmbedder()
    search_store(store, QUESTION, RECIPES[name], embedder=embedder)
    assert embedder.calls == []
