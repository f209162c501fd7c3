"""Uses move the scores of `activation` only: any other recipe gives the same answer however often it was asked."""

from dataclasses import replace

import pytest
from hypothesis import strategies as st

from retrieval.worlds import EMBEDDER, NOW, QUESTION, SAMPLE, Case, cases, fill_store, index_world, promise
from waylore.config import CacheConfig, GateConfig
from waylore.engine.answers import Answers
from waylore.recipes import ACTIVATION, RECIPES, Recipe
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.types.search import Query, SearchResult

WITHOUT_USES = tuple(name for name in RECIPES if name != ACTIVATION.name)
OPEN = GateConfig(min_confidence=0.0, min_graph_score=0.0)
OTHERS = ("What does Byron cite?", "Where is the Engine in a storm?")


def list_scores(result: SearchResult) -> list[tuple[object, ...]]:
    """Return the hits with their scores and explanations, and the order of the facts."""
    hits = [(hit.passage.id, hit.score, hit.placements, str(hit.path)) for hit in result.hits]
    return [*hits, *((fact.id,) for fact in result.facts), (result.confidence, result.skip_reason)]


def use_everything(store: Store, times: int) -> None:
    """Count uses of every passage and fact, of every second fact more often."""
    known = list(store.export())
    facts = [fact.id for each in known for fact in each.facts]
    passages = [passage.id for each in known for passage in each.passages]
    store.count_uses(passages=passages * times, facts=facts + facts[::2] * times, at=NOW)


def ask(store: Store, recipe: Recipe, *questions: str, records: bool, caller: str) -> SearchResult:
    """Answer questions as the engine does, with a fixed clock and no cache; return the last answer."""
    answers = Answers(store, EMBEDDER, CacheConfig(size=0), lambda: NOW)
    for question in questions:
        found = answers.search(Query(question), lambda _: (recipe, ""), None)
        if records:
            answers.record_use(found, caller)
    answers.close()  # the uses are counted now
    return found


@promise(60, cases(WITHOUT_USES), st.integers(1, 50))
def test_uses_leave_scores_as_they_are(case: Case, times: int) -> None:
    with case.store() as store:
        before = list_scores(case.ask(store))
        use_everything(store, times)
        assert list_scores(case.ask(store)) == before


@pytest.mark.parametrize("name", WITHOUT_USES)
def test_same_question_has_same_scores_between_other_searches(name: str) -> None:
    recipe = replace(RECIPES[name], gate=OPEN)
    with fill_store(index_world(SAMPLE), SqliteStore) as store:
        asked = [ask(store, recipe, *OTHERS, QUESTION, records=True, caller=f"key:{n}") for n in range(4)]
    assert asked[0].hits
    assert all(list_scores(found) == list_scores(asked[0]) for found in asked)


def test_activation_has_same_scores_if_uses_are_not_recorded() -> None:
    recipe = replace(ACTIVATION, gate=OPEN)
    with fill_store(index_world(SAMPLE), SqliteStore) as store:
        asked = [ask(store, recipe, *OTHERS, QUESTION, records=False, caller="") for _ in range(4)]
        use_everything(store, 9)
        used = ask(store, recipe, QUESTION, records=False, caller="")
    assert all(list_scores(found) == list_scores(asked[0]) for found in asked)
    assert list_scores(used) != list_scores(asked[0])
