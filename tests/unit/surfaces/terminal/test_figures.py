"""Lists for people are short: equal reasons share a line, and what is left out is counted."""

from waylore.indexing.blocks import Skipped
from waylore.surfaces.terminal.figures import list_skipped


def test_files_with_one_reason_share_a_line() -> None:
    images = [Skipped(f"{n}.png", "there is no reader for .png files") for n in range(40)]
    other = [Skipped("a.html", "it has no text"), Skipped("b.html", "it has no text")]
    assert [line.plain for line in list_skipped([*images, *other])] == [
        "skipped 40 files: there is no reader for .png files",
        "skipped a.html: it has no text",
        "skipped b.html: it has no text",
    ]


def test_lines_that_are_left_out_are_counted() -> None:
    broken = [Skipped(f"{n}.md", f"line {n} is broken") for n in range(12)]
    assert [line.plain for line in list_skipped(broken)][-1] == "and 2 more; --json lists them"
    assert [line.plain for line in list_skipped(broken, 100)][-1] == "and 90 more; --json lists them"
