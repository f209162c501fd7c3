"""Names and relations of labelled pages are counted as they were by hand."""

import json
from pathlib import Path

import pytest

from waylore.errors import ConfigError
from waylore.evaluation.folders.labels import StoredPage, list_misses, normalise_name, read_pages, score_pages

PAGE = {
    "folder": "docs",
    "path": "./a.md",
    "split": "dev",
    "names": ["Mara Olsen", "Harbour Team"],
    "not_names": ["Check"],
    "either": ["2024"],
    "aliases": {"Mara Olsen": ["Mara"]},
    "relations": [{"subject": "Mara Olsen", "predicate": "leads", "object": "Harbour Team"}],
    "also": [{"subject": "Harbour Team", "predicate": "is part of", "object": "Operations"}],
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.json").write_text(json.dumps(PAGE))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "expected"),
    [("The Harbour-Team's", "harbour team"), ("a snake_case_name", "snake case name"), ("«»", "")],
)
def test_name_is_compared_without_marks(name: str, expected: str) -> None:
    assert normalise_name(name) == expected


def test_names_and_relations_are_counted(directory: Path) -> None:
    [page] = read_pages(directory, "docs")
    assert read_pages(directory, "other") == []
    stored = StoredPage(
        ("Mara", "the Mara Olsen", "Check", "2024", "Something", "!"),
        (
            ("harbour team", "is_led by", "Mara"),  # both ends, and the first five letters differ
            ("Mara", "leads the", "Harbour Team"),
            ("Operations", "part", "Harbour Team"),  # true but not required
            ("Mara", "mentions", "Check"),
        ),
    )
    figures = score_pages([(page, stored)])
    assert figures["all"] == figures["dev"] == figures["docs"]
    names = {key: figures["all"][key] for key in ("names", "names_said", "names_right", "not_names_taken")}
    assert names == {"names": 2, "names_said": 3, "names_right": 1, "not_names_taken": 1}
    assert (figures["all"]["names_precision"], figures["all"]["names_recall"]) == (1 / 3, 1 / 2)
    ends = {key: figures["all"][key] for key in ("relations_said", "mentions", "ends_right", "ends_found")}
    assert ends == {"relations_said": 4, "mentions": 1, "ends_right": 3, "ends_found": 1}
    assert (figures["all"]["full_precision"], figures["all"]["full_recall"]) == (2 / 4, 1.0)


def test_page_without_stored_names_scores_zero(directory: Path) -> None:
    [page] = read_pages(directory, "docs")
    figures = score_pages([(page, StoredPage())])["all"]
    assert (figures["names_precision"], figures["names_recall"], figures["full_recall"]) == (0.0, 0.0, 0.0)


def test_broken_page_is_named(directory: Path) -> None:
    (directory / "pages" / "b.json").write_text('{"folder": "docs"}')
    with pytest.raises(ConfigError, match=r"b\.json is no labelled page"):
        read_pages(directory, "docs")


def test_misses_are_listed(directory: Path) -> None:
    [page] = read_pages(directory, "docs")
    stored = StoredPage(
        ("Mara", "Check", "2024"), (("Mara", "owns", "Harbour Team"), ("Operations", "part", "Harbour Team"))
    )
    assert list_misses(page, stored) == {
        "missed name": ["harbour team"],
        "wrong name": ["check"],
        "missed relation": ["Mara Olsen -> leads -> Harbour Team"],
        "wrong relation": ["Mara -> owns -> Harbour Team"],
    }
