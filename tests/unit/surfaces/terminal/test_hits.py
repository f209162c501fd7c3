"""What people are shown: snippets, paths and sizes, whatever a text holds."""

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from waylore.surfaces.terminal import figures
from waylore.surfaces.terminal import hits as shown
from waylore.text import terms
from waylore.types.knowledge import Document, Fact, Passage
from waylore.types.results import Statistics
from waylore.types.search import FactPath, Found, Hit, Placement, Step

TEXTS = st.text(max_size=2_000)
WORDS = st.lists(
    st.sampled_from("login sessions tokens Mara Kofi needs owns Bergen 東京 the of".split()), max_size=300
)


def printed(what: RenderableType, width: int = 80) -> str:
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as out:
        console.print(what)
    return out.get()


def hit(text: str, title: str = "", path: FactPath | None = None) -> Hit:
    passage = Passage("p" * 32, "d" * 32, text, title)
    return Hit(passage, Document("d" * 32), 0.5, (Placement("dense", 1, 0.4, 0.5),), path)


@given(TEXTS, TEXTS)
def test_a_snippet_is_short_and_obeyed_by_no_terminal(text: str, question: str) -> None:
    snippet = shown.snippet(text, question).plain
    assert len(snippet) <= shown.SNIPPET + 4
    assert "\n" not in snippet
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in snippet)


@given(WORDS, st.sampled_from(["Bergen", "Kofi needs", "東京"]))
def test_a_snippet_shows_what_was_asked_for(words: list[str], question: str) -> None:
    text = " ".join(words)
    asked = set(terms(question))
    snippet = shown.snippet(text, question)
    assert asked.isdisjoint(terms(text)) == asked.isdisjoint(terms(snippet.plain))
    marked = [snippet.plain[span.start : span.end] for span in snippet.spans]
    assert all(asked & set(terms(word)) for word in marked)
    assert bool(marked) == bool(asked & set(terms(snippet.plain)))


@given(TEXTS, TEXTS, st.integers(40, 200))
def test_a_card_keeps_within_the_terminal(text: str, title: str, width: int) -> None:
    found = Found(title, (hit(text, title),))
    lines = printed(shown.answer(found, 0.001, explained=True), width).split("\n")
    assert lines
    assert all(len(line) <= width for line in lines if line.isascii())


def test_a_path_reads_as_its_text_does() -> None:
    needs = Fact("f1", "a", "login", "needs", "sessions", "b")
    owns = Fact("f2", "c", "Mara", "owns", "sessions", "b")
    way = FactPath("login", (Step(needs), Step(owns, is_forward=False)))
    assert shown.path(way).plain == "login —needs→ sessions ←owns— Mara"
    assert way.text == f"{shown.path(way).plain} → this passage"


def test_headings_that_the_card_has_are_not_repeated() -> None:
    assert "# Login" not in printed(shown.card(1, hit("# Login\n\nChecks passwords.", "Login"), "login"))
    assert "# Login" in printed(shown.card(1, hit("# Login", "Login"), "login"))


def test_what_was_left_out_is_told() -> None:
    found = Found("x", (), "chain", skipped="the graph is empty", missing=("cell west: is down",))
    told = printed(shown.answer(found, 0.0021))
    assert told.splitlines() == [
        "nothing found · chain · 2 ms",
        "the graph was left out: the graph is empty",
        "not searched: cell west: is down",
    ]


def test_a_method_without_the_graph_does_not_miss_it() -> None:
    found = Found("x", (), "hybrid", skipped="the recipe does not use the graph")
    assert printed(shown.answer(found, 0.0021)) == "nothing found · hybrid · 2 ms\n"


def test_an_empty_collection_has_no_bars() -> None:
    told = printed(
        figures.statistics(Statistics(0, 0, 0, 0, 0, None, None, 1), store="s", collection="c", size=12)
    )
    assert "━" not in told
    assert "12 bytes" in told
    assert [figures.bytes_of(n) for n in (999, 1_500, 2_000_000, 3_100_000_000)] == [
        "999 bytes",
        "1.5 kB",
        "2.0 MB",
        "3.1 GB",
    ]
