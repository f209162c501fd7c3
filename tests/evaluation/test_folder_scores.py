"""Our scores are those of the program that comes with the folders, for the same rankings and pages."""

import random
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import pytest

from requirements import find_folders
from waylore.evaluation.folders.ask import FolderAnswer
from waylore.evaluation.folders.labels import LabelledPage, StoredPage, Triple, read_pages, score_pages
from waylore.evaluation.folders.measure import Measurement, compare_methods, list_rows
from waylore.evaluation.folders.questions import QUESTIONS, FolderQuestion, list_folders, read_questions
from waylore.evaluation.folders.scoring import RankedHit

Rankings = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def score() -> ModuleType:
    spec = spec_from_file_location("score", find_folders() / "score.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def questions() -> list[FolderQuestion]:
    folders = list_folders(find_folders())
    return [question for folder in folders for question in read_questions(folder / QUESTIONS, folder.name)]


def make_hits(question: FolderQuestion, draw: random.Random) -> list[RankedHit]:
    """Return hits of which some have gold passages: too few words, other files, alternatives, rows of files."""
    hits = [RankedHit("other.md", "Some words of another file.")] * 8
    for places in question.gold:
        place = draw.choice(places)
        words = [word for word in place.quote.split() if draw.random() < draw.choice([0.5, 0.7, 1.0])]
        path = draw.choice([place.path, f"./{place.path}", f"{place.path}#row=2", "other.md"])
        hits.insert(draw.randrange(8), RankedHit(path, " ".join(words).upper()))
    return hits


def make_answers(questions: list[FolderQuestion], seed: int) -> dict[str, FolderAnswer]:
    draw = random.Random(seed)
    return {q.id: FolderAnswer(q.id, tuple(make_hits(q, draw))) for q in questions}


def to_rankings(answers: dict[str, FolderAnswer]) -> Rankings:
    return {id_: {"hits": [{"path": h.path, "text": h.text} for h in a.hits]} for id_, a in answers.items()}


@pytest.fixture(scope="module")
def measurement(questions: list[FolderQuestion]) -> Measurement:
    return Measurement("none", questions, {"hybrid": make_answers(questions, 1), "chain": make_answers(questions, 2)})


def test_rows_are_equal(score: ModuleType, measurement: Measurement) -> None:
    theirs = score.score(score.load(find_folders()), to_rankings(measurement.answers["chain"]))["rows"]
    ours = {(folder, type_, split): row for folder, type_, split, row in list_rows(measurement, "chain")}
    assert ours.keys() == theirs.keys()
    for key, row in ours.items():
        their = theirs[key]
        assert row.questions == their["n"]
        assert row.recall.mean == pytest.approx(their["recall"])
        assert (row.all_gold, row.first) == pytest.approx((their["all"], their["hit1"]))
        assert row.reciprocal_rank == pytest.approx(their["mrr"])
    assert 0.2 < ours["all", "all", "all"].recall.mean < 0.8
    low, high = (theirs["all", "all", "all"][end] for end in ("low", "high"))
    assert (ours["all", "all", "all"].recall.low, ours["all", "all", "all"].recall.high) == pytest.approx(
        (low, high), abs=0.01
    )


def test_sign_tests_are_equal(score: ModuleType, measurement: Measurement) -> None:
    asked = score.load(find_folders())
    chain, hybrid = (score.score(asked, to_rankings(measurement.answers[name]))["each"] for name in ("chain", "hybrid"))
    test = compare_methods(measurement, "all")["chain"]
    assert (test.better, test.worse, test.p) == pytest.approx(score.sign_test(chain, hybrid))
    assert test.better
    assert test.worse


def make_stored(page: LabelledPage, draw: random.Random) -> StoredPage:
    """Return some of the labels, some wrong names, and relations with their ends or predicates changed."""
    labels = [*page.names, *page.not_names, *page.either, *page.aliases, "Something Else"]
    spelled = [draw.choice([name.upper(), f"the {name}'s"]) for name in labels]
    names = [name for name in spelled if draw.random() < 0.6]
    changes: list[Callable[[Triple], Triple]] = [
        lambda t: t,
        lambda t: (t[2], t[1], t[0]),
        lambda t: (t[0], "mentions", t[2]),
        lambda t: (t[0], t[1], "elsewhere"),
    ]
    relations = [draw.choice(changes)(triple) for triple in (*page.relations, *page.also) if draw.random() < 0.7]
    return StoredPage(tuple(names), tuple(relations))


def test_pages_are_equal(score: ModuleType) -> None:
    folders = list_folders(find_folders())
    draw = random.Random(3)
    pages = [page for folder in folders for page in read_pages(find_folders(), folder.name)]
    stored = [(page, make_stored(page, draw)) for page in sorted(pages, key=lambda page: (page.folder, page.path))]
    extracted = [
        {
            "folder": page.folder,
            "path": page.path,
            "names": one.names,
            "relations": [dict(zip(("subject", "predicate", "object"), t, strict=True)) for t in one.relations],
        }
        for page, one in stored
    ]
    ours = score_pages(stored)
    theirs = score.score_pages(score.load_pages(find_folders()), extracted)
    assert ours.keys() == theirs.keys()
    for key, figures in ours.items():
        assert figures == pytest.approx(theirs[key])
    assert 0 < ours["all"]["full_recall"] < ours["all"]["ends_recall"] < 1
