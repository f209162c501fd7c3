"""`waylore eval` measures folders: those with labelled questions, and anybody's own."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from requirements import find_folders, find_model
from waylore.evaluation.__main__ import main, run
from waylore.providers.embedders.hashing import HashingEmbedder

HASHING = ("--embedder", "hashing")
PAGES = {
    "teams/harbour.md": "# Harbour team\n\nMara Olsen leads the Harbour team. The team registers every vessel before "
    "dawn and files yellow forms in wooden drawers.\n",
    "teams/bakery.md": "# Bakery\n\nThe bakery of Jonas Weld buys rye flour from two mills and bakes dark loaves in "
    "brick ovens each Friday morning.\n",
    "notes.txt": "Mara Olsen and Jonas Weld met at the spring market and agreed to deliver bread to the pier.\n",
}
QUESTIONS: list[dict[str, Any]] = [
    {"question": "Who leads the Harbour team?", "gold": [{"path": "teams/harbour.md", "quote": "Mara Olsen leads"}]},
    {"question": "Where does the rye flour come from?", "gold": [{"path": "./teams/bakery.md"}]},
    {"question": "Who is the mayor?", "gold": []},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "own"
    for name, text in PAGES.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


def write_lines(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def read_rows(output: str) -> dict[str, list[str]]:
    """Return the cells of the first table of columns by method."""
    lines = output.split("-\n", 1)[1].split("\n\n", 1)[0].splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines}


# -- folders with labelled questions -------------------------------------------------------------------


@pytest.mark.model
def test_sample_of_a_labelled_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = find_folders() / "notes"
    rows = [json.loads(line) for line in (source / "questions.jsonl").read_text("utf-8").splitlines()]
    chosen = [row for row in rows if row["split"] == "dev" and row["type"] in ("lookup", "multi")][:5]
    labels = find_folders() / "pages" / "notes-recipes-lasagna-md.json"
    for path in {gold["path"] for row in chosen for gold in row["gold"]} | {json.loads(labels.read_text())["path"]}:
        copy = tmp_path / "notes" / "files" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / "files" / path, copy)
    write_lines(tmp_path / "notes" / "questions.jsonl", chosen)
    (tmp_path / "pages").mkdir()
    shutil.copy(labels, tmp_path / "pages")
    model = ["--embedder", "model2vec", "--model", str(find_model("potion")), "--vectors", str(tmp_path / "vectors")]
    file = tmp_path / "figures.json"
    assert main(["--folders", str(tmp_path), *model, "--json", str(file)]) == 0
    figures = json.loads(file.read_text("utf-8"))
    recalls = {r["method"]: r["recall"]["mean"] for r in figures["rows"] if (r["folder"], r["type"]) == ("all", "all")}
    assert recalls.keys() == {"keyword", "vector", "hybrid", "chain", "auto"}
    assert min(recalls.values()) > 0.5
    assert len(figures["rankings"]["chain"]) == len(chosen)
    assert figures["pages"]["notes"]["names_recall"] > 0.3
    assert figures["folders"]["notes"]["embedded"] > 0
    output = capsys.readouterr().out
    for heading in ("Recall of the first five", "By folder", "Compared", "Gate", "Names and relations", "Indexing"):
        assert f"## {heading}" in output
    assert main(["--folders", str(tmp_path), *model, "--json", str(file), "--beside", str(file)]) == 0
    assert json.loads(file.read_text("utf-8"))["scores"] == figures["scores"]
    assert json.loads(file.read_text("utf-8"))["folders"]["notes"]["embedded"] == 0
    assert "chain in figures" in (output := capsys.readouterr().out)
    assert "were cached" in output


def test_options_limit_folders_questions_and_reuse_stores(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("first", "second"):
        shutil.copytree(folder, tmp_path / "all" / name / "files")
        rows = [{**row, "id": f"{name}-{i}", "split": ("dev", "test")[i % 2]} for i, row in enumerate(QUESTIONS)]
        write_lines(tmp_path / "all" / name / "questions.jsonl", rows)
    options = ["--folders", str(tmp_path / "all"), *HASHING, "--folder", str(tmp_path / "stores")]
    assert main([*options, "--only", "second", "--split", "dev", "--recipes", "guided", "--fusions", "rrf"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("2 questions about second; ")
    assert "| dev   | guided " in output
    assert "| dev   | hybrid, rrf " in output
    assert "first" not in output.replace("Recall of the first five", "")
    assert "is_relevant is false" in output
    assert main(options) == 0
    assert "3 files were indexed by an earlier run" in capsys.readouterr().out
    assert main([*options, "--only", "third"]) == 1
    assert "no folder third" in capsys.readouterr().err
    broken = write_lines(tmp_path / "broken.json", [{}])
    assert main([*options, "--beside", str(broken)]) == 1
    assert "has no scores" in capsys.readouterr().err


# -- a folder of one's own -----------------------------------------------------------------------------


def test_own_questions_compare_methods(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = write_lines(tmp_path / "questions.jsonl", QUESTIONS)
    assert main([str(folder), "--questions", str(questions), *HASHING]) == 0
    output = capsys.readouterr().out
    assert output.startswith("3 files, 3 passages, ")
    rows = read_rows(output)
    assert rows.keys() == {"keyword", "vector", "hybrid", "chain", "auto"}
    assert rows["keyword"][:2] == ["100", "%"]
    assert rows["auto"][0] == "(default)"
    assert "3 questions, 1 of them without an answer" in output
    assert "auto against hybrid, question by question: better on 0, worse on 0 (p = 1.00)" in output
    assert "made from the pages" not in output


def test_questions_are_made_without_own(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 broken")
    file = tmp_path / "figures.json"
    assert main([str(folder), *HASHING, "--json", str(file)]) == 0
    output = capsys.readouterr().out
    assert "The questions are made from the pages and repeat their words, so they favour keyword search." in output
    assert "1 files or parts were skipped, such as\n  broken.pdf: " in output
    asked = json.loads(file.read_text("utf-8"))["questions"]
    assert {question["gold"][0][0]["path"] for question in asked} == {
        "teams/harbour.md",
        "teams/bakery.md",
        "notes.txt",
    }


def test_kept_stores_belong_to_a_path(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--folder", str(tmp_path / "stores"), *HASHING)
    other = tmp_path / "other" / folder.name
    shutil.copytree(folder / "teams", other)
    for path, expected in ((folder, "3 files, 3 passages"), (other, "2 files, 2 passages")):
        assert main([str(path), *options]) == 0
        assert capsys.readouterr().out.startswith(expected)
    (other / "bakery.md").unlink()
    assert main([str(other), *options]) == 0
    assert capsys.readouterr().out.startswith("1 files, 1 passages")


def test_folder_uses_default_embedder_and_may_have_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run([str(folder)], create_default=lambda: HashingEmbedder(64, quiet=True))
    assert "hashing" in capsys.readouterr().out
    run([str(folder)], create_default=lambda: None)
    output = capsys.readouterr().out
    assert "no embedder" in output
    assert read_rows(output).keys() == {"keyword", "hybrid", "chain", "auto"}


def test_errors_name_the_next_step(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*arguments: object) -> str:
        assert main([*map(str, arguments), *HASHING]) == 1
        return capsys.readouterr().err

    (empty := tmp_path / "empty").mkdir()
    assert fail(empty).startswith(f"error: no file in {empty} could be indexed; pass a folder with ")
    (empty / "a.txt").write_text("Too short.")
    assert fail(empty).startswith(f"error: {empty} has too few sentences to make questions; write some and pass --q")
    assert fail(tmp_path / "none").startswith(f"error: no folder {tmp_path / 'none'}; pass a folder of files")
    wrong = write_lines(tmp_path / "wrong.jsonl", [{"question": "Who?", "gold": [{"path": "missing.md"}]}])
    assert fail(folder, "--questions", wrong).startswith("error: question 1 needs missing.md, which is not indexed")
    wrong.write_text("{")
    assert f"{wrong}, line 1: " in fail(folder, "--questions", wrong)
    unanswered = write_lines(wrong, [{"question": "Who?", "gold": []}])
    assert "no question has an answer in gold" in fail(folder, "--questions", unanswered)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("", "pass either FOLDER, --folders DIR, or --data DIR with --sets NAME"),
        ("docs --folders all", "pass either FOLDER"),
        ("--data sets", "pass either FOLDER"),
        ("--folders all --questions a.jsonl", "--questions needs FOLDER"),
        ("docs --split dev", "--only and --split need --folders DIR"),
        ("docs --json missing/a.json", "no folder missing for --json; create it first"),
    ],
)
def test_wrong_usage_is_reported(arguments: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments.split()) == 2
    assert f"error: {problem}" in capsys.readouterr().err
