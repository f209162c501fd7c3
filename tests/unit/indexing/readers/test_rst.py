"""reStructuredText becomes titles, sections, fields, terms, rows and marks; hostile files stay harmless."""

from pathlib import Path

import pytest

from unit.indexing.readers.reading import read_document, show, show_marks
from waylore.indexing.files.formats import Limits, Reading, Skipped, read

PAGE = """PEP: 464
Title: Removal of the
  mirrors
Author: Donald Stufft <donald@example.org>
Status: Final

Abstract
========

It is *gone*, see :pep:`381`, ``code``, `a page <https://example.org>`_, :py:class:`~foo.Bar` and
:doc:`The guide <guide>`.

Parts
-----

- Owner: Mara
- **Vault** - keeps keys
- plain

  below

#. first
#. second

term
   What it means.

.. versionadded:: 1.2
   Something *new*.

.. note:: Be careful.

.. code-block:: python

   x = 1

.. toctree::
   :maxdepth: 2

   one
   Two <two>

===== =====
Name  Rank
===== =====
Kofi  first
===== =====
"""


def test_page_has_blocks_of_all_kinds(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.rst", PAGE)
    assert found.title == "PEP 464: Removal of the mirrors"
    assert show(found) == [
        ("field", "PEP: 464"),
        ("field", "Title: Removal of the mirrors"),
        ("field", "Author: Donald Stufft <donald@example.org>"),
        ("field", "Status: Final"),
        ("heading", "Abstract"),
        ("paragraph", "It is gone, see PEP 381, code, a page, foo.Bar and The guide."),
        ("heading", "Parts"),
        ("field", "- Owner: Mara"),
        ("term", "- Vault - keeps keys"),
        ("item", "- plain"),
        ("paragraph", "below"),
        ("item", "1. first"),
        ("item", "2. second"),
        ("term", "term: What it means."),
        ("paragraph", "1.2 Something new."),
        ("paragraph", "Be careful."),
        ("code", "x = 1"),
        ("paragraph", "one"),
        ("paragraph", "Two"),
        ("row", "Kofi | Rank: first"),
    ]
    assert found.blocks[-1].headings == ("Abstract", "Parts")
    assert found.blocks[-1].cells == (("Name", "Kofi"), ("Rank", "first"))


def test_page_has_marks(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.rst", PAGE)
    assert show_marks(found, found.blocks[5]) == [
        ("emphasis", "gone", ""),
        ("role", "PEP 381", "pep"),
        ("code", "code", ""),
        ("link", "a page", "https://example.org"),
        ("role", "foo.Bar", "py:class"),
        ("role", "The guide", "doc"),
        ("link", "The guide", "guide"),
    ]
    assert [mark for block in found.blocks[17:19] for mark in show_marks(found, block)] == [
        ("link", "one", "one"),
        ("link", "Two", "two"),
    ]


def test_options_of_unknown_directive_are_fields(tmp_path: Path) -> None:
    found = read_document(
        tmp_path / "a.rst", ".. autoclass:: Service\n   :members: name, admin\n   :class: wide\n\n   Runs.\n"
    )
    assert show(found) == [("paragraph", "Service"), ("field", "members: name, admin"), ("paragraph", "Runs.")]
    assert found.blocks[1].cells == (("members", "name, admin"),)


@pytest.mark.parametrize(
    "directive",
    [".. include:: {}", ".. raw:: html\n   :file: {}", ".. csv-table::\n   :file: {}", ".. literalinclude:: {}"],
)
def test_no_other_file_is_read(directive: str, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("hidden,words")
    found = read_document(tmp_path / "a.rst", f"Shown.\n\n{directive.format(tmp_path / 'secret.txt')}\n")
    assert "hidden" not in found.text
    assert "Shown." in found.text


@pytest.mark.parametrize(
    "content",
    [
        "   " * 20_000 + "x",
        "*" * 50_000,
        "\n".join(" " * n + "- x" for n in range(600)),
        "`" * 90_000,
        "-" * 99_999 + "x",
    ],
)
@pytest.mark.timeout(60)
def test_broken_file_is_read_as_plain_text(content: str, tmp_path: Path) -> None:
    [found] = read_file(tmp_path / "a.rst", content)
    assert isinstance(found, Reading)
    assert found.blocks


def test_long_file_is_read_in_parts(tmp_path: Path) -> None:
    found = read_file(tmp_path / "a.rst", "Said.\n\n" * 50_000, Limits(split_bytes=1_000))
    assert [item.uri for item in found][:2] == ["a.rst#part=1", "a.rst#part=2"]


def read_file(path: Path, content: str, limits: Limits | None = None) -> list[Reading | Skipped]:
    path.write_text(content)
    return list(read(path, root=path.parent, limits=limits or Limits()))


def test_source_that_sphinx_copied_is_read_as_what_it_is(tmp_path: Path) -> None:
    """A built site has `_sources/page.rst.txt` beside `page.html`."""
    page = "Boats\n=====\n\nSee :ref:`ports` and **sails**.\n"
    copied, original = (read_document(tmp_path / name, page) for name in ("a.rst.txt", "a.rst"))
    assert (copied.title, copied.text, copied.blocks) == (original.title, original.text, original.blocks)
    assert read_document(tmp_path / "b.md.txt", "# Boats\n\nText.\n").title == "Boats"
    assert read_document(tmp_path / "c.v2.txt", "# Boats\n\nText.\n").text.startswith("# Boats")
