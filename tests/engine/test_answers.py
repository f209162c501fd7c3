"""Test the cache of answers, the counting of uses, and the choice of a method.

The store counts its searches, which shows whether an answer came from the cache. The tests set the clock, and the timer
of the cache.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest
from cachetools import TTLCache

from retrieval.worlds import EMBEDDER, NOW, QUESTION, SAMPLE, Halves, index_world, list_ids
from waylore import Filter, NewFact, Waylore
from waylore.config import CacheConfig, GateConfig
from waylore.engine.uses import USE_SECONDS
from waylore.errors import ArgumentError, ModelUnavailable
from waylore.recipes import CHAIN, HYBRID, RECIPES
from waylore.store.sqlite.store import SqliteStore
from waylore.types.author import OWNER, Author
from waylore.types.knowledge import Vector
from waylore.types.search import NO_FILTER, Ranking

EVERYONE = Filter(labels=frozenset())
A, B = Author("key:a"), Author("key:b")


class Counting(SqliteStore):
    """A store that counts its searches."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.searches: Counter[str] = Counter()
        self.asked_for_turns = 0

    def dense(self, vector: Vector, **options: Any) -> Ranking:
        self.searches["dense"] += 1
        return super().dense(vector, **options)

    def lexical(self, query: str, **options: Any) -> Ranking:
        self.searches["lexical"] += 1
        return super().lexical(query, **options)

    def has_turns(self, *, where: Filter = NO_FILTER) -> bool:
        self.asked_for_turns += 1
        return super().has_turns(where=where)


