"""Reading conversations as turns, measuring recipes on them, and fitting weights, on two tiny sets."""

import gzip
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from waylore.evaluation.__main__ import main
from waylore.evaluation.conversations import fit, measure, mixed, table
from waylore.evaluation.conversations.datasets import ConversationQuestion, get_session, read_conversations
from waylore.evaluation.conversations.fit import LabelledTurns
from waylore.recipes import RECIPES
from waylore.types.knowledge import IndexedDocument

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


def list_histories(turn: IndexedDocument) -> list[str]:
    found = turn.document.metadata.get("history", [])
    assert isinstance(found, list)
    return found


def test_each_question_of_longmemeval_has_a_history_of_its_own(tmp_path: Path) -> None:
    rounds = [
        {"id": f"s{n}#r00", "title": "session 2023/05/01 (Mon) 10:00", "text": f"user: Word {n}.\nassistant: No."}
        for n in range(60)
    ]
    asked = [
        {"id": f"q{n}", "question": "Word?", "gold": [f"s{n}", f"s{n + 1}"], "gold_rounds": [f"s{n}#r00"]}
        | {"date": "2023/06/01 (Thu) 09:00", "abstention": False, "type": "multi-session"}
        for n in range(2)
    ]
    write_rows(tmp_path / "longmemeval-oracle" / "corpus_rounds.jsonl.gz", rounds)
    write_rows(tmp_path / "longmemeval-oracle" / "queries.jsonl.gz", asked)
    dataset = read_conversations(tmp_path / "longmemeval-oracle")
    histories = [
        {turn.document.session for turn in dataset.turns if question.id in list_histories(turn)}
        for question in dataset.questions
    ]
    assert [len(sessions) for sessions in histories] == [48, 48]
    assert {"s0", "s1"} < histories[0] != histories[1] > {"s1", "s2"}
    with measure.open_conversations(dataset, None) as store:
        run = measure.run_questions(
            store, None, dataset.questions, measure.choose_always(RECIPES["keyword"]), top_k=60, in_history=True
        )
    assert {get_session(turn) for turn in run.ranked["q0"]} == histories[0]


def test_table_has_recall_by_kind_of_question(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    options = ["--data", str(data), "--conversations", "--embedder", "hashing", "--json", str(figures)]
    assert main(options) == 0
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == "set method questions n R@1 R@5 95 % R@10 all@5 any@5".split()
    rows = json.loads(figures.read_text("utf-8"))["rows"]
    assert len(rows) == len(lines)
    sets = ("locomo, by turn", "longmemeval-oracle, by round", "longmemeval-oracle, by session")
    assert {(row["set"], row["method"]) for row in rows} == {
        (name, method) for name in (*sets, "longmemeval-oracle, 48 sessions") for method in ("chain", "auto")
    }


def test_rows_tell_average_recall_from_all_and_any() -> None:
    def ask(id_: str, kind: str) -> ConversationQuestion:
        return ConversationQuestion(id_, "?", frozenset(), frozenset(), "", datetime(2026, 1, 1, tzinfo=UTC), 0, kind)

    pairs = [
        (ask("1", "multi-hop"), list("abcdefgh"), frozenset("ah")),
        (ask("2", "adversarial"), list("abcdefgh"), frozenset("fg")),
        (ask("3", "multi-hop"), list("abcdefgh"), frozenset("b")),
    ]
    rows = {row.kind: row for row in table.list_rows("locomo", "auto", pairs)}
    assert list(rows) == ["all", "not adversarial", "adversarial", "multi-hop"]
    every, fair = rows["all"], rows["not adversarial"]
    assert (every.questions, every.recall.mean, every.all_gold, every.any_hit) == pytest.approx((3, 0.5, 1 / 3, 2 / 3))
    assert (fair.questions, fair.recall.mean, fair.all_gold, fair.any_hit) == (2, 0.75, 0.5, 1.0)
    assert (fair.first, fair.recall_of_ten) == (0.25, 1.0)
    assert every.recall.low < every.recall.mean < every.recall.high
    assert "multi-hop" in table.format_rows(list(rows.values())).splitlines()[-1]


def test_update_is_won_if_the_newer_session_is_first() -> None:
    times = {"old": datetime(2026, 1, 1, tzinfo=UTC), "new": datetime(2026, 2, 1, tzinfo=UTC)}
    gold = frozenset(times)

    def ask(kind: str) -> ConversationQuestion:
        return ConversationQuestion("1", "?", frozenset(), gold, "", datetime(2026, 3, 1, tzinfo=UTC), 0, kind)

    won = table.to_update(ask("knowledge-update"), ["x", "new", "old"], gold, times)
    lost = table.to_update(ask("knowledge-update"), ["old", "x", "new"], gold, times)
    assert won is not None
    assert lost is not None
    assert table.make_row("updates", "auto", "knowledge-update", [won, lost]).first == 0.5
    assert table.to_update(ask("multi-session"), ["new", "old"], gold, times) is None
    assert table.to_update(ask("knowledge-update"), ["new", "old"], gold, dict.fromkeys(gold, times["new"])) is None


def test_recipes_are_measured_on_turns_and_pages_together(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = [{"id": f"p{n}", "title": f"Page {n}", "text": f"The job of page {n} is old."} for n in range(6)]
    asked = [{"id": f"w{n}", "question": f"What is the job of page {n}?", "gold": [f"p{n}"]} for n in (1, 3)]
    write_rows(data / "wiki" / "corpus.jsonl.gz", pages)
    write_rows(data / "wiki" / "queries.jsonl.gz", asked)
    options = ["--data", str(data), "--pages", "wiki", "--embedder", "hashing"]
    mixed.main(options)
    lines = [line for line in capsys.readouterr().out.splitlines() if "R@5" in line]
    names = [line.partition(", by turn")[0] for line in lines]
    assert names[-2:] == ["locomo in the mixed set, mixed", "wiki in the mixed set, mixed"]
    assert all("R@5 100.0" in line and line.endswith(" 1 questions") for line in lines[-2:])


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
