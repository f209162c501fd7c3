"""Test what people see: snippets, paths and sizes of any text."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from waylore.surfaces.terminal import figures
from waylore.surfaces.terminal import hits as shown
from waylore.text import terms
from waylore.types.knowledge import Document, Fact, Passage
from waylore.types.results import Statistics
from waylore.types.search import GraphPath, Hit, Placement, SearchResult, Step

TEXTS = st.text(max_size=2_000)
WORDS = st.lists(st.sampled_from("login sessions tokens Mara Kofi needs owns Bergen 東京 the of".split()), max_size=300)


def render(what: RenderableType, width: int = 80) -> str:
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as out:
        console.print(what)
    return out.get()


def hit(text: str, title: str = "", path: GraphPath | None = None) -> Hit:
    passage = Passage("p" * 32, "d" * 32, text, title)
    return Hit(passage, Document("d" * 32), 0.5, (Placement("vector", 1, 0.4, 0.5),), path)


@given(TEXTS, TEXTS)
def test_snippet_is_short_and_has_no_control_characters(text: str, question: str) -> None:
    snippet = shown.render_snippet(text, question).plain
    assert len(snippet) <= shown.SNIPPET_CHARACTERS + 4
    assert "\n" not in snippet
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in snippet)


@given(WORDS, st.sampled_from(["Bergen", "Kofi needs", "東京"]))
def test_snippet_marks_the_words_of_the_question(words: list[str], question: str) -> None:
    text = " ".join(words)
    wanted = set(terms(question))
    snippet = shown.render_snippet(text, question)
    assert wanted.isdisjoint(terms(text)) == wanted.isdisjoint(terms(snippet.plain))
    marked = [snippet.plain[span.start : span.end] for span in snippet.spans]
    assert all(wanted & set(terms(word)) for word in marked)
    assert bool(marked) == bool(wanted & set(terms(snippet.plain)))


@given(TEXTS, TEXTS, st.integers(40, 200))
def test_card_fits_the_width(text: str, title: str, width: int) -> None:
    found = SearchResult(title, (hit(text, title),))
    lines = render(shown.render_result(found, 0.001, explained=True), width).split("\n")
    assert lines
    assert all(len(line) <= width for line in lines if line.isascii())


def test_long_address_is_cut_at_its_beginning() -> None:
    for uri, expected in (
        ("docs/a.md", "docs/a.md"),
        ("/home/mara/projects/payments/docs/a.md", "…/projects/payments/docs/a.md"),
        ("x" * 40, "…" + "x" * 31),
    ):
        found = replace(hit("text", "title"), document=Document("d" * 32, uri=uri))
        assert render(shown.render_card(1, found, "?")).splitlines()[0].endswith(f" {expected} 0.500")


def test_path_is_rendered_as_its_text() -> None:
    needs = Fact("f1", "a", "login", "needs", "sessions", "b")
    owns = Fact("f2", "c", "Mara", "owns", "sessions", "b")
    way = GraphPath("login", (Step(needs), Step(owns, is_forward=False)))
    assert shown.render_path(way).plain == "login —needs→ sessions ←owns— Mara"
    assert way.text == f"{shown.render_path(way).plain} → this passage"


def test_card_does_not_repeat_its_title() -> None:
    assert "# Login" not in render(shown.render_card(1, hit("# Login\n\nChecks passwords.", "Login"), "login"))
    assert "# Login" in render(shown.render_card(1, hit("# Login", "Login"), "login"))


def test_result_names_skipped_and_missing_parts() -> None:
    found = SearchResult("x", (), "chain", skip_reason="the graph is empty", missing=("cell west: is down",))
    text = render(shown.render_result(found, 0.0021))
    assert text.splitlines() == [
        "nothing found · chain · 2 ms",
        "the graph was skipped: the graph is empty",
        "not searched: cell west: is down",
    ]


def test_method_without_the_graph_reports_no_skipped_graph() -> None:
    found = SearchResult("x", (), "hybrid", skip_reason="the recipe does not use the graph")
    assert render(shown.render_result(found, 0.0021)) == "nothing found · hybrid · 2 ms\n"


def test_statistics_of_an_empty_collection_have_no_bars() -> None:
    text = render(
        figures.render_statistics(Statistics(0, 0, 0, 0, 0, None, None, 1), (), store="s", collection="c", size=12)
    )
    assert "━" not in text
    assert "12 bytes" in text
    assert [figures.format_bytes(n) for n in (999, 1_500, 2_000_000, 3_100_000_000)] == [
        "999 bytes",
        "1.5 kB",
        "2.0 MB",
        "3.1 GB",
    ]
