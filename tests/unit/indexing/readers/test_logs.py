"""A long log of dated sections becomes a page for each section; other documents stay whole."""

from pathlib import Path

import pytest

from waylore.indexing.files.formats import Reading, read
from waylore.indexing.readers.structure.titles import is_dated

TEXT = "Somebody said something that is long enough to be kept. " * 100


def read_all(path: Path, content: str) -> list[Reading]:
    path.write_text(content)
    return [found for found in read(path, root=path.parent) if isinstance(found, Reading)]


def test_log_is_read_as_pages(tmp_path: Path) -> None:
    days = ["September 12, 2022", "August 1, 2022", "July 4, 2022", "July 4, 2022"]
    written = "# Notes\n\nIntro.\n\n" + "".join(f"## {day}\n\n{TEXT}\n\n" for day in days)
    found = read_all(tmp_path / "a.md", written)
    assert [page.uri for page in found] == [
        *("a.md", "a.md#section=september-12-2022", "a.md#section=august-1-2022"),
        *("a.md#section=july-4-2022", "a.md#section=july-4-2022-2"),
    ]
    assert [page.title for page in found][:2] == ["Notes", "Notes: September 12, 2022"]
    assert "".join(page.text for page in found) == written
    for page in found:
        assert written[page.start : page.start + len(page.text)] == page.text
        assert all(page.text[block.start : block.end].strip() for block in page.blocks)


def test_versions_keep_the_heading_above_them(tmp_path: Path) -> None:
    versions = "".join(f"## {n}.0\n\n### [{n}.0.1] - 2023-01-0{n}\n\n#### Fixed\n\n{TEXT}\n\n" for n in (3, 2, 1))
    found = read_all(tmp_path / "a.md", f"# Changes\n\n{versions}")
    assert [page.title for page in found] == [
        *("Changes", "Changes: [3.0.1] - 2023-01-03", "Changes: [2.0.1] - 2023-01-02", "Changes: [1.0.1] - 2023-01-01")
    ]
    assert found[1].text.startswith("## 3.0\n")


@pytest.mark.parametrize(
    "content",
    [
        "".join(f"## 1.{n}\n\nShort.\n\n" for n in range(50)),
        "".join(f"## Part {n}\n\n{TEXT}\n\n" for n in range(5)),
        f"# Notes\n\n## May 1, 2020\n\n{TEXT}\n\n## May 2, 2020\n\n{TEXT}",
    ],
)
def test_other_documents_stay_whole(content: str, tmp_path: Path) -> None:
    assert [page.uri for page in read_all(tmp_path / "a.md", content)] == ["a.md"]


DATED = ["2023-01-27", "v1.2.3", "[1.2.0] - soon", "Version 2.0", "12 May 2020", "Monday, May 4th, 2020", "May 2020"]
DATED += ["Unreleased", "0.35.0 (June 28, 2025)"]
UNDATED = ["May we ask", "2020 plans", "1. Introduction", "3 steps", "March on"]


@pytest.mark.parametrize("heading", DATED)
def test_dates_and_versions_are_recognised(heading: str) -> None:
    assert is_dated(heading)


@pytest.mark.parametrize("heading", UNDATED)
def test_other_headings_are_not_dated(heading: str) -> None:
    assert not is_dated(heading)
