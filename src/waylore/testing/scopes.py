"""Test scopes and times: documents of a user, an agent and a session, and turns with a speaker and a time."""

from dataclasses import replace
from typing import Any

import pytest

from waylore import names as naming
from waylore.errors import Forbidden
from waylore.indexing import pipeline
from waylore.store.protocol import Store
from waylore.testing.world import EMBEDDER, MODEL, OpenStore, StoreFixtures, day, page, question
from waylore.types.author import OWNER, Author
from waylore.types.identity import document_id, entity_id
from waylore.types.knowledge import Document, IndexedDocument, NewFact
from waylore.types.results import UserCounts
from waylore.types.search import Filter

ALLERGY = NewFact("Ann", "allergic to", "peanuts")
MOVE = NewFact("Ann", "lives in", "Bergen")


def say(
    text: str, *facts: NewFact, user: str = "", agent: str = "", session: str = "", at: str = "", speaker: str = ""
) -> IndexedDocument:
    """Return a text that was said in a scope and on a day, with the facts it states, embedded."""
    moment = day(at) if at else None
    document = Document("", source="conversation", user=user, agent=agent, session=session, at=moment)
    own = document_id(text=text, scope=pipeline.get_scope(document))
    indexed = pipeline.index_text(replace(document, id=own, recorded_at=day("2026-05-01")), text, facts)
    passages = tuple(replace(passage, speaker=speaker, role="user") for passage in indexed.passages)
    return pipeline.embed_documents([replace(indexed, passages=passages)], EMBEDDER)[0]


ANN = say("I am allergic to peanuts.", ALLERGY, user="ann", session="one", at="2026-01-10", speaker="Ann")
BEN = say("I am allergic to peanuts.", ALLERGY, user="ben", session="one", at="2026-02-10", speaker="Ben")
LATER = say("I live in Bergen now.", MOVE, user="ann", agent="clerk", session="two", at="2026-03-10", speaker="Ann")
OPEN = page("Peanuts are legumes, says Ann in Bergen.", NewFact("Ann", "likes", "legumes"))
TOLD = (ANN, BEN, LATER, OPEN)
PREDICATES = ("allergic to", "lives in", "likes")
PASSAGES = [document.passages[0].id for document in TOLD]


def list_seen(store: Store, where: Filter) -> list[set[str]]:
    """Return the passages that each reading method shows through a filter."""
    ann = entity_id("Ann")
    facts = [fact.id for document in TOLD for fact in document.facts]
    return [
        set(store.passages(PASSAGES, where=where)),
        set(store.sources(PASSAGES, where=where)),
        {scored.id for scored in store.lexical("peanuts bergen", top_k=9, where=where)},
        {scored.id for scored in store.dense(question("peanuts"), top_k=9, where=where)},
        set(store.cosines(question("peanuts"), PASSAGES, where=where)),
        set(store.word_scores("peanuts bergen", PASSAGES, where=where)),
        set(store.passages_of_entities([ann], per_entity=9, where=where).passages),
        set(store.nearby(question("peanuts"), [ann], per_entity=9, where=where)[1]),
        {
            fact.passage_id
            for found in store.facts_of_entities([ann], per_entity=9, where=where).values()
            for fact in found
        },
        {
            fact.passage_id
            for found in store.assertions_of_entities([ann], predicates=PREDICATES, newest=9, where=where).values()
            for fact in found
        },
        {fact.passage_id for fact in store.facts(facts, where=where).values()},
        set(store.facts_of_passages(PASSAGES, per_passage=9, where=where).of),
        set(store.entities_of_passages(PASSAGES, per_passage=9, where=where).of),
    ]


