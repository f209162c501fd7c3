"""The text for a model reads as the specification shows it, whatever is cut, left out or missing."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.retrieval.finding import AUTH, ROOMY, STYLES, entity, fact, found, hit, rendered
from waylore.config import Context
from waylore.retrieval.context import Citation, Rendered, Style, in_order
from waylore.text import pieces
from waylore.types.knowledge import Document, Fact, Passage
from waylore.types.search import Hit

SENTENCE = "The lock is turned by a key that was cut from one piece of iron in the year of the flood. "


# -- passages ------------------------------------------------------------------------------------------


def test_passages_carry_marks_and_addresses_come_last() -> None:
    what = found(
        hit("a", "One.", title="First", uri="docs/one.md"),
        hit("b", "Two.\n\nStill two."),
        hit("c", "Three.", title="Third", uri="docs/one.md"),
        hit("d", "Four.", title="Fourth", uri="https://four"),
    )
    text = "[1] First\nOne.\n\n[2]\nTwo.\n\nStill two.\n\n[3] Third\nThree.\n\n[4] Fourth\nFour."
    sources = "\n\n## Sources\n[1] [3] docs/one.md\n[4] https://four"
    assert rendered(what).text == text + sources
    assert rendered(what, config=Context(include_sources=False)).text == text


def test_sources_say_what_is_behind_a_mark() -> None:
    there = Document("d", title="Handbook", uri="docs/h.md")
    what = found(Hit(Passage("p", "d", "Text."), there, 1.0, ()), hit("q", "More.", title="Own title"))
    assert rendered(what).sources == (
        Citation(1, "p", "d", "Handbook", "docs/h.md"),
        Citation(2, "q", "document q", "Own title", ""),
    )


def test_tokens_are_those_of_the_whole_text() -> None:
    answer = rendered(AUTH, "graph", count=pieces)
    assert answer.tokens == pieces(answer.text)
    assert rendered(found()) == Rendered("", 0, ())


def test_what_does_not_fit_is_cut_at_the_end_of_a_sentence() -> None:
    answer = rendered(found(hit("a", SENTENCE * 5)), config=Context(max_tokens=250))
    assert answer.text == f"[1]\n{(SENTENCE * 2).strip()} …"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("水は上から下へ流れる。" * 20, "水は上から下へ流れる。" * 8),
        (
            '"' + "Who goes there now " * 5 + '?" ' + "he asked again " * 9,
            '"' + "Who goes there now " * 5 + '?"',
        ),
        ("- a line of a list\n" * 5 + "\n" + "- one more of them\n" * 9, "- a line of a list\n" * 5),
    ],
)
def test_sentences_end_in_many_ways(text: str, kept: str) -> None:
    answer = rendered(found(hit("a", text)), config=Context(max_tokens=len(kept) + 8))
    assert answer.text == f"[1]\n{kept.rstrip()} …"


def test_a_number_and_too_little_are_no_sentence() -> None:
    dotted = "Dr. Smith measured 3.1415926 on version 2.0.1-rc.2 of the apparatus " * 4
    assert rendered(found(hit("a", dotted)), config=Context(max_tokens=70)).text == ""
    assert rendered(found(hit("a", "Short. " * 40)), config=Context(max_tokens=60)).text == ""


def test_what_is_left_out_leaves_its_place_and_its_mark_to_the_next() -> None:
    what = found(hit("a", "One."), hit("b", "endless " * 99), hit("c", " \n"), hit("d", "Last."))
    answer = rendered(what, config=Context(max_tokens=60))
    assert answer.text == "[1]\nOne.\n\n[2]\nLast."
    assert [source.passage_id for source in answer.sources] == ["a", "d"]


def test_a_text_exactly_as_long_as_the_budget_fits() -> None:
    whole = rendered(AUTH, "graph", config=ROOMY)
    size = len(whole.text)
    assert rendered(AUTH, "graph", config=Context(size, graph_tokens=size)) == whole
    assert rendered(AUTH, "graph", config=Context(size - 1, graph_tokens=size)) != whole


def test_lines_keep_their_indent_and_lose_their_trailing_blanks() -> None:
    answer = rendered(found(hit("a", "\n    def f():  \r\n        pass\t\n\n", title=" A \n title ")))
    assert answer.text == "[1] A title\n    def f():\n        pass"


# -- graph ---------------------------------------------------------------------------------------------


def test_the_graph_block_is_that_of_the_specification() -> None:
    assert rendered(AUTH, "graph", config=ROOMY).text == "\n".join(
        [
            "## Knowledge Graph Context",
            "Query entities: [Auth Service, OAuth Provider]",
            "",
            "### Auth Service (concept)",
            "Related: Login Flow (←part_of), OAuth Provider (depends_on, weight: 8), User (←works_on)",
            "Description: Core authentication service.",
            "",
            "### OAuth Provider (tool)",
            "Related: Auth Service (←depends_on), Google OAuth (uses, weight: 5)",
            "Description: External OAuth2 layer.",
            "",
            "### Relevant Relationships",
            '- Login Flow -> Auth Service: "part_of" (strength: 5)',
            '- Auth Service -> OAuth Provider: "depends_on" -- It delegates logins (strength: 8)',
            '- OAuth Provider -> Google OAuth: "uses" (strength: 5)',
            '- Auth Service -> active: "status" (strength: 5)',
            '- User -> Auth Service: "works_on" (strength: 5)',
            "",
            "## Passages",
            "",
            "[1] Operations",
            "Change the provider with care.",
            "",
            "## Sources",
            "[1] docs/ops.md",
        ]
    )


def test_relationships_can_be_left_out() -> None:
    without = replace(ROOMY, include_relationships=False)
    text = rendered(AUTH, "graph", config=without).text
    assert "Relevant Relationships" not in text
    assert "User (←works_on)" in text
    assert rendered(replace(AUTH, entities=()), "graph", config=without) == rendered(AUTH)


def test_facts_without_an_entity_of_the_question_are_told() -> None:
    what = found(facts=(fact("A", "knows", "B", weight=7.5),))
    assert rendered(what, "graph").text == (
        '## Knowledge Graph Context\n### Relevant Relationships\n- A -> B: "knows" (strength: 7.5)'
    )


def test_an_entity_without_type_facts_or_description_is_a_name() -> None:
    text = rendered(found(entities=(entity("Waylore"),)), "graph").text
    assert text == "## Knowledge Graph Context\nQuery entities: [Waylore]\n\n### Waylore"


def test_a_fact_is_told_once_however_many_passages_state_it() -> None:
    said = fact("A", "knows", "B", "They met")
    what = found(entities=(entity("A"), entity("A")), facts=(said, replace(said, statement="Old friends")))
    text = rendered(what, "graph").text
    assert text.count("A -> B") == text.count("Related:") == text.count("### A") == 1
    assert "They met" in text


def test_a_fact_about_itself_is_told_from_one_side() -> None:
    text = rendered(found(entities=(entity("A"),), facts=(fact("A", "cites", "A"),)), "graph").text
    assert "Related: A (cites, weight: 5)\n" in text


def test_short_of_room_facts_go_before_descriptions() -> None:
    text = rendered(AUTH, "graph", config=Context(graph_tokens=600)).text
    assert "Google OAuth (uses" in text
    assert "Description" not in text


@pytest.mark.parametrize("style", STYLES)
def test_without_a_graph_every_style_is_passages(style: Style) -> None:
    what = found(hit("a", "One.", uri="u"))
    assert rendered(what, style) == rendered(what)
    assert rendered(AUTH, style, config=Context(graph_tokens=10)) == rendered(AUTH)


def test_long_descriptions_statements_and_values_are_brief() -> None:
    endless = "word " * 200
    what = found(
        entities=(entity("A", description=SENTENCE * 9),),
        facts=(fact("A", "knows", "B", endless), fact("A", "bio", endless, is_value=True)),
    )
    text = rendered(what, "graph", config=ROOMY).text
    assert f"Description: {(SENTENCE * 2).strip()} …\n" in text
    assert all(len(line) < 300 for line in text.split("\n"))
    assert text.count("word …") == 2
    unbroken = rendered(found(facts=(fact("A", "is", "x" * 900, is_value=True),)), "narrative").text
    assert unbroken == f"### CONTEXT: A\n- is: {'x' * 240} …"


# -- narrative -----------------------------------------------------------------------------------------


def test_the_narrative_is_that_of_the_specification() -> None:
    what = found(
        hit("p", "A passage."),
        entities=(entity("JACQ Project"), entity("DuckDB")),
        facts=(
            fact("VSS", "part_of", "Extensions"),
            fact("JACQ Project", "uses", "DuckDB"),
            fact("JACQ Project", "status", "active", is_value=True),
            fact("User", "prefers", "dark mode", is_value=True),
            fact("DuckDB", "supports", "VSS"),
            fact("me", "works_on", "JACQ Project"),
        ),
    )
    assert rendered(what, "narrative").text == "\n".join(
        [
            "### USER CONTEXT",
            "- works_on: JACQ Project",
            "- prefers: dark mode",
            "",
            "### CONTEXT: JACQ Project",
            "- uses: DuckDB",
            "- status: active",
            "",
            "### CONTEXT: DuckDB",
            "- supports: VSS",
            "",
            "### CONTEXT: VSS",
            "- part_of: Extensions",
            "",
            "## Passages",
            "",
            "[1]",
            "A passage.",
        ]
    )


def test_an_entity_is_named_as_the_store_names_it() -> None:
    told = replace(fact("Waylore", "is", "fast", is_value=True), subject="waylore")
    assert rendered(found(entities=(entity("Waylore"),), facts=(told,)), "narrative").text.startswith(
        "### CONTEXT: Waylore\n"
    )


# -- the order of facts --------------------------------------------------------------------------------

A_B, B_C, C_D, D_A = (fact(a, "leads_to", b) for a, b in ("AB", "BC", "CD", "DA"))
B_X, X_Y, A_VALUE = fact("B", "likes", "X"), fact("X", "likes", "Y"), fact("A", "is", "B", is_value=True)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ((), ()),
        ((B_C, A_B), (A_B, B_C)),
        ((C_D, A_B, B_C), (A_B, B_C, C_D)),
        ((X_Y, C_D, A_B), (X_Y, C_D, A_B)),
        ((X_Y, C_D, B_C), (X_Y, B_C, C_D)),
        ((A_B, B_C, B_X, C_D, X_Y), (A_B, B_C, C_D, B_X, X_Y)),
        ((B_C, C_D, D_A, A_B), (B_C, C_D, D_A, A_B)),
        ((C_D, B_C, A_B, D_A), (C_D, D_A, A_B, B_C)),
        ((B_C, A_VALUE), (B_C, A_VALUE)),
        ((A_B, A_B, B_C), (A_B, B_C, A_B)),
    ],
)
def test_a_chain_reads_from_its_beginning(given_: tuple[Fact, ...], expected: tuple[Fact, ...]) -> None:
    assert in_order(given_) == expected


@given(st.permutations([fact(f"e{n}", "leads_to", f"e{n + 1}") for n in range(8)]))
def test_a_chain_reads_in_order_however_it_was_found(chain: list[Fact]) -> None:
    assert all(a.object_id == b.subject_id for a, b in pairwise(in_order(chain)))


def test_a_long_chain_needs_no_deep_stack() -> None:
    chain = [fact(f"e{n}", "leads_to", f"e{n + 1}") for n in range(2_000)]
    assert in_order(chain[::-1]) == tuple(chain)
