"""Expansion queries pair what is named with its neighbours, nearest and strongest first, each once (S11)."""

from unit.retrieval.finding import fact
from waylore.retrieval.graph.guided import expansion_queries
from waylore.types.knowledge import Fact
from waylore.types.search import FactPath, Step


def path(start: str, *steps: Step) -> FactPath:
    return FactPath(start, steps)


def asked(starts: list[str], *paths: FactPath) -> list[tuple[str, float]]:
    bearing = {f.id: f.weight for p in paths for f in p.facts}
    queries = expansion_queries({name.lower(): name for name in starts}, paths, bearing)
    return [(query.text, query.proximity) for query in queries]


def knows(one: str, other: str, weight: float = 5) -> Fact:
    return fact(one, "knows", other, weight=weight)


def test_nearer_neighbours_come_first_then_stronger_ones_then_the_names_themselves() -> None:
    ab, bc, ad = knows("A", "B", 3), knows("B", "C", 9), knows("A", "D", 8)
    two_away = path("A", Step(ab), Step(bc))
    assert asked(["A"], two_away, path("A", Step(ab)), path("A", Step(ad))) == [
        ("A D", 1 / 2),
        ("A B", 1 / 2),
        ("A C", 1 / 3),
        ("A", 1.0),
    ]


def test_a_neighbour_is_where_the_last_step_arrives() -> None:
    assert asked(["A"], path("A", Step(knows("B", "A"), is_forward=False))) == [("A B", 1 / 2), ("A", 1.0)]


def test_each_pair_is_asked_for_once_whichever_way_round() -> None:
    ab, ba = knows("A", "B", 7), knows("B", "A", 3)
    found = asked(["B", "A"], path("B", Step(ba)), path("A", Step(ab)))
    assert found == [("A B", 1 / 2), ("A", 1.0), ("B", 1.0)]


def test_two_that_share_a_name_are_asked_for_once_and_nothing_gives_nothing() -> None:
    assert expansion_queries({"one": "Mercury", "other": "Mercury"}, [], {}) == expansion_queries(
        {"one": "Mercury"}, [], {}
    )
    assert asked([]) == []


def test_a_query_keeps_the_path_that_suggests_it() -> None:
    led = path("A", Step(knows("A", "B")))
    assert [query.path for query in expansion_queries({"a": "A"}, [led], {led.facts[0].id: 1.0})] == [
        led,
        FactPath("A"),
    ]
