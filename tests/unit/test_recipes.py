"""Test methods and the rules of `auto`: each rule with its questions and its reason, the first match wins."""

import pytest

from waylore.errors import ArgumentError
from waylore.recipes import (
    GRAPH_ONLY,
    METHODS,
    OTHERWISE,
    RECIPES,
    RULES,
    Rule,
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
        ("What does arXiv say?", "keyword", "it names a paper by its number"),
        ("summarise 2106.01345", "keyword", "it names a paper by its number"),
        ("paper: Attention is all you need", "keyword", "it names a paper by its number"),
        ("What happened in INC-4711?", "keyword", "it names an identifier"),
        ("where is load_settings used", "keyword", "it names an identifier"),
        ("what calls main()", "keyword", "it names an identifier"),
        ("std::vector", "keyword", "it names an identifier"),
        ("what does `grep` print", "keyword", "it names an identifier"),
        ("Postgres vs SQLite", "hybrid", "it compares"),
        ("Comparing ferries and trains", "hybrid", "it compares"),
        ("Give me an overview of Kiel", "hybrid", "it asks for an overview"),
        ("Summarize the storm", "hybrid", "it asks for an overview"),
        ("Who is the mother of Lothair II?", "chain", OTHERWISE.reason),
        ("Which cities recite poems on excitement?", "chain", OTHERWISE.reason),
        ("", "chain", OTHERWISE.reason),
    ],
)
def test_auto_chooses_a_recipe_by_rule(question: str, recipe: str, reason: str) -> None:
    assert (match_rule(question).recipe, match_rule(question).reason) == (recipe, reason)


def test_first_matching_rule_wins() -> None:
    everything = " ".join(["overview", "versus", "load_settings", "arxiv", "citations"])
    for rule in RULES:
        assert match_rule(everything) == rule
        everything = everything.rpartition(" ")[0]
    assert match_rule(everything) is OTHERWISE


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


@pytest.mark.parametrize("method", ["magic", "", "neighborhood"])
def test_unknown_methods_are_refused_with_the_known_ones(method: str) -> None:
    known = f"use auto, {', '.join(RECIPES)}, or graph .= chain. or agentic .= auto.$"
    with pytest.raises(ArgumentError, match=f"^unknown method '{method}'; {known}"):
        resolve_method(method)


def test_graph_only_needs_a_graph() -> None:
    assert not GRAPH_ONLY.has_hybrid
    assert [name for name, recipe in RECIPES.items() if not recipe.has_hybrid] == ["graph_only"]
