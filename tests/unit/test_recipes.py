"""Each rule speaks for its own questions, the first that matches wins, and each gives its reason."""

import pytest

from waylore.recipes import OTHERWISE, RECIPES, RULES, Rule, route


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
def test_a_question_falls_under_a_rule(question: str, recipe: str, reason: str) -> None:
    assert (route(question).recipe, route(question).reason) == (recipe, reason)


def test_the_first_rule_that_matches_wins() -> None:
    everything = " ".join(["overview", "versus", "load_settings", "arxiv", "citations"])
    for rule in RULES:
        assert route(everything) == rule
        everything = everything.rpartition(" ")[0]
    assert route(everything) is OTHERWISE


def test_rules_are_data() -> None:
    mine = Rule("ferry", "neighbourhood", "it is about ferries")
    assert route("Which FERRY?", [mine]) is mine
    assert route("Which train, versus what?", [mine]) is OTHERWISE


def test_every_rule_leads_to_a_recipe() -> None:
    assert {rule.recipe for rule in (*RULES, OTHERWISE)} <= RECIPES.keys()
