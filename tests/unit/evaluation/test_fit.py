"""Fitting weights: the examples of folders, the weight of each kind of text, and what is held out."""

import pytest

from retrieval.worlds import EMBEDDER, DrawnDocument, fill_store, index_world
from waylore.evaluation.fit import (
    Example,
    choose_penalty,
    compute_held_out_losses,
    fit,
    make_folder_examples,
    weigh_equally,
)
from waylore.evaluation.folders.questions import FolderQuestion, GoldPassage
from waylore.recipes import CHAIN
from waylore.retrieval.graph.features import FIRST_FEATURES, SECOND_FEATURES
from waylore.store.sqlite.store import SqliteStore
from waylore.types.knowledge import NewFact

TOLD = [DrawnDocument(f"Text {n} of the harbour.", facts=(NewFact("Ada", "saw", f"Boat {n}"),)) for n in range(12)]


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    questions = [
        FolderQuestion(f"q{n}", f"What did Ada see in text {n}?", ((GoldPassage(str(n), f"Text {n} of the harbour"),),))
        for n in range(12)
    ]
    unanswered = FolderQuestion("q", "Who is Byron?", ())
    with fill_store(index_world(TOLD), SqliteStore) as store:
        return list(make_folder_examples(store, EMBEDDER, [*questions, unanswered], CHAIN))


def test_examples_mark_the_gold_passage_of_each_question(examples: list[Example]) -> None:
    """A question without an answer gives no example."""
    assert len(examples) == len(TOLD)
    assert all(example.is_gold.sum() == 1 for example in examples)
    assert {len(example.columns["cosine"]) for example in examples} == {len(examples[0].is_gold)}


def test_kinds_of_text_have_the_same_weight(examples: list[Example]) -> None:
    few, many = examples[:3], examples[3:]
    weighed = weigh_equally(few, many, [])
    assert sum(e.weight for e in weighed[:3]) == pytest.approx(sum(e.weight for e in weighed[3:]))
    assert sum(e.weight for e in weighed) == pytest.approx(len(examples))


def test_fitted_weights_have_every_feature(examples: list[Example]) -> None:
    fitted = fit(examples, 0.1)
    assert [name for name, _ in fitted["first"]] == ["bias", *FIRST_FEATURES]
    assert [name for name, _ in fitted["second"]] == ["bias", *SECOND_FEATURES]


def test_whole_group_is_held_out(examples: list[Example]) -> None:
    """Questions of a group with the same labels as another group lose if these are swapped in the other group only."""
    groups = [Example(e.columns, e.bridges, e.is_gold, group="ab"[n % 2]) for n, e in enumerate(examples)]
    swapped = [Example(e.columns, e.bridges, ~e.is_gold, e.group) if e.group == "b" else e for e in groups]
    assert compute_held_out_losses(swapped, 1.0).mean() > compute_held_out_losses(groups, 1.0).mean()
    assert choose_penalty(groups) > 0
