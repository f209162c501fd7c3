"""Answers through the facade: kept for a while and never too long, counted, prewarmed, and by which method.

A store that counts its searches tells whether an answer was kept. The clock is the test's own, and so is the
timer by which answers are kept.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cachetools import TTLCache

from retrieval.worlds import EMBEDDER, NOW, QUESTION, SAMPLE, Halves, contributions, ids
from waylore import Claim, Filter, Waylore
from waylore.config import Cache, Gate
from waylore.errors import ConfigError, ModelUnavailable
from waylore.recipes import CHAIN, HYBRID, RECIPES
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import Vector
from waylore.types.search import Ranking

EVERYONE = Filter(labels=frozenset())


class Counting(SqliteStore):
    """A store that counts its searches."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.searches: Counter[str] = Counter()

    def dense(self, vector: Vector, **options: Any) -> Ranking:
        self.searches["dense"] += 1
        return super().dense(vector, **options)

    def lexical(self, query: str, **options: Any) -> Ranking:
        self.searches["lexical"] += 1
        return super().lexical(query, **options)


class Time:
    """A clock and a timer that stand still until they are moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timer(self) -> float:
        return self.seconds

    def clock(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)


class Reversing:
    """A reranker that turns everything round, or leaves it."""

    def __init__(self, sign: int) -> None:
        self.sign = sign

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [self.sign * place for place in range(len(texts))]


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr("waylore.engine.waylore.TTLCache", partial(TTLCache, timer=time.timer))
    return time


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.waylore"


@pytest.fixture
def store(path: Path) -> Counting:
    store = Counting(path)
    store.write(contributions(SAMPLE), model=EMBEDDER.name)
    return store


@pytest.fixture
def memory(store: Counting, time: Time) -> Iterator[Waylore]:
    with Waylore(store, EMBEDDER, clock=time.clock) as memory:
        yield memory


# -- kept ----------------------------------------------------------------------------------------------


def test_the_same_question_is_answered_from_what_was_kept(memory: Waylore, store: Counting) -> None:
    first = memory.search(QUESTION)
    assert store.searches == {"dense": 1, "lexical": 1}
    assert memory.search(QUESTION) == first
    assert store.searches == {"dense": 1, "lexical": 1}


@pytest.mark.parametrize(
    "other",
    [
        {"query": QUESTION + "?"},
        {"top_k": 3},
        {"where": EVERYONE},
        {"where": Filter(metadata={"lang": "en"})},
        {"as_of": NOW},
        {"method": "hybrid"},
        {"method": "neighbourhood"},
        {"recipe": replace(CHAIN, gate=Gate(min_confidence=0.9))},
        {"recipe": replace(CHAIN, chain=replace(CHAIN.chain, common=1))},
    ],
    ids=str,
)
def test_another_question_is_another_answer(memory: Waylore, store: Counting, other: dict[str, Any]) -> None:
    memory.search(QUESTION)
    memory.search(**{"query": QUESTION, **other})
    assert store.searches["lexical"] == 2
    memory.search(QUESTION)
    memory.search(**{"query": QUESTION, **other})
    assert store.searches["lexical"] == 2


def test_what_was_kept_for_one_caller_is_not_told_to_another(memory: Waylore) -> None:
    memory.add("The storm is a secret of the harbour.", labels=["spies"])
    spies = memory.search(QUESTION, where=Filter(labels=frozenset({"spies"})))
    assert "secret" in repr(spies.hits)
    assert "secret" in repr(memory.search(QUESTION).hits)
    assert "secret" not in repr(memory.search(QUESTION, where=EVERYONE).hits)


def test_a_write_by_another_is_seen_at_once(memory: Waylore, path: Path) -> None:
    before = memory.search("What of the new pier?")
    with Waylore.open(path, embedder=EMBEDDER) as other:
        pier = other.add("The new pier is open.")
        assert "new pier" in repr(memory.search("What of the new pier?").hits)
        other.forget(pier)
    assert memory.search("What of the new pier?").hits == before.hits


def test_a_write_by_another_process_is_seen_at_once(memory: Waylore, path: Path) -> None:
    memory.search("What of the new pier?")
    program = (
        "import sys\nfrom retrieval.worlds import EMBEDDER\nfrom waylore import Waylore\n"
        "with Waylore.open(sys.argv[1], embedder=EMBEDDER) as memory: memory.add('The new pier is open.')"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", program, str(path)], env=environment, check=True, timeout=60)
    assert "new pier" in repr(memory.search("What of the new pier?").hits)


def test_an_answer_that_lacks_something_is_not_kept(store: Counting) -> None:
    class Down(Halves):
        def embed_query(self, text: str) -> Vector:
            raise ModelUnavailable

    with Waylore(store, Down(16, quiet=True)) as memory:
        assert memory.search(QUESTION).missing
        assert memory.search(QUESTION).missing
        assert store.searches["lexical"] == 2


def test_an_answer_is_kept_for_so_long_and_no_longer(memory: Waylore, store: Counting, time: Time) -> None:
    memory.search(QUESTION)
    time.seconds = 59.9
    memory.search(QUESTION)
    assert store.searches["lexical"] == 1
    time.seconds = 120.0
    memory.search(QUESTION)
    assert store.searches["lexical"] == 2


def test_asking_again_does_not_make_an_answer_last(memory: Waylore, store: Counting, time: Time) -> None:
    for seconds in (0.0, 50.0, 100.0):
        time.seconds = seconds
        memory.search(QUESTION)
    assert store.searches["lexical"] == 2


@pytest.mark.parametrize("cache", [Cache(seconds=0.0), Cache(size=1)])
def test_as_little_is_kept_as_was_asked_for(store: Counting, time: Time, cache: Cache) -> None:
    with Waylore(store, EMBEDDER, clock=time.clock, cache=cache) as memory:
        answers = [memory.search(question) for question in ("storm", "harbour", "storm", "harbour")]
        assert store.searches["lexical"] == 4
        assert answers[0] == answers[2]


def test_a_reranker_is_not_taken_for_another(memory: Waylore) -> None:
    def first_with(sign: int) -> str:
        return ids(memory.search(QUESTION, reranker=Reversing(sign)))[0]

    assert first_with(1) != first_with(-1)


def test_a_collection_of_another_model_is_not_searched_by_the_old_one(memory: Waylore, path: Path) -> None:
    class Another(Halves):
        name = "another"

    assert memory.search(QUESTION).missing == ()
    Waylore.reembed(path, embedder=Another(16, quiet=True))
    assert memory.search(QUESTION).missing != ()


# -- prewarmed, counted --------------------------------------------------------------------------------


def test_what_is_asked_for_most_is_prewarmed(memory: Waylore, store: Counting, path: Path) -> None:
    for question in (
        "What of Ada?",
        "What does Ada need?",
        "Where is Kiel?",
        "Is Ada there?",
        "And Kiel?",
        "Zeno?",
    ):
        memory.search(question)
    with Waylore.open(path, embedder=EMBEDDER) as other:
        other.add("Something new.")
    assert memory.prewarm(most=2) == 2
    store.searches.clear()
    assert [memory.search(name).entities[0].name for name in ("Ada", "Kiel")] == ["Ada", "Kiel"]
    assert store.searches["lexical"] == 0
    memory.search("Zeno")
    assert store.searches["lexical"] == 1


def test_what_is_named_is_prewarmed_and_not_counted(memory: Waylore, store: Counting) -> None:
    assert memory.prewarm("Byron", "Engine") == 2
    store.searches.clear()
    memory.search("Engine", count_use=False)
    assert store.searches["lexical"] == 0


def test_prewarming_says_how_many_answers_are_kept(store: Counting) -> None:
    with Waylore(store) as memory:
        kept = memory.prewarm("Byron", "Engine")
        store.searches.clear()
        for name in ("Byron", "Engine"):
            memory.search(name)
        assert kept == 2 - store.searches["lexical"]


def test_uses_of_facts_on_paths_are_counted(memory: Waylore, path: Path, time: Time) -> None:
    time.seconds = 1.0
    found = memory.search(QUESTION)
    memory.search(QUESTION)
    memory.search(QUESTION, count_use=False)
    memory.close()
    uses = Counter(fact.id for hit in found.hits if hit.path for fact in hit.path.facts)
    assert uses
    store = SqliteStore(path)
    facts = store.facts(list(uses))
    assert {id_: fact.access_count for id_, fact in facts.items()} == {id_: 2 * n for id_, n in uses.items()}
    assert {fact.last_accessed for fact in facts.values()} == {time.clock()}
    store.close()


# -- now and then --------------------------------------------------------------------------------------


def test_facts_count_if_they_are_valid_now_or_then(store: Counting, time: Time) -> None:
    begins, ends = NOW + timedelta(days=1), NOW + timedelta(days=2)
    claim = Claim("Mull", "hosts", "Regatta", valid_from=begins, valid_to=ends)
    recipe = replace(CHAIN, gate=Gate(min_confidence=0.0))
    with Waylore(store, EMBEDDER, clock=time.clock, cache=Cache(seconds=0.0)) as memory:
        memory.add_facts([claim])

        def told(as_of: datetime | None = None) -> bool:
            found = memory.search("What of Mull?", recipe=recipe, as_of=as_of)
            assert found.skipped == ""
            return "hosts" in {fact.predicate for fact in found.facts}

        assert [told(NOW), told(begins), told(ends), told()] == [False, True, False, False]
        time.seconds = 86_400.0
        assert told()
        time.seconds = 2 * 86_400.0
        assert not told()


# -- by which method -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "chosen"),
    [
        ("Which works does Ada cite?", "citations: it asks for citations"),
        ("What says arXiv 2106.01345?", "keyword: it names a paper by its number"),
        ("What does load_user() do?", "keyword: it names an identifier"),
        ("Ada versus Byron", "hybrid: it compares"),
        ("A summary of storms", "hybrid: it asks for an overview"),
        ("What does Ada need?", "chain: no rule speaks against the default"),
    ],
)
def test_the_method_is_chosen_by_the_question_and_the_answer_says_why(
    memory: Waylore, question: str, chosen: str
) -> None:
    found = memory.search(question, method="auto")
    assert (found.chosen, found.recipe) == (chosen, chosen.partition(":")[0])
    assert memory.search(question, method=found.recipe).chosen == ""


def test_a_method_that_there_is_not_is_refused_with_those_that_there_are(memory: Waylore) -> None:
    with pytest.raises(ConfigError, match="use auto, " + ", ".join(RECIPES)):
        memory.search(QUESTION, method="magic")


def test_a_recipe_goes_before_a_method(memory: Waylore) -> None:
    mine = replace(HYBRID, name="mine")
    found = memory.search(QUESTION, method="magic", recipe=mine)
    assert (found.recipe, found.chosen) == ("mine", "")
