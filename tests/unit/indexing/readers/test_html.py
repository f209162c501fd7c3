"""HTML is read without boilerplate; terms, rows and marks are kept."""

from pathlib import Path

import pytest

from unit.indexing.readers.reading import read_document, show, show_marks

PAGE = """<html><head><title>Opal</title></head><body>
<header><a href=/>Home</a> Sign In</header><nav><ul><li>Products</ul></nav>
<main><header><h1>Opal <a href="#opal">¶</a></h1></header>
<p>Run by <b>Mara</b> with <code>opal</code>, see <a href="b.html">the other</a>.</p>
<dl><dt>Vault</dt><dd>Keeps <i>keys</i></dd><dt>Queue<dd><p>Holds jobs</p><p>More</p><dt>Alone</dl>
<ul><li>Owner: Kofi<li><p>two</p><ul><li>inner</ul></ul>
<table><tr><th>Name<th>Rank</tr><tr><td><p><a href=k>Kofi</a></p></td><td>first</td></tr></table>
<aside>Related: Quartz</aside><form>Search<input></form></main>
<footer>© 2026 Example Corp. All Rights Reserved.</footer></body></html>"""


def test_page_is_read_without_boilerplate(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.html", PAGE)
    assert show(found) == [
        ("heading", "Opal"),
        ("paragraph", "Run by Mara with opal, see the other."),
        ("term", "Vault: Keeps keys"),
        ("term", "Queue: Holds jobs"),
        ("paragraph", "More"),
        ("term", "Alone"),
        ("field", "Owner: Kofi"),
        ("item", "two"),
        ("item", "inner"),
        ("row", "Name | Rank"),
        ("row", "Kofi | Rank: first"),
    ]
    assert found.blocks[-1].cells == (("Name", "Kofi"), ("Rank", "first"))
    assert show_marks(found, found.blocks[1]) == [
        ("strong", "Mara", ""),
        ("code", "opal", ""),
        ("link", "the other", "b.html"),
    ]
    assert show_marks(found, found.blocks[-1]) == [("link", "Kofi", "k")]


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<nav>Menu</nav><p>Text.</p><footer>End</footer>", ["Text."]),
        ("<p>Above</p><article><h1>A</h1><p>Said.</p></article>", ["A", "Said."]),
        ("<div role=main><p>Said.</p></div><p>Below</p>", ["Said."]),
        ("<main><h1>Empty</h1></main><p>Text.</p>", ["Empty", "Text."]),
        ("<form><p>A page in a form.</p></form>", ["A page in a form."]),
        ("<table><tr><td><h2>Layout</h2><p>Text.</p></td></tr></table>", ["Layout", "Text."]),
    ],
)
def test_main_part_is_chosen(page: str, shown: list[str], tmp_path: Path) -> None:
    assert [text for _, text in show(read_document(tmp_path / "a.html", page))] == shown


@pytest.mark.parametrize(
    "name", ["docnav top", "nav", "navheader", "navfooter", "site-nav", "breadcrumbs", "nav_bottom", "pagination"]
)
def test_links_between_pages_are_no_text(name: str, tmp_path: Path) -> None:
    links = f"<ul class='{name}'><li><a href=a>Prev</a> A.7. Tern<li>The Harbour Book</ul>"
    page = (
        f"{links}<h1>A.8. Curlew</h1><p>Curlew is a boat.</p><div id={name.split(maxsplit=1)[0]}>Next A.9. Dunlin</div>"
    )
    assert [text for _, text in show(read_document(tmp_path / "a.html", page))] == ["A.8. Curlew", "Curlew is a boat."]


def test_class_names_of_content_are_no_navigation(tmp_path: Path) -> None:
    page = "<body class=nav><div class=navy>Blue</div><div class=sidebar>Aside</div><p id=naval>Ships</p>"
    assert [text for _, text in show(read_document(tmp_path / "a.html", page))] == ["Blue", "Aside", "Ships"]


def test_table_of_contents_keeps_only_entries_of_other_pages(tmp_path: Path) -> None:
    contents = (
        "<div class=toc><p>Contents</p><dl><dt><a href='#a'>1.1. Boats</a></dt>"
        "<dd><dl><dt><a href='#b'>1.1.1. Masts</a></dt></dl></dd><dt><a href=c.html>1.2. Ports</a></dt></dl></div>"
    )
    page = f"<h1>1. Harbour</h1>{contents}<h2>1.1. Boats</h2><p>Text.</p><h3>1.1.1. Masts</h3>"
    found = show(read_document(tmp_path / "a.html", page))
    assert [text for _, text in found] == ["1. Harbour", "1.2. Ports", "1.1. Boats", "Text.", "1.1.1. Masts"]
    assert found[1][0] == "item"


def test_table_of_contents_is_not_below_the_heading_before_it(tmp_path: Path) -> None:
    page = "<h1>Harbour</h1><h2>Licence</h2><p>Free.</p><ul class=toc><li><a href=c.html>1.2. Ports</a></ul>"
    assert read_document(tmp_path / "a.html", page).blocks[-1].headings == ("Harbour",)


def test_box_laid_out_as_table_is_paragraphs(tmp_path: Path) -> None:
    page = (
        "<table><tr><td rowspan=2><img src=tip.png></td><th>Tip</th></tr><tr><td><p>Use a rope.</p></td></tr></table>"
    )
    assert show(read_document(tmp_path / "a.html", page)) == [("paragraph", "Tip"), ("paragraph", "Use a rope.")]


def test_search_keywords_of_page_are_no_metadata(tmp_path: Path) -> None:
    page = "<head><meta name=keywords content='boat, port'><meta name=author content=Mara></head><p>Text.</p>"
    assert read_document(tmp_path / "a.html", page).metadata == {"author": "Mara"}