class ScopeTests(StoreFixtures):
    """Users, agents, sessions, times and speakers, applied inside each query."""

    @pytest.fixture
    def told(self, store: Store) -> Store:
        store.write(TOLD, author=OWNER, model=MODEL)
        return store

    @pytest.mark.parametrize(
        ("where", "seen"),
        [
            (Filter(), [OPEN]),
            (Filter(user="ann"), [ANN, LATER, OPEN]),
            (Filter(user="ben"), [BEN, OPEN]),
            (Filter(user="nobody"), [OPEN]),
            (Filter(user="ann", session="one"), [ANN]),
            (Filter(user="ann", agent="clerk"), [LATER]),
            (Filter(user="ann", session="one", agent="clerk"), []),
            (Filter(session="one"), []),
            (Filter(user="ann", since=day("2026-01-10")), [ANN, LATER]),
            (Filter(user="ann", since=day("2026-01-11")), [LATER]),
            (Filter(user="ann", until=day("2026-03-10")), [ANN]),
            (Filter(user="ann", since=day("2026-01-01"), until=day("2026-12-31")), [ANN, LATER]),
            (Filter(user="ann", as_of=day("2026-01-10")), [ANN, OPEN]),
            (Filter(user="ann", as_of=day("2026-01-09")), [OPEN]),
            (Filter(user="ann", speaker="Ann"), [ANN, LATER]),
            (Filter(user="ann", speaker="Ben"), []),
            (Filter(labels=frozenset(), user="ben", since=day("2026-01-01")), [BEN]),
        ],
    )
    def test_every_read_keeps_to_scope(self, told: Store, where: Filter, seen: list[IndexedDocument]) -> None:
        expected = {document.passages[0].id for document in seen}
        assert list_seen(told, where) == [expected] * 13

    def test_documents_of_a_scope_are_listed(self, told: Store) -> None:
        def list_users(where: Filter) -> list[str]:
            return sorted(document.user for document in told.list_documents(where=where))

        assert list_users(Filter()) == [""]
        assert list_users(Filter(user="ann")) == ["", "ann", "ann"]
        assert list_users(Filter(user="ann", since=day("2026-03-01"))) == ["ann"]
        known = told.documents([document.document.id for document in TOLD], where=Filter(user="ben"))
        assert {document.user for document in known.values()} == {"", "ben"}

    def test_users_are_counted_by_name(self, told: Store) -> None:
        assert told.users() == (UserCounts("ann", 2, 2), UserCounts("ben", 1, 1))
        assert told.users(limit=1) == (UserCounts("ann", 2, 2),)
        assert told.users(after="ann") == (UserCounts("ben", 1, 1),)
        other = say("I like tea.", user="ben")
        staff = replace(other, document=replace(other.document, labels=frozenset({"staff"})))
        told.write([staff], author=OWNER, model=MODEL)
        told.forget([ANN.document.id, LATER.document.id], author=OWNER)
        assert told.users() == (UserCounts("ben", 2, 2),)

    def test_scope_is_exported_and_written_again(self, told: Store, open_store: OpenStore) -> None:
        exported = list(told.export())
        assert {(d.document.user, d.document.session, d.document.at) for d in exported} == {
            (d.document.user, d.document.session, d.document.at) for d in TOLD
        }
        assert {p.speaker for d in exported for p in d.passages} == {"", "Ann", "Ben"}
        assert told.write(exported, author=OWNER, model=MODEL) == 0
        copy = open_store("copy")
        assert copy.write(exported, author=OWNER, model=MODEL) == len(TOLD)
        assert list(copy.export()) == exported
        copy.close()

    def test_other_users_change_no_score(self, store: Store, open_store: OpenStore) -> None:
        """Documents of other users change neither scores nor counts."""
        alone = open_store("alone")
        alone.write([ANN, LATER, OPEN], author=OWNER, model=MODEL)
        others = [say(f"peanuts in Bergen {n} " + "legumes " * n, ALLERGY, user=f"user {n}") for n in range(5)]
        store.write([*others[:2], BEN, ANN, LATER, OPEN, *others[2:]], author=OWNER, model=MODEL)
        ann = entity_id("Ann")

        def read(of: Store, where: Filter) -> list[Any]:
            return [
                of.lexical("peanuts bergen legumes", top_k=9, where=where),
                of.word_scores("peanuts bergen legumes", PASSAGES, where=where),
                of.count_terms("peanuts bergen legumes", where=where),
                of.entities([ann, entity_id("peanuts")], where=where),
                of.entities_by_names(["Ann", "peanuts"], where=where),
                of.find_similar_entities({ann: naming.keys("peanuts")}, max_per_key=3, where=where),
                of.has_facts(where=where),
            ]

        for where in (Filter(), Filter(user="ann"), Filter(labels=frozenset(), user="ann")):
            assert read(store, where) == read(alone, where)
        alone.close()

    def test_only_turns_are_told_from_documents(self, told: Store) -> None:
        own = [told.has_only_turns(where=Filter(user=user)) for user in ("", "ann", "nobody")]
        assert [told.has_turns(where=Filter(user=user)) for user in ("", "ann", "nobody")] == [False, True, False]
        told.forget([OPEN.document.id], author=OWNER)
        assert (own, [told.has_only_turns(where=Filter(user=user)) for user in ("", "ann", "nobody")]) == (
            [False, False, False],
            [False, True, False],
        )
        receipt = told.forget([ANN.document.id, LATER.document.id], author=OWNER)
        assert not told.has_only_turns(where=Filter(user="ann"))
        assert not told.has_turns(where=Filter(user="ann"))
        assert told.find_remains(receipt) == ()

    def test_author_of_a_user_writes_for_that_user(self, told: Store) -> None:
        author = Author("key", user="ann")
        told.write([page("Mine.")], author=author, model=MODEL)
        assert told.list_documents(where=Filter(user="ann"))[0].user == "ann"
        assert "Mine." not in {p.text for d in told.export() for p in d.passages if d.document.user != "ann"}
        for hidden in (BEN, OPEN):
            with pytest.raises(Forbidden):
                told.forget([hidden.document.id], author=author)
        with pytest.raises(Forbidden):
            told.write([replace(BEN, document=replace(BEN.document, title="x"))], author=author, model=MODEL)
        assert told.forget([ANN.document.id], author=author).documents == (ANN.document.id,)

    def test_forgotten_user_leaves_nothing(self, told: Store) -> None:
        receipt = told.forget([ANN.document.id, LATER.document.id], author=OWNER)
        assert told.find_remains(receipt) == ()
        assert list_seen(told, Filter(user="ann")) == list_seen(told, Filter(user="ben", as_of=day("2026-01-01")))
