"""benchmarks/answers: what is asked with which context, that no question is asked twice, and how answers score."""

import gzip
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.answers.__main__ import main
from benchmarks.answers.ask import INSTRUCTIONS, MAX_ANSWER_TOKENS
from benchmarks.answers.questions import CONTEXTS, AskedQuestion, interleave, read_set_labels
from benchmarks.answers.scoring import AnswerScores, compute_f1, normalise_answer, score_answer
from hypothesis import given
from hypothesis import strategies as st

from unit.providers.loopback import Answer, Handler, Script, answer_and_charge, fail_with, make_completion, serve

pytestmark = pytest.mark.slow

OWNERS = {"Alder": "Ada Renwick", "Birch": "Bela Storm"}
QUOTE = "The bakery buys rye flour from two mills."
WORDS = st.text("abc ", max_size=20)


def write_set(folder: Path) -> None:
    folder.mkdir(parents=True)
    pages = [
        {"id": f"mill-{n}", "title": f"{n} Mill", "text": f"{owner} bought {n} Mill."} for n, owner in OWNERS.items()
    ]
    asked = [
        {"id": n, "question": f"Who bought {n} Mill?", "answer": owner, "gold": [f"mill-{n}"]}
        for n, owner in OWNERS.items()
    ]
    for name, rows in (("corpus", pages), ("queries", asked)):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in rows)


def write_folder(folder: Path) -> None:
    (folder / "files").mkdir(parents=True)
    sections = [f"## Part {n}\n\n" + f"Boats of kind {n} stay in the harbour for days. " * 40 for n in range(4)]
    (folder / "files" / "page.md").write_text("\n\n".join(["# Notes", *sections, f"## Bread\n\n{QUOTE}"]))
    gold = [{"path": "page.md", "quote": QUOTE}]
    row = {"id": "1", "split": "test", "question": "What does the bakery buy?", "answer": "Rye flour", "gold": gold}
    dev = {**row, "id": "2", "split": "dev", "question": "Which flour?"}
    (folder / "questions.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(dev)}\n")


@pytest.fixture
def server() -> Iterator[Script]:
    """Serve a model that tells the first buyer in the prompt, and guesses without one."""
    with serve() as script:
        script.faults.extend([answer_by_context] * 100)
        yield script


def answer_by_context(handler: Handler, _: Answer) -> None:
    prompt = handler.script.requests[-1]["messages"][1]["content"]
    found = re.search(r"^(\w+ \w+) bought", prompt, re.MULTILINE)
    answer_and_charge(handler, make_completion(f"{found[1]}.\nAs it says." if found else "A miller"))


def run(tmp_path: Path, server: Script, *arguments: str) -> None:
    if not (tmp_path / "sets").exists():
        write_set(tmp_path / "sets" / "mills")
    data = ["--data", str(tmp_path / "sets"), "--sets", "mills", "--embedder", "hashing"]
    model = ["--base-url", server.url, "--llm", "small", "--cache", str(tmp_path / "cache")]
    main([*data, *model, *arguments])


def list_prompts(server: Script) -> list[str]:
    return [request["messages"][1]["content"] for request in server.requests]


def read_table(output: str) -> dict[tuple[str, str], list[str]]:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines() if line.startswith("|")]
    return {(row[0], row[1]): row[2:] for row in rows[2:]}


# -- asking --------------------------------------------------------------------------------------------


def test_questions_are_asked_with_each_context(
    tmp_path: Path, server: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, server)
    body = server.requests[0]
    assert body["messages"][0] == {"role": "system", "content": INSTRUCTIONS}
    assert (body["temperature"], body["max_tokens"], body["model"]) == (0, MAX_ANSWER_TOKENS, "small")
    assert body["response_format"] == {"type": "text"}
    prompts = list_prompts(server)
    for name, owner in OWNERS.items():
        asked = f"Question: Who bought {name} Mill?\nAnswer:"
        none, *found, gold = [prompt for prompt in prompts if prompt.endswith(asked)]
        assert none == asked
        assert all("Alder Mill." in prompt and "Birch Mill." in prompt for prompt in found)
        assert gold.startswith(f"[1]\n{owner} bought {name} Mill.")
        assert not any("recalled" in prompt for prompt in prompts)
    table = read_table(capsys.readouterr().out)
    assert list(table) == [("mills", each) for each in (*CONTEXTS, "default − hybrid")]
    assert table["mills", "gold"] == ["2", *["1.00 [1.00, 1.00]"] * 3]
    assert table["mills", "none"] == ["2", *["0.00 [0.00, 0.00]"] * 3]
    assert table["mills", "default − hybrid"][0] == "2"


def test_second_run_asks_nothing_although_its_stores_are_new(
    tmp_path: Path, server: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, server)
    asked, first = len(server.requests), read_table(capsys.readouterr().out)
    assert asked == len(set(list_prompts(server)))
    run(tmp_path, server)
    assert len(server.requests) == asked
    assert read_table(capsys.readouterr().out) == first


