"""Similar names are classified as the same, as resembling, or as neither, and the most trusted fact wins."""

from dataclasses import replace

import pytest

from waylore.config import ResolutionConfig
from waylore.retrieval.graph.same_as import EntityMerges, classify_similar_names
from waylore.types.identity import entity_id
from waylore.types.knowledge import RESEMBLES, SAME, Entity, Fact, SimilarEntities

CONFIG = ResolutionConfig()


def make_entity(name: str, type_: str = "", sense: str = "") -> Entity:
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
def test_equal_words_are_classified(
    one: tuple[str, str], other: tuple[str, str], cosine: float | None, expected: str | None
) -> None:
    alike = SimilarEntities(make_entity(*one), make_entity(*other), "words:", cosine)
    fact, turned = (
        classify_similar_names(alike, CONFIG),
        classify_similar_names(SimilarEntities(alike.other, alike.entity, "words:", cosine), CONFIG),
    )
    assert (fact and fact.predicate) == expected
    assert fact == turned


def test_short_form_only_resembles_long_form() -> None:
    alike = SimilarEntities(make_entity("WHO"), make_entity("World Health Organization"), "initials:who", 0.99)
    fact = classify_similar_names(alike, CONFIG)
    assert fact is not None
    assert fact.predicate == RESEMBLES
    assert (
        classify_similar_names(
            replace(alike, entity=make_entity("WHO", "band"), other=make_entity("W", "agency")), CONFIG
        )
        is None
    )


def test_different_senses_do_not_merge() -> None:
    alike = SimilarEntities(
        make_entity("Mercury", sense="planet"), make_entity("Mercury", sense="god"), "words:mercuri", 1.0
    )
    assert classify_similar_names(alike, CONFIG) is None


def test_retracted_merge_is_not_same() -> None:
    fact = Fact("f", "a", "A", SAME, "B", "b", status="retracted")
    joined = EntityMerges({"a": {"b": fact}})
    assert joined.are_distinct("a", "b")
    assert joined.find_same("a") == joined.facts == {}
