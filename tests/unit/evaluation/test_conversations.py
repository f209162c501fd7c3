"""Reading conversations as turns, measuring recipes on them, and fitting weights, on two tiny sets."""

import gzip
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from waylore.evaluation.conversations import fit, measure
from waylore.evaluation.conversations.datasets import read_conversations
from waylore.evaluation.conversations.fit import LabelledTurns

TALK = ("Did you get the job at the harbour?", "Yes, it begins on the first of March.", "My cat eats fish.", "Really?")
ROUNDS = ("I need a bicycle.", "Where is the harbour?")


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    date = "1:56 pm on 8 May, 2023"
    turns = [
        {"id": f"{scope}/{n}", "text": f"{'AB'[n % 2]}nn: {text}", "speaker": f"{'AB'[n % 2]}nn", "session": 1}
        | {"scope": scope, "date": date}
        for scope in ("one", "two")
        for n, text in enumerate(TALK)
    ]
    asked = [
        {"id": f"{scope}/q", "question": "When does the job begin?", "gold": [f"{scope}/1"], "scope": scope}
        for scope in ("one", "two")
    ]
    write_rows(tmp_path / "locomo" / "corpus.jsonl.gz", turns)
    write_rows(tmp_path / "locomo" / "queries.jsonl.gz", [*asked, {**asked[0], "id": "none", "gold": []}])
    rounds = [
        {"id": f"s{n}#r00", "title": f"session 2023/05/0{n + 1} (Mon) 10:00", "text": f"user: {text}\nassistant: No."}
        for n, text in enumerate(ROUNDS)
    ]
    questions = [
        {"id": f"q{n}", "question": text, "gold": [f"s{n}", "unknown"], "gold_rounds": [f"s{n}#r00"]}
        | {"date": "2023/06/01 (Thu) 09:00", "abstention": False}
        for n, text in enumerate(ROUNDS)
    ]
    write_rows(tmp_path / "longmemeval-oracle" / "corpus_rounds.jsonl.gz", rounds)
    write_rows(tmp_path / "longmemeval-oracle" / "queries.jsonl.gz", [*questions, {**questions[0], "abstention": True}])
    return tmp_path


def test_turns_of_locomo_have_speaker_session_and_time(data: Path) -> None:
    dataset = read_conversations(data / "locomo")
    document, said = dataset.turns[5].document, dataset.turns[5].passages[0]
    assert (document.uri, document.user, document.session) == ("two/1", "two", "1")
    assert (said.text, said.speaker, said.position) == (TALK[1], "Bnn", 5)
    assert said.at == document.at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert [(q.id, q.user, q.half, q.turns) for q in dataset.questions] == [
        ("one/q", "one", 0, frozenset({"one/1"})),
        ("two/q", "two", 1, frozenset({"two/1"})),
    ]


def test_rounds_of_longmemeval_are_turns_of_user(data: Path) -> None:
    dataset = read_conversations(data / "longmemeval-oracle")
    assert [turn.passages[0].text for turn in dataset.turns] == list(ROUNDS)
    assert [turn.document.session for turn in dataset.turns] == ["s0", "s1"]
    assert [(*q.sessions, *q.turns, q.half) for q in dataset.questions] == [("s0", "s0#r00", 0), ("s1", "s1#r00", 1)]
    assert len(read_conversations(data / "longmemeval-oracle", every=2).questions) == 1


def test_recall_is_printed_by_turn_and_session(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure.main(["--data", str(data), "--embedder", "hashing", "--recipes", "conversation"])
    lines = capsys.readouterr().out.splitlines()
    assert [line[:46].rstrip() for line in lines if "R@" in line] == [
        "locomo, conversation, by turn",
        "longmemeval-oracle, conversation, by turn",
        "longmemeval-oracle, conversation, by session",
    ]
    assert all("R@5 100.0" in line for line in lines if "R@" in line)


def test_sets_can_be_measured_without_vectors(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure.main(["--data", str(data), "--words", "--sets", "locomo"])
    assert "locomo, hybrid, by turn" in capsys.readouterr().out


def test_fitted_tables_are_written(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit.main(["--data", str(data), "--embedder", "hashing", "--write", str(tmp_path / "weights.json")])
    tables = json.loads((tmp_path / "weights.json").read_text("utf-8"))
    assert tables.keys() == {"vectors", "words"}
    assert set(tables["vectors"]) - set(tables["words"]) == {"dense", "mean"}
    assert "locomo, words, crossed, by turn" in capsys.readouterr().out


def test_fit_finds_what_gold_has() -> None:
    random = np.random.default_rng(0)
    examples = []
    for _ in range(40):
        features = random.normal(size=(20, 3))
        is_gold = np.zeros(20, np.bool_)
        is_gold[np.argmax(features[:, 0] - 2 * features[:, 1])] = True
        examples.append(LabelledTurns(features, is_gold, 0))
    first, second, unused = fit.fit(examples)
    assert second < -first < 0
    assert abs(unused) < first / 3


def test_small_set_counts_as_much_as_large_one() -> None:
    def make(size: int, sign: int) -> list[LabelledTurns]:
        features = np.array([[sign], [0], [0]], np.float64)
        return [LabelledTurns(features, np.array([True, False, False]), half) for half in (0, 1) for _ in range(size)]

    one, other = fit.fit_halves([make(20, 1), make(2, -1)])
    assert one == pytest.approx(other)
    assert abs(one[0]) < 0.1