def test_run_continues_where_it_stopped(tmp_path: Path, server: Script, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, server, "--table")
    assert "no question has been answered" in capsys.readouterr().out
    assert server.requests == []
    server.faults.insert(4, fail_with(401, "no credit"))
    with pytest.raises(SystemExit, match="no credit"):
        run(tmp_path, server)
    stopped = list_prompts(server)
    run(tmp_path, server, "--table")
    assert read_table(capsys.readouterr().out)["mills", "gold"][0] == "1"
    run(tmp_path, server)
    prompts = list_prompts(server)
    assert Counter(prompts) == Counter({*prompts}) + Counter([stopped[-1]])  # only the refused one is asked again
    assert read_table(capsys.readouterr().out)["mills", "gold"][0] == "2"


def test_interrupted_run_prints_the_table_so_far(
    tmp_path: Path, server: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    server.faults.insert(5, interrupt)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run(tmp_path, server)
    finally:
        signal.signal(signal.SIGINT, handler)
    output = capsys.readouterr().out
    assert "interrupted" in output
    assert read_table(output)["mills", "gold"][0] == "1"


def interrupt(handler: Handler, _: Answer) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    handler.close_connection = True


@pytest.mark.parametrize("arguments", [(), ("--weights", "x", "--base-url", "y"), ("--base-url", "http://x")])
def test_model_is_served_or_named(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--data", "x", *arguments])
    assert "--base-url" in capsys.readouterr().err


def test_folders_are_one_set_whose_gold_is_the_quoted_passage(
    tmp_path: Path, server: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    write_folder(tmp_path / "folders" / "notes")
    run(tmp_path, server, "--folders", str(tmp_path / "folders"))
    table = read_table(capsys.readouterr().out)
    assert table["folders", "gold"][0] == "1"  # not the question of the other split
    [*_, gold] = [prompt for prompt in list_prompts(server) if "What does the bakery buy?" in prompt]
    assert QUOTE in gold
    assert "Boats of kind" not in gold


def test_adversarial_question_has_no_right_answer(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "1", "answer": 2022, "answer_aliases": ["the year 2022"]},
        {"id": "2", "answer": "York", "type": "adversarial"},
    ]
    with gzip.open(tmp_path / "queries.jsonl.gz", "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)
    assert read_set_labels(tmp_path) == {"1": ("2022", "the year 2022")}


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_sets_take_turns(sizes: list[int]) -> None:
    asked = [AskedQuestion(str(of), f"{of}/{n}", (), {}) for of, size in enumerate(sizes) for n in range(size)]
    ordered = interleave(asked)
    assert sorted(question.text for question in ordered) == sorted(question.text for question in asked)
    for end in range(len(ordered) + 1):
        counts = Counter(question.set for question in ordered[:end])
        unfinished = [counts[str(of)] for of, size in enumerate(sizes) if counts[str(of)] < size]
        assert not unfinished or max(counts.values(), default=0) - min(unfinished) <= 1


# -- scores --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "right", "scores"),
    [
        ("The U.S.", ["US"], (1.0, 1.0, 1.0)),
        ("In June 1982", ["June 1982"], (0.0, 0.8, 1.0)),
        ("1982", ["June 1982"], (0.0, pytest.approx(2 / 3), 0.0)),
        ("New York", ["York", "New York"], (1.0, 1.0, 1.0)),
        ("yes it is", ["yes"], (0.0, 0.0, 1.0)),
        ("Yes.", ["yes"], (1.0, 1.0, 1.0)),
        ("six weeks of waiting", ["Six weeks; an error"], (0.0, pytest.approx(4 / 7), 0.5)),
        ("the mill", ["the mill wheel"], (0.0, pytest.approx(2 / 3), 0.0)),  # the question has "mill"
        ("", ["Paul"], (0.0, 0.0, 0.0)),
    ],
)
def test_answers_are_compared_without_case_articles_and_punctuation(
    answer: str, right: list[str], scores: tuple[float, float, float]
) -> None:
    assert score_answer("What of the mill?", answer, right) == AnswerScores(*scores)


@given(one=WORDS, other=WORDS)
def test_scores_are_shares_and_equal_answers_score_best(one: str, other: str) -> None:
    scores = score_answer("Who?", one, [other])
    assert all(0.0 <= score <= 1.0 for score in (scores.exact, scores.f1, scores.phrases))
    assert compute_f1(one, other) == compute_f1(other, one)
    assert (scores.exact == 1.0) == (normalise_answer(one) == normalise_answer(other))
    if normalise_answer(one):
        assert score_answer("Who?", one, [other, one]) == AnswerScores(1.0, 1.0, 1.0)
