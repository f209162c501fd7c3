"""Test the assertions of a subject and a predicate: newest first, limited, and only visible ones."""

from dataclasses import replace
from datetime import timedelta

import pytest

from waylore.store.protocol import Store
from waylore.testing.scopes import say
from waylore.testing.world import MODEL, PUBLIC, OpenStore, StoreFixtures, day, page
from waylore.types.author import OWNER
from waylore.types.identity import entity_id
from waylore.types.knowledge import Fact, IndexedDocument, NewFact
from waylore.types.search import NO_FILTER, Filter

ANN = entity_id("Ann")
LIVES = "lives in"


def move(place: str, at: str, *, user: str = "") -> IndexedDocument:
    """Return what Ann said on a day about her home."""
    return say(f"I live in {place}.", NewFact("Ann", LIVES, place), user=user, at=at)


OSLO, BERGEN, BACK = move("Oslo", "2026-01-10"), move("Bergen", "2026-03-10"), move("Oslo", "2026-06-10")
HIDDEN = page("Ann lives in Rome.", NewFact("Ann", LIVES, "Rome", valid_from=day("2026-02-01")), labels=["staff"])


def list_assertions(
    store: Store, *, newest: int = 9, until: str = "", predicate: str = LIVES, where: Filter = NO_FILTER
) -> list[Fact]:
    """Return the newest assertions of Ann and a predicate."""
    latest = day(until) if until else None
    found = store.assertions_of_entities([ANN], predicates=[predicate], newest=newest, until=latest, where=where)
    assert set(found) <= {ANN}
    return list(found.get(ANN, ()))


def list_places(store: Store, **options: object) -> list[str]:
    """Return the objects of the newest assertions of Ann and a predicate."""
    return [fact.object for fact in list_assertions(store, **options)]  # type: ignore[arg-type]


class AssertionTests(StoreFixtures):
    """The assertions of a subject and a predicate."""

    @pytest.fixture
    def moved(self, store: Store) -> Store:
        store.write([BERGEN, BACK, OSLO, HIDDEN], author=OWNER, model=MODEL)
        return store

    def test_newest_assertions_come_first(self, moved: Store) -> None:
        found = list_assertions(moved, where=PUBLIC)
        assert [fact.object for fact in found] == ["Oslo", "Bergen", "Oslo"]
        assert [fact.at for fact in found] == [day("2026-06-10"), day("2026-03-10"), day("2026-01-10")]
        assert [fact.passage_id for fact in found] == [each.passages[0].id for each in (BACK, BERGEN, OSLO)]
        assert list_places(moved) == ["Oslo", "Bergen", "Rome", "Oslo"]
        assert list_places(moved, predicate="LIVES_IN", newest=2) == ["Oslo", "Bergen"]
        assert list_places(moved, predicate="likes") == []

    def test_valid_from_decides_before_the_day_of_saying(self, moved: Store) -> None:
        earlier = NewFact("Ann", LIVES, "Turin", valid_from=day("2026-01-01"))
        moved.write([say("I lived in Turin.", earlier, at="2026-07-01")], author=OWNER, model=MODEL)
        recorded = page("Ann lives in Paris.", NewFact("Ann", LIVES, "Paris"))  # recorded in 2024
        moved.write([recorded], author=OWNER, model=MODEL)
        assert list_places(moved, where=PUBLIC) == ["Oslo", "Bergen", "Oslo", "Turin", "Paris"]

    def test_assertions_after_a_time_are_left_out(self, moved: Store) -> None:
        assert list_places(moved, until="2026-03-10", newest=1) == ["Bergen"]
        assert list_places(moved, until="2026-03-09") == ["Rome", "Oslo"]
        assert list_places(moved, until="2026-01-09") == []

    def test_assertions_keep_to_scope(self, moved: Store) -> None:
        moved.write(
            [move("Lyon", "2026-08-01", user="ann"), move("Kyiv", "2026-09-01", user="ben")], author=OWNER, model=MODEL
        )
        assert list_places(moved, where=PUBLIC, newest=1) == ["Oslo"]
        assert list_places(moved, where=Filter(user="ann"), newest=2) == ["Lyon", "Oslo"]
        assert list_places(moved, where=Filter(labels=frozenset(), user="ben"), newest=1) == ["Kyiv"]
        assert list_places(moved, where=Filter(as_of=day("2026-03-10"), user="ann")) == ["Bergen", "Rome", "Oslo"]
        assert list_places(moved, where=Filter(since=day("2026-02-01"))) == ["Oslo", "Bergen"]

    def test_assertions_are_limited_for_each_subject_and_predicate(self, store: Store) -> None:
        first = day("2026-01-01")
        told = [
            NewFact(name, predicate, f"Town {number}", valid_from=first + timedelta(days=number))
            for name in ("Ann", "Ben")
            for predicate in (LIVES, "works in")
            for number in range(9)
        ]
        store.write(
            [page(f"{each.subject} {each.predicate} {each.object}", each) for each in told], author=OWNER, model=MODEL
        )
        people = [ANN, entity_id("Ben"), entity_id("Town 8")]
        found = store.assertions_of_entities(people, predicates=[LIVES, "works in"], newest=2)
        assert set(found) == set(people[:2])
        for of_one in found.values():
            assert sorted(f"{f.predicate} {f.object}" for f in of_one) == sorted(
                f"{predicate} Town {number}" for predicate in (LIVES, "works in") for number in (7, 8)
            )
            assert [f.object for f in of_one] == ["Town 8", "Town 8", "Town 7", "Town 7"]

    def test_retracted_assertions_are_left_out(self, moved: Store) -> None:
        bergen = replace(NewFact("Ann", LIVES, "Bergen"), status="retracted", source="user_edit")
        rumour = replace(NewFact("Ann", LIVES, "Turin"), status="staged")
        edit = page("Not Bergen.", bergen, rumour, source="user_edit")
        moved.write([edit], author=OWNER, model=MODEL)
        assert list_places(moved, where=PUBLIC) == ["Oslo", "Oslo", "Turin"]
        moved.forget([edit.document.id], author=OWNER)
        assert list_places(moved, where=PUBLIC) == ["Oslo", "Bergen", "Oslo"]

    def test_forgetting_removes_the_assertion_alone(self, moved: Store) -> None:
        receipt = moved.forget([BACK.document.id], author=OWNER)
        assert receipt.facts == ()
        assert list_places(moved, where=PUBLIC) == ["Bergen", "Oslo"]
        assert moved.find_remains(receipt) == ()

    def test_collections_have_their_own_assertions(self, moved: Store, open_store: OpenStore) -> None:
        other = open_store("other")
        assert list_places(other) == []
        other.write([move("Lima", "2026-01-01")], author=OWNER, model=MODEL)
        assert list_places(other) == ["Lima"]
        assert "Lima" not in list_places(moved)
        other.close()
