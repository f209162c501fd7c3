"""Fitting weights: the examples of folders, the table of long pages, and what is held out."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from retrieval.worlds import EMBEDDER, DrawnDocument, fill_store, index_world
from waylore.evaluation.fit import (
    Example,
    choose_penalty,
    compute_held_out_losses,
    fit,
    fit_long_pages,
    index_training_folders,
    make_folder_examples,
)
from waylore.evaluation.folders.index import index_folder, open_cached, open_memory
from waylore.evaluation.folders.known_items import TYPE as KNOWN_ITEM
from waylore.evaluation.folders.questions import FolderQuestion, GoldPassage
from waylore.evaluation.index import add_embedder_options, load_embedder
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


def test_question_that_names_nothing_gives_no_example() -> None:
    """The gate is closed for it, so `chain` does not rank its candidates."""
    unnamed = FolderQuestion("q", "What is seen?", ((GoldPassage("0", "Text 0 of the harbour"),),))
    with fill_store(index_world(TOLD), SqliteStore) as store:
        assert not list(make_folder_examples(store, EMBEDDER, [unnamed], CHAIN))


def test_made_questions_count_less(examples: list[Example]) -> None:
    made = FolderQuestion("q", "What did Ada see?", ((GoldPassage("0", "Text 0 of the harbour"),),), type=KNOWN_ITEM)
    with fill_store(index_world(TOLD), SqliteStore) as store:
        [example] = make_folder_examples(store, EMBEDDER, [made], CHAIN)
    assert example.weight < examples[0].weight


def test_fitted_weights_have_every_feature(examples: list[Example]) -> None:
    fitted = fit(examples, 0.1)
    assert [name for name, _ in fitted["first"]] == ["bias", *FIRST_FEATURES]
    assert [name for name, _ in fitted["second"]] == ["bias", *SECOND_FEATURES]


@pytest.mark.slow
def test_table_of_long_pages_corrects_the_second_one(examples: list[Example]) -> None:
    """With a strong penalty the order is that of the second table; with a weak one the loss is lower."""
    tables = fit(examples, 0.1)
    opposite = {**tables, "second": tuple((name, -weight) for name, weight in tables["second"])}
    corrected = dict(fit_long_pages(examples, 1.0, opposite)["second"])
    assert list(corrected) == ["bias", *SECOND_FEATURES]
    kept = fit_long_pages(examples, 1e-9, tables)["second"]
    ratios = [new / dict(tables["second"])[name] for name, new in kept if name != "bias" and abs(new) > 1e-6]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=0.1)


@pytest.mark.slow
def test_whole_group_is_held_out(examples: list[Example]) -> None:
    """Questions of a group with the same labels as another group lose if these are swapped in the other group only."""
    groups = [replace(e, group="ab"[n % 2]) for n, e in enumerate(examples)]
    swapped = [replace(e, is_gold=~e.is_gold) if e.group == "b" else e for e in groups]
    assert compute_held_out_losses(swapped, 1.0).mean() > compute_held_out_losses(groups, 1.0).mean()
    assert choose_penalty(groups) > 0


def test_stores_of_folders_are_reused(tmp_path: Path) -> None:
    """What is fitted and what is measured on a folder read one store of it."""
    files = tmp_path / "folders" / "notes" / "files"
    files.mkdir(parents=True)
    (files / "harbour.md").write_text("# Harbour\n\nAda keeps the harbour.\n", "utf-8")
    gold = {"path": "harbour.md", "quote": "Ada keeps the harbour."}
    question = {"id": "q", "split": "dev", "type": "lookup", "question": "Who keeps the harbour?", "gold": [gold]}
    (files.parent / "questions.jsonl").write_text(json.dumps(question), "utf-8")
    parser = argparse.ArgumentParser()
    parser.add_argument("--folders", type=Path)
    add_embedder_options(parser)
    stores = tmp_path / "stores"
    options = parser.parse_args(
        ["--folders", str(tmp_path / "folders"), "--embedder", "hashing", "--folder", str(stores)]
    )
    assert len(list(index_training_folders(options))) == 1
    with open_cached(load_embedder("hashing", None), None) as model, open_memory(files, model, stores, None) as memory:
        assert index_folder(memory, files, model).unchanged == 1
