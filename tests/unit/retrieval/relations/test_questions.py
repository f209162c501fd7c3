"""Rules read which questions ask for a set or a connection, and of what (issue 30)."""

import pytest

from waylore.retrieval.gate import may_ask_for_set
from waylore.retrieval.relations.questions import AskedRelation, choose_reading, find_pair, list_asked

KNOWN = ("Quarry", "Harbor", "Logistics team", "OAuth provider", "SIG Apps", "Ada Lovelace", "payment gateway")


@pytest.mark.parametrize(
    ("question", "name", "predicate", "direction"),
    [
        ("What depends on Quarry?", "Quarry", "depends on", "in"),
        ("which services depend on the Quarry service?", "Quarry", "depend on", "in"),
        ("How many services depend on Quarry?", "Quarry", "depend on", "in"),
        ("List all services that depend on Quarry", "Quarry", "depend on", "in"),
        ("everything that is built on Quarry", "Quarry", "is built on", "in"),
        ("Which repositories does the Logistics team own?", "Logistics team", "own", "out"),
        ("Which repositories are owned by the Logistics team?", "Logistics team", "are owned by", "in"),
        ("who owns Harbor?", "Harbor", "owns", "in"),
        ("Which team owns Harbor", "Harbor", "owns", "in"),
        ("Who are the chairs of SIG Apps?", "SIG Apps", "chairs", "out"),
        ("list the members of the Logistics team", "Logistics team", "members", "out"),
        ("How many members does the Logistics team have?", "Logistics team", "members", "out"),
        ("everything Harbor uses", "Harbor", "uses", "out"),
        ("What shards the payment gateway?", "payment gateway", "shards", "in"),
    ],
)
def test_question_for_a_set_is_read(question: str, name: str, predicate: str, direction: str) -> None:
    assert may_ask_for_set(question)
    best = choose_reading(list_asked(question), KNOWN)
    assert best is not None
    assert (best.name, best.predicate, best.direction, best.hops) == (name, predicate, direction, 1)


@pytest.mark.parametrize(
    "question",
    [
        "What happens if we change the OAuth provider?",
        "what would break if the OAuth provider goes down?",
        "What is affected by changing the OAuth provider?",
        "Show me the blast radius of the OAuth provider",
        "what else breaks when somebody removes the OAuth provider",
    ],
)
def test_question_for_the_impact_of_a_change_follows_dependencies(question: str) -> None:
    assert may_ask_for_set(question)
    expected = AskedRelation("OAuth provider", "depends on", "in", 3)
    assert choose_reading(list_asked(question), KNOWN) == expected


@pytest.mark.parametrize(
    "question",
    [
        "How are Harbor and the Quarry connected?",
        "How is Harbor related to Quarry?",
        "how does Harbor relate to Quarry",
        "What connects Harbor with Quarry?",
        "What is the connection between Harbor and Quarry?",
        "path from Harbor to Quarry",
    ],
)
def test_question_for_a_connection_has_two_names(question: str) -> None:
    assert may_ask_for_set(question)
    assert find_pair(question) == ("Harbor", "Quarry")


@pytest.mark.parametrize(
    "question",
    [
        "How do I stop npm from running install scripts of a dependency?",
        "Why does Harbor depend on Quarry?",
        "When did the Logistics team move?",
        "Tell me about Harbor",
        "Harbor",
        "",
        "?",
    ],
)
def test_other_questions_ask_for_no_set(question: str) -> None:
    assert not may_ask_for_set(question) or choose_reading(list_asked(question), KNOWN) is None
    assert find_pair(question) is None


def test_unknown_names_are_not_read() -> None:
    assert choose_reading(list_asked("What depends on the Moon?"), KNOWN) is None
    assert list_asked("which " + "very " * 30 + "old services depend on Quarry?") == []
