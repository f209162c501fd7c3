"""The check of the site finds planted faults; `just site-check` runs it on the whole site."""

import re
from pathlib import Path

import pytest
from tools.website.__main__ import LOOKED_AT, list_pages
from tools.website.build import DOCS, convert_page, find_unlisted, find_unused_pictures
from tools.website.links import find_faults

FINE = """<!doctype html><link rel="stylesheet" href="style.css"><link rel="canonical" href="https://a.org/">
<h1 id="top">A</h1><a href="other/#part">b</a><a href="https://a.org/">c</a><a href="#top">d</a>
<img src="a.svg" alt="a">
"""


def write_site(folder: Path, *, page: str = "", style: str = "") -> Path:
    """Write a small site without faults, and a text that may bring one."""
    (folder / "other").mkdir()
    (folder / "index.html").write_text(FINE + page)
    (folder / "style.css").write_text("p { background: url(a.svg) url('data:image/png;base64,AA') }" + style)
    (folder / "a.svg").write_text("<svg/>")
    (folder / "other" / "index.html").write_text('<h2 id="part">B</h2><a href="..">up</a><script src="../style.css">')
    return folder


def test_a_site_without_faults(tmp_path: Path) -> None:
    assert find_faults(write_site(tmp_path)) == []


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ('<a href="gone/">a</a>', "index.html: the link gone/ leads nowhere"),
        ('<a href="other/#gone">a</a>', "index.html: the link other/#gone leads nowhere"),
        ('<a href="#gone">a</a>', "index.html: the link #gone leads nowhere"),
        ('<a href="../outside">a</a>', "index.html: the link ../outside leads nowhere"),
        ('<img src="gone.png" alt="a">', "index.html: gone.png is missing"),
        ('<img src="a.svg">', "index.html: the picture a.svg has no text alternative"),
        ('<script src="https://cdn.org/a.js">', "index.html: requests https://cdn.org/a.js of another host"),
        ('<img src="//cdn.org/a.png" alt="a">', "index.html: requests //cdn.org/a.png of another host"),
        ('<link rel="preload" href="https://a.org/a">', "index.html: requests https://a.org/a of another host"),
        ("<style>@import 'https://a.org/a';</style>", "index.html: requests https://a.org/a of another host"),
    ],
)
def test_a_fault_of_a_page_is_found(tmp_path: Path, page: str, fault: str) -> None:
    assert find_faults(write_site(tmp_path, page=page)) == [fault]


def test_a_font_of_another_host_is_found(tmp_path: Path) -> None:
    found = find_faults(write_site(tmp_path, style="@font-face { src: url(https://fonts.org/a.woff2) }"))
    assert found == ["style.css: requests https://fonts.org/a.woff2 of another host"]


def test_the_navigation_has_every_page() -> None:
    assert find_unlisted() == []


def test_every_picture_is_shown() -> None:
    assert find_unused_pictures() == []


@pytest.mark.parametrize("picture", sorted((DOCS / "pictures").glob("*.svg")), ids=lambda picture: picture.name)
def test_a_picture_has_no_path_of_a_machine(picture: Path) -> None:
    assert re.findall(r"/(?:work|home|root|tmp|dev/shm|Users)/[^<\s]*", picture.read_text("utf-8")) == []


def test_all_pages_are_listed(tmp_path: Path) -> None:
    site = write_site(tmp_path)
    assert list_pages(site) == ["", "other/"]
    assert all(page == "" or page.endswith("/") for page in LOOKED_AT)


def test_the_comparison_has_figures_of_the_benchmark_only() -> None:
    """A row of its last table is a row of benchmarks/peers.md."""
    comparison, measured = (
        (DOCS / name).read_text("utf-8") for name in ("explanation/comparison.md", "benchmarks/peers.md")
    )
    rows = [line for line in comparison.partition("## Figures")[2].splitlines() if line.startswith("|")]
    assert len(rows) > 5
    assert set(rows) <= set(measured.splitlines())


def test_pages_are_converted_for_the_generator() -> None:
    page = "<!-- file a.md\nText\n-->\n```python no-run\n```\n[`a.py`](../../tools/words.py), [b](../glossary.md)\n"
    converted = "```python\n```\n`tools/words.py`, [b](../glossary.md)\n"
    assert convert_page(page, DOCS / "how-to") == converted
