"""Test `waylore tune`: questions made from facts, weights that help an owner, and weights that are not kept."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from surfaces.commands import run, run_json
from waylore import NewFact, Waylore
from waylore.errors import ConfigError
from waylore.evaluation.folders.questions import FolderQuestion, GoldPassage
from waylore.evaluation.made_questions import make_questions
from waylore.evaluation.tune import MIN_QUESTIONS, Tuning, store_weights, tune
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import CHAIN, HYBRID, apply_weights
from waylore.store.sqlite.store import SqliteStore

EMBEDDER = HashingEmbedder(quiet=True)
TOWNS = [
    f"{first}{last}" for first in ("Arn", "Bol", "Cor", "Dun", "Elm", "Far") for last in ("ford", "wick", "ham", "by")
]
LOGS = 7  # pages of a town that repeat the words of its question


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store in which ledgers answer the questions, although the logs of a town have their words."""
    path = tmp_path_factory.mktemp("tune") / "memory.waylore"
    with Waylore.open(str(path), embedder=EMBEDDER) as memory:
        for town in TOWNS:
            for log in range(LOGS):
                text = f"Log {log}: who paid for the boats of {town}, was asked in {town}."
                memory.add(
                    text, uri=f"logs/{town}-{log}.md", facts=[NewFact(f"{town}", "has the log", f"Log {log} of {town}")]
                )
            facts = [NewFact(f"{town}", "is served by", f"Bank of {town}")]
            memory.add(f"Ledger: Bank of {town} serves {town}.", uri=f"ledgers/{town}.md", facts=facts)
            memory.add(
                f"Bank of {town} belongs to House of {town}.",
                uri=f"owners/{town}.md",
                facts=[NewFact(f"Bank of {town}", "belongs to", f"House of {town}")],
            )
    return path


def list_questions(number: int = len(TOWNS)) -> list[FolderQuestion]:
    return [
        FolderQuestion(town, f"Who paid for the boats of {town}?", ((GoldPassage(f"ledgers/{town}.md"),),))
        for town in TOWNS[:number]
    ]


def test_questions_are_made_of_facts_in_a_row_and_are_always_the_same(file: Path) -> None:
    store = SqliteStore(file, "default")
    made = make_questions(store, 50)
    assert made == make_questions(store, 50)
    assert len({question.text for question in made}) == len(made) >= MIN_QUESTIONS
    for question in made:
        assert len(question.gold) in {2, 3}
        assert question.text.startswith("What ")
        assert any(town.lower() in question.text.lower() for town in TOWNS)
    store.close()


@pytest.fixture(scope="module")
def tuning(file: Path) -> Tuning:
    with closing(SqliteStore(file, "default")) as store:
        return tune(store, EMBEDDER, list_questions())


@pytest.mark.full
def test_weights_are_better_for_questions_of_an_owner(tuning: Tuning) -> None:
    assert tuning.is_better
    assert tuning.tuned > tuning.shipped
    assert tuning.difference.low > 0
    assert (tuning.labelled, tuning.made > MIN_QUESTIONS) == (len(TOWNS), True)


def test_made_questions_alone_change_nothing(file: Path) -> None:
    with closing(SqliteStore(file, "default")) as store:
        found = tune(store, EMBEDDER)
    assert (found.labelled, found.is_better) == (0, False)
    assert "does not carry over" in found.describe()


def test_too_few_questions_are_an_error(file: Path) -> None:
    with (
        closing(SqliteStore(file, "default")) as store,
        pytest.raises(ConfigError, match=f"5 questions .* {MIN_QUESTIONS} are needed"),
    ):
        tune(store, EMBEDDER, list_questions(5))


def test_stored_weights_rank_and_are_named_in_answers(file: Path, tuning: Tuning) -> None:
    with Waylore.open(str(file), embedder=EMBEDDER) as memory:
        question = "Who paid for the boats of Bolham?"
        before = memory.search(question, method="chain", top_k=3)
        assert before.route_reason == ""
        store = SqliteStore(file, "default")
        store_weights(store, tuning.weights)
        after = memory.search(question, method="chain", top_k=3)
        assert [hit.document.uri for hit in after.hits] != [hit.document.uri for hit in before.hits]
        assert "ledgers/Bolham.md" in [hit.document.uri for hit in after.hits]
        assert after.route_reason.startswith("with weights tuned to this collection (")
        assert memory.search(question).route_reason.startswith("chain: the default for documents, with weights tuned")
        assert memory.search(question, method="hybrid").route_reason == ""
        store_weights(store, ())
        again = memory.search(question, method="chain", top_k=3)
        assert [(hit.passage.id, hit.score) for hit in again.hits] == [
            (hit.passage.id, hit.score) for hit in before.hits
        ]
        store.close()


def test_recipes_without_judgement_take_no_weights() -> None:
    weights = json.dumps({"bias": 0.5, "odds": 2.0, "cosine": 1.0})
    assert apply_weights(HYBRID, weights) == (HYBRID, "")
    assert apply_weights(CHAIN, "") == (CHAIN, "")
    recipe, name = apply_weights(CHAIN, weights)
    assert recipe.chain.tuned == (("bias", 0.5), ("odds", 2.0), ("cosine", 1.0))
    assert apply_weights(CHAIN, weights.replace("0.5", "0.6"))[1] != name


def test_command_stores_weights_and_removes_them(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("WAYLORE_EMBEDDING_PROVIDER", "hashing")
    rows = [{"question": q.text, "gold": [{"path": q.gold[0][0].path}]} for q in list_questions()]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    found = run_json("tune", "--store", str(file), "--questions", str(tmp_path / "questions.jsonl"))
    assert found["is_stored"] is True
    assert found["labelled_questions"] == len(TOWNS)
    assert "tuned" in run("search", "Who paid for the boats of Bolham?", "--store", str(file))
    assert run_json("tune", "--reset", "--store", str(file)) == {"is_stored": False}
    assert "tuned" not in run("search", "Who paid for the boats of Bolham?", "--store", str(file))
