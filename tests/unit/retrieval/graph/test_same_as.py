"""What the likeness of two names amounts to, as a table, and who has the last word."""

from dataclasses import replace

import pytest

from waylore.config import Resolution
from waylore.retrieval.graph.same_as import Joins, judged
from waylore.types.identity import entity_id
from waylore.types.knowledge import RESEMBLES, SAME, Alike, Entity, Fact

CONFIG = Resolution()


def entity(name: str, type_: str = "", sense: str = "") -> Entity:
    return Entity(entity_id(name, sense), name, type_, sense=sense)


@pytest.mark.parametrize(
    ("one", "other", "cosine", "expected"),
    [
        (("The Beatles", "band"), ("Beatles", "band"), 0.97, SAME),
        (("The Beatles", ""), ("Beatles", ""), 0.97, SAME),
        (("The Beatles", "band"), ("Beatles", ""), 0.97, SAME),
        (("The Beatles", "band"), ("Beatles", "insect"), 0.99, None),
        (("The Beatles", ""), ("Beatles", ""), 0.80, RESEMBLES),
        (("The Beatles", ""), ("Beatles", ""), None, RESEMBLES),
        (("Academy Award", "prize"), ("Academy Awards", "prize"), 0.97, SAME),
        (("Academy Award", ""), ("Academy Awards", ""), 0.97, RESEMBLES),
        (("Samuel Taylor Coleridge", "person"), ("Samuel Coleridge-Taylor", "person"), 0.97, RESEMBLES),
        (("Universal", ""), ("University", ""), 0.70, None),
        (("WHO", ""), ("The Who", ""), 0.97, None),
        (("WHO", "agency"), ("The Who", "band"), 0.97, None),
    ],
)
def test_equal_words_amount_to(
    one: tuple[str, str], other: tuple[str, str], cosine: float | None, expected: str | None
) -> None:
    alike = Alike(entity(*one), entity(*other), "words:", cosine)
    fact, turned = judged(alike, CONFIG), judged(Alike(alike.other, alike.entity, "words:", cosine), CONFIG)
    assert (fact and fact.predicate) == expected
    assert fact == turned


def test_a_short_form_resembles_what_it_may_stand_for_and_no_more() -> None:
    alike = Alike(entity("WHO"), entity("World Health Organization"), "initials:who", 0.99)
    fact = judged(alike, CONFIG)
    assert fact is not None
    assert fact.predicate == RESEMBLES
    assert judged(replace(alike, entity=entity("WHO", "band"), other=entity("W", "agency")), CONFIG) is None


def test_senses_that_were_told_apart_stay_apart() -> None:
    alike = Alike(entity("Mercury", sense="planet"), entity("Mercury", sense="god"), "words:mercuri", 1.0)
    assert judged(alike, CONFIG) is None


def test_what_was_parted_is_not_the_same() -> None:
    fact = Fact("f", "a", "A", SAME, "B", "b", status="retracted")
    joined = Joins({"a": {"b": fact}})
    assert joined.are_parted("a", "b")
    assert joined.same("a") == joined.facts == {}
