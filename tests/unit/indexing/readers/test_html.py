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
