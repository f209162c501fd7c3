"""Test methods and the rules of `auto`: each rule with its questions and its reason, the first match wins."""

import time

import pytest

from waylore.errors import ArgumentError
from waylore.recipes import (
    GRAPH_ONLY,
    METHODS,
    OTHERWISE,
    RECIPES,
    RULES,
    Rule,
    TurnShare,
    choose_recipe,
    match_rule,
    resolve_method,
)


@pytest.mark.parametrize(
    ("question", "recipe", "reason"),
    [
        ("Which papers cite BERT?", "citations", "it asks for citations"),
        ("What is CITED by Vaswani?", "citations", "it asks for citations"),
        ("the references of this work", "citations", "it asks for citations"),
        ("a bibliography of graphs", "citations", "it asks for citations"),
        ("Who cites BERT?", "citations", "it asks for citations"),
        ("references of\nthe paper", "citations", "it asks for citations"),
        ("Which papers reference BERT?", "citations", "it asks for citations"),
        ("arXiv:2106.01345v2", "keyword", "it is the number of a paper"),
        ("2106.01345?", "keyword", "it is the number of a paper"),
        ("doi:10.1000/182", "keyword", "it is the number of a paper"),
        ("paper: Attention is all you need", "keyword", "it is the number of a paper"),
        ("INC-4711", "keyword", "it is an identifier"),
        (" load_settings?", "keyword", "it is an identifier"),
        ("settings.load()", "keyword", "it is an identifier"),
        ("std::vector", "keyword", "it is an identifier"),
        ("`grep -r`", "keyword", "it is an identifier"),
        ("Postgres vs SQLite", "hybrid", "it compares"),
        ("Comparing ferries and trains", "hybrid", "it compares"),
        ("Compare ferries with trains", "hybrid", "it compares"),
        ("How does a ferry compare to a train?", "hybrid", "it compares"),
        ("Give me an overview of Kiel", "hybrid", "it asks for an overview"),
        ("Summarize the storm", "hybrid", "it asks for an overview"),
        ("Is there a survey of ferries?", "hybrid", "it asks for an overview"),
        ("graph retrieval overview", "hybrid", "it asks for an overview"),
        ("Who is the mother of Lothair II?", "chain", OTHERWISE.reason),
        ("Which cities recite poems on excitement?", "chain", OTHERWISE.reason),
        ("", "chain", OTHERWISE.reason),
    ],
)
def test_auto_chooses_a_recipe_by_rule(question: str, recipe: str, reason: str) -> None:
    assert (match_rule(question).recipe, match_rule(question).reason) == (recipe, reason)


@pytest.mark.parametrize(
    "question",
    [
        "What happened in INC-4711?",
        "where is load_settings used",
        "what calls main()",
        "what does `grep` print",
        "What does arXiv 2106.01345 say of memory?",
        "Who wrote the paper that Tidal Hashing cites?",
        "Who directed Kramer vs. Kramer?",
        "Which film is older, The People vs. Larry Flynt or Manila?",
        "How much more did I spend in Hawaii compared to Tokyo?",
        "Compare this to the previous method, which has two stages.",
        "Who made the overview of 2016?",
        "What is a reference to Hamlet?",
        "Large-Scale Learning with Less Memory. " + "We compare our method with earlier works and cite them. " * 3,
    ],
)
def test_words_of_a_rule_in_passing_choose_nothing(question: str) -> None:
    assert match_rule(question) is OTHERWISE


@pytest.mark.parametrize(
    "text",
    [
        "." * 7_990 + "how",
        "x" * 7_990,
        "references " * 25 + "x" * 7_000,
        "_" * 7_990 + "!a",
        "doi" + "." * 7_900 + " a",
        " " * 7_990 + "a",
    ],
)
def test_rules_take_little_time_for_any_question(text: str) -> None:
    started = time.process_time()
    match_rule(text)
    assert time.process_time() - started < 0.2


def test_first_matching_rule_wins() -> None:
    first, second = Rule("ferry", "hybrid", "first"), Rule("fer", "keyword", "second")
    assert match_rule("the ferry", [first, second]) is first
    assert match_rule("the fern", [first, second]) is second
    assert match_rule("Compare citations of INC-4711") is RULES[0]


def test_rules_can_be_replaced() -> None:
    mine = Rule("ferry", "neighbourhood", "it is about ferries")
    assert match_rule("Which FERRY?", [mine]) is mine
    assert match_rule("Which train, versus what?", [mine]) is OTHERWISE


def test_every_rule_names_a_recipe() -> None:
    assert {rule.recipe for rule in (*RULES, OTHERWISE)} <= RECIPES.keys()


@pytest.mark.parametrize(
    ("method", "name"),
    [
        *((name, name) for name in ("auto", *RECIPES)),
        ("graph", "chain"),
        ("Graph", "chain"),
        ("agentic", "auto"),
        ("AGENTIC", "auto"),
        ("Vector", "vector"),
        ("KEYWORD", "keyword"),
        ("Hybrid", "hybrid"),
    ],
)
def test_methods_are_resolved_in_any_case(method: str, name: str) -> None:
    assert resolve_method(method) == name


def test_every_method_has_a_recipe() -> None:
    assert {choose_recipe(method, "Ada vs Byron")[0].name for method in METHODS} == set(RECIPES)


def test_only_auto_gives_a_reason() -> None:
    assert choose_recipe("agentic", "Ada vs Byron") == (RECIPES["hybrid"], "hybrid: it compares")
    assert choose_recipe("graph", "Ada vs Byron") == (RECIPES["chain"], "")


@pytest.mark.parametrize(("share", "recipe"), [("none", "chain"), ("some", "mixed"), ("all", "conversation")])
def test_auto_chooses_by_turns_if_no_rule_matches(share: TurnShare, recipe: str) -> None:
    assert choose_recipe("auto", "Who is Ada?", lambda: share)[0] is RECIPES[recipe]
    assert choose_recipe("auto", "Ada vs Byron", lambda: share)[0] is RECIPES["hybrid"]
    assert choose_recipe("chain", "Who is Ada?", lambda: share)[0] is RECIPES["chain"]


@pytest.mark.parametrize("method", ["magic", "", "neighborhood"])
def test_unknown_methods_are_refused_with_the_known_ones(method: str) -> None:
    known = f"use auto, {', '.join(RECIPES)}, or graph .= chain. or agentic .= auto.$"
    with pytest.raises(ArgumentError, match=f"^unknown method '{method}'; {known}"):
        resolve_method(method)


def test_graph_only_needs_a_graph() -> None:
    assert not GRAPH_ONLY.has_hybrid
    assert [name for name, recipe in RECIPES.items() if not recipe.has_hybrid] == ["graph_only"]
