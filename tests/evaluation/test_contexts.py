"""`waylore eval --context` prints how much of the answers is in contexts, for sets, conversations and folders."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from waylore.evaluation.__main__ import main
from waylore.evaluation.contexts import measure
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.providers.tokens import create_counter
from waylore.text import estimate_tokens

SMALL = "mills, 2 questions, 3 pages"
HASHING = ("--embedder", "hashing")
FILLER = "The weather of the coast changes often, and many boats stay in the harbour for days at a time. " * 3
OWNERS = {"Alder": "Ada Renwick", "Birch": "Bela Storm", "Cedar": "Cleo Dorn", "Dogwood": "Dana Frost"}
CORPUS = [
    {
        "id": f"mill-{name}",
        "title": f"{name} Mill",
        "text": f"{name} Mill stands at a river. {FILLER}{owner} bought it.",
    }
    for name, owner in OWNERS.items()
]
QUERIES: list[dict[str, Any]] = [
    {"id": f"q-{name}", "question": f"Who bought {name} Mill?", "answer": owner, "gold": [f"mill-{name}"]}
    for name, owner in OWNERS.items()
]
QUERIES.append({"id": "q-yes", "question": "Is Alder Mill at a river?", "answer": "Yes", "gold": ["mill-Alder"]})


def write_set(folder: Path, corpus: list[dict[str, Any]], queries: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True)
    for name, rows in (("corpus", corpus), ("queries", queries)):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in rows)
    return folder.parent


def run(tmp_path: Path, *arguments: str) -> list[dict[str, Any]]:
    """Run the command and return what it writes about each set."""
    file = tmp_path / "figures.json"
    assert main(["--context", *arguments, *HASHING, "--json", str(file)]) == 0
    sets: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["sets"]
    return sets


def list_means(figures: dict[str, Any], measure: str) -> dict[tuple[str, str], list[float]]:
    rows = [row for row in figures["rows"] if row["measure"] == measure]
    return {(row["layout"], row["method"]): [share["mean"] for share in row["shares"].values()] for row in rows}


def test_answer_is_in_a_context_if_its_sentence_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_set(tmp_path / "data" / "mills", CORPUS, QUERIES)
    [figures] = run(tmp_path, "--data", str(data), "--sets", "mills", "--budgets", "20", "2000")
    for measure_ in ("strict", "support"):
        means = list_means(figures, measure_)
        assert means.keys() == {
            (layout, m) for layout in ("passages", "graph", "narrative") for m in ("auto", "hybrid")
        }
        assert all(shares == [0.0, 1.0] for shares in means.values())
    assert {row["questions"] for row in figures["rows"]} == {4}  # not the one with yes
    assert all((row["method"] == "auto") == bool(row["against"]["hybrid"]) for row in figures["rows"])
    lengths = [score["tokens"] for each in figures["scores"] for score in each["questions"].values()]
    assert max(lengths) <= 2000
    output = capsys.readouterr().out
    assert "mills: 4 with strict, 4 with support; tokens by" in output
    assert "passages   auto    strict − hybrid   +0.00 [+0.00, +0.00]" in output


def test_options_select_contexts_questions_and_pages(tmp_path: Path) -> None:
    data = write_set(tmp_path / "data" / "mills", CORPUS, QUERIES)
    chosen = ("--layouts", "passages", "--methods", "hybrid", "--budgets", "500", "--sample", "2", "--passages", "3")
    by_text = ("--read-by", "triples", "rules", "--folder", str(tmp_path / "stores"))
    first = run(tmp_path, "--data", str(data), "--sets", "mills", *chosen, *by_text)
    assert [each["set"] for each in first] == [SMALL, f"{SMALL}, {RuleExtractor().name}"]
    for figures in first:
        assert [row["method"] for row in figures["rows"]] == ["hybrid", "hybrid"]
        assert [list(row["shares"]) for row in figures["rows"]] == [["500"], ["500"]]
        assert all(len(each["questions"]) == 2 for each in figures["scores"])
    assert run(tmp_path, "--data", str(data), "--sets", "mills", *chosen, *by_text) == first


def test_earlier_run_is_compared_question_by_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_set(tmp_path / "data" / "mills", CORPUS, QUERIES)
    chosen = ("--data", str(data), "--sets", "mills", "--layouts", "passages", "--methods", "auto")
    run(tmp_path, *chosen, "--budgets", "60", "2000")
    earlier = (tmp_path / "figures.json").rename(tmp_path / "short.json")
    content = json.loads(earlier.read_text("utf-8"))
    short = next(each["questions"] for each in content["sets"][0]["scores"] if each["budget"] == 2000)
    short["q-Alder"]["strict"] = 0.0
    del short["q-Birch"]
    earlier.write_text(json.dumps(content))
    capsys.readouterr()
    [figures] = run(tmp_path, *chosen, "--budgets", "2000", "4000", "--beside", str(earlier))
    strict, support = (row["against"]["short"] for row in figures["rows"])
    assert strict.keys() == support.keys() == {"2000"}  # the other budget was not measured then
    assert strict["2000"]["mean"] == pytest.approx(1 / 3)
    assert support["2000"]["mean"] == 0.0
    assert "passages  auto    strict − short   +0.33 [+0.00, +1.00]" in capsys.readouterr().out
    earlier.write_text('{"rows": []}')
    assert main(["--context", *chosen, *HASHING, "--beside", str(earlier)]) == 1
    assert "has no contexts" in capsys.readouterr().err


def test_conversations_are_measured_by_turn_in_the_scope_of_their_user(tmp_path: Path) -> None:
    said = {"title": "", "session": "1", "date": "1:56 pm on 8 May, 2023", "speaker": "Mara"}
    turns = {"u/1": "I moved to Leeds.", "u/2": "The rain stops.", "v/1": "I moved to York."}
    corpus = [{"id": id_, "text": f"Mara: {t}", "scope": id_[0], **said} for id_, t in turns.items()]
    asked = {"question": "Where did Mara move to?", "type": "single-hop"}
    queries = [
        {"id": "q1", "answer": "Leeds", "gold": ["u/1"], "scope": "u", **asked},
        {"id": "q2", "answer": "York", "gold": ["u/1"], "scope": "u", **asked},  # said by another user
        {"id": "q3", "answer": "York", "gold": ["v/1"], "scope": "v", **asked, "type": "adversarial"},
    ]
    data = write_set(tmp_path / "data" / "locomo", corpus, queries)
    [figures] = run(tmp_path, "--data", str(data), "--sets", "locomo", "--budgets", "500")
    assert set(map(tuple, list_means(figures, "strict").values())) == {(0.5,)}
    assert set(map(tuple, list_means(figures, "support").values())) == {(1.0,)}
    assert [row["questions"] for row in figures["rows"][:3]] == [2, 3, 2]


def test_folders_are_measured_together_by_their_quotes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, quote in (("bakery", "buys rye flour"), ("harbour", "buys oat flour")):
        files = tmp_path / "folders" / name / "files"
        files.mkdir(parents=True)
        (files / "page.md").write_text(f"# The {name}\n\nThe {name} buys rye flour from two mills.\n")
        gold = [{"path": "page.md", "quote": quote}]
        rows = [
            {"id": "1", "split": "dev", "question": f"What does the {name} buy?", "gold": gold},
            {"id": "2", "split": "test", "question": "Who?", "gold": gold},
            {"id": "3", "split": "dev", "question": "Who is the mayor?", "gold": []},
        ]
        (files.parent / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    [figures] = run(tmp_path, "--folders", str(tmp_path / "folders"), "--split", "dev", "--budgets", "500")
    assert figures["set"] == "bakery, harbour, dev"
    assert set(map(tuple, list_means(figures, "support").values())) == {(0.5,)}
    assert list_means(figures, "strict") == {}
    assert figures["scores"][0]["questions"].keys() == {"bakery/1", "harbour/1"}
    assert "bakery, harbour, dev: 2 with support" in capsys.readouterr().out


def test_tokens_are_estimated_without_a_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waylore.evaluation.contexts.measure.create_counter", lambda: create_counter("no such name"))
    count, name = measure.choose_counter()
    assert (count("A few words."), name) == (estimate_tokens("A few words."), "the estimate")


@pytest.mark.parametrize(
    "arguments",
    [
        ("docs",),
        ("--folders", "x", "--sets"),
        ("--folders", "x", "--passages", "5"),
        ("--data", "x"),
        ("--data", "x", "--sets", "mills", "--budgets", "0"),
    ],
)
def test_options_that_do_not_fit_are_named(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--context", *arguments]) == 2
    assert "error: " in capsys.readouterr().err


def test_sample_that_proves_nothing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_set(tmp_path / "data" / "mills", CORPUS, [QUERIES[-1], *QUERIES[:-1]])
    assert main(["--context", "--data", str(data), "--sets", "mills", "--sample", "1", *HASHING]) == 1
    assert "no question of mills has an answer" in capsys.readouterr().err


def test_set_without_answers_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_set(tmp_path / "data" / "mills", CORPUS, [{"id": "q", "question": "Who?", "gold": ["mill-Alder"]}])
    assert main(["--context", "--data", str(data), "--sets", "mills", *HASHING]) == 1
    assert "has no answers" in capsys.readouterr().err
