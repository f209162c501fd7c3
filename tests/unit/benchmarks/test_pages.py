"""benchmarks/pages: labels belong to their pages, half of which are held back, and the command prints their scores."""

import json
import re
import shutil
from pathlib import Path

import pytest
from benchmarks.pages import __main__ as pages
from benchmarks.pages.judgements import complete_labels, count_judgements, read_judgements, write_said

from waylore.evaluation.folders.labels import StoredPage, read_pages

LABELS = sorted(pages.DIRECTORY.glob("pages/*.json"))


def test_every_second_page_is_held_back() -> None:
    ordered = sorted(read_pages(pages.DIRECTORY, "own"), key=lambda page: page.path)
    assert len(ordered) == 30
    assert [page.split for page in ordered] == ["dev", "held"] * 15


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label.stem)
def test_labels_are_words_of_their_page(label: Path) -> None:
    row = json.loads(label.read_text("utf-8"))
    text = " ".join((pages.DIRECTORY / row["folder"] / "files" / row["path"]).read_text("utf-8").split()).casefold()
    names = [*row["names"], *row["not_names"]]
    spellings = {name: [name, *row["aliases"].get(name, ())] for name in names}
    assert [name for name, of_it in spellings.items() if not any(one.casefold() in text for one in of_it)] == []
    assert not {*map(str.casefold, row["names"])} & {*map(str.casefold, row["not_names"])}


def test_command_prints_scores_and_misses_of_dev_pages_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for label in LABELS[:2]:
        row = json.loads(label.read_text("utf-8"))
        file = tmp_path / "own" / "files" / row["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(pages.DIRECTORY / "own" / "files" / row["path"], file)
        (tmp_path / "pages").mkdir(exist_ok=True)
        shutil.copy(label, tmp_path / "pages" / label.name)
    monkeypatch.setattr("sys.argv", ["pages", str(tmp_path), "--misses"])
    pages.main()
    printed = capsys.readouterr().out
    assert re.findall(r"^\| (\w+)", printed, re.MULTILINE) == ["pages", "all", "dev", "held", "own"]
    assert re.findall(r"^## (.*)$", printed, re.MULTILINE) == ["own/changelogs/gardenbox.md"]


def test_readers_complete_labels_by_what_all_call_true(tmp_path: Path) -> None:
    [page] = [page for page in read_pages(pages.DIRECTORY, "own") if page.path == "changelogs/gardenbox.md"]
    said = [("Gardenbox", "replaces", "Potkeeper"), ("Gardenbox", "hides", "Potkeeper")]
    read = [(page, StoredPage(("Gardenbox",), tuple(said)))]
    write_said(read, tmp_path / "said.jsonl")
    first, second = (json.loads(line) for line in (tmp_path / "said.jsonl").read_text("utf-8").splitlines())
    judged = tmp_path / "judged.jsonl"
    rows = [("one", first, True), ("two", first, True), ("one", second, True), ("two", second, False)]
    judged.write_text("".join(json.dumps({"reader": r, "id": row["id"], "true": t}) + "\n" for r, row, t in rows))
    [(completed, _)] = complete_labels(read, read_judgements(judged).values())
    assert completed.also == (*page.also, said[0])
    assert first["page"] == "own/files/changelogs/gardenbox.md"
    assert complete_labels(read, ()) == read
    assert count_judgements(read, read_judgements(judged)) == "dev: of 2 relations are true by one 2, two 1, all 1"
