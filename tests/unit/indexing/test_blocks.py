"""The text of a block without its markup, and its marks in that text."""

from hypothesis import given
from hypothesis import strategies as st

from waylore.indexing.blocks import Block, Mark, Reading


def make_reading(text: str, *marks: Mark) -> Reading:
    """Return a reading of one block after five other characters."""
    return Reading("a", "a", f"##\n\n\n{text}", (Block("paragraph", 5, 5 + len(text), marks=marks),))


def test_markup_is_removed_and_marks_are_moved() -> None:
    reading = make_reading(
        "See **[the page](x.md)**.",
        *(Mark("markup", 9, 11), Mark("strong", 11, 28), Mark("markup", 11, 12), Mark("link", 12, 20, "x.md")),
        *(Mark("markup", 20, 27), Mark("markup", 27, 29)),
    )
    text, marks = reading.strip_markup(reading.blocks[0])
    assert text == "See the page."
    assert [(mark.kind, text[mark.start : mark.end]) for mark in marks] == [
        ("strong", "the page"),
        ("link", "the page"),
    ]


@given(st.text("ab*", max_size=30), st.data())
def test_text_without_markup_keeps_every_other_character(text: str, data: st.DataObject) -> None:
    places = st.integers(5, 5 + len(text))
    spans = sorted(sorted(span) for span in data.draw(st.lists(st.tuples(places, places), max_size=6)))
    removed = {at for first, last in spans for at in range(first, last)}
    probes = [Mark("code", at, at + 1) for at in range(5, 5 + len(text))]
    marks = sorted([*(Mark("markup", first, last) for first, last in spans), *probes], key=lambda mark: mark.start)
    reading = make_reading(text, *marks)
    found, moved = reading.strip_markup(reading.blocks[0])
    assert found == "".join(sign for at, sign in enumerate(reading.text) if at >= 5 and at not in removed)
    assert "".join(found[mark.start : mark.end] for mark in moved) == found
