"""Lists for people are short: equal reasons share a line, and what is left out is counted."""

from datetime import date, timedelta

from waylore.indexing.blocks import Skipped
from waylore.surfaces.terminal.figures import draw_growth, list_skipped
from waylore.types.results import DayCounts


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


def make_growth(*counts: int) -> list[DayCounts]:
    """Return the counts of days that follow each other, without those of none."""
    days = enumerate(counts)
    return [DayCounts(date(2026, 1, 1) + timedelta(days=day), count, count) for day, count in days if count]


def test_growth_has_a_character_for_each_day() -> None:
    assert draw_growth(make_growth(1, 0, 4, 8)) == "▁·▄█ 2026-01-01 to 2026-01-04"
    assert draw_growth(make_growth(3)) == draw_growth([]) == ""


def test_long_growth_is_drawn_in_equal_parts() -> None:
    drawn, _, period = draw_growth(make_growth(*[1] * 61)).partition(" ")
    assert (drawn, period) == ("█" * 20 + "▃", "2026-01-01 to 2026-03-02")
    assert len(draw_growth(make_growth(1, *[0] * 9_998, 1)).partition(" ")[0]) <= 30
