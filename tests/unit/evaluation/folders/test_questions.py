"""Questions about a folder are read from JSON lines, and a line that is wrong is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from waylore.errors import ConfigError, NotFound
from waylore.evaluation.folders.questions import FolderQuestion, GoldPassage, list_folders, read_questions

GOLD: list[dict[str, Any]] = [{"path": "a.md", "quote": "first"}, {"path": "b.md"}]


def write_questions(folder: Path, *lines: object) -> Path:
    file = folder / "questions.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return file


def test_question_has_gold_with_alternatives(tmp_path: Path) -> None:
    row = {"id": "q1", "question": "Who?", "gold": GOLD, "alternatives": [[{"path": "c.md"}], []], "type": "multi"}
    [question] = read_questions(write_questions(tmp_path, {**row, "split": "dev"}), "docs")
    first = (GoldPassage("a.md", "first"), GoldPassage("c.md"))
    assert question == FolderQuestion("q1", "Who?", (first, (GoldPassage("b.md"),)), "multi", "dev", "docs")
    assert question.has_answer


def test_own_question_needs_no_more_than_text_and_gold(tmp_path: Path) -> None:
    rows = ({"question": "Who?", "gold": GOLD[:1]}, "", {"question": "What?", "gold": []})
    answered, unanswered = read_questions(write_questions(tmp_path, *rows))
    assert (answered.id, answered.type) == ("1", "lookup")
    assert (unanswered.id, unanswered.type, unanswered.has_answer) == ("3", "none", False)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"question": ', "Expecting value"),
        ("[1]", "no JSON object"),
        ({"gold": []}, "question must be a text"),
        ({"question": " ", "gold": []}, "question must be a text"),
        ({"question": "Who?"}, "gold must be a list"),
        ({"question": "Who?", "gold": ["a.md"]}, "must have a path"),
        ({"question": "Who?", "gold": [{"path": "a.md", "quote": 3}]}, "must have a path"),
        ({"question": "Who?", "gold": GOLD, "alternatives": [[]]}, "a list for each passage"),
        ({"question": "Who?", "gold": GOLD, "alternatives": [1, 2]}, "must be a list"),
    ],
)
def test_wrong_line_is_named_with_an_example(line: object, problem: str, tmp_path: Path) -> None:
    file = write_questions(tmp_path, {"question": "Who?", "gold": []}, line)
    with pytest.raises(ConfigError, match=problem) as raised:
        read_questions(file)
    assert f"{file}, line 2: " in str(raised.value)
    assert '{"question": "Who owns billing?"' in str(raised.value)


def test_file_without_questions_raises(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no questions; write one a line"):
        read_questions(write_questions(tmp_path))
    with pytest.raises(NotFound, match="cannot be read"):
        read_questions(tmp_path / "none.jsonl")


def test_ids_are_unique(tmp_path: Path) -> None:
    row = {"id": "q1", "question": "Who?", "gold": []}
    with pytest.raises(ConfigError, match="several questions have the id q1; give each its own"):
        read_questions(write_questions(tmp_path, row, {**row, "question": "What?"}))


def test_folders_are_chosen_by_name(tmp_path: Path) -> None:
    for name in ("b", "a", "other"):
        (tmp_path / name).mkdir()
    for name in ("a", "b"):
        write_questions(tmp_path / name)
    assert [folder.name for folder in list_folders(tmp_path)] == ["a", "b"]
    assert [folder.name for folder in list_folders(tmp_path, ["b"])] == ["b"]
    with pytest.raises(NotFound, match=r"no folder other in .*; it has a, b"):
        list_folders(tmp_path, ["other"])
    with pytest.raises(NotFound, match=r"no folder with files/ and questions\.jsonl"):
        list_folders(tmp_path / "other")
