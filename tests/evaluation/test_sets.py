"""Test the measure of sets on a small folder: which questions its structure gives, and how answers are counted."""

import json
from pathlib import Path

import pytest

from waylore.evaluation.__main__ import main
from waylore.evaluation.relations.measure import MeasuredSet, score_answers
from waylore.evaluation.relations.questions import SetQuestion, choose_split, read_by_hand
from waylore.evaluation.relations.structure import make_questions

FILES = {
    "data/repos.yml": """\
- repo_name: quarry
  team: "#platform"
  type: Services
- repo_name: ledger
  team: "#platform"
  type: Libraries
- repo_name: mill
  team: "#data"
  type: Services
""",
    "groups/sigs.yaml": """\
sigs:
  - name: Storage
    leadership:
      chairs:
        - name: Ann Baker
          company: Acme
        - name: Ben Carter
          company: Northwind
    contact:
      slack: sig-storage
      liaison:
        name: Cleo Dorn
        github: cleo
    subprojects:
      - name: volumes
        owners: [https://example.org/OWNERS]
  - name: Network
    leadership:
      chairs:
        - name: Ann Baker
          company: Acme
""",
    "0042.rst": """\
PEP: 42
Title: Small wheels
Author: Ann Baker <ann@example.org>, Ben Carter <ben@example.org>
Status: Final
Requires: 7
Replaces: 12, 13

Abstract
========

Small wheels roll.
""",
    "0043.rst": """\
PEP: 43
Title: Large wheels
Author: Ann Baker <ann@example.org>
Status: Final
Replaces: 13

Abstract
========

Large wheels roll too.
""",
    "pages/alerts.md": """\
---
title: Queue alert
owner_slack: "#platform"
---
# Queue alert

| Service | Owner<sup>1</sup> | Guide |
|---|---|---|
| Quarry | [Ann Baker](/x), Acme<br>[Ben Carter](/x) | [Start](/x), [Stop](/x) |
| Ledger | Ann Baker | |
""",
}


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Write a directory of folders with one folder."""
    for name, text in FILES.items():
        file = tmp_path / "folders" / "small" / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    (tmp_path / "folders" / "small" / "questions.jsonl").touch()
    return tmp_path / "folders"


def list_answers(folders: Path) -> dict[str, set[str]]:
    small = folders / "small"
    return {each.text: {answer[0] for answer in each.answers} for each in make_questions(small, small / "files")}


def test_structure_gives_questions_with_complete_answers(folders: Path) -> None:
    asked = list_answers(folders)
    assert asked["#platform ←team— ?"] == {"quarry", "ledger"}
    assert asked["Storage —chairs→ ?"] == {"Ann Baker", "Ben Carter"}
    assert asked["Ann Baker ←chairs— ?"] == {"Storage", "Network"}
    assert asked["PEP 42 —Replaces→ ?"] == {"PEP 12", "PEP 13"}
    assert asked["PEP 13 ←Replaces— ?"] == {"PEP 42", "PEP 43"}
    assert asked["Queue alert —owner_slack→ ?"] == {"#platform"}
    assert asked["Quarry —Owner→ ?"] == {"Ann Baker", "Ben Carter"}
    assert asked["Quarry —Guide→ ?"] == {"Start", "Stop"}
    assert "#data ←team— ?" not in asked  # one record has it


def test_rules_answer_them_all(folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = (str(tmp_path / "answers.json"), str(tmp_path / "questions.jsonl"))
    assert main(["--folders", str(folders), "--sets", "--json", files[0], "--write", files[1]]) == 0
    answers = json.loads(Path(files[0]).read_text("utf-8"))
    assert [each for each in answers if each["missing"] or each["wrong"]] == []
    assert all(each["is_complete"] for each in answers)
    written = [json.loads(line) for line in Path(files[1]).read_text("utf-8").splitlines()]
    assert [each["question"] for each in answers] == written
    printed = capsys.readouterr().out
    assert "| structure | dev" in printed
    assert "Examples" not in printed


def test_file_decides_the_split(folders: Path) -> None:
    small = folders / "small"
    for question in make_questions(small, small / "files"):
        assert question.split == choose_split(question.file)


def test_questions_by_hand_are_half_dev_and_half_test() -> None:
    questions = read_by_hand()
    assert sorted(question.split for question in questions) == ["dev"] * 20 + ["test"] * 20
    assert all(question.split == choose_split(question.file) and question.answers for question in questions)
    assert len({question.text for question in questions}) == 40


def test_scores_count_things_and_broken_promises() -> None:
    question = SetQuestion("f", "a.md", "dev", "A", "uses", "out", (("B",), ("C",)))
    answers = [
        MeasuredSet(question, ("B", "C"), (), (), is_complete=True, is_ambiguous=False),
        MeasuredSet(question, ("B",), ("D",), ("C",), is_complete=True, is_ambiguous=False),
        MeasuredSet(question, (), (), ("B", "C"), is_complete=False, is_ambiguous=True),
    ]
    scores = score_answers(answers)
    assert (scores.questions, scores.things, scores.broken, scores.ambiguous) == (3, 6, 1, 1)
    assert (scores.precision, scores.recall, round(scores.exact, 3)) == (0.75, 0.5, 0.333)


@pytest.mark.parametrize("options", [["--sets", "musique"], ["--write", "q.jsonl"]])
def test_wrong_combinations_are_refused(options: list[str]) -> None:
    assert main(["--folders", "nowhere", *options]) == 2
