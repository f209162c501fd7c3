"""Test turns of conversations: their neighbours in the session, their terms in order, and the counts of terms."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from waylore.store.protocol import Store
from waylore.testing.scopes import say
from waylore.testing.world import MODEL, OpenStore, StoreFixtures, day, page
from waylore.types.author import OWNER
from waylore.types.columns import TurnColumns
from waylore.types.knowledge import IndexedDocument
from waylore.types.messages import Role
from waylore.types.search import Filter


def make_turn(
    place: int, text: str, *, session: str = "one", role: Role = "user", speaker: str = "Ann", label: str = ""
) -> IndexedDocument:
    """Return a turn of a session of ann, at a position that grows with its place."""
    said = say(text, user="ann", session=session, at="2026-03-01", speaker=speaker)
    moment = day("2026-03-01") + timedelta(minutes=place)
    passages = [replace(p, position=1_000 * place, role=role, at=moment) for p in said.passages]
    labels = frozenset({label} if label else ())
    return replace(said, document=replace(said.document, labels=labels), passages=tuple(passages))


TALK = (
    make_turn(1, "Did you get the job at the harbour office?", speaker="Ben"),
    make_turn(2, "Yes, they called this morning."),
    make_turn(3, "When do you start?", speaker="Ben"),
    make_turn(4, "Congratulations on the job!", role="assistant", speaker=""),
    make_turn(5, "On the first of March."),
    make_turn(6, "The job is a secret.", label="private"),
    make_turn(7, "Then we celebrate. Job, job, harbour job."),
)
OTHER = make_turn(3, "The harbour was full of ships.", session="two")
PAGE = page("A job is work.")
ANN = Filter(user="ann")
PUBLIC = Filter(user="ann", labels=frozenset())
IDS = [turn.passages[0].id for turn in TALK]


def list_places(turns: TurnColumns) -> list[int]:
    """Return the places in TALK of turns."""
    return [IDS.index(id_) + 1 for id_ in turns.ids]


class TurnTests(StoreFixtures):
    """Turns, their neighbours and their terms, read inside of permissions and filters."""

    @pytest.fixture
    def talk(self, store: Store) -> Store:
        store.write([*TALK, OTHER, PAGE], author=OWNER, model=MODEL)
        return store

    def test_turns_come_with_neighbours_of_session_and_role(self, talk: Store) -> None:
        def read(place: int, before: int, after: int, where: Filter = ANN) -> list[int]:
            return list_places(talk.turns("job", [IDS[place - 1]], before=before, after=after, where=where))

        assert read(5, 0, 0) == [5]
        assert read(5, 2, 1) == [2, 3, 5, 6]
        assert read(5, 9, 9) == [1, 2, 3, 5, 6, 7]
        assert read(1, 3, 1) == [1, 2]
        assert read(4, 9, 9) == [4]
        assert read(5, 2, 1, PUBLIC) == [2, 3, 5, 7]
        assert read(6, 2, 1, PUBLIC) == []
        assert read(5, 9, 9, Filter(user="ann", speaker="Ann")) == [2, 5, 6, 7]
        assert read(5, 9, 9, Filter(user="ann", until=day("2026-03-01") + timedelta(minutes=6))) == [1, 2, 3, 5]
        assert read(5, 9, 9, Filter(user="ben")) == []

    def test_neighbours_of_any_role_are_those_of_the_session(self, talk: Store) -> None:
        def read(place: int, before: int, after: int, where: Filter = ANN) -> list[int]:
            found = talk.turns("", [IDS[place - 1]], before=before, after=after, same_role=False, where=where)
            return sorted(list_places(found))

        assert read(5, 2, 1) == [3, 4, 5, 6]
        assert read(4, 1, 2) == [3, 4, 5, 6]
        assert read(5, 9, 9, PUBLIC) == [1, 2, 3, 4, 5, 7]
        assert read(5, 9, 9, Filter(user="ben")) == []

    def test_turns_are_read_once_and_in_order(self, talk: Store) -> None:
        asked = [IDS[6], IDS[1], IDS[2], IDS[1], PAGE.passages[0].id, "f" * 32, "no id"]
        turns = talk.turns("job", asked, before=1, after=1, where=ANN)
        assert list_places(turns) == [1, 2, 3, 5, 6, 7]
        assert len(set(turns.sessions.tolist())) == 1
        assert turns.positions.tolist() == [1_000, 2_000, 3_000, 5_000, 6_000, 7_000]
        assert turns.speakers == ("Ben", "Ann", "Ben", "Ann", "Ann", "Ann")
        assert set(turns.roles) == {"user"}
        assert turns.texts[1] == "Yes, they called this morning."
        assert turns.words.tolist() == [9, 5, 4, 5, 5, 7]
        assert turns.tells_time.tolist() == [False, True, False, True, False, False]
        assert turns.is_question.tolist() == [True, False, True, False, False, False]
        assert turns.at[0] == (day("2026-03-01") + timedelta(minutes=1)).timestamp() * 1_000_000

    def test_sessions_are_distinct(self, talk: Store) -> None:
        turns = talk.turns("", [OTHER.passages[0].id, IDS[0]], before=9, after=0, where=ANN)
        assert sorted(turns.texts) == sorted([TALK[0].passages[0].text, OTHER.passages[0].text])
        assert len(set(turns.sessions.tolist())) == 2

    def test_turns_of_a_day_without_session_are_neighbours(self, store: Store) -> None:
        said = [make_turn(place, text, session="") for place, text in ((1, "It rains."), (2, "Take a coat."))]
        later = make_turn(24 * 60, "The sun is back.", session="")
        store.write([*said, later], author=OWNER, model=MODEL)
        turns = store.turns("", [said[1].passages[0].id], before=9, after=9, where=ANN)
        assert turns.texts == ("It rains.", "Take a coat.")
        assert store.turns("", [later.passages[0].id], before=9, after=9, where=ANN).texts == ("The sun is back.",)

    def test_terms_are_in_order_of_text(self, talk: Store) -> None:
        turns = talk.turns("the jobs at a harbour, unknownword", [IDS[6], IDS[4]], before=0, after=0, where=ANN)
        assert turns.terms == ("job", "harbour", "unknownword")
        assert turns.sizes.tolist() == [2, 5]
        assert turns.sequence.tolist() == [-1, -1, -1, 0, 0, 1, 0]

    def test_terms_are_counted_in_passages_of_caller(self, talk: Store) -> None:
        def count(where: Filter) -> tuple[list[int], int]:
            turns = talk.turns("job harbour ship unknownword", [], before=0, after=0, where=where)
            return turns.counts.tolist(), turns.passages

        assert count(ANN) == ([5, 3, 1, 0], 9)
        assert count(PUBLIC) == ([4, 3, 1, 0], 8)
        assert count(Filter()) == ([1, 0, 0, 0], 1)

    def test_vectors_are_codes(self, talk: Store, open_store: OpenStore) -> None:
        turns = talk.turns("", [IDS[0]], before=0, after=0, where=ANN)
        vector = TALK[0].passages[0].vector
        assert vector is not None
        stored = turns.codes[0].astype(np.float32)
        assert turns.codes.dtype == np.int8
        assert stored @ vector / np.linalg.norm(stored) > 0.99
        bare = open_store("bare")
        bare.write([replace(t, passages=tuple(replace(p, vector=None) for p in t.passages)) for t in TALK],
                   author=OWNER, model=None)  # fmt: skip
        assert not bare.turns("", IDS, before=0, after=0, where=ANN).codes.any()
        bare.close()

    def test_forgotten_turn_is_no_neighbour(self, talk: Store) -> None:
        receipt = talk.forget([TALK[1].document.id], author=OWNER)
        assert talk.find_remains(receipt) == ()
        assert list_places(talk.turns("job", [IDS[2]], before=1, after=0, where=ANN)) == [1, 3]
