"""Markdown keeps its text; blocks have the author's marks, fields and terms, and a page has a title of its own."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.indexing.readers.reading import read_document, show, show_marks
from waylore.indexing.files.formats import Reading, read

PAGE = """<!-- top -->
# Login ![badge](b.png) {#login}

Checks [passwords](pass.md "why a b") {% if x %} with **bold [ref]** and \\*stars\\*, `[x](y)`, {py:class}`~a.Bar`.

:::{note} Mind this
Inside **strong** <!-- not this -->
:::

```{warning}
:class: x

Careful with [ref].
```

```{code-block} py
x = 1
```

> [!TIP]
> quoted *words*

Vault
: Keeps the keys

- Owner: **Mara** Lind
  - inner
- **Queue** - holds jobs

| Name | Rank |
|------|------|
| `a` | [b](c) |

[ref]: https://example.org
"""


def test_page_has_blocks_without_noise(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.md", PAGE)
    assert found.title == "Login"
    assert show(found) == [
        ("heading", "Login"),
        ("paragraph", "Checks passwords with bold ref and *stars*, [x](y), a.Bar."),
        ("paragraph", "Mind this"),
        ("paragraph", "Inside strong"),
        ("paragraph", "Careful with ref."),
        ("code", "```{code-block} py x = 1 ```"),
        ("paragraph", "quoted words"),
        ("term", "Vault Keeps the keys"),
        ("field", "Owner: Mara Lind"),
        ("item", "inner"),
        ("term", "Queue - holds jobs"),
        ("row", "| Name | Rank |"),
        ("row", "| a | b |"),
    ]
    assert len(found.text) == len(PAGE)
    assert "top" not in found.text
    assert "not this" not in found.text


def test_page_has_keys_cells_and_marks(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.md", PAGE)
    keyed = {block.key: block.cells for block in found.blocks if block.key}
    assert keyed == {"Vault": (), "Owner": (("Owner", "Mara Lind"),), "Queue": ()}
    assert found.blocks[-1].cells == (("Name", "a"), ("Rank", "b"))
    assert show_marks(found, found.blocks[1]) == [
        ("link", "passwords", "pass.md"),
        ("strong", "bold [ref", ""),
        ("link", "ref", "https://example.org"),
        ("code", "[x](y)", ""),
        ("role", "a.Bar", "py:class"),
    ]


@pytest.mark.parametrize(
    ("content", "kinds"),
    [
        ("```{r}\n# no heading\n```\n", [("code", "```{r} # no heading ```")]),
        (":::tip Mind this\nSaid.\n:::\n", [("paragraph", "Mind this"), ("paragraph", "Said.")]),
        ('!!! note "Mind this"\n    Said.\n', [("paragraph", "Mind this"), ("paragraph", "Said.")]),
        ("!!! note\n    Said.\n", [("paragraph", "Said.")]),
    ],
)
def test_directives_are_code_or_prose(content: str, kinds: list[tuple[str, str]], tmp_path: Path) -> None:
    assert show(read_document(tmp_path / "a.md", content)) == kinds


@pytest.mark.parametrize(
    ("name", "content", "title"),
    [
        ("a/guide.md", "---\ntitle: 'The Guide'\n---\n# Other\n\nText.", "The Guide"),
        ("a/rita.md", "-----\nname: Rita Zhang\nID: r\n-----\n\n## SIGS\n\n- one\n", "Rita Zhang"),
        ("a/guide.md", "# A [linked](x) *title*\n\nText.", "A linked title"),
        ("a/guide.md", "## Second level first\n\nText.", "Second level first"),
        ("a/guide.md", "Text.\n\n" * 5 + "## A section in its middle\n\nMore.", "a / guide"),
        ("a/guide.md", "A motto.\n\n# The page\n\nMore.", "The page"),
        ("a/changes.md", "## 0.35.0 (June 28, 2025)\n\n- fixed\n", "a / changes"),
        ("a/README.md", "Text without headings.", "a"),
        ("guide.md", "Text without headings.", "guide"),
    ],
)
def test_title_is_its_own(name: str, content: str, title: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    assert read_below(tmp_path, path, content) == title


def read_below(root: Path, path: Path, content: str) -> str:
    path.write_text(content)
    [found] = read(path, root=root)
    assert isinstance(found, Reading)
    return found.title


@pytest.mark.parametrize(
    ("head", "metadata"),
    [
        ("owner: Mara Lindqvist  # since May", {"owner": "Mara Lindqvist"}),
        ("tags: [alpha, 'beta, gamma']", {"tags": ["alpha", "beta, gamma"]}),
        ("lead: {name: Kofi}", {}),
        ("note: >\n  folded\n  text", {"note": "folded text"}),
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": "*x"}),
        ("version: 3.10\nsize: 3.5", {"version": "3.10", "size": 3.5}),
        ("at: 2021-05-01", {"at": "2021-05-01"}),
    ],
)
def test_front_matter_is_yaml(head: str, metadata: dict[str, object], tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.md", f"---\n{head}\n---\nText.\n")
    assert found.metadata == metadata
    assert "Text." in [text for _, text in show(found)]


@pytest.mark.parametrize("head", ["just words", "[a, b]", "a: [", "{" * 300])
def test_text_between_rulers_is_not_front_matter(head: str, tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.md", f"---\n{head}\n---\nText.\n")
    assert found.metadata == {}
    assert any(head[:5] in text for _, text in show(found))


PIECES = st.sampled_from(
    ["**", "*", "`", "[a](b)", "[", "](c)", "![i](j)", " ", "x", "|", "\n", "> ", "- ", "\\*", "&amp;"]
)
MORE = st.sampled_from(
    ["{%", "%}", "<!--", "-->", "{r}`t`", "[r]", "\n\n", "[r]: u\n", "é", "😀", ":::\n", "```{note}\n", "```\n"]
)


@settings(max_examples=300)
@given(parts=st.lists(PIECES | MORE, max_size=40))
def test_marks_of_any_text_lie_in_order(parts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    written = "Word " + "".join(parts)
    found = read_document(tmp_path_factory.getbasetemp() / "marks.md", written)
    assert len(found.text) == len(written)
    for block in found.blocks:
        text, marks = found.strip_markup(block)
        assert all(0 <= mark.start < mark.end <= len(text) for mark in marks)
        removed = [(mark.start, mark.end) for mark in block.marks if mark.kind == "markup"]
        assert all(last <= first for (_, last), (first, _) in pairwise(removed))
