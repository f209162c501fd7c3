"""Questions about the graph against a walk over the export: nothing is missing, nothing hidden counts (issue 30)."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest
from hypothesis import strategies as st

from retrieval.walking import (
    ASKED,
    DrawnPage,
    SeenGraph,
    callers,
    graphs,
    index_pages,
    measure_distance,
    see_graph,
    walk,
)
from retrieval.worlds import DAYS, ENGINE, NAMES, fill_store, promise
from waylore import Waylore
from waylore.retrieval.relations import connect, entities, facts, related
from waylore.store.sqlite.store import SqliteStore
from waylore.types.identity import entity_id
from waylore.types.relations import ConnectingPath, Related
from waylore.types.search import Filter

names = st.sampled_from(NAMES)
askings = st.sampled_from(["", "", *ASKED])
directions = st.sampled_from(["both", "in", "out"])
BOUNDS = ("FACTS_PER_ENTITY", "PAIRS_PER_ENTITY", "PASSAGES_PER_ENTITY", "MAX_LOOKED_AT")
moments = st.sampled_from([None, None, None, DAYS[1], DAYS[3]])


class PlainFile(SqliteStore):
    """A file, whichever engine is under test."""


@contextmanager
def open_memory(drawn: tuple[DrawnPage, ...], kind: type[SqliteStore] = SqliteStore) -> Iterator[Waylore]:
    with fill_store(index_pages(drawn), kind, model=None) as store:
        yield Waylore(store, cache=None)


def see(drawn: tuple[DrawnPage, ...], caller: Filter, as_of: datetime | None = None) -> SeenGraph:
    return see_graph(index_pages(drawn), caller, as_of)


def measure_depths(answer: Related) -> dict[str, int]:
    pending = [(fact, 1) for fact in answer.facts]
    depths = {}
    for fact, hop in pending:
        depths[fact.assertion.fact.id] = hop
        pending += [(branch, hop + 1) for branch in fact.branches]
    assert len(depths) == len(pending)
    return depths


@promise(60, graphs, callers, askings, directions, st.integers(1, 4), moments, st.sampled_from([1_000, 3]))
def test_related_equals_a_walk_over_the_export(
    drawn: tuple[DrawnPage, ...],
    caller: Filter,
    asked: str,
    direction: str,
    hops: int,
    as_of: datetime | None,
    limit: int,
) -> None:
    seen = see(drawn, caller, as_of)
    options: dict[str, Any] = {"direction": direction, "hops": hops, "as_of": as_of, "where": caller, "limit": limit}
    with open_memory(drawn) as memory:
        for name in NAMES[:4]:
            expected = walk(seen, name, asked, direction, hops)
            answer = memory.related(name, predicates=asked or None, **options)
            depths = measure_depths(answer)
            assert depths.items() <= expected.items()
            assert (answer.total, answer.shown, len(depths)) == (len(expected), *[min(limit, len(expected))] * 2)
            assert answer.complete == (len(depths) == len(expected))


@promise(60, graphs, callers, askings, st.integers(1, 3), st.integers(1, 4), st.integers(1, 6))
def test_answer_is_never_complete_if_a_bound_cut_it(
    drawn: tuple[DrawnPage, ...], caller: Filter, asked: str, hops: int, most: int, few: int
) -> None:
    seen = see(drawn, caller)
    with pytest.MonkeyPatch.context() as patch, open_memory(drawn) as memory:
        patch.setattr(related, "COUNTED", most)
        patch.setattr(facts, "FEW", 1)
        patch.setattr(facts, "MAX_READ", few)
        for name in NAMES[:4]:
            expected = walk(seen, name, asked, "both", hops)
            answer = memory.related(name, predicates=asked or None, hops=hops, where=caller, limit=most)
            assert measure_depths(answer).keys() <= expected.keys()
            assert answer.total <= len(expected)
            assert answer.total == len(expected) or not answer.extent.is_exact
            assert not answer.complete or answer.shown == len(expected)


@promise(40, graphs, callers, names, st.integers(1, 5))
def test_connect_finds_the_shortest_path(drawn: tuple[DrawnPage, ...], caller: Filter, one: str, max_hops: int) -> None:
    seen = see(drawn, caller)
    with open_memory(drawn) as memory:
        answers = {other: memory.connect(one, other, max_hops=max_hops, where=caller) for other in NAMES}
    if ENGINE.get() != "sqlite":
        with open_memory(drawn, PlainFile) as plain:
            assert answers == {other: plain.connect(one, other, max_hops=max_hops, where=caller) for other in NAMES}
    for other, answer in answers.items():
        unknown = [name for name in dict.fromkeys((one, other)) if entity_id(name) not in seen.entities]
        distance = None if unknown else measure_distance(seen, entity_id(one), entity_id(other))
        assert bool(answer.paths) == (distance is not None and distance <= max_hops)
        assert answer.exhaustive
        assert list(answer.unknown) == unknown
        assert {path.hops for path in answer.paths} <= {distance}
        for path in answer.paths:
            check_path(path, seen)


def check_path(path: ConnectingPath, seen: SeenGraph) -> None:
    """Check that the steps of a path follow each other, and that each is a visible fact or pair."""
    known = {*seen.facts, *(pair.id for pair in seen.pairs)}
    at = path.start.id
    for step in path.steps:
        fact = step.assertion.fact
        assert fact.id in known
        ends = (fact.subject_id, fact.object_id)
        near, far = ends if step.is_forward else reversed(ends)
        assert (at, step.entity and step.entity.id) == (near, far)
        at = far


@promise(60, graphs, callers, names, st.sampled_from(BOUNDS), st.integers(1, 4))
def test_connect_says_if_a_bound_cut_it(
    drawn: tuple[DrawnPage, ...], caller: Filter, one: str, bound: str, most: int
) -> None:
    seen = see(drawn, caller)
    with pytest.MonkeyPatch.context() as patch, open_memory(drawn) as memory:
        patch.setattr(connect, "ENTITIES_AT_ONCE", 1)
        patch.setattr(connect, bound, most)
        for other in NAMES:
            distance = measure_distance(seen, entity_id(one), entity_id(other))
            answer = memory.connect(one, other, max_hops=4, where=caller)
            if answer.exhaustive and not answer.unknown:
                assert bool(answer.paths) == (distance is not None and distance <= 4)
            assert all(distance is not None and path.hops >= distance for path in answer.paths)


@promise(60, graphs, callers, st.sampled_from(["", "", "service", "Team"]), askings, st.sampled_from(["", *NAMES]))
def test_entities_are_listed_completely(
    drawn: tuple[DrawnPage, ...], caller: Filter, of_type: str, asked: str, about: str
) -> None:
    seen = see(drawn, caller)
    expected = set(seen.entities)
    if about:
        expected = _list_subjects(seen, asked, about)
    elif asked:
        expected = {end for name in NAMES for end in _list_subjects(seen, asked, name)}
        expected |= {f.subject_id for f in seen.list_relations() if ASKED[asked].get(f.predicate) is False}
    if of_type:
        expected &= {id_ for id_, some in seen.entities.items() if any(e.type == of_type.lower() for e in some)}
    found, after = [], ""
    with open_memory(drawn) as memory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(entities, "ENTITIES_AT_ONCE", 2)
        patch.setattr(entities, "RELATED_AT_ONCE", 2)
        while True:
            page = memory.list_entities(type=of_type, predicate=asked, object=about, after=after, limit=2, where=caller)
            found += [entity.id for entity in page]
            after = page.after
            assert page.extent.is_exact
            if not after:
                break
    assert sorted(found) == sorted(expected) or (about and of_type)
    assert set(found) <= expected
    assert page.total == len(found)


def _list_subjects(seen: SeenGraph, asked: str, about: str) -> set[str]:
    """Return the entities that a fact relates to another one, on the other side of the relation."""
    thing = seen.get_thing(entity_id(about))
    found = set()
    for fact in seen.list_relations():
        if len(fact.ends) < 2 or (asked and fact.predicate not in ASKED[asked]):
            continue
        subject, object_ = reversed(fact.ends) if asked and ASKED[asked][fact.predicate] else fact.ends
        if object_ in thing:
            found.add(subject)
    return found


@promise(30, graphs, callers, st.sampled_from(sorted(ASKED)), names)
def test_search_begins_with_the_set_that_the_question_asks_for(
    drawn: tuple[DrawnPage, ...], caller: Filter, asked: str, name: str
) -> None:
    with open_memory(drawn) as memory:
        result = memory.search(f"What {asked} {name}?", method="chain", where=caller, record_use=False)
        expected = memory.related(name, predicates=asked, direction="in", as_of=memory.now(), where=caller)
        plain = memory.search(f"What {asked} {name}?", method="hybrid", where=caller, record_use=False)
    assert plain.set_answer is None
    if result.set_answer is None:
        assert not expected.total
        return
    assert result.set_answer.is_complete == expected.complete
    assert len(result.set_answer.lines) == expected.shown
    for line, fact in zip(result.set_answer.lines, expected, strict=True):
        assert str(fact.assertion.fact) in line