class Time:
    """A clock and a timer that the test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timer(self) -> float:
        return self.seconds

    def clock(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)


class Reversing:
    """A reranker that reverses the order, or leaves it."""

    def __init__(self, sign: int) -> None:
        self.sign = sign

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [self.sign * place for place in range(len(texts))]


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr("waylore.engine.answers.TTLCache", partial(TTLCache, timer=time.timer))
    return time


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.waylore"


@pytest.fixture
def store(path: Path) -> Counting:
    store = Counting(path)
    store.write(index_world(SAMPLE), author=OWNER, model=EMBEDDER.name)
    return store


@pytest.fixture
def memory(store: Counting, time: Time) -> Iterator[Waylore]:
    with Waylore(store, EMBEDDER, clock=time.clock) as memory:
        yield memory


# -- cache ---------------------------------------------------------------------------------------------


def test_repeated_search_is_answered_from_the_cache(memory: Waylore, store: Counting) -> None:
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
        {"method": replace(CHAIN, gate=GateConfig(min_confidence=0.9))},
        {"method": replace(CHAIN, chain=replace(CHAIN.chain, common=1))},
    ],
    ids=str,
)
def test_different_search_is_not_answered_from_the_cache(
    memory: Waylore, store: Counting, other: dict[str, Any]
) -> None:
    memory.search(QUESTION)
    memory.search(**{"query": QUESTION, **other})
    assert store.searches["lexical"] == 2
    memory.search(QUESTION)
    memory.search(**{"query": QUESTION, **other})
    assert store.searches["lexical"] == 2


def test_cache_is_separate_for_each_caller(memory: Waylore) -> None:
    memory.add("The storm is a secret of the harbour.", labels=["spies"])
    spies = memory.search(QUESTION, where=Filter(labels=frozenset({"spies"})))
    assert "secret" in repr(spies.hits)
    assert "secret" in repr(memory.search(QUESTION).hits)
    assert "secret" not in repr(memory.search(QUESTION, where=EVERYONE).hits)


def test_write_by_another_connection_ends_the_cache(memory: Waylore, path: Path) -> None:
    before = memory.search("What of the new pier?")
    with Waylore.open(path, embedder=EMBEDDER) as other:
        pier = other.add("The new pier is open.")
        assert "new pier" in repr(memory.search("What of the new pier?").hits)
        other.forget(pier)
    assert memory.search("What of the new pier?").hits == before.hits


def test_write_by_another_process_ends_the_cache(memory: Waylore, path: Path) -> None:
    memory.search("What of the new pier?")
    program = (
        "import sys\nfrom retrieval.worlds import EMBEDDER\nfrom waylore import Waylore\n"
        "with Waylore.open(sys.argv[1], embedder=EMBEDDER) as memory: memory.add('The new pier is open.')"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", program, str(path)], env=environment, check=True, timeout=60)
    assert "new pier" in repr(memory.search("What of the new pier?").hits)


def test_incomplete_answer_is_not_cached(store: Counting) -> None:
    class Down(Halves):
        def embed_query(self, text: str) -> Vector:
            raise ModelUnavailable

    with Waylore(store, Down(16, quiet=True)) as memory:
        assert memory.search(QUESTION).missing
        assert memory.search(QUESTION).missing
        assert store.searches["lexical"] == 2


def test_cached_answer_expires(memory: Waylore, store: Counting, time: Time) -> None:
    memory.search(QUESTION)
    time.seconds = 59.9
    memory.search(QUESTION)
    assert store.searches["lexical"] == 1
    time.seconds = 120.0
    memory.search(QUESTION)
    assert store.searches["lexical"] == 2


def test_reading_a_cached_answer_does_not_extend_it(memory: Waylore, store: Counting, time: Time) -> None:
    for seconds in (0.0, 50.0, 100.0):
        time.seconds = seconds
        memory.search(QUESTION)
    assert store.searches["lexical"] == 2


@pytest.mark.parametrize("cache", [CacheConfig(seconds=0.0), CacheConfig(size=1)])
def test_cache_respects_its_limits(store: Counting, time: Time, cache: CacheConfig) -> None:
    with Waylore(store, EMBEDDER, clock=time.clock, cache=cache) as memory:
        answers = [memory.search(question) for question in ("storm", "harbour", "storm", "harbour")]
        assert store.searches["lexical"] == 4
        assert answers[0] == answers[2]


def test_cache_is_separate_for_each_reranker(memory: Waylore) -> None:
    def find_first(sign: int) -> str:
        return list_ids(memory.search(QUESTION, reranker=Reversing(sign)))[0]

    assert find_first(1) != find_first(-1)


def test_open_collection_refuses_a_changed_model(memory: Waylore, path: Path) -> None:
    class Another(Halves):
        name = "another"

    assert memory.search(QUESTION).missing == ()
    Waylore.reembed(path, embedder=Another(16, quiet=True))
    assert memory.search(QUESTION).missing != ()


# -- warm cache, uses ----------------------------------------------------------------------------------


def test_warm_cache_searches_the_most_used_entities(memory: Waylore, store: Counting, path: Path) -> None:
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
    assert memory.warm_cache(limit=2) == 2
    store.searches.clear()
    assert [memory.search(name).entities[0].name for name in ("Ada", "Kiel")] == ["Ada", "Kiel"]
    assert store.searches["lexical"] == 0
    memory.search("Zeno")
    assert store.searches["lexical"] == 1


def test_warm_cache_counts_no_uses(memory: Waylore, store: Counting) -> None:
    assert memory.warm_cache("Byron", "Engine") == 2
    store.searches.clear()
    memory.search("Engine", record_use=False)
    assert store.searches["lexical"] == 0


def test_warm_cache_returns_the_cached_answers(store: Counting) -> None:
    with Waylore(store) as memory:
        cached = memory.warm_cache("Byron", "Engine")
        store.searches.clear()
        for name in ("Byron", "Engine"):
            memory.search(name)
        assert cached == 2 - store.searches["lexical"]


def test_uses_of_facts_on_paths_are_counted(memory: Waylore, path: Path, time: Time) -> None:
    time.seconds = 1.0
    found = memory.search(QUESTION)
    memory.search(QUESTION, record_use=False)
    memory.close()
    used = {fact.id for hit in found.hits if hit.path for fact in hit.path.facts}
    assert used
    store = SqliteStore(path)
    facts = store.facts(list(used))
    assert {id_: fact.access_count for id_, fact in facts.items()} == dict.fromkeys(used, 1)
    assert {fact.last_accessed for fact in facts.values()} == {time.clock()}
    store.close()


def count_uses(path: Path) -> set[tuple[str, int]]:
    """Return the kinds of items that were used, with their counts."""
    with closing(apsw.Connection(str(path))) as db:
        return set(db.execute("SELECT kind, access_count FROM usage"))


def test_caller_uses_passages_and_facts_once_an_hour(memory: Waylore, path: Path, time: Time) -> None:
    for _ in range(5):
        for method in ("chain", "hybrid"):
            memory.as_author(A).search(QUESTION, method=method)
    time.seconds = USE_SECONDS - 1
    memory.as_author(A).search(QUESTION)
    memory.warm_cache("Ada")
    memory.close()
    assert count_uses(path) == {("passage", 1), ("fact", 1)}


def test_use_counts_again_after_an_hour_and_for_another_caller(memory: Waylore, path: Path, time: Time) -> None:
    memory.as_author(A).search(QUESTION)
    memory.as_author(B).search(QUESTION)
    time.seconds = USE_SECONDS + 1
    memory.as_author(A).search(QUESTION)
    memory.close()
    assert count_uses(path) == {("passage", 3), ("fact", 3)}


# -- validity ------------------------------------------------------------------------------------------


def test_search_uses_facts_that_are_valid_at_the_time(store: Counting, time: Time) -> None:
    begins, ends = NOW + timedelta(days=1), NOW + timedelta(days=2)
    fact = NewFact("Mull", "hosts", "Regatta", valid_from=begins, valid_to=ends)
    recipe = replace(CHAIN, gate=GateConfig(min_confidence=0.0))
    with Waylore(store, EMBEDDER, clock=time.clock, cache=CacheConfig(seconds=0.0)) as memory:
        memory.add_facts([fact])

        def is_found(as_of: datetime | None = None) -> bool:
            found = memory.search("What of Mull?", method=recipe, as_of=as_of)
            assert found.skip_reason == ""
            return "hosts" in {fact.predicate for fact in found.facts}

        assert [is_found(NOW), is_found(begins), is_found(ends), is_found()] == [False, True, False, False]
        time.seconds = 86_400.0
        assert is_found()
        time.seconds = 2 * 86_400.0
        assert not is_found()


# -- method --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "chosen"),
    [
        ("Which works does Ada cite?", "citations: it asks for citations"),
        ("arXiv 2106.01345", "keyword: it is the number of a paper"),
        ("load_user()", "keyword: it is an identifier"),
        ("Ada versus Byron", "hybrid: it compares"),
        ("A summary of storms", "hybrid: it asks for an overview"),
        ("What does Ada need?", "chain: the default for documents"),
    ],
)
def test_auto_is_the_default_and_reports_why_it_chose_a_recipe(memory: Waylore, question: str, chosen: str) -> None:
    found = memory.search(question)
    assert (found.route_reason, found.recipe) == (chosen, chosen.partition(":")[0])
    assert memory.search(question, method=found.recipe).route_reason == ""


def test_auto_reads_whether_there_are_turns_once_for_a_version_and_caller(memory: Waylore, store: Counting) -> None:
    for question in ("What does Ada need?", "What does Byron need?", "Ada versus Byron"):
        memory.search(question)
    assert store.asked_for_turns == 1
    for labels in (frozenset({"red"}), frozenset({"red"}), None):
        memory.search("What does Ada need?", where=Filter(labels=labels))
    assert store.asked_for_turns == 2
    memory.add("Ada needs a rope.")
    memory.search("What does Ada need?")
    assert store.asked_for_turns == 3
    memory.search("What does Ada need?", method="chain")
    assert store.asked_for_turns == 3


def test_unknown_method_is_refused_with_the_known_ones(memory: Waylore) -> None:
    with pytest.raises(ArgumentError, match="use auto, " + ", ".join(RECIPES)):
        memory.search(QUESTION, method="magic")


@pytest.mark.parametrize(
    ("method", "recipe"), [("graph", "chain"), ("Agentic", "chain"), ("VECTOR", "vector"), ("Graph_Only",) * 2]
)
def test_methods_have_aliases_and_ignore_case(memory: Waylore, method: str, recipe: str) -> None:
    assert memory.search(QUESTION, method=method).recipe == recipe.lower()


def test_method_may_be_a_recipe(memory: Waylore) -> None:
    mine = replace(HYBRID, name="mine")
    found = memory.search(QUESTION, method=mine)
    assert (found.recipe, found.route_reason) == ("mine", "")
