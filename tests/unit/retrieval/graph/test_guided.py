"""Expansion queries pair the named entities with neighbours, nearest and strongest first, each once (S11)."""

from unit.retrieval.samples import make_fact
from waylore.retrieval.graph.guided import build_expansion_queries
from waylore.types.knowledge import Fact
from waylore.types.search import GraphPath, Step


def make_path(start: str, *steps: Step) -> GraphPath:
    return GraphPath(start, steps)


def list_queries(starts: list[str], *paths: GraphPath) -> list[tuple[str, float]]:
    bearing = {f.id: f.weight for p in paths for f in p.facts}
    queries = build_expansion_queries({name.lower(): name for name in starts}, paths, bearing)
    return [(query.text, query.proximity) for query in queries]


def make_weighted_fact(one: str, other: str, weight: float = 5) -> Fact:
    return make_fact(one, "knows", other, weight=weight)


def test_queries_sort_by_distance_strength_then_names() -> None:
    ab, bc, ad = (
        make_weighted_fact("A", "B", 3),
        make_weighted_fact("B", "C", 9),
        make_weighted_fact("A", "D", 8),
    )
    two_away = make_path("A", Step(ab), Step(bc))
    assert list_queries(["A"], two_away, make_path("A", Step(ab)), make_path("A", Step(ad))) == [
        ("A D", 1 / 2),
        ("A B", 1 / 2),
        ("A C", 1 / 3),
        ("A", 1.0),
    ]


def test_neighbour_is_end_of_last_step() -> None:
    assert list_queries(["A"], make_path("A", Step(make_weighted_fact("B", "A"), is_forward=False))) == [
        ("A B", 1 / 2),
        ("A", 1.0),
    ]


def test_queries_have_each_pair_once() -> None:
    ab, ba = make_weighted_fact("A", "B", 7), make_weighted_fact("B", "A", 3)
    found = list_queries(["B", "A"], make_path("B", Step(ba)), make_path("A", Step(ab)))
    assert found == [("A B", 1 / 2), ("A", 1.0), ("B", 1.0)]


def test_queries_have_shared_name_once() -> None:
    assert build_expansion_queries({"one": "Mercury", "other": "Mercury"}, [], {}) == build_expansion_queries(
        {"one": "Mercury"}, [], {}
    )
    assert list_queries([]) == []


def test_query_has_its_path() -> None:
    led = make_path("A", Step(make_weighted_fact("A", "B")))
    assert [query.path for query in build_expansion_queries({"a": "A"}, [led], {led.facts[0].id: 1.0})] == [
        led,
        GraphPath("A"),
    ]
