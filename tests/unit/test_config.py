"""Test configs: the defaults are the numbers of the specification, and each can be replaced."""

from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from operator import attrgetter
from typing import Any

import pytest

from waylore import config
from waylore.config import CacheConfig, ContextConfig
from waylore.recipes import (
    ACTIVATION,
    CITATIONS,
    GRAPH_ONLY,
    GUIDED,
    HYBRID,
    NEIGHBOURHOOD,
    RECIPES,
    SPECIFIED,
    Recipe,
)

CLASSES = [kind for kind in vars(config).values() if isinstance(kind, type) and is_dataclass(kind)]
PARTS = [field.name for field in fields(Recipe) if is_dataclass(getattr(HYBRID, field.name))]


@pytest.mark.parametrize(
    ("requirement", "recipe", "path", "value"),
    [
        ("S1", HYBRID, "hybrid.vector_weight", 0.7),
        ("S1", HYBRID, "hybrid.text_weight", 0.3),
        ("S1", HYBRID, "hybrid.fusion", "anchored"),
        ("S3", NEIGHBOURHOOD, "linking.nearest_limit", 3),
        ("S3", NEIGHBOURHOOD, "linking.nearest_threshold", 0.75),
        ("S4", NEIGHBOURHOOD, "walk.max_hops", 1),
        ("S4", NEIGHBOURHOOD, "walk.restart", 0.5),
        ("S4", NEIGHBOURHOOD, "walk.predicates", ()),
        ("S5", NEIGHBOURHOOD, "hybrid.fusion", "weighted"),
        ("S5", NEIGHBOURHOOD, "merge.hybrid_weight", 0.7),
        ("S5", NEIGHBOURHOOD, "merge.graph_weight", 0.3),
        ("S5", SPECIFIED, "merge.max_graph_passages", 4),
        ("S5", NEIGHBOURHOOD, "merge.max_graph_passages", 4),
        ("S6", NEIGHBOURHOOD, "gate.specificity", 0.3),
        ("S6", NEIGHBOURHOOD, "gate.recognition", 0.3),
        ("S6", NEIGHBOURHOOD, "gate.quality", 0.4),
        ("S6", NEIGHBOURHOOD, "gate.min_confidence", 0.5),
        ("S6", NEIGHBOURHOOD, "gate.min_graph_score", 0.3),
        ("S10", NEIGHBOURHOOD, "top_k", 10),
        ("S11", GUIDED, "expansion.results_per_query", 3),
        ("S11", GUIDED, "hybrid.fusion", "rrf"),
        ("S12", ACTIVATION, "hybrid.fusion", "weighted"),
        ("S12", ACTIVATION, "linking.nearest_limit", 3),
        ("S12", ACTIVATION, "walk.max_hops", 2),
        ("S12", ACTIVATION, "walk.facts_per_entity", 10),
        ("S12", ACTIVATION, "walk.max_facts", 30),
        ("S12", ACTIVATION, "walk.statuses", ("staged", "confirmed")),
        ("S12", ACTIVATION, "trust.decay_per_week", 0.05),
        ("S12", ACTIVATION, "trust.grace_weeks", 1),
        ("S12", ACTIVATION, "trust.usage", 0.5),
        ("S12", ACTIVATION, "trust.confirmed", 1.2),
        (
            "S12",
            ACTIVATION,
            "trust.user_edit",
            2.0,
        ),
        ("S12", ACTIVATION, "trust.file", 1.5),
        ("S12", ACTIVATION, "trust.system", 1.2),
        ("S12", ACTIVATION, "trust.conversation", 1.0),
        ("S15", GUIDED, "hybrid.rrf_k", 60),
        ("S18", CITATIONS, "hybrid.fusion", "weighted"),
        ("S18", CITATIONS, "walk.max_hops", 2),
        ("S18", CITATIONS, "graph", "citations"),
        ("S16", GRAPH_ONLY, "walk.max_hops", 2),
        ("S16", GRAPH_ONLY, "is_graph_only", True),
        ("S18", CITATIONS, "walk.predicates", ("cites",)),
    ],
)
def test_defaults_equal_the_specification(requirement: str, recipe: Recipe, path: str, value: object) -> None:
    assert attrgetter(path)(recipe) == value, requirement


@pytest.mark.parametrize(
    ("fusion", "top_k", "expected"),
    [
        *(("anchored", top_k, depth) for top_k, depth in [(1, 80), (10, 80), (80, 80), (81, 160), (200, 240)]),
        *(("weighted", top_k, depth) for top_k, depth in [(1, 80), (20, 80), (21, 84), (200, 800)]),
    ],
)
def test_number_of_candidates(fusion: Any, top_k: int, expected: int) -> None:
    assert config.HybridConfig(fusion).count_candidates(top_k) == expected


def test_configs_outside_recipes_have_defaults() -> None:
    assert (ContextConfig().max_tokens, ContextConfig().graph_tokens) == (4_000, 500)  # S9
    assert CacheConfig().seconds == 60  # S14


def test_weights_of_a_score_add_up_to_one() -> None:
    base = HYBRID
    assert base.hybrid.vector_weight + base.hybrid.text_weight == pytest.approx(1)
    assert base.merge.hybrid_weight + base.merge.graph_weight == pytest.approx(1)
    assert base.gate.specificity + base.gate.recognition + base.gate.quality == pytest.approx(1)


def test_recipes_are_found_by_name() -> None:
    graphs = ["neighbourhood", "specified", "guided", "activation", "citations", "deep", "graph_only"]
    assert [*RECIPES] == ["chain", "hybrid", "vector", "keyword", *graphs, "conversation", "mixed"]
    assert all(recipe.name == name for name, recipe in RECIPES.items())
    assert [name for name, recipe in RECIPES.items() if recipe.graph] == ["chain", *graphs, "mixed"]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: str(kind.__name__))
def test_configs_are_frozen(kind: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(kind.__new__(kind), fields(kind)[0].name, 1)


def test_shared_defaults_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        RECIPES["mine"] = HYBRID  # type: ignore[index]


@pytest.mark.parametrize("part", PARTS)
def test_numbers_can_be_replaced(part: str) -> None:
    before = getattr(HYBRID, part)
    for field in fields(before):
        value = getattr(before, field.name)
        if isinstance(value, int | float):
            after = replace(HYBRID, **{part: replace(before, **{field.name: value + 1})})
            assert getattr(getattr(after, part), field.name) == value + 1
            assert getattr(HYBRID, part) == before


def test_recipes_can_be_keys_of_a_cache() -> None:
    assert {HYBRID: "answer"}[replace(HYBRID)] == "answer"
